"""Sorted runs on a stack, merged by their sizes, and probed as a BI-Sort's main array is.

A side's runs lie one above the other in two columns, the oldest at the bottom, each beginning at a
block of `BLOCK` entries and with a block or more of the greatest key behind it. Merging two
neighbours sets the upper one aside and fills the room from its end, so no second stack is needed.
The first key of every block is sampled: that is the index array by which
`joins.indexes.panjoin.bi_sort_search` finds its way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.panjoin.bi_sort_runs import Runs, merge, sample
from joins.machine import inlined, kernel, part_of
from joins.memory import aligned
from joins.work import MOVES

BLOCK = 32
_SHIFT = 5

BEGIN, ENTRIES, OLDEST = 0, 1, 2
"""Columns of `Stack.runs`: where a run begins, its entries, and its least position."""
RUNS_MAX = 64
PLACES_MOST = 2**31 - 1
"""Positions that a stack's entries may be apart."""


class Stack(NamedTuple):
    """The runs of one side.

    Attributes
    ----------
    keys, places
        Entries in key order within a run: keys are int32 while all fit, which halves what is read,
        else int64; places are positions less the base, as int32.
    sampled
        The first key of every block.
    runs
        A row per run, oldest first, see `BEGIN`.
    state
        How many runs there are, and the base of places, see `HELD`.
    """

    keys: np.ndarray
    places: np.ndarray
    sampled: np.ndarray
    runs: np.ndarray
    state: np.ndarray


HELD, BASE = 0, 1
"""Places in `Stack.state`."""


def make_stack(room: int, dtype: np.dtype) -> Stack:
    """Return an empty stack with room for *room* entries and two more blocks per run."""
    room = (room // BLOCK + 2 * RUNS_MAX + 1) * BLOCK
    return Stack(
        aligned((room,), dtype),
        aligned((room,), "int32"),
        aligned((room // BLOCK,), dtype),
        np.zeros((RUNS_MAX, 3), np.int64),
        np.zeros(2, np.int64),
    )


@inlined
def _run_end(stack: Stack, run: int) -> int:
    """Return where the blocks of a run end, those behind its last entry included."""
    end = stack.runs[run, BEGIN] + stack.runs[run, ENTRIES]
    return ((end + BLOCK - 1) & ~(BLOCK - 1)) + BLOCK


@part_of
def _line(column: np.ndarray, begin: int, end: int) -> np.ndarray:
    """Return a part of a column as the one row of a matrix."""
    return column[begin:end].reshape((1, end - begin))


@part_of
def run_of(stack: Stack, run: int) -> Runs:
    """Return a run as the main array of a BI-Sort whose insertion buffer is empty."""
    begin, end = stack.runs[run, BEGIN], _run_end(stack, run)
    blocks = (end - begin) >> _SHIFT
    first = begin >> _SHIFT
    return Runs(
        _line(stack.keys, begin, end),
        _line(stack.places, begin, end),
        stack.runs[run, ENTRIES],
        _line(stack.sampled, first, first + blocks),
        BLOCK,
        blocks - 1,
        _line(stack.keys, begin, begin),
        _line(stack.places, begin, begin),
        0,
    )


@kernel
def stack_top(stack: Stack) -> int:
    """Return where the next run would begin."""
    count = stack.state[HELD]
    return _run_end(stack, count - 1) if count else 0


@kernel
def finish_run(stack: Stack, run: int, counters: np.ndarray) -> None:
    """Fill up a run's last blocks and sample it."""
    begin, entries = stack.runs[run, BEGIN], stack.runs[run, ENTRIES]
    stack.keys[begin + entries : _run_end(stack, run)] = np.iinfo(stack.keys.dtype).max
    view = run_of(stack, run)
    sample(view.keys, entries, BLOCK, view.sampled, counters)


@kernel
def _drop_expired(stack: Stack, run: int, horizon: int, counters: np.ndarray) -> None:
    """Close up a run over its entries below *horizon*."""
    begin, entries = stack.runs[run, BEGIN], stack.runs[run, ENTRIES]
    if stack.runs[run, OLDEST] >= horizon:
        return
    first = horizon - stack.state[BASE]
    kept = np.uint64(begin)
    for place in range(np.uint64(begin), np.uint64(begin + entries)):
        stack.keys[kept] = stack.keys[place]
        stack.places[kept] = stack.places[place]
        kept += np.uint64(stack.places[place] >= first)
    stack.runs[run, ENTRIES] = np.int64(kept) - begin
    stack.runs[run, OLDEST] = horizon
    counters[MOVES] += entries


@kernel
def _merge_upper_two(
    stack: Stack, spare_keys: np.ndarray, spare_places: np.ndarray, counters: np.ndarray
) -> None:
    """Merge the run on top into the one below it; the spare columns have room for the upper one."""
    lower = stack.state[HELD] - 2
    begin, held = stack.runs[lower, BEGIN], stack.runs[lower, ENTRIES]
    above, new = stack.runs[lower + 1, BEGIN], stack.runs[lower + 1, ENTRIES]
    for i in range(np.uint64(new)):
        spare_keys[i] = stack.keys[np.uint64(above) + i]
        spare_places[i] = stack.places[np.uint64(above) + i]
    counters[MOVES] += new
    end = begin + held + new
    merge(
        _line(stack.keys, begin, end),
        _line(stack.places, begin, end),
        held,
        _line(spare_keys, 0, new),
        _line(spare_places, 0, new),
        new,
        counters,
    )
    stack.runs[lower, ENTRIES] = held + new
    stack.runs[lower, OLDEST] = min(stack.runs[lower, OLDEST], stack.runs[lower + 1, OLDEST])
    stack.state[HELD] = lower + 1


@kernel
def settle(
    stack: Stack,
    ratio: int,
    horizon: int,
    live: int,
    spare_keys: np.ndarray,
    spare_places: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Merge the new run on top downwards while the run below has at most *ratio* times its size.

    When more than half of the entries have expired (*live* have not), everything is merged.
    """
    top = stack.state[HELD] - 1
    total = 0
    for run in range(top + 1):
        total += stack.runs[run, ENTRIES]
    overfull = total > 2 * live
    while top > 0 and (
        overfull or stack.runs[top - 1, ENTRIES] <= ratio * stack.runs[top, ENTRIES]
    ):
        _drop_expired(stack, top - 1, horizon, counters)
        _merge_upper_two(stack, spare_keys, spare_places, counters)
        top -= 1
    if overfull:
        _drop_expired(stack, top, horizon, counters)
    finish_run(stack, top, counters)
