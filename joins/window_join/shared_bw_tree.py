"""The Bw-Tree as an index of the window join: what PIM-Tree is compared with (section 5).

Workers share the trees without a lock, nothing is merged, and every tuple is deleted by itself,
once no tuple that sees it can still be waiting. One thread is the single-threaded join.

A change of a tree takes two steps: what it publishes is prepared, and then swapped in. By then the
tree has what other simulated cores have swapped in, so a compare-and-swap fails for the reason for
which it fails in a machine, and the core begins anew. One line of memory is swapped by one core at
a time; a core that only reads it waits for nobody. All cores share the work of making room in a
tree for a batch: the paper's epochs end whenever a thread leaves, and the next one reuses what is
free.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from joins.indexes.bw_tree import (
    CHAIN,
    DELETED,
    INSERTED,
    WIDTH,
    BwTree,
    Pages,
    begin_change,
    change,
    is_changing,
    prepare,
    probe_range,
    swap,
)
from joins.indexes.index import Sought
from joins.machine.compiling import inlined, kernel
from joins.machine.dispatch import implements
from joins.machine.instructions import compare_and_swap, fetch_add, load, store
from joins.machine.memory import LINE, aligned, record
from joins.matches import MatchBuffer
from joins.window_join.rows import KernelRows, Rings, WindowKeys, key_at, probed_side
from joins.window_join.schedulers import IDLE, TAKE, finish_task, is_over, leave, spend, wait_for
from joins.window_join.shared_batch import (
    EDGE,
    EXPIRED,
    HEAD,
    OUTPUT,
    QUEUE,
    SIDES,
    SharedBatch,
    first_position,
    hand_on,
    lay_out,
    look_up,
    make_batch,
    make_words,
    move_edge,
    probe_indexed,
)
from joins.window_join.shared_join import SharedIndex, Tasks, take_step
from joins.work import ATOMICS, NO_WORK, Work, new_counters

LOOK_UP, PREPARE, PUBLISH, EXPIRE = range(TAKE + 1, TAKE + 5)
"""Stages of a worker: look a row up; prepare the next step of a change; swap it in; look for
something to delete."""

EXPIRING = record("side", "next", "end")
"""What a worker deletes: whose, the next position and the end; equal when it deletes nothing."""


class SharedPages(NamedTuple):
    """Bw-Trees that workers share."""

    first: Pages
    last: Pages
    """The sides' trees, or one tree twice."""
    rings: Rings
    """The windows' keys."""
    expiring: np.ndarray
    """`EXPIRING`, one for each worker."""
    free_at: np.ndarray
    """Shape (sides, lines): when each line of a mapping table is free, in the time of simulated
    cores."""


class BwTreeWindows(SharedIndex):
    """A tree and the keys of each window.

    Parameters
    ----------
    sides
        2, or 1 for a self join.
    workers
        How many change the trees side by side.
    width, chain
        See `joins.indexes.bw_tree.BwTree`.
    """

    state = ("_trees", "_window", "_horizon")

    def __init__(self, sides: int, *, workers: int, width: int = WIDTH, chain: int = CHAIN) -> None:
        self.sides = sides
        self._trees = [BwTree(width=width, chain=chain, threads=workers) for _ in range(sides)]
        self._window = WindowKeys(sides)
        self._horizon = [0] * sides

    def open(self, rows: KernelRows, tasks: Tasks) -> tuple[SharedPages, SharedBatch, Work]:
        """Return what is shared while *rows* are joined; there is room for them in the trees."""
        spans = self._window.rings.spans
        words = make_words(self.sides)
        batch = make_batch(words, rows, room=0, task_rows=tasks.rows, slack=tasks.slack)
        for side in range(self.sides):
            first = first_position(rows, side)
            if first >= 0 and spans["end"][side] == 0:
                spans[side] = first, first
            batch.base[side] = words[SIDES + side, EDGE] = spans["end"][side]
            words[SIDES + side, EXPIRED] = spans["first"][side]
            lay_out(batch, side, 0, max(int(spans["first"][side]), self._horizon[side]))
        work = NO_WORK
        for side, tree in enumerate(self._trees):
            arriving = int(batch.arrived[side, -1] - batch.base[side])
            self._window.append(side, batch.keys[side, :arriving])
            expiring = max(0, int(batch.seen[side, -1] - spans["first"][side]))
            work += tree.reserve(arriving + expiring)
        pages = [tree.pages for tree in self._trees]
        lines = max(len(one.mapping) for one in pages) // LINE + 1
        record = SharedPages(
            first=pages[0],
            last=pages[-1],
            rings=self._window.rings,
            expiring=aligned((tasks.workers,), EXPIRING),
            free_at=np.zeros((self.sides, lines if tasks.simulated else 0), np.int64),
        )
        return record, batch, work

    def close(self, index: Any, batch: SharedBatch) -> Work:
        """Delete what no later row can see; every row of the batch has been joined."""
        counters = new_counters()
        for side in range(self.sides):
            batch.words[SIDES + side, EDGE] = batch.arrived[side, -1]
            _expire_all(index, batch, side, counters)
            self._window.rings.spans["first"][side] = batch.words[SIDES + side, EXPIRED]
        return Work.from_counters(counters)

    def expire(self, side: int, before: int) -> None:
        """Let workers delete a side's positions below *before* while they join the next batch."""
        self._horizon[side] = max(self._horizon[side], before)


