"""What is kept of each simulated core, and of the one that merges."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

CLOCK, STAGE = 0, 1
"""A core: the time up to which its work is done, in picoseconds from the batch's beginning, and
what it does next."""

FREE, SEARCH, LOOK_UP, INSERT, CLOSE, BUILD, SWAP, PENDING = range(8)
"""Stages: take a task; search the immutable tree; look up under a subindex's lock; insert likewise;
and of the merging core: close the gate before the queue, build the next trees, put them in place,
apply pending updates."""
FIRST_BLOCKED = 8
PARKED, DRAINING, IDLE = range(FIRST_BLOCKED, FIRST_BLOCKED + 3)
"""Stages that others end: the gate is closed; tasks must finish before a merge goes on; there is
nothing in the queue."""

SIDE, AFTER_DRAIN, NEXT, END = range(4)
"""The merge: which side's, the stage after the tasks have finished, and the positions of the
pending updates."""


class Clocks(Protocol):
    """What simulated cores have whichever index they share."""

    @property
    def state(self) -> np.ndarray:
        """See `CLOCK`; one row a core."""

    @property
    def free(self) -> np.ndarray:
        """When each lock or line of `joins.window_join.live.state.Live.words` is given back."""

    @property
    def latest(self) -> np.ndarray:
        """One number: when the last task was finished."""

    @property
    def unit_ps(self) -> np.ndarray:
        """What a unit of each counter of `joins.work.Work` takes."""


class Cores(NamedTuple):
    """Arrays of int64; a time is in picoseconds from the batch's beginning.

    Attributes
    ----------
    state, free, latest, unit_ps
        See `Clocks`.
    tasks
        Shape (cores, 2): the rows of its task that are left, the next and the end.
    places
        See `joins.indexes.pim_tree.lookahead`; one row a core.
    merge
        See `SIDE`.
    subindex_free
        When the lock of each subindex is given back.
    """

    state: np.ndarray
    tasks: np.ndarray
    places: np.ndarray
    merge: np.ndarray
    free: np.ndarray
    subindex_free: np.ndarray
    latest: np.ndarray
    unit_ps: np.ndarray
