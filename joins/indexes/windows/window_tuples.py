"""A window's tuples as columns in the order of their positions: what all window indexes share.

Keys are codes (`joins.indexes.index`): -0.0 and 0.0, which are equal, are one key to a hash table,
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from joins.indexes.index import Ranges, check_columns, check_least, check_ranges
from joins.indexes.range_search import lower_bound
from joins.machine.compiling import kernel
from joins.state import Stateful
from joins.work import Work, new_counters

_CAPACITY_MIN = 64


def check_tuples(
    predicates: int, columns: Sequence[np.ndarray], positions: np.ndarray, last: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return tuples to store as columns that kernels can take, and their positions.

    *last* is the position stored last, if there is one. Raise what `check_columns` raises, and
    :exc:`ValueError` when positions do not ascend.
    """
    keys, positions = check_columns(predicates, columns, positions)
    ascending = np.concatenate([last, positions])
    wrong = np.flatnonzero(ascending[1:] <= ascending[:-1])
    if len(wrong):
        earlier, later = ascending[wrong[0] : wrong[0] + 2]
        row = wrong[0] + 1 - len(last)
        raise ValueError(f"row {row}: position {later} follows {earlier}; positions must ascend")
    return keys, positions


class WindowTuples(Stateful):
    """Columns that grow at the end and are dropped from the front.

    A tuple's *place* is its row in the arrays; it changes when they are moved to make room, which
    `append` does. Its *serial*, place + shift, never does: it counts the tuples before it.

    Attributes
    ----------
    keys
        int64, shape (p, capacity): each predicate's column.
    positions
        int64, stream positions.
    begin, end
        The window's tuples are those at places begin to end - 1.
    shift
        Serial less place.
    """

    state = ("keys", "positions", "begin", "end", "shift")

    def __init__(self, predicates: int) -> None:
        check_least(1, predicates=predicates)
        self.begin = self.end = self.shift = 0
        self._allocate(predicates, _CAPACITY_MIN)

    def append(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Append tuples; raise what `check_tuples` raises, and append nothing then."""
        last = self.positions[max(self.begin, self.end - 1) : self.end]
        keys, positions = check_tuples(len(self.keys), columns, positions, last)
        n = len(positions)
        moved = self._make_room(n)
        for row, values in zip(self.keys, keys, strict=True):
            row[self.end : self.end + n] = values
        self.positions[self.end : self.end + n] = positions
        self.end += n
        return Work(moves=moved, bytes_copied=(len(keys) + 1) * positions.nbytes)

    def drop(self, before: int) -> tuple[int, Work]:
        """Drop positions less than *before*; return how many and what finding them cost."""
        counters = new_counters()
        begin = lower_bound(self.positions, self.begin, self.end, before, counters)
        dropped, self.begin = begin - self.begin, begin
        return dropped, Work.from_counters(counters)

    def locate(self, ranges: Ranges) -> tuple[Ranges, np.ndarray]:
        """Return *ranges* with places of this window for positions, and counters of what that cost.

        A probe that sees nothing has equal *start* and *stop*, and no probe has more matches than
        there are places between. Raise what `check_ranges` raises.
        """
        check_ranges(ranges, len(self.keys))
        counters = new_counters()
        bounds = np.concatenate((ranges.start, ranges.stop))
        places = np.empty_like(bounds)
        _find_bounds(self.positions, self.begin, self.end, bounds, places, counters)
        start, stop = places[: len(bounds) // 2], places[len(bounds) // 2 :]
        located = ranges._replace(start=start, stop=np.maximum(start, stop))
        return located, counters

    def _allocate(self, predicates: int, capacity: int) -> None:
        self.keys = np.zeros((predicates, capacity), np.int64)
        self.positions = np.zeros(capacity, np.int64)

    def _make_room(self, more: int) -> int:
        """Move the tuples to the front when *more* do not fit; return how many were moved.

        As much room as there are tuples is left, so that a tuple is moved once on average however
        long the stream; and the arrays become small again after a burst.
        """
        if self.end + more <= len(self.positions):
            return 0
        window, moved = slice(self.begin, self.end), self.end - self.begin
        keys, positions = self.keys[:, window], self.positions[window]
        self._allocate(len(keys), max(_CAPACITY_MIN, 2 * (moved + more)))
        self.keys[:, :moved] = keys
        self.positions[:moved] = positions
        self.shift += self.begin
        self.begin, self.end = 0, moved
        return moved


class WindowIndex(Stateful):
    """What the indexes over `WindowTuples` share: all of an `Index` but the probe.

    By itself it stores tuples as they come; a structure that builds something on insertion adds to
    `insert` and `expire`.

    Parameters
    ----------
    predicates
        How many columns a tuple has, at least one.
    """

    state: ClassVar[tuple[str, ...]] = ("_tuples",)
    searches_all: ClassVar[bool] = False
    """Whether a probe also goes through stored tuples that it does not see."""

    def __init__(self, predicates: int) -> None:
        self._tuples = WindowTuples(predicates)

    def insert(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Insert tuples; raise what `WindowTuples.append` raises."""
        return self._tuples.append(columns, positions)._replace(inserts=len(positions))

    def expire(self, before: int) -> Work:
        """Drop positions less than *before*."""
        return self._tuples.drop(before)[1]

    def __len__(self) -> int:
        return self._tuples.end - self._tuples.begin


@kernel
def _find_bounds(
    positions: np.ndarray,
    begin: int,
    end: int,
    bounds: np.ndarray,
    places: np.ndarray,
    counters: np.ndarray,
) -> None:
    for i in range(len(bounds)):
        places[i] = lower_bound(positions, begin, end, bounds[i], counters)
