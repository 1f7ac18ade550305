"""Probing tuples that nothing else will probe: a batch against a table, say.

Sorting the tuples and sealing them in a segment pays when many probes follow, or when matches are
listed. A few probes that are only counted are answered sooner from the columns as they come: each
is compared with every tuple, by vector instructions, a block of tuples at a time for all probes, so
that memory is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.immutable.prefix_grid import PrefixGridSegment
from joins.indexes.immutable.segment import ImmutableSegment
from joins.indexes.index import (
    Ranges,
    as_column,
    check_least,
    check_ranges,
    make_ranges,
    window_in,
)
from joins.machine.compiling import inlined, kernel
from joins.matches import MatchBuffer, MatchList, ProbeResult, add_total
from joins.threads import side_by_side
from joins.work import COMPARISONS, new_counters

SCANNED_PROBES = 128
"""Most probes that scan: sorting and sealing takes a tuple some 40 ns, comparing it with a probe by
two predicates a quarter of one."""
_BLOCK = 1024
"""Tuples that all probes are compared with before the next ones: their columns stay in the first
cache."""
_PROBES = 64
"""Probes that a thread takes at a time from a segment."""
_ALL, _NONE = np.int64(-1), np.int64(0)


def probe_once(
    columns: Sequence[np.ndarray],
    ranges: Ranges,
    *,
    first: int = 0,
    enumerate: bool = False,
    threads: int = 1,
    structure: type[ImmutableSegment] = PrefixGridSegment,
) -> list[ProbeResult]:
    """Return the matches of probes among tuples that no segment has.

    Parameters
    ----------
    columns
        The tuples' codes, int64, a column per predicate in stream order.
    ranges
        The probes.
    first
        The stream position of the first tuple.
    enumerate
        List positions too.
    threads
        How many work at once.
    structure
        What the tuples are sealed in, if they are.

    Returns
    -------
    results
        Those of successive stretches of the probes, which `ProbeResult.concat` joins.

    Raise :exc:`ValueError` or :exc:`TypeError` when a column or a range does not fit.
    """
    check_least(1, threads=threads)
    m = len(ranges.start)
    if not enumerate and m <= SCANNED_PROBES:
        return [_scan(columns, ranges, first, threads)]
    segment = structure.from_columns(columns, first=first, threads=threads)

    def probe(begin: int) -> ProbeResult:
        return segment.probe(_part(ranges, begin, begin + _PROBES), enumerate=enumerate)

    return side_by_side(probe, range(0, max(m, 1), _PROBES), threads)


def _part(ranges: Ranges, begin: int, end: int) -> Ranges:
    """Return probes *begin* to *end* - 1."""
    rows = slice(begin, end)
    return make_ranges(
        ranges.low[:, rows],
        ranges.high[:, rows],
        negated=ranges.negated,
        start=ranges.start[rows],
        stop=ranges.stop[rows],
    )


def _scan(columns: Sequence[np.ndarray], ranges: Ranges, first: int, threads: int) -> ProbeResult:
    """Count the matches of every probe by comparing it with every tuple."""
    n = len(columns[0])
    check_ranges(ranges, len(columns))
    codes = tuple(as_column(of_one, np.int64, f"column {i}", n) for i, of_one in enumerate(columns))
    cuts = np.linspace(0, n, threads + 1).astype(int).tolist()

    def scan(part: tuple[int, int]) -> ProbeResult:
        matches = MatchList(len(ranges.start), enumerate=False)
        counters = new_counters()
        room = np.empty((2, _BLOCK), np.int64)
        _count_matches(codes, ranges, first, *part, room, matches.buffer, counters)
        return matches.result(counters)

    return ProbeResult.sum(side_by_side(scan, list(pairwise(cuts)), threads))


@kernel
def _count_matches(
    codes: tuple[np.ndarray, ...],
    ranges: Ranges,
    first: int,
    begin: int,
    end: int,
    room: np.ndarray,
    buffer: MatchBuffer,
    counters: np.ndarray,
) -> None:
    """Count the matches of all probes among the tuples *begin* to *end* - 1.

    *room* has a row for whether a tuple of a block satisfies all predicates, all bits or none, and
    one for the hash of its position.
    """
    satisfied, mixed = room[0], room[1]
    predicates = len(codes)
    for block in range(begin, end, _BLOCK):
        size = min(_BLOCK, end - block)
        for i in range(size):
            mixed[i] = np.int64(splitmix64(first + block + i))
        for probe in range(len(ranges.start)):
            start, stop = window_in(first + block, size, ranges.start[probe], ranges.stop[probe])
            if start >= stop:
                continue
            for predicate in range(predicates):
                _test(codes[predicate], ranges, predicate, probe, block, (start, stop), satisfied)
            count, total = np.int64(0), np.int64(0)
            for i in range(start, stop):
                count -= satisfied[i]
                total += mixed[i] & satisfied[i]
            counters[COMPARISONS] += predicates * (stop - start)
            add_total(buffer, probe, int(count), np.uint64(total))


@inlined
def _test(
    codes: np.ndarray,
    ranges: Ranges,
    predicate: int,
    probe: int,
    block: int,
    part: tuple[int, int],
    satisfied: np.ndarray,
) -> None:
    """Clear the tuples of a block that do not satisfy a predicate; the first one sets the rest."""
    low, high = ranges.low[predicate, probe], ranges.high[predicate, probe]
    inside, outside = (_NONE, _ALL) if ranges.negated[predicate] else (_ALL, _NONE)
    for i in range(part[0], part[1]):
        code = codes[block + i]
        passes = inside if (low <= code) & (code <= high) else outside
        satisfied[i] = passes if predicate == 0 else passes & satisfied[i]
