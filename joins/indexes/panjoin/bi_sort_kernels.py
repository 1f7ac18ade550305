"""The kernels of BI-Sort: merging, sampling the index array, finding ranges, reporting them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.panjoin.answering import Output, Probes, Stored, sees_nothing, take_all
from joins.indexes.panjoin.rebound import rebound
from joins.machine import inlined, kernel, prefetch_entry
from joins.work import COMPARISONS, MATCHES, MOVES

BLOCK = 256
"""Probes per block. Searches start afresh at a block, so that the work counted does not depend on
how blocks are dealt out to threads; and what a block prefetches fits into the first cache."""

CHUNK = 16
"""Keys that a scan compares without a branch in between; partitions are whole numbers of them."""

_CHUNKS_SCANNED = 4
_LINE = 8

MAIN_BEGIN, MAIN_END, BUFFER_BEGIN, BUFFER_END = range(4)
"""Rows of a matrix of ranges."""


class Runs(NamedTuple):
    """The sorted arrays of a BI-Sort.

    Attributes
    ----------
    keys, places
        int64 and int32, shape (1, capacity): the main array. Behind the last tuple the keys are the
        greatest integer, at least one partition of them, so that scans need not look for the end.
    size
        Tuples in it.
    sampled, step
        int64, shape (1, P): the key of every *step*-th tuple of the main array; *step* is a
        multiple of `CHUNK`.
    samples
        Entries of the index array in use.
    buffer_keys, buffer_places, buffered
        The insertion buffer and the tuples in it.
    """

    keys: np.ndarray
    places: np.ndarray
    size: int
    sampled: np.ndarray
    step: int
    samples: int
    buffer_keys: np.ndarray
    buffer_places: np.ndarray
    buffered: int


@kernel
def merge(
    keys: np.ndarray,
    places: np.ndarray,
    size: int,
    new_keys: np.ndarray,
    new_places: np.ndarray,
    new: int,
    counters: np.ndarray,
) -> None:
    """Merge *new* sorted entries into *size* sorted ones, in place from the greatest down."""
    i, to = size - 1, size + new - 1
    for j in range(new - 1, -1, -1):
        key, place = new_keys[0, j], new_places[0, j]
        while i >= 0 and keys[0, i] > key:
            keys[0, np.uint64(to)] = keys[0, np.uint64(i)]
            places[0, np.uint64(to)] = places[0, np.uint64(i)]
            i -= 1
            to -= 1
        keys[0, np.uint64(to)] = key
        places[0, np.uint64(to)] = place
        to -= 1
    counters[MOVES] += size - 1 - i + new
    counters[COMPARISONS] += size - 1 - i + new


@kernel
def sample(keys: np.ndarray, size: int, step: int, index: np.ndarray, counters: np.ndarray) -> None:
    """Fill in the index array."""
    samples = (size + step - 1) // step
    for i in range(samples):
        index[0, i] = keys[0, i * step]
    counters[MOVES] += samples


@inlined
def _next(target: int) -> int:
    """Return v+, the smallest value larger than v; the largest has none and stays."""
    return target if target == np.int64(0x7FFFFFFFFFFFFFFF) else target + 1


@inlined
def _place_of(runs: Runs, partition: int, target: int, counters: np.ndarray) -> int:
    """Return the first place with a key of at least *target*, which so many samples are less than.

    The paper scans the partition; of a wide one a binary search first leaves a few chunks.
    """
    place = 0
    if partition > 0:
        place = (partition - 1) * runs.step
        chunks = runs.step // CHUNK
        while chunks > _CHUNKS_SCANNED:
            half = chunks >> 1
            if runs.keys[0, np.uint64(place + half * CHUNK)] < target:
                place += half * CHUNK
                chunks -= half
            else:
                chunks = half
            counters[COMPARISONS] += 1
        # Counting has no branch to guess, and takes eight keys at a time.
        below = 0
        for i in range(np.uint64(place), np.uint64(place + chunks * CHUNK)):
            below += runs.keys[0, i] < target
        counters[COMPARISONS] += chunks * CHUNK
        place += below
    return place


@inlined
def _ask_for(runs: Runs, partition: int) -> None:
    """Ask for the keys of the partition before sample *partition*."""
    at = (partition - 1) * runs.step
    for line in range(at, at + min(runs.step, _CHUNKS_SCANNED * CHUNK), _LINE):
        prefetch_entry(runs.keys, 0, line)


@kernel
def _find_partitions(
    runs: Runs,
    probes: Probes,
    begin: int,
    end: int,
    ranges: np.ndarray,
    base: int,
    counters: np.ndarray,
) -> None:
    """Write for each probe which samples its range's ends come after, and ask for those keys."""
    first, last = 0, 0
    for row in range(begin, end):
        low, past = probes.low[row], _next(probes.high[row])
        first = rebound(runs.sampled, 0, runs.samples, first, low, counters)
        last = rebound(runs.sampled, 0, runs.samples, max(first, last), past, counters)
        ranges[MAIN_BEGIN, row - base], ranges[MAIN_END, row - base] = first, last
        if first > 0:
            _ask_for(runs, first)
        if last > first:
            _ask_for(runs, last)


