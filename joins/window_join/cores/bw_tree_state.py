"""What is kept of each simulated core that shares Bw-Trees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.window_join.cores.state import FREE

LOOK_UP, PREPARE, PUBLISH, EXPIRE = range(FREE + 1, FREE + 5)
"""Stages beside `FREE` and `IDLE`: look a row up; prepare the next step of a change; swap it in;
look for something to delete."""

SIDE, NEXT, END = range(3)
"""What a core deletes: whose, the next position and the end; equal when it deletes nothing."""


class BwCores(NamedTuple):
    """Arrays of int64; a time is in picoseconds from the batch's beginning.

    Attributes
    ----------
    state, free, latest, unit_ps
        See `joins.window_join.cores.state.Clocks`.
    expiring
        See `SIDE`; one row a core.
    line_free
        Shape (sides, lines): when each line of the mapping table is given back.
    """

    state: np.ndarray
    free: np.ndarray
    latest: np.ndarray
    unit_ps: np.ndarray
    expiring: np.ndarray
    line_free: np.ndarray