@implements(is_over, SharedPages)
def _is_over(index: SharedPages, batch: SharedBatch) -> bool:
    return False


@implements(take_step, SharedPages)
def _take_step(
    index: SharedPages, batch: SharedBatch, scheduler: Any, worker: int, output: MatchBuffer
) -> bool:
    stage = scheduler.workers[worker].stage
    if stage == TAKE:
        _take(batch, scheduler, worker)
    elif stage == LOOK_UP:
        return _look_up(index, batch, scheduler, worker, output)
    elif stage == EXPIRE:
        _expire(index, batch, scheduler, worker)
    else:
        side = _changed(index, batch, scheduler, worker)
        tree = index.last if side else index.first
        if stage == PREPARE:
            prepare(tree, worker, scheduler.counters)
            spend(scheduler, worker)
            scheduler.workers[worker].stage = PUBLISH
        elif _publish(index, tree, side, scheduler, worker):
            _go_on(index, batch, scheduler, worker, output)
    return True


@inlined
def _take(batch: SharedBatch, scheduler: Any, worker: int) -> None:
    """Take the next task, or find out that there are no more."""
    task, n = scheduler.workers[worker], len(batch.rows.side)
    wait_for(scheduler, worker, batch.free_at, QUEUE)
    begin = fetch_add(batch.words, QUEUE, HEAD, batch.task_rows)
    scheduler.counters[ATOMICS] += 1
    leave(scheduler, worker, batch.free_at, QUEUE)
    task.row, task.end = min(begin, n), min(begin + batch.task_rows, n)
    task.stage = LOOK_UP if begin < n else IDLE
    if begin >= n:
        finish_task(scheduler, worker)


@implements(probe_indexed, SharedPages)
def _probe_indexed(
    index: SharedPages,
    batch: SharedBatch,
    scheduler: Any,
    worker: int,
    row: int,
    edge: int,
    output: MatchBuffer,
) -> int:
    rows = batch.rows
    tree = index.last if probed_side(len(batch.base), rows.side[row]) else index.first
    sought = Sought(rows.low[row], rows.high[row], rows.start[row], min(rows.stop[row], edge), row)
    probe_range(tree, sought, output, scheduler.counters)
    return 0


@inlined
def _look_up(
    index: SharedPages, batch: SharedBatch, scheduler: Any, worker: int, output: MatchBuffer
) -> bool:
    """Look a row up and begin to insert it; return whether there was room for its matches."""
    rows, task = batch.rows, scheduler.workers[worker]
    row = task.row
    has_room, _ = look_up(index, batch, scheduler, worker, row, output)
    if not has_room:
        return False
    tree = index.last if rows.side[row] else index.first
    begin_change(tree, worker, INSERTED, rows.key[row], rows.position[row], scheduler.counters)
    spend(scheduler, worker)
    task.stage = PREPARE
    return True


