"""State shared by workers that join a batch, and the steps that are the same for all indexes.

PIM-Tree, section 4.1: tuples wait in a work queue, and workers take tasks from it. A tuple finds
what is surely indexed in the index, and scans the window from the edge tuple on, the first that may
not be indexed; so its matches are exactly those that it sees, in whichever order the workers run.
Results leave in arrival order. The boundaries t_e and t_l of a tuple's window are its `start` and
`stop`, fixed when it arrives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from joins.machine.compiling import inlined, kernel
from joins.machine.dispatch import dispatched
from joins.machine.instructions import load, store, try_lock, unlock
from joins.machine.lanes import LANES, lanes_greater, lanes_less
from joins.machine.memory import LINE, aligned, own_lines
from joins.matches import MatchBuffer, ProbeResult, add_match, begin_row, commit_row
from joins.window_join.rows import KernelRows, probed_side
from joins.window_join.schedulers import charge, is_busy, leave
from joins.work import ATOMICS, BYTES_COPIED, COMPARISONS, MATCHES, MOVES

QUEUE, GATE, RUNNING, OUTPUT, MERGER, SIDES = range(6)
"""Rows of `SharedBatch.words`, two cache lines each: the work queue; the gate before it, closed
where no task may be assigned; how many workers have a task; the output stream; whether a worker
merges; and from `SIDES` on one row a side."""
LOCK, HEAD, TOTAL = 0, 1, 2
"""Queue: its lock and the first row that is available. Output: its lock, the first row that has not
been propagated, and the matches that have."""
EDGE, EXPIRED, PHASE = 1, 2, LINE
"""A side: its edge lock (`LOCK`), the position of its edge tuple, the position up to which workers
have begun to delete, and what a merge does to it. That has a line of its own, for it is read with
every tuple and seldom changes."""
NO_MERGE, BUILDING, PENDING = 0, 1, 2
"""Phases: none; a new tree is built and nothing is indexed; pending updates are applied."""
_WORDS = 2 * LINE

COMPLETED = 1
"""Status of a row of the work queue once its matches have been reported."""

_ID_BYTES = 8


class SharedBatch(NamedTuple):
    """The rows of a batch and what is shared about them; arrays of int64."""

    rows: KernelRows
    """The arrivals."""
    words: np.ndarray
    """What is changed atomically, see `QUEUE`."""
    free_at: np.ndarray
    """For every row of *words* when it is free again, in the time of simulated cores."""
    status: np.ndarray
    """Shape (1, rows): `COMPLETED`, or 0 until then."""
    keys: np.ndarray
    indexed: np.ndarray
    """Shape (sides, rows): by position, counted from the side's base, the key and whether it is in
    the index. This is the part of the sliding windows that is not surely indexed."""
    base: np.ndarray
    """Per side the position of the first tuple in *keys*."""
    arrived: np.ndarray
    """Shape (sides, rows + 1): the end of a side's positions before each row."""
    seen: np.ndarray
    """Shape (sides, rows + 1): the least position that a row or any later one sees."""
    place: np.ndarray
    """Shape (2, rows): which list has a row's matches, and where in it they begin."""
    first: np.ndarray
    """Per row where its matches begin in the output stream."""
    task_rows: int
    """Rows that a worker takes at a time."""
    slack: int
    """Tuples that a side may have beyond its edge tuple, and its active tree beyond the limit."""


@dispatched
def probe_indexed(
    index: Any,
    batch: SharedBatch,
    scheduler: Any,
    worker: int,
    row: int,
    edge: int,
    output: MatchBuffer,
) -> int:
    """Report a row's matches before position *edge*, all of which are in the index.

    Return how long a simulated core has a lock for that, in picoseconds; 0 for real threads.
    """
    raise NotImplementedError


def make_words(sides: int) -> np.ndarray:
    """Return `SharedBatch.words`: nothing is locked, nothing is taken."""
    return aligned((SIDES + sides, _WORDS))


