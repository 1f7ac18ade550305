"""Counting what a BI-Sort's probes match, where ranges and windows are all there is to hold.

In a batch that is small beside the window each probe waits for lines of the cache that no other
reads. So they are asked for ahead of time, and none is touched but those of a range: both its ends
are counted in the keys of one partition, and its places are looked at within one line.
"""

from __future__ import annotations

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.panjoin.answering import Output, Probes, Stored, take_all
from joins.indexes.panjoin.bi_sort_runs import CHUNK, Runs
from joins.indexes.panjoin.bi_sort_search import (
    BUFFER_BEGIN,
    BUFFER_END,
    GREATEST,
    MAIN_BEGIN,
    MAIN_END,
    ask_ahead,
    part_to_scan,
)
from joins.indexes.panjoin.rebound import as_key, rebound_all
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import prefetch_entry
from joins.machine.lanes import LANES, lanes_less
from joins.work import COMPARISONS, MATCHES

_FEW = 8
"""Tuples of a range that are looked at without a branch."""

_LINE = 16
"""Places in a cache line."""

_RARE = 8
"""Fewer than one match in so many probes: most ranges are empty, which a branch then guesses."""


@inlined
def _end_after(keys: np.ndarray, size: int, place: int, high: int) -> int:
    """Return the first place, from one on, with a key above *high*."""
    if high == GREATEST:
        return size
    target = as_key(keys, high + 1)
    less = LANES
    while less == LANES and place < size:
        less = lanes_less(keys, 0, place, target)
        place += less
    return min(place, size)


@kernel
def _find_in_main(
    runs: Runs, probes: Probes, begin: int, end: int, ranges: np.ndarray, counters: np.ndarray
) -> None:
    """Fill in the ranges of a block of probes in the main array.

    Both ends are counted in the keys of one partition; few ranges reach beyond it.
    """
    begins, ends = ranges[MAIN_BEGIN], ranges[MAIN_END]
    rebound_all(runs.sampled, runs.samples, probes.low, begin, end, begins, counters)
    count, compared = end - begin, 0
    for column in range(np.uint64(count)):
        ask_ahead(runs, begins, np.int64(column), count)
        high = probes.high[np.uint64(begin) + column]
        first = as_key(runs.keys, probes.low[np.uint64(begin) + column])
        past = as_key(runs.keys, min(high, GREATEST - 1) + 1)
        part, size, steps = part_to_scan(runs, begins[column], first)
        found = stop = chunk = part
        while chunk < part + size:
            found += lanes_less(runs.keys, 0, chunk, first)
            stop += lanes_less(runs.keys, 0, chunk, past)
            chunk += CHUNK
        if stop == part + size or high == GREATEST:
            stop = _end_after(runs.keys, runs.size, stop, high)
        prefetch_entry(runs.places, 0, found)
        prefetch_entry(runs.places, 0, max(stop - 1, found))
        begins[column], ends[column] = found, stop
        compared += steps
    counters[COMPARISONS] += compared


@kernel
def _find_in_buffer(
    runs: Runs, probes: Probes, begin: int, end: int, ranges: np.ndarray, counters: np.ndarray
) -> None:
    """Fill in the ranges of a block of probes in the insertion buffer."""
    begins, ends = ranges[BUFFER_BEGIN], ranges[BUFFER_END]
    rebound_all(runs.buffer_keys, runs.buffered, probes.low, begin, end, begins, counters)
    for column in range(np.uint64(end - begin)):
        high = probes.high[np.uint64(begin) + column]
        ends[column] = _end_after(runs.buffer_keys, runs.buffered, begins[column], high)


@kernel
def _count_ranges(
    places: np.ndarray,
    begins: np.ndarray,
    ends: np.ndarray,
    probes: Probes,
    stored: Stored,
    begin: int,
    end: int,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Count the matches in the ranges of a block of probes.

    How many tuples are in a short range no branch would guess right. So `_FEW` are looked at for
    each, several in an instruction, and those that do not count are masked. They begin where they
    stay within a line of the cache if the range does. Keys are not compared any more: what this
    takes is in what matches cost.
    """
    read = 0
    for column in range(np.uint64(end - begin)):
        read += max(ends[column] - begins[column], 0)
    rare = read * _RARE < end - begin
    # A number that the compiler does not know: else it would unroll the loop over it.
    few = min(_FEW, places.shape[1])
    last, total = places.shape[1] - few, np.int64(0)
    for column in range(np.uint64(end - begin)):
        first, count = begins[column], max(ends[column] - begins[column], 0)
        if rare and count == 0:
            continue
        row = np.uint64(begin) + column
        if count > few:
            take_all(places, 0, first, first + count, probes, stored, row, output, counters)
            continue
        line = first & -_LINE
        inside_line = min(first, line + _LINE - _FEW)
        base = min(inside_line if first + count <= line + _LINE else first, last)
        skipped, past = np.uint64(first - base), np.uint64(first - base + count)
        start, stop = probes.start[row], probes.stop[row]
        matches, fingerprint = np.uint64(0), np.uint64(0)
        for i in range(np.uint64(few)):
            position = stored.first + places[0, np.uint64(base) + i]
            inside = np.uint64(i >= skipped) & np.uint64(i < past)
            seen = inside & np.uint64(position >= start) & np.uint64(position < stop)
            matches += seen
            fingerprint += splitmix64(position) & (np.uint64(0) - seen)
        output.matches[row] += np.int64(matches)
        output.fingerprint[row] += fingerprint
        total += np.int64(matches)
    counters[MATCHES] += total


@kernel
def count_block(
    runs: Runs,
    probes: Probes,
    stored: Stored,
    begin: int,
    end: int,
    ranges: np.ndarray,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Count the matches of probes *begin* to *end* (one block), which have no further predicates.

    *ranges* is working memory.
    """
    rows = (probes, stored, begin, end, output, counters)
    _find_in_main(runs, probes, begin, end, ranges, counters)
    _count_ranges(runs.places, ranges[MAIN_BEGIN], ranges[MAIN_END], *rows)
    if runs.buffered:
        _find_in_buffer(runs, probes, begin, end, ranges, counters)
        _count_ranges(runs.buffer_places, ranges[BUFFER_BEGIN], ranges[BUFFER_END], *rows)
