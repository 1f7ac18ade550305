"""Finding which places of a BI-Sort's arrays the ranges of probes take."""

from __future__ import annotations

import numpy as np

from joins.indexes.panjoin.answering import Probes
from joins.indexes.panjoin.bi_sort_runs import CHUNK, Runs
from joins.indexes.panjoin.rebound import AT_ONCE, as_key, rebound, rebound_all
from joins.indexes.panjoin.threads import BLOCK
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import prefetch_entry
from joins.machine.lanes import lanes_less
from joins.work import COMPARISONS

MAIN_BEGIN, MAIN_END, BUFFER_BEGIN, BUFFER_END = range(4)
"""Rows of a matrix of ranges."""

GREATEST = np.int64(0x7FFFFFFFFFFFFFFF)
_SCANNED = 4 * CHUNK
_LINE = 16
_FEW = 4
"""Tuples that a range is thought to hold, when its places are asked for."""
_AHEAD = 8
"""Probes whose partitions are on their way: asking for all at once would lose most requests."""


@inlined
def part_to_scan(runs: Runs, partition: int, target: int) -> tuple[int, int, int]:
    """Return where to scan for *target*, how many keys, and the comparisons of it all.

    So many samples as *partition* says are less than the target. The paper scans the partition; of
    a wide one a binary search first leaves a few chunks.
    """
    place, size, halvings = max(partition - 1, 0) * runs.step, runs.step, 0
    while size > _SCANNED:
        half = size // (2 * CHUNK) * CHUNK
        halvings += 1
        if runs.keys[0, np.uint64(place + half)] < target:
            place += half
            size -= half
        else:
            size = half
    # Counting has no branch to guess, and takes several keys in an instruction.
    return place, size, halvings + size // AT_ONCE


@inlined
def _place_of(runs: Runs, partition: int, target: int, counters: np.ndarray) -> int:
    """Return the first place with a key of at least *target*; see `part_to_scan`."""
    place, size, compared = part_to_scan(runs, partition, target)
    counters[COMPARISONS] += compared
    found = place
    for chunk in range(place, place + size, CHUNK):
        found += lanes_less(runs.keys, 0, chunk, target)
    return found


@inlined
def ask_ahead(runs: Runs, partitions: np.ndarray, column: int, count: int) -> None:
    """Ask for the keys that `part_to_scan` will speak of `_AHEAD` columns on.

    *partitions* has *count* columns. The first one asks for those until then as well.
    """
    for ahead in range(column + _AHEAD if column else 0, min(column + _AHEAD + 1, count)):
        place = max(partitions[ahead] - 1, 0) * runs.step
        for line in range(0, min(runs.step, _SCANNED), _LINE):
            prefetch_entry(runs.keys, 0, place + line)


@kernel
def find_begins(
    runs: Runs,
    probes: Probes,
    begin: int,
    end: int,
    ranges: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Fill in where the ranges of probes *begin* to *end* (one block) begin.

    Column 0 of *ranges* is that of probe *begin*.
    """
    begins = ranges[MAIN_BEGIN]
    rebound_all(runs.sampled, runs.samples, probes.low, begin, end, begins, counters)
    count = end - begin
    for column in range(count):
        ask_ahead(runs, begins, column, count)
        low = as_key(runs.keys, probes.low[begin + column])
        begins[column] = _place_of(runs, begins[column], low, counters)
        prefetch_entry(runs.places, 0, begins[column])
        prefetch_entry(runs.places, 0, begins[column] + _FEW)  # It may be in the next line.
    begins = ranges[BUFFER_BEGIN]
    # Without anything in the buffer all of these are 0.
    rebound_all(runs.buffer_keys, runs.buffered, probes.low, begin, end, begins, counters)


@kernel
def find_ends(
    runs: Runs,
    probes: Probes,
    begin: int,
    end: int,
    ranges: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Fill in where the ranges end that `find_begins` has found the beginnings of."""
    for row in range(begin, end):
        column = row - begin
        if probes.low[row] > probes.high[row]:
            for which in range(4):
                ranges[which, column] = 0
        elif probes.high[row] == GREATEST:
            ranges[MAIN_END, column], ranges[BUFFER_END, column] = runs.size, runs.buffered
        else:
            past, first = probes.high[row] + 1, ranges[MAIN_BEGIN, column]
            hint = min(first // runs.step, runs.samples)
            partition = rebound(runs.sampled, 0, runs.samples, hint, past, counters)
            key = as_key(runs.keys, past)
            ranges[MAIN_END, column] = _place_of(runs, partition, key, counters)
            first = ranges[BUFFER_BEGIN, column]
            ranges[BUFFER_END, column] = rebound(
                runs.buffer_keys, 0, runs.buffered, first, past, counters
            )


@kernel
def search_runs(
    runs: Runs, probes: Probes, begin: int, end: int, ranges: np.ndarray, counters: np.ndarray
) -> None:
    """Find the ranges of probes *begin* to *end*; *begin* is a multiple of `BLOCK`."""
    for block in range(begin, end, BLOCK):
        block_end, columns = min(block + BLOCK, end), ranges[:, block:]
        find_begins(runs, probes, block, block_end, columns, counters)
        find_ends(runs, probes, block, block_end, columns, counters)
