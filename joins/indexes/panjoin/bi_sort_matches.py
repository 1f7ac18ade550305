"""Turning the ranges that a BI-Sort's probes take into matches."""

from __future__ import annotations

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.panjoin.answering import Output, Probes, Stored, sees_nothing, take_all
from joins.indexes.panjoin.bi_sort_runs import Runs
from joins.indexes.panjoin.bi_sort_search import BUFFER_BEGIN, MAIN_BEGIN, find_begins, find_ends
from joins.indexes.panjoin.threads import BLOCK
from joins.machine import kernel
from joins.work import COMPARISONS, MATCHES


@kernel
def _count_from(
    keys: np.ndarray,
    places: np.ndarray,
    size: int,
    begins: np.ndarray,
    probes: Probes,
    stored: Stored,
    begin: int,
    end: int,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Count the matches of plain probes, whose ranges and windows are all there is to hold.

    A range begins where *begins* says, and is at its end where a key is beyond it.
    """
    start, stop, first = probes.start, probes.stop, stored.first
    in_all = read = 0
    for row in range(begin, end):
        at = np.uint64(begins[row - begin])
        high, least = probes.high[row], max(first, start[row])
        seen = np.uint64(max(0, min(stop[row], first + stored.size) - least))
        found, total = 0, np.uint64(0)
        while at < np.uint64(size) and keys[0, at] <= high:
            position = first + places[0, at]
            # In a subwindow at the window's end half of the tuples are outside, and no branch would
            # be guessed right.
            is_seen = np.uint64(position - least) < seen
            found += int(is_seen)
            total += splitmix64(position) & (np.uint64(0) - np.uint64(is_seen))
            at += np.uint64(1)
            read += 1
        output.matches[row] += found
        output.fingerprint[row] += total
        in_all += found
    counters[MATCHES] += in_all
    counters[COMPARISONS] += read + end - begin


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

    *ranges* has room for a block.
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
        _count_from(runs.keys, runs.places, runs.size, ranges[MAIN_BEGIN], *rows)
        if runs.buffered:
            begins = ranges[BUFFER_BEGIN]
            _count_from(runs.buffer_keys, runs.buffer_places, runs.buffered, begins, *rows)
