"""A hash table over a window, for joins with an equality; other predicates are checked on top.

Buckets are chosen by the keys of all equalities together. A bucket's tuples are chained in the
order of positions, so the tuple that expires next is always the first of its chain: expiring one
takes the same time however many share its key.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.index import NONE, Ranges, in_range
from joins.indexes.windows.window_tuples import WindowIndex
from joins.machine.compiling import kernel
from joins.matches import MatchBuffer, ProbeResult, add_match, find_matches, has_room
from joins.state import storable
from joins.work import COMPARISONS, Work

_SEED = np.uint64(0x6A09E667F3BCC909)
"""Tuples may have been dealt out to PEs by the plain hash of the same key. Those of one PE then
have some of its bits in common, and would crowd into few buckets."""


@storable
class Table(NamedTuple):
    """The chains; places are those of `WindowTuples`."""

    equal: np.ndarray
    """bool, a predicate each: whether it is an equality, which buckets are chosen by."""
    head: np.ndarray
    tail: np.ndarray
    """int64, a bucket each: the first and last place of its chain. An empty chain has no head; its
    tail means nothing."""
    following: np.ndarray
    """int64, a place each: the next one of its chain."""


class HashIndex(WindowIndex):
    """A window's tuples by the keys that an equality compares.

    Parameters
    ----------
    equal
        Per predicate whether it is an equality; at least one is. A probe's range for an equality
        is one value, or empty.
    """

    state = ("_equal", "_table")

    def __init__(self, equal: Sequence[bool]) -> None:
        if not any(equal):
            raise ValueError(f"equal is {list(equal)}; a hash index needs an equality to hash by")
        super().__init__(len(equal))
        self._equal = np.array(equal, np.bool_)
        self._chain_all()

    def insert(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Insert tuples; raise what `WindowTuples.append` raises.

        The table is built anew when the columns move; that is as rare as they make it, and each
        time the table has as many buckets as there is room for tuples, or up to twice as many.
        """
        tuples = self._tuples
        place = tuples.begin, len(tuples.positions)
        work = super().insert(columns, positions)
        if place != (tuples.begin, len(tuples.positions)):
            self._chain_all()
            return work + Work(moves=len(self))
        _link(self._table, tuples.keys, tuples.end - len(positions), tuples.end)
        return work

    def probe(self, ranges: Ranges, *, enumerate: bool = False) -> ProbeResult:
        """Find matches as `Index.probe` says; ids ascend within a row.

        Raise :exc:`ValueError` when an equality is negated or has a range of several values.
        """
        tuples = self._tuples
        located, counters = tuples.locate(ranges)
        for i in np.flatnonzero(self._equal):
            wide = np.flatnonzero(located.low[i] < located.high[i])
            if located.negated[i] or len(wide):
                what = "is negated" if located.negated[i] else f"has a range in row {wide[0]}"
                raise ValueError(f"predicate {i} {what}; a hash index needs an equality there")
        step = partial(_look_up, self._table, tuples.keys, tuples.positions, located)
        most = located.stop - located.start
        return find_matches(step, len(most), enumerate=enumerate, most=most, counters=counters)

    def expire(self, before: int) -> Work:
        """Take positions less than *before* out of their chains."""
        tuples = self._tuples
        dropped, work = tuples.drop(before)
        _unlink(self._table, tuples.keys, tuples.begin - dropped, tuples.begin)
        return work + Work(moves=dropped)

    def _chain_all(self) -> None:
        tuples = self._tuples
        room = len(tuples.positions)
        buckets = 1 << (room - 1).bit_length()
        head, tail = np.full((2, buckets), NONE)
        self._table = Table(self._equal, head, tail, np.full(room, NONE))
        _link(self._table, tuples.keys, tuples.begin, tuples.end)


@kernel
def _bucket(table: Table, keys: np.ndarray, place: int) -> int:
    """Return the bucket of the keys in column *place*: of a tuple, or of a probe's points."""
    mixed = _SEED
    for predicate in range(len(table.equal)):
        if table.equal[predicate]:
            mixed = splitmix64(int(mixed) ^ keys[predicate, place])
    return int(mixed & np.uint64(len(table.head) - 1))


@kernel
def _link(table: Table, keys: np.ndarray, begin: int, end: int) -> None:
    """Append the tuples at places *begin* to *end* - 1 to their chains."""
    for place in range(begin, end):
        bucket = _bucket(table, keys, place)
        table.following[place] = NONE
        if table.head[bucket] == NONE:
            table.head[bucket] = place
        else:
            table.following[table.tail[bucket]] = place
        table.tail[bucket] = place


@kernel
def _unlink(table: Table, keys: np.ndarray, begin: int, end: int) -> None:
    """Take the tuples at places *begin* to *end* - 1, the oldest, off the heads of their chains."""
    for place in range(begin, end):
        table.head[_bucket(table, keys, place)] = table.following[place]


@kernel
def _look_up(
    table: Table,
    keys: np.ndarray,
    positions: np.ndarray,
    ranges: Ranges,
    row: int,
    buffer: MatchBuffer,
    counters: np.ndarray,
) -> int:
    """Probe from *row* on; see `joins.matches.ProbeStep`."""
    for probe in range(row, len(ranges.start)):
        begin, end = ranges.start[probe], ranges.stop[probe]
        if not has_room(buffer, end - begin):
            return probe
        place = table.head[_bucket(table, ranges.low, probe)]
        while place != NONE and place < end:
            tested = 1
            wanted = place >= begin
            while wanted and tested <= len(keys):
                wanted = in_range(ranges, tested - 1, probe, keys[tested - 1, place])
                tested += 1
            counters[COMPARISONS] += tested
            if wanted:
                add_match(buffer, probe, positions[place])
            place = table.following[place]
    return len(ranges.start)
