"""Turning the ranges that a BI-Sort's probes take into matches."""

from __future__ import annotations

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.panjoin.answering import Output, Probes, Stored, sees_nothing, take_all
from joins.indexes.panjoin.bi_sort_runs import Runs
from joins.indexes.panjoin.bi_sort_search import (
    BUFFER_BEGIN,
    BUFFER_END,
    MAIN_BEGIN,
    MAIN_END,
    find_begins,
    find_ends,
    find_near_ends,
)
from joins.indexes.panjoin.threads import BLOCK
from joins.machine import kernel
from joins.work import COMPARISONS, MATCHES

FEW = 8
"""Tuples of a range that are looked at without a branch."""


def make_ranges() -> np.ndarray:
    """Return room for the ranges of a block of probes."""
    return np.empty((4, BLOCK), np.int64)


@kernel
def _count_block(
    keys: np.ndarray,
    places: np.ndarray,
    size: int,
    begins: np.ndarray,
    ends: np.ndarray,
    probes: Probes,
    stored: Stored,
    begin: int,
    end: int,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Count the matches of plain probes, whose ranges and windows are all there is to hold.

    How many tuples are in a short range no branch would guess right. So `FEW` are looked at for
    each, several in an instruction, and those that do not count are masked.
    """
    find_near_ends(keys, size, begins, probes, begin, end, ends)
    # A number that the compiler does not know: else it would unroll the loop over it.
    few = min(FEW, places.shape[1])
    last = places.shape[1] - few
    read, total = 0, np.int64(0)
    for column in range(np.uint64(end - begin)):
        first, count = begins[column], max(ends[column] - begins[column], 0)
        row = np.uint64(begin) + column
        read += count + 1
        if count > few:
            take_all(places, 0, first, first + count, probes, stored, row, output, counters)
            continue
        base = min(first, last)
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
    counters[COMPARISONS] += read
    counters[MATCHES] += total


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

    *ranges* is working memory, see `make_ranges`.
    """
    is_counted = not probes.negated and len(probes.filter_negated) + len(output.match_id) == 0
    for block in range(begin, end, BLOCK):
        block_end = min(block + BLOCK, end)
        find_begins(runs, probes, block, block_end, ranges, counters)
        if not is_counted:
            find_ends(runs, probes, block, block_end, ranges, counters)
            report_ranges(runs, ranges, block, probes, stored, block, block_end, output, counters)
            continue
        rows = (probes, stored, block, block_end, output, counters)
        main = ranges[MAIN_BEGIN], ranges[MAIN_END]
        _count_block(runs.keys, runs.places, runs.size, *main, *rows)
        if runs.buffered:
            buffer = ranges[BUFFER_BEGIN], ranges[BUFFER_END]
            _count_block(runs.buffer_keys, runs.buffer_places, runs.buffered, *buffer, *rows)
