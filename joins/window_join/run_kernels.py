"""Sorted runs on a stack, merged by their sizes, and searched by batches of sorted probes.

A side's runs lie one above the other in two columns, the oldest at the bottom, each beginning at a
block of `BLOCK` entries. Merging two neighbours sets the upper one aside and fills the room from
its end, so no second stack is needed. The last key of every block is kept in a fence: a search
steps through the fence, which stays in the cache, and then counts in one block.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.pim_tree.layout import INF
from joins.indexes.pim_tree.probe import Output
from joins.machine import kernel, prefetch_entry
from joins.work import COMPARISONS, MOVES

BLOCK = 32
_SHIFT = 5
_LINE = 8
GROUP = 32
"""Probes whose cache lines are asked for together."""

BEGIN, ENTRIES, OLDEST = 0, 1, 2
"""Columns of `Stack.runs`: where a run begins, its entries, and its least position."""
RUNS_MAX = 64


class Stack(NamedTuple):
    """The runs of one side.

    Attributes
    ----------
    keys, positions
        Shape (1, room): entries in key order within a run; INF between the end of a run and the
        next block.
    fence
        Shape (1, room / BLOCK): the last key of every block.
    runs
        A row per run, oldest first, see `BEGIN`.
    held
        One number: how many runs there are.
    """

    keys: np.ndarray
    positions: np.ndarray
    fence: np.ndarray
    runs: np.ndarray
    held: np.ndarray


def make_stack(room: int) -> Stack:
    """Return an empty stack with room for *room* entries and a block per run."""
    room = (room // BLOCK + RUNS_MAX + 1) * BLOCK
    return Stack(
        np.full((1, room), INF, np.int64),
        np.full((1, room), 0, np.int64),
        np.full((1, room // BLOCK), INF, np.int64),
        np.zeros((RUNS_MAX, 3), np.int64),
        np.zeros(1, np.int64),
    )


@kernel
def blocks_end(place: int) -> int:
    """Return the beginning of the first block at or after *place*."""
    return (place + BLOCK - 1) & ~(BLOCK - 1)


@kernel
def stack_top(stack: Stack) -> int:
    """Return where the next run would begin."""
    count = stack.held[0]
    if count == 0:
        return 0
    return blocks_end(stack.runs[count - 1, BEGIN] + stack.runs[count - 1, ENTRIES])


@kernel
def finish_run(stack: Stack, run: int, counters: np.ndarray) -> None:
    """Fill up a run's last block and set its fence."""
    begin, entries = stack.runs[run, BEGIN], stack.runs[run, ENTRIES]
    end = begin + entries
    for place in range(end, blocks_end(end)):
        stack.keys[0, place] = INF
    for block in range(begin >> _SHIFT, blocks_end(end) >> _SHIFT):
        stack.fence[0, block] = stack.keys[0, (block << _SHIFT) + BLOCK - 1]
    counters[MOVES] += entries >> _SHIFT


@kernel
def drop_expired(stack: Stack, run: int, horizon: int, counters: np.ndarray) -> None:
    """Close up a run over its entries below *horizon*."""
    begin, entries = stack.runs[run, BEGIN], stack.runs[run, ENTRIES]
    if stack.runs[run, OLDEST] >= horizon:
        return
    kept = begin
    for place in range(begin, begin + entries):
        position = stack.positions[0, place]
        stack.keys[0, kept] = stack.keys[0, place]
        stack.positions[0, kept] = position
        kept += position >= horizon
    stack.runs[run, ENTRIES] = kept - begin
    stack.runs[run, OLDEST] = horizon
    counters[MOVES] += entries


@kernel
def merge_upper_two(
    stack: Stack, spare_keys: np.ndarray, spare_positions: np.ndarray, counters: np.ndarray
) -> None:
    """Merge the run on top into the one below it; the spare columns have room for the upper one."""
    lower = stack.held[0] - 2
    keys, positions = stack.keys, stack.positions
    begin, m = stack.runs[lower, BEGIN], stack.runs[lower, ENTRIES]
    above, n = stack.runs[lower + 1, BEGIN], stack.runs[lower + 1, ENTRIES]
    for i in range(np.uint64(n)):
        spare_keys[i] = keys[0, np.uint64(above) + i]
        spare_positions[i] = positions[0, np.uint64(above) + i]
    left, right, to = begin + m - 1, n - 1, begin + m + n - 1
    while left >= begin and right >= 0:
        # Which one is greater cannot be foreseen: chosen by arithmetic, not by a branch.
        a, b = keys[0, np.uint64(left)], spare_keys[np.uint64(right)]
        p, q = positions[0, np.uint64(left)], spare_positions[np.uint64(right)]
        older = a > b
        keys[0, np.uint64(to)] = a if older else b
        positions[0, np.uint64(to)] = p if older else q
        left -= older
        right -= not older
        to -= 1
    while right >= 0:
        keys[0, to] = spare_keys[right]
        positions[0, to] = spare_positions[right]
        right -= 1
        to -= 1
    stack.runs[lower, ENTRIES] = m + n
    stack.runs[lower, OLDEST] = min(stack.runs[lower, OLDEST], stack.runs[lower + 1, OLDEST])
    stack.held[0] = lower + 1
    counters[COMPARISONS] += m + n
    counters[MOVES] += m + 2 * n


