"""What every way of keeping the window's state has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from actors.probes import Probes
from actors.protocol import Context
from actors.spo_join.payloads import MergedCount, Permutations, Routed, WindowCount
from joins.state import Stateful


class WindowState(Stateful, ABC):
    """What one PO-Join PE knows of how far the window has moved.

    A PE asks it for the bounds of its probes and for what has expired, and tells it what happens;
    a way overrides what it learns from.
    """

    def bounds(self, part: Probes) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the positions that the tuples of *part* see: by default whole segments."""
        return None, None

    def before(self, context: Context) -> None:
        """Take note that tuples are about to be evaluated."""

    def evaluated(self, routed: Routed, context: Context) -> None:
        """Take note of tuples that were evaluated (Algorithm 4, line 12)."""

    def assigned(self, arrays: Permutations) -> None:
        """Take note of a permutation array that was assigned to this PE."""

    def told(self, count: MergedCount | WindowCount) -> None:
        """Take note of what another operator says of the window."""

    @abstractmethod
    def is_expired(self, stream: int, epoch: int, stop: int) -> bool:
        """Return whether an epoch's segment of *stream* has left the window.

        *stop* is the position after the segment's last.
        """