@inlined
def _changed(index: SharedPages, batch: SharedBatch, scheduler: Any, worker: int) -> int:
    """Return the side whose tree a worker is changing: whose tuple it deletes, or inserts."""
    expiring = index.expiring[worker]
    if expiring.next < expiring.end:
        return int(expiring.side)
    return int(batch.rows.side[scheduler.workers[worker].row])


@inlined
def _publish(index: SharedPages, tree: Pages, side: int, scheduler: Any, worker: int) -> bool:
    """Swap in what has been prepared, or fail to; return whether that completes the change."""
    line = tree.own[worker].page // LINE
    wait_for(scheduler, worker, index.free_at[side], line)
    swap(tree, worker, scheduler.counters)
    leave(scheduler, worker, index.free_at[side], line)
    scheduler.workers[worker].stage = PREPARE
    return not is_changing(tree, worker)


@inlined
def _go_on(
    index: SharedPages, batch: SharedBatch, scheduler: Any, worker: int, output: MatchBuffer
) -> None:
    """Begin what comes after a change: the next deletion, or the task's next row or end."""
    rows, task, expiring = batch.rows, scheduler.workers[worker], index.expiring[worker]
    if expiring.next < expiring.end:
        expiring.next += 1
        _delete_next(index, scheduler, worker)
        return
    side = rows.side[task.row]
    store(batch.indexed, side, rows.position[task.row] - batch.base[side], 1)
    scheduler.counters[ATOMICS] += 2
    spend(scheduler, worker)
    task.row += 1
    task.stage = LOOK_UP
    if task.row == task.end:
        hand_on(batch, scheduler, worker, output)
        for moved in range(len(batch.base)):
            move_edge(batch, scheduler, worker, moved)
        task.stage = EXPIRE


@inlined
def _expire(index: SharedPages, batch: SharedBatch, scheduler: Any, worker: int) -> None:
    """Claim what can be deleted; if there is nothing, take the next task."""
    expiring = index.expiring[worker]
    for side in range(len(batch.base)):
        wait_for(scheduler, worker, batch.free_at, SIDES + side)
        begin, end = _claim_expired(batch, side, scheduler.counters)
        expiring.side, expiring.next, expiring.end = side, begin, end
        leave(scheduler, worker, batch.free_at, SIDES + side)
        if begin < end:
            _delete_next(index, scheduler, worker)
            return
    scheduler.workers[worker].stage = TAKE


@inlined
def _delete_next(index: SharedPages, scheduler: Any, worker: int) -> None:
    expiring = index.expiring[worker]
    if expiring.next == expiring.end:
        scheduler.workers[worker].stage = EXPIRE
        return
    side, position = expiring.side, expiring.next
    tree, key = index.last if side else index.first, key_at(index.rings, side, position)
    begin_change(tree, worker, DELETED, key, position, scheduler.counters)
    scheduler.workers[worker].stage = PREPARE


@kernel
def _claim_expired(batch: SharedBatch, side: int, counters: np.ndarray) -> tuple[int, int]:
    """Return the positions, up to the second, that are the caller's to delete; equal if none.

    No row can see them that has not been looked up yet.
    """
    line = SIDES + side
    while True:
        head = load(batch.words, OUTPUT, HEAD)
        begin = load(batch.words, line, EXPIRED)
        end = min(batch.seen[side, head], load(batch.words, line, EDGE))
        end = min(end, begin + batch.task_rows)
        if begin >= end:
            return begin, begin
        counters[ATOMICS] += 1
        if compare_and_swap(batch.words, line, EXPIRED, begin, end):
            return begin, end


@kernel
def _expire_all(index: SharedPages, batch: SharedBatch, side: int, counters: np.ndarray) -> None:
    """Delete all of a side that no later row can see; no worker may be in the tree."""
    tree = index.last if side else index.first
    begin, end = _claim_expired(batch, side, counters)
    while begin < end:
        for position in range(begin, end):
            change(tree, 0, DELETED, key_at(index.rings, side, position), position, counters)
        begin, end = _claim_expired(batch, side, counters)
