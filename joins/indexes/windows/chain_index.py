"""The chained index of BiStream (Lin, Ooi, Wang and Yu, SIGMOD 2015): expiry by whole parts.

A window is a chain of sub-indexes, each over the tuples of one stretch of the stream. The last one
is active and takes the inserts; when it is full it is archived, and an empty one is linked behind
it. A probe searches every sub-index. Nothing is ever deleted: a sub-index is dropped when its
newest tuple has expired. Short sub-indexes make many searches, long ones retain expired tuples.

BiStream ends a sub-index after a period of time; here it ends after a number of tuples, which is
the same for windows by time and by count. PIM-Tree calls this chain of B+-trees B-chain.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from joins.indexes.index import Ranges, check_least
from joins.indexes.windows.window_tree import WindowTree
from joins.indexes.windows.window_tuples import check_tuples
from joins.matches import ProbeResult
from joins.state import Stateful
from joins.work import NO_WORK, Work

LENGTH = 1024
"""Tuples of a sub-index by default."""


class ChainIndex(Stateful):
    """A window's tuples in a chain of `WindowTree`.

    Parameters
    ----------
    predicates
        How many columns a tuple has.
    length
        Tuples after which a sub-index is archived.
    """

    state = ("_predicates", "_length", "_archived", "_newest", "_active")
    searches_all = True

    def __init__(self, predicates: int, *, length: int = LENGTH) -> None:
        check_least(1, length=length)
        self._predicates = predicates
        self._length = length
        self._archived: list[WindowTree] = []
        self._newest: list[int] = []  # the last position in each archived sub-index
        self._active = WindowTree(self._predicates)

    def insert(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Insert tuples into the active sub-index, and archive it whenever it is full.

        Raise what `check_tuples` raises, and insert nothing then.
        """
        newest = np.array(self._newest[-1:], np.int64)
        columns, positions = check_tuples(self._predicates, columns, positions, newest)
        work, done = NO_WORK, 0
        while True:
            end = min(len(positions), done + self._length - len(self._active))
            part = slice(done, end)
            work += self._active.insert([values[part] for values in columns], positions[part])
            if len(self._active) == self._length:
                self._archive(int(positions[end - 1]))
            if end == len(positions):
                return work
            done = end

    def probe(self, ranges: Ranges, *, enumerate: bool = False) -> ProbeResult:
        """Find matches as `Index.probe` says."""
        parts = (*self._archived, self._active)
        return ProbeResult.sum([part.probe(ranges, enumerate=enumerate) for part in parts])

    def expire(self, before: int) -> Work:
        """Drop the sub-indexes that have no position from *before* on."""
        expired = bisect_left(self._newest, before)
        del self._archived[:expired], self._newest[:expired]
        return NO_WORK

    def __len__(self) -> int:
        return self._length * len(self._archived) + len(self._active)

    def _archive(self, newest: int) -> None:
        """Link the full sub-index, whose last position is *newest*, and begin the next one."""
        self._archived.append(self._active)
        self._newest.append(newest)
        self._active = WindowTree(self._predicates)