def make_batch(
    words: np.ndarray, rows: KernelRows, *, room: int, task_rows: int, slack: int
) -> SharedBatch:
    """Return shared arrays for *rows*, with *room* for tuples of each side before them.

    Nothing of the queue is taken yet; `lay_out` fills in the rest. Vectors may look at `LANES` more
    tuples behind the last one.
    """
    n, sides = len(rows.side), len(words) - SIDES
    words[QUEUE, HEAD] = words[OUTPUT, HEAD] = words[OUTPUT, TOTAL] = 0
    return SharedBatch(
        rows=rows,
        words=words,
        free_at=np.zeros(SIDES + sides, np.int64),
        status=np.zeros((1, n), np.int64),
        keys=np.empty((sides, room + n + LANES), np.int64),
        indexed=np.empty((sides, room + n + LANES), np.int64),
        base=own_lines(sides),
        arrived=np.empty((sides, n + 1), np.int64),
        seen=np.empty((sides, n + 1), np.int64),
        place=np.empty((2, n), np.int64),
        first=np.empty(n, np.int64),
        task_rows=task_rows,
        slack=slack,
    )


@kernel
def first_position(rows: KernelRows, side: int) -> int:
    """Return the position of a side's first tuple among *rows*; -1 where it has none."""
    for row in range(len(rows.side)):
        if rows.side[row] == side:
            return int(rows.position[row])
    return -1


@kernel
def lay_out(batch: SharedBatch, side: int, before: int, horizon: int) -> int:
    """Fill in a side's keys, what has arrived before each row, and what it and all later ones see.

    None of the batch's tuples is indexed yet. Return how many tuples the side's window has at the
    most.

    Parameters
    ----------
    batch
        `SharedBatch.base` must be set.
    before
        How many tuples of the side precede the batch's in `SharedBatch.keys`.
    horizon
        The position below which all are expired.
    """
    rows, sides, n = batch.rows, len(batch.base), len(batch.rows.side)
    base, seen = batch.base[side], horizon
    arrived = base + before
    for row in range(n):
        batch.arrived[side, row] = arrived
        # Written in any case, and overwritten by the side's next: streams take no regular turns,
        # so that a branch would be mispredicted.
        batch.keys[side, arrived - base] = rows.key[row]
        batch.indexed[side, arrived - base] = 0
        arrived += rows.side[row] == side
    batch.arrived[side, n] = arrived
    for row in range(n - 1, -1, -1):
        if sides == 1 or rows.side[row] != side:
            seen = max(seen, rows.start[row])
            break
    batch.seen[side, n] = seen
    longest = arrived - seen
    for row in range(n - 1, -1, -1):
        seen = rows.start[row] if sides == 1 or rows.side[row] != side else seen
        batch.seen[side, row] = seen
        longest = max(longest, batch.arrived[side, row] - seen)
    return int(longest)


@inlined
def look_up(
    index: Any, batch: SharedBatch, scheduler: Any, worker: int, row: int, output: MatchBuffer
) -> tuple[bool, int]:
    """Report a row's matches: before the edge tuple in the index, from it on in the window.

    Return whether there was room for them, and what `probe_indexed` returned. Without room nothing
    is left of them nor of the work.
    """
    rows, counters, locked_ps = batch.rows, scheduler.counters, 0
    begin_row(output, counters)
    if rows.low[row] <= rows.high[row]:
        probed = probed_side(len(batch.base), rows.side[row])
        edge = load(batch.words, SIDES + probed, EDGE)
        locked_ps = probe_indexed(index, batch, scheduler, worker, row, edge, output)
        _scan_unindexed(batch, row, probed, edge, output, counters)
    if not commit_row(output, row, counters):
        return False, 0
    counters[MATCHES] += output.matches[row]
    batch.place[0, row] = scheduler.thread
    batch.place[1, row] = output.before + output.listed[0] - output.matches[row]
    store(batch.status, 0, row, COMPLETED)
    return True, locked_ps


