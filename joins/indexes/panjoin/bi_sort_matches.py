"""Turning the ranges that a BI-Sort's probes take into matches."""

from __future__ import annotations

from typing import NamedTuple

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

FEW = 4
"""Tuples of a range that are counted without a branch."""


class Scratch(NamedTuple):
    """Working memory for a block of probes.

    Attributes
    ----------
    ranges
        Shape (4, `BLOCK`).
    rows, found
        Matches of ranges with at most `FEW` tuples: whose they are, and where in the array.
    """

    ranges: np.ndarray
    rows: np.ndarray
    found: np.ndarray


def make_scratch() -> Scratch:
    """Return working memory."""
    room = (BLOCK + 1) * FEW
    return Scratch(
        np.empty((4, BLOCK), np.int64), np.empty(room, np.int32), np.empty(room, np.int32)
    )


@kernel
def _count_block(
    keys: np.ndarray,
    places: np.ndarray,
    size: int,
    begins: np.ndarray,
    ends: np.ndarray,
    scratch: Scratch,
    probes: Probes,
    stored: Stored,
    begin: int,
    end: int,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Count the matches of plain probes, whose ranges and windows are all there is to hold.

    How many tuples are in a short range no branch would guess right. So `FEW` are written down for
    each, the next range's over those beyond its end, and the list is gone through without a branch.
    """
    find_near_ends(keys, size, begins, probes, begin, end, ends)
    listed = read = 0
    for column in range(end - begin):
        first, count = begins[column], max(ends[column] - begins[column], 0)
        row = begin + column
        read += count + 1
        if count > FEW:
            take_all(places, 0, first, first + count, probes, stored, row, output, counters)
            continue
        for i in range(FEW):
            scratch.rows[np.uint64(listed + i)] = row
            scratch.found[np.uint64(listed + i)] = first + i
        listed += count
    counters[COMPARISONS] += read
    matches = np.int64(0)
    for i in range(np.uint64(listed)):
        by = np.uint64(scratch.rows[i])
        position = stored.first + places[0, np.uint64(scratch.found[i])]
        seen = np.uint64(position >= probes.start[by]) & np.uint64(position < probes.stop[by])
        output.matches[by] += np.int64(seen)
        output.fingerprint[by] += splitmix64(position) & (np.uint64(0) - seen)
        matches += np.int64(seen)
    counters[MATCHES] += matches


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
    scratch: Scratch,
    probes: Probes,
    stored: Stored,
    begin: int,
    end: int,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Answer probes *begin* to *end*; *begin* is a multiple of `BLOCK`."""
    is_counted = not probes.negated and len(probes.filter_negated) + len(output.match_id) == 0
    ranges = scratch.ranges
    for block in range(begin, end, BLOCK):
        block_end = min(block + BLOCK, end)
        find_begins(runs, probes, block, block_end, ranges, counters)
        if not is_counted:
            find_ends(runs, probes, block, block_end, ranges, counters)
            report_ranges(runs, ranges, block, probes, stored, block, block_end, output, counters)
            continue
        rows = (scratch, probes, stored, block, block_end, output, counters)
        main = ranges[MAIN_BEGIN], ranges[MAIN_END]
        _count_block(runs.keys, runs.places, runs.size, *main, *rows)
        if runs.buffered:
            buffer = ranges[BUFFER_BEGIN], ranges[BUFFER_END]
            _count_block(runs.buffer_keys, runs.buffer_places, runs.buffered, *buffer, *rows)
