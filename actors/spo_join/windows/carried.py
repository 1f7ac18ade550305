"""Every tuple carries its window: exact, and no message more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from actors.probes import Probes
from actors.protocol import Context
from actors.spo_join.payloads import Routed
from actors.spo_join.windows.state import WindowState


class Carried(WindowState):
    """The router, which alone sees all arrivals in order, gives each tuple the positions it sees.

    A probe cannot find what has expired, however late a PE drops it; and since windows only move
    forward, the bounds that pass by tell when to.

    Parameters
    ----------
    stored
        Per probing stream the stream it probes.
    """

    state = ("_horizon",)

    def __init__(self, *, stored: Sequence[int]) -> None:
        self._stored = tuple(stored)
        self._horizon = [0] * len(stored)

    def bounds(self, part: Probes) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return what the tuples carry."""
        return part.start, part.stop

    def evaluated(self, routed: Routed, context: Context) -> None:
        """Remember the last bounds that passed by."""
        for stream, part in enumerate(routed.parts):
            if len(part):
                self._horizon[self._stored[stream]] = int(part.start[-1])

    def is_expired(self, stream: int, epoch: int, stop: int) -> bool:
        """Return whether no later probe can see any of it."""
        return stop <= self._horizon[stream]