@kernel
def settle(
    stack: Stack,
    ratio: int,
    horizon: int,
    live: int,
    spare_keys: np.ndarray,
    spare_positions: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Merge the new run on top downwards while the run below has at most *ratio* times its size.

    When more than half of the entries have expired (*live* have not), everything is merged.
    """
    top = stack.held[0] - 1
    total = 0
    for run in range(top + 1):
        total += stack.runs[run, ENTRIES]
    overfull = total > 2 * live
    while top > 0 and (
        overfull or stack.runs[top - 1, ENTRIES] <= ratio * stack.runs[top, ENTRIES]
    ):
        drop_expired(stack, top - 1, horizon, counters)
        merge_upper_two(stack, spare_keys, spare_positions, counters)
        top -= 1
    if overfull:
        drop_expired(stack, top, horizon, counters)
    finish_run(stack, top, counters)


@kernel
def _find_block(fence: np.ndarray, block: int, end: int, key: int, counters: np.ndarray) -> int:
    """Return the first block from *block* on that ends with at least *key*, or the last one.

    With sorted probes it is near, so the steps begin small and double.
    """
    step = 1
    steps = 1
    while block + step < end and fence[0, np.uint64(block + step - 1)] < key:
        block += step
        step <<= 1
        steps += 1
    last = min(block + step, end) - 1
    while block < last:
        middle = (block + last) >> 1
        if fence[0, np.uint64(middle)] < key:
            block = middle + 1
        else:
            last = middle
        steps += 1
    counters[COMPARISONS] += steps
    return block


@kernel
def probe_run_sorted(
    stack: Stack,
    run: int,
    probes: int,
    low: np.ndarray,
    high: np.ndarray,
    row: np.ndarray,
    start: np.ndarray,
    stop: np.ndarray,
    places: np.ndarray,
    output: Output,
    listing: bool,
    ends: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Probe one run with *probes* ranges in the order of their lower ends.

    Adds the matches of range i to place i of the output; with *listing* instead writes them to
    ``output.match_id`` from ``ends[row[i]]`` on, which it moves along.
    """
    keys, positions = stack.keys, stack.positions
    begin, entries = stack.runs[run, BEGIN], stack.runs[run, ENTRIES]
    end = begin + entries
    block = begin >> _SHIFT
    for group in range(0, probes if entries else 0, GROUP):
        last = min(group + GROUP, probes)
        block = _find_places(stack, block, end, low, group, last, places, counters)
        for i in range(group, last):
            greatest = high[i]
            first = place = places[i - group]
            least, most = start[i], stop[i]
            found, total = 0, np.uint64(0)
            while place < end and keys[0, np.uint64(place)] <= greatest:
                position = positions[0, np.uint64(place)]
                seen = least <= position < most
                if listing:
                    if seen:
                        output.match_id[ends[row[i]]] = position
                        ends[row[i]] += 1
                else:
                    found += seen
                    total += splitmix64(position) * np.uint64(seen)
                place += 1
            if found:
                output.matches[i] += found
                output.fingerprint[i] += total
            counters[COMPARISONS] += place - first + (place < end)


@kernel
def _find_places(
    stack: Stack,
    block: int,
    end: int,
    low: np.ndarray,
    group: int,
    last: int,
    places: np.ndarray,
    counters: np.ndarray,
) -> int:
    """Find where the ranges *group* to *last* - 1 begin, from *block* on; return the last block."""
    blocks = blocks_end(end) >> _SHIFT
    for i in range(group, last):
        block = _find_block(stack.fence, block, blocks, low[i], counters)
        places[i - group] = block << _SHIFT
        for line in range(0, BLOCK, _LINE):
            prefetch_entry(stack.keys, 0, (block << _SHIFT) + line)
    for i in range(group, last):
        key, place = low[i], np.uint64(places[i - group])
        less = 0
        for at in range(np.uint64(BLOCK)):
            less += stack.keys[0, place + at] < key
        places[i - group] += less
        prefetch_entry(stack.positions, 0, places[i - group])
    counters[COMPARISONS] += (last - group) * BLOCK
    return block
