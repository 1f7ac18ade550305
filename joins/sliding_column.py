"""A column whose values come at its end and go at its front, as those of a window do."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from joins.state import State, Stateful


class SlidingColumn(Stateful):
    """Values in the order in which they came.

    To append a few to many takes no copy of the many: an array has room for as many again as there
    are, so that a value is moved once on average, however long the window is.

    Parameters
    ----------
    dtype
        Of the values.

    Attributes
    ----------
    values
        Those that are there now: a view, which holds until the next change.
    """

    state: ClassVar[tuple[str, ...]] = ("values",)
    values: np.ndarray
    _room: np.ndarray
    _end: int  # of the values in there

    def __init__(self, dtype: Any) -> None:
        self._take(np.empty(0, dtype))

    def __len__(self) -> int:
        return len(self.values)

    def append(self, values: np.ndarray) -> None:
        """Put *values* behind those that are there."""
        end, more = self._end, len(values)
        if end + more > len(self._room):
            room = np.empty(2 * len(self) + more, self.values.dtype)
            room[: len(self)] = self.values
            self._room, end = room, len(self)
        self._end = end + more
        self._room[end : self._end] = values
        self.values = self._room[end - len(self) : self._end]

    def drop(self, count: int) -> None:
        """Drop the first *count* values."""
        self.values = self.values[count:]

    def restore(self, state: State) -> None:
        """Go back to where a snapshot was taken."""
        self._take(np.copy(state["values"]))

    def _take(self, values: np.ndarray) -> None:
        self.values = self._room = values
        self._end = len(values)
