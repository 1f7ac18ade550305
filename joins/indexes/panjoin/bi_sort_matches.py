"""Turning the ranges that a BI-Sort's probes take into matches."""

from __future__ import annotations

import numpy as np

from joins.indexes.panjoin.answering import Output, Probes, Stored, sees_nothing, take_all
from joins.indexes.panjoin.bi_sort_counting import count_block
from joins.indexes.panjoin.bi_sort_runs import Runs
from joins.indexes.panjoin.bi_sort_search import (
    BUFFER_BEGIN,
    MAIN_BEGIN,
    find_begins,
    find_ends,
)
from joins.indexes.panjoin.threads import BLOCK
from joins.machine.compiling import kernel


def make_ranges() -> np.ndarray:
    """Return room for the ranges of a block of probes."""
    return np.empty((4, BLOCK), np.int64)


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
        rows = block, min(block + BLOCK, end)
        if is_counted:
            count_block(runs, probes, stored, *rows, ranges, output, counters)
        else:
            find_begins(runs, probes, *rows, ranges, counters)
            find_ends(runs, probes, *rows, ranges, counters)
            report_ranges(runs, ranges, block, probes, stored, *rows, output, counters)