@inlined
def _scan_unindexed(
    batch: SharedBatch, row: int, probed: int, edge: int, output: MatchBuffer, counters: np.ndarray
) -> None:
    """Report a row's matches among what it sees from position *edge* on, in the window itself."""
    rows = batch.rows
    low, high = rows.low[row], rows.high[row]
    base, begin, end = batch.base[probed], max(rows.start[row], edge), rows.stop[row]
    for some in range(begin, end, LANES):
        outside = lanes_less(batch.keys, probed, some - base, low)
        outside += lanes_greater(batch.keys, probed, some - base, high)
        if outside == LANES:
            continue
        for position in range(some, min(some + LANES, end)):
            if low <= batch.keys[probed, position - base] <= high:
                add_match(output, row, position)
    counters[COMPARISONS] += max(0, end - begin)


@kernel
def advance_edge(batch: SharedBatch, side: int) -> None:
    """Move a side's edge tuple to its next tuple not indexed, unless another thread does."""
    line = SIDES + side
    base, end = batch.base[side], batch.arrived[side, batch.arrived.shape[1] - 1]
    edge = load(batch.words, line, EDGE)
    if edge == end or load(batch.indexed, side, edge - base) == 0:
        return
    if not try_lock(batch.words, line, LOCK):
        return
    edge = load(batch.words, line, EDGE)
    while edge < end and load(batch.indexed, side, edge - base) != 0:
        edge += 1
    store(batch.words, line, EDGE, edge)
    unlock(batch.words, line, LOCK)


@inlined
def move_edge(batch: SharedBatch, scheduler: Any, worker: int, side: int) -> None:
    """Advance a side's edge tuple, unless another worker does."""
    line = SIDES + side
    if is_busy(scheduler, worker, batch.free_at, line):
        return
    edge = load(batch.words, line, EDGE)
    advance_edge(batch, side)
    scheduler.counters[ATOMICS] += 1
    charge(scheduler, COMPARISONS, load(batch.words, line, EDGE) - edge + 1)
    leave(scheduler, worker, batch.free_at, line)


@kernel
def propagate(batch: SharedBatch, output: MatchBuffer) -> None:
    """Assign completed rows at the queue's head their place in the output stream, in their order.

    Nothing is done while another thread does that.
    """
    if not try_lock(batch.words, OUTPUT, LOCK):
        return
    row, total = batch.words[OUTPUT, HEAD], batch.words[OUTPUT, TOTAL]
    while row < len(batch.rows.side) and load(batch.status, 0, row) == COMPLETED:
        batch.first[row] = total
        total += output.matches[row]
        row += 1
    batch.words[OUTPUT, HEAD], batch.words[OUTPUT, TOTAL] = row, total
    unlock(batch.words, OUTPUT, LOCK)


@inlined
def hand_on(batch: SharedBatch, scheduler: Any, worker: int, output: MatchBuffer) -> None:
    """Propagate results, unless another worker does."""
    if is_busy(scheduler, worker, batch.free_at, OUTPUT):
        return
    row, matches = batch.words[OUTPUT, HEAD], batch.words[OUTPUT, TOTAL]
    propagate(batch, output)
    scheduler.counters[ATOMICS] += 1
    charge(scheduler, MOVES, batch.words[OUTPUT, HEAD] - row)
    charge(scheduler, BYTES_COPIED, _ID_BYTES * (batch.words[OUTPUT, TOTAL] - matches))
    leave(scheduler, worker, batch.free_at, OUTPUT)


def gather(batch: SharedBatch, results: Sequence[ProbeResult]) -> np.ndarray | None:
    """Return all matches of a batch in arrival order, None where they were only counted.

    All rows must have been propagated. *results* are the workers', which share the counts per row.
    """
    match_id = np.empty(batch.words[OUTPUT, TOTAL], np.int64)
    for place, result in enumerate(results):
        if result.match_id is None:
            return None
        _gather(batch, place, result.count, result.match_id, match_id)
    return match_id


@kernel
def _gather(
    batch: SharedBatch, place: int, count: np.ndarray, ids: np.ndarray, out: np.ndarray
) -> None:
    """Copy the matches of one list to their places in the output stream."""
    for row in range(len(count)):
        if batch.place[0, row] == place:
            for i in range(count[row]):
                out[batch.first[row] + i] = ids[batch.place[1, row] + i]
