"""What the ways have in common that go by a count of tuples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from actors.spo_join.windows.state import WindowState
from joins.queries.windows import Window


class Counted(WindowState):
    """Takes a count for the number of tuples that have arrived, per stream.

    Parameters
    ----------
    windows
        One per stream, over that stream, by count.
    """

    state = ("_counts",)

    def __init__(self, *, windows: Sequence[Window]) -> None:
        self._windows = tuple(windows)
        self._counts = [0] * len(windows)

    def is_expired(self, stream: int, epoch: int, stop: int) -> bool:
        """Return whether a tuple that so many precede would see none of it."""
        return stop <= self._windows[stream].bound(np.array([self._counts[stream]]))[0]