@kernel
def find_ranges(
    runs: Runs,
    probes: Probes,
    begin: int,
    end: int,
    ranges: np.ndarray,
    base: int,
    counters: np.ndarray,
) -> None:
    """Fill in for probes *begin* to *end* (one block) the ranges of places that their keys take.

    Column 0 of *ranges* is that of probe *base*.
    """
    _find_partitions(runs, probes, begin, end, ranges, base, counters)
    low_hint, high_hint = 0, 0
    keys, buffered = runs.buffer_keys, runs.buffered
    is_narrow = runs.step <= _CHUNKS_SCANNED * CHUNK
    for row in range(begin, end):
        low, high = probes.low[row], probes.high[row]
        if low > high:
            for which in range(4):
                ranges[which, row - base] = 0
            continue
        past = _next(high)
        partition = ranges[MAIN_BEGIN, row - base]
        if is_narrow and 0 < partition == ranges[MAIN_END, row - base]:
            # Mostly both ends are in one partition, and it is read once.
            begin_of = (partition - 1) * runs.step
            first = last = begin_of
            for i in range(np.uint64(begin_of), np.uint64(begin_of + runs.step)):
                key = runs.keys[0, i]
                first += key < low
                last += key < past
            counters[COMPARISONS] += 2 * runs.step
        else:
            first = _place_of(runs, partition, low, counters)
            last = _place_of(runs, ranges[MAIN_END, row - base], past, counters)
        if first < last:
            prefetch_entry(runs.places, 0, first)
        if buffered:
            low_hint = rebound(keys, 0, buffered, low_hint, low, counters)
            high_hint = rebound(keys, 0, buffered, max(high_hint, low_hint), past, counters)
        # Nothing is past the greatest integer: a range up to there ends where the array does.
        open_end = past == high
        ranges[MAIN_BEGIN, row - base] = first
        ranges[MAIN_END, row - base] = runs.size if open_end else last
        ranges[BUFFER_BEGIN, row - base] = low_hint
        ranges[BUFFER_END, row - base] = buffered if open_end else high_hint


@kernel
def _count_in_windows(
    places: np.ndarray,
    ranges: np.ndarray,
    which: int,
    base: int,
    probes: Probes,
    stored: Stored,
    begin: int,
    end: int,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Count the matches of plain probes, whose ranges and windows are all there is to hold."""
    start, stop, first, size = probes.start, probes.stop, stored.first, stored.size
    matches, fingerprint = output.matches, output.fingerprint
    in_all = 0
    for row in range(begin, end):
        range_begin, range_end = ranges[which, row - base], ranges[which + 1, row - base]
        if range_begin >= range_end:
            continue
        least = max(first, start[row])
        seen = np.uint64(max(0, min(stop[row], first + size) - least))
        found, total = 0, np.uint64(0)
        # In a subwindow at the window's end half of the tuples are outside, and no branch would be
        # guessed right.
        for i in range(np.uint64(range_begin), np.uint64(range_end)):
            position = first + places[0, i]
            is_seen = np.uint64(position - least) < seen
            found += int(is_seen)
            total += splitmix64(position) & (np.uint64(0) - np.uint64(is_seen))
        matches[row] += found
        fingerprint[row] += total
        in_all += found
    counters[MATCHES] += in_all


@kernel
def report_ranges(
    runs: Runs,
    ranges: np.ndarray,
    base: int,
    probes: Probes,
    stored: Stored,
    begin: int,
    end: int,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Turn the ranges of probes *begin* to *end* into matches.

    Column 0 of *ranges* is that of probe *base*.
    """
    is_plain = not probes.negated and len(probes.filter_negated) == 0
    if is_plain and len(output.match_id) == 0:
        window = (probes, stored, begin, end, output, counters)
        _count_in_windows(runs.places, ranges, MAIN_BEGIN, base, *window)
        if runs.buffered:
            _count_in_windows(runs.buffer_places, ranges, BUFFER_BEGIN, base, *window)
        return
    for row in range(begin, end):
        if sees_nothing(probes, stored, row):
            continue
        for which in (MAIN_BEGIN, BUFFER_BEGIN):
            places = runs.places if which == MAIN_BEGIN else runs.buffer_places
            size = runs.size if which == MAIN_BEGIN else runs.buffered
            first, last = ranges[which, row - base], ranges[which + 1, row - base]
            if not probes.negated:
                take_all(places, 0, first, last, probes, stored, row, output, counters)
            else:
                take_all(places, 0, 0, first, probes, stored, row, output, counters)
                take_all(places, 0, last, size, probes, stored, row, output, counters)


@kernel
def probe_runs(
    runs: Runs,
    ranges: np.ndarray,
    probes: Probes,
    stored: Stored,
    begin: int,
    end: int,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Answer probes *begin* to *end*; *begin* is a multiple of `BLOCK`.

    *ranges* has room for a block.
    """
    for block in range(begin, end, BLOCK):
        block_end = min(block + BLOCK, end)
        find_ranges(runs, probes, block, block_end, ranges, block, counters)
        report_ranges(runs, ranges, block, probes, stored, block, block_end, output, counters)


@kernel
def search_runs(
    runs: Runs, probes: Probes, begin: int, end: int, ranges: np.ndarray, counters: np.ndarray
) -> None:
    """Find the ranges of probes *begin* to *end*; *begin* is a multiple of `BLOCK`."""
    for block in range(begin, end, BLOCK):
        find_ranges(runs, probes, block, min(block + BLOCK, end), ranges, 0, counters)
