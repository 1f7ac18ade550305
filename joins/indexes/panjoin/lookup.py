"""What the three structures of a subwindow share: codes, places, and what a lookup works with.

A structure knows a tuple by its place in the subwindow (its position less the subwindow's first)
and by the code of the field it is indexed by, the first predicate's. Once that code is in a probe's
range, the tuple must still lie in the probe's window and satisfy the further predicates.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, Protocol

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.index import Ranges, in_range
from joins.machine.compiling import inlined, kernel
from joins.matches import MatchBuffer, add_total
from joins.state import storable
from joins.work import COMPARISONS, MATCHES, Work

StructureName = Literal["bi_sort", "rap_table", "wib_tree"]

BLOCK = 256
"""Probes per block. Searches start afresh at a block, so that the work counted does not depend on
how blocks are dealt out to threads; and what a block prefetches fits into the first cache."""


@storable
class Stored(NamedTuple):
    """The tuples of a subwindow beside its structure."""

    first: int
    """Stream position of the first tuple."""
    size: int
    """Number of tuples."""
    columns: np.ndarray
    """int64, shape (p - 1, capacity): codes of the further predicates' fields, by place."""


class Lookup(NamedTuple):
    """What a structure's kernels work with while they answer probes.

    Matches are counted in a first pass, and listed in a second one if at all: each probe's where
    the first pass has counted room for them. So several subwindows and threads list side by side,
    and listing changes nothing about the work that is counted.
    """

    ranges: Ranges
    stored: Stored
    """What is looked up, and in what."""
    buffer: MatchBuffer
    """Where matches go. A pass that lists leaves the totals as they are."""
    next_id: np.ndarray
    """int64, where in ``buffer.match_id`` each probe's next match goes; of no length while
    counting."""
    counters: np.ndarray
    """Work counters of this call alone."""


class Structure(Protocol):
    """An index over the tuples of one subwindow by the codes of a field."""

    def insert(self, codes: np.ndarray, places: np.ndarray) -> Work:
        """Insert a batch in ascending order of *codes* (int64) with the tuples' *places* (int32).

        Places count from 0 in the order of arrival.
        """

    def answer(self, lookup: Lookup, begin: int, end: int) -> None:
        """Answer probes *begin* to *end*.

        Calls for different probes may run side by side. *begin* is a multiple of `BLOCK`, and what
        is counted does not depend on how the blocks are dealt out to calls.
        """


@inlined
def sees_nothing(lookup: Lookup, row: int) -> bool:
    """Return whether the subwindow lies outside the probe's window."""
    ranges, stored = lookup.ranges, lookup.stored
    is_past = ranges.stop[row] <= stored.first
    return bool(is_past or ranges.start[row] >= stored.first + stored.size)


@inlined
def _accepts_all(lookup: Lookup, row: int) -> bool:
    """Return whether every tuple in the probe's first range is a match."""
    ranges, stored = lookup.ranges, lookup.stored
    return bool(
        ranges.start[row] <= stored.first
        and stored.first + stored.size <= ranges.stop[row]
        and len(ranges.negated) == 1
    )


@inlined
def _accepts(lookup: Lookup, row: int, place: int) -> bool:
    """Return whether the tuple at *place* is in the window and satisfies the other predicates."""
    ranges, stored = lookup.ranges, lookup.stored
    position = stored.first + place
    if position < ranges.start[row] or position >= ranges.stop[row]:
        return False
    for other in range(1, len(ranges.negated)):
        lookup.counters[COMPARISONS] += 1
        if not in_range(ranges, other, row, stored.columns[other - 1, place]):
            return False
    return True


@inlined
def _add_match(
    lookup: Lookup, row: int, place: int, count: int, fingerprint: np.uint64
) -> tuple[int, np.uint64]:
    """Add a match to the *count* and *fingerprint* of a probe, or to the list."""
    position = lookup.stored.first + place
    if len(lookup.next_id) == 0:
        return count + 1, fingerprint + splitmix64(position)
    lookup.buffer.match_id[lookup.next_id[row]] = position
    lookup.next_id[row] += 1
    return count + 1, fingerprint


@inlined
def _finish_row(lookup: Lookup, row: int, count: int, fingerprint: np.uint64) -> None:
    lookup.counters[MATCHES] += count
    if len(lookup.next_id) == 0:
        add_total(lookup.buffer, row, count, fingerprint)


@kernel
def match_places(
    lookup: Lookup, row: int, places: np.ndarray, line: int, begin: int, end: int
) -> None:
    """Add to a probe's matches those of ``places[line, begin:end]``, whose codes are in range."""
    count, fingerprint = 0, np.uint64(0)
    all_match = _accepts_all(lookup, row)
    for i in range(begin, end):
        place = int(places[line, i])
        if all_match or _accepts(lookup, row, place):
            count, fingerprint = _add_match(lookup, row, place, count, fingerprint)
    _finish_row(lookup, row, count, fingerprint)


@kernel
def match_entries(
    lookup: Lookup, row: int, keys: np.ndarray, places: np.ndarray, line: int, size: int
) -> None:
    """Add to a probe's matches those of the first *size* entries of a line, in any order."""
    count, fingerprint = 0, np.uint64(0)
    low, high = lookup.ranges.low[0, row], lookup.ranges.high[0, row]
    wanted = not lookup.ranges.negated[0]
    all_match = _accepts_all(lookup, row)
    for i in range(size):
        key = keys[line, i]
        if ((low <= key) & (key <= high)) == wanted:
            place = int(places[line, i])
            if all_match or _accepts(lookup, row, place):
                count, fingerprint = _add_match(lookup, row, place, count, fingerprint)
    lookup.counters[COMPARISONS] += size
    _finish_row(lookup, row, count, fingerprint)
