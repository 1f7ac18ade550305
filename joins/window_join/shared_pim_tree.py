"""The window join of workers that share an IM-Tree or a PIM-Tree (PIM-Tree, section 4).

Every subindex has a lock, and the immutable tree needs none. One of the workers merges, while the
others wait or go on joining (section 4.2).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from joins.indexes.index import Sought
from joins.indexes.pim_tree.forest import Forest, active_tree, run_slot, subindex_row, tree_slot
from joins.indexes.pim_tree.forest_index import build_next, probe_run, probe_tree
from joins.indexes.pim_tree.mutable_tree import NOT_FOUND, FoundLeaf, insert_locked, route
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.machine.compiling import inlined, kernel
from joins.machine.dispatch import implements
from joins.machine.instructions import fetch_add, load, lock, store, try_lock, unlock
from joins.machine.memory import aligned, record
from joins.matches import MatchBuffer
from joins.window_join.forest_join import (
    PLACES,
    READ,
    WRITTEN,
    WRITTEN_LEAF,
    found_leaf,
    look_up_block,
    make_places,
    read_leaf,
)
from joins.window_join.rows import KernelRows, probed_side
from joins.window_join.schedulers import (
    DRAINING,
    IDLE,
    PARKED,
    TAKE,
    finish_task,
    is_over,
    leave,
    moves_edge_with_every_row,
    occupy,
    spend,
    unpriced_ps,
    wait_for,
    wake,
)
from joins.window_join.shared_batch import (
    BUILDING,
    EDGE,
    GATE,
    HEAD,
    LOCK,
    MERGER,
    NO_MERGE,
    PENDING,
    PHASE,
    QUEUE,
    RUNNING,
    SIDES,
    SharedBatch,
    advance_edge,
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
from joins.window_join.window_join import LOOKUP_ROWS
from joins.work import ATOMICS, NO_WORK, Work

SEARCH, LOOK_UP, INSERT, CLOSE, BUILD, SWAP, APPLY = range(TAKE + 1, TAKE + 8)
"""Stages of a worker: search the immutable tree ahead for some rows; look a row up under a
subindex's lock; insert it likewise. And of the worker that merges: close the gate before the queue,
build the next trees, put them in place, apply pending updates."""

PROGRESS = record("block", "block_end", "inserted_0", "inserted_1")
"""A worker: the rows that it has searched ahead for, and how many tuples of each side it has
inserted that the tree's entries do not count yet."""

MERGE = np.dtype([(name, "i8") for name in ("side", "after_drain", "next", "end")])
"""The merge: which side's, the stage after running tasks are finished, and the positions of the
pending updates."""


class SharedForest(NamedTuple):
    """An IM-Tree or PIM-Tree that workers share."""

    forest: Forest
    """The trees; there is room in them for all of a batch."""
    merge_ratio: float
    insertion_depth: int
    """m and D_I."""
    nonblocking: bool
    """Whether workers go on joining while one of them merges."""
    merge: np.ndarray
    """One `MERGE`."""
    progress: np.ndarray
    places: np.ndarray
    """For each worker: `PROGRESS`; and working memory for the rows that it looks up together, see
    `make_places`."""
    free_at: np.ndarray
    """When the lock of each subindex is free, in the time of simulated cores."""


class PimTreeWindows(SharedIndex):
    """An IM-Tree or PIM-Tree, and the part of the windows that is not in it yet.

    Parameters
    ----------
    index
        With two sides; with one for a self join.
    nonblocking
        Whether workers go on joining while one of them merges.
    """

    state = ("index", "_words", "_tails", "_merge")

    def __init__(self, index: PimTree, *, nonblocking: bool = True) -> None:
        self.index = index
        self.sides = len(index.forest.sides)
        self._nonblocking = nonblocking
        self._words = make_words(self.sides)
        self._tails = [np.zeros((2, 0), np.int64) for _ in range(self.sides)]
        self._merge = np.zeros(1, MERGE)

    def open(self, rows: KernelRows, tasks: Tasks) -> tuple[SharedForest, SharedBatch, Work]:
        """Return what is shared while *rows* are joined; there is room for them in the index."""
        before = [tail.shape[1] for tail in self._tails]
        batch = make_batch(
            self._words, rows, room=max(before), task_rows=tasks.rows, slack=tasks.slack
        )
        late = max(before) + tasks.most_unindexed(len(rows.side))
        for side, tail in enumerate(self._tails):
            first = first_position(rows, side)
            if first >= 0 and not before[side]:
                batch.words[SIDES + side, EDGE] = first
            batch.base[side] = batch.words[SIDES + side, EDGE]
            batch.keys[side, : before[side]], batch.indexed[side, : before[side]] = tail
            horizon = max(0, self.index.forest.sides[side]["horizon"])
            self._make_room(side, lay_out(batch, side, before[side], horizon), late)
        forest = self.index.forest
        ahead = 1 if tasks.simulated else LOOKUP_ROWS
        places = make_places(forest, tasks.workers * ahead)
        record = SharedForest(
            forest=forest,
            merge_ratio=self.index.merge_ratio,
            insertion_depth=self.index.insertion_depth,
            nonblocking=self._nonblocking,
            merge=self._merge,
            progress=aligned((tasks.workers,), PROGRESS),
            places=places.reshape(tasks.workers, ahead, -1),
            free_at=np.zeros(len(forest.subindexes) if tasks.simulated else 0, np.int64),
        )
        return record, batch, NO_WORK

    def _make_room(self, side: int, window: int, late: int) -> None:
        """Make room for all that may come to a side's trees, of a *window* so long at the most."""
        index = self.index
        limit = max(index.merge_limit(window), index.forest.sides[side]["limit"])
        inserted = max(int(limit), index.active_entries(side)) + 2 * late
        index.make_room(_with_spare(window + late), _with_spare(inserted))

    def close(self, index: Any, batch: SharedBatch) -> Work:
        """Store what the next batch needs of this one, of which every row has been joined."""
        state = self.index.forest.sides
        state["next_position"] = batch.arrived[:, -1]
        state["horizon"] = batch.seen[:, -1]
        for side in range(self.sides):
            advance_edge(batch, side)
            begin, end = batch.words[SIDES + side, EDGE], batch.arrived[side, -1]
            rest = slice(begin - batch.base[side], end - batch.base[side])
            self._tails[side] = np.stack([batch.keys[side, rest], batch.indexed[side, rest]])
        return NO_WORK

    def expire(self, side: int, before: int) -> None:
        """Let the next merge drop a side's positions below *before*."""
        self.index.expire(before, side=side)


def _with_spare(entries: int) -> int:
    """Return up to a quarter more, so that windows that fill up seldom ask for more room."""
    step = 1 << max(0, entries.bit_length() - 3)
    return -(-entries // step) * step


@implements(is_over, SharedForest)
def _is_over(index: SharedForest, batch: SharedBatch) -> bool:
    words = batch.words
    return bool(load(words, RUNNING, 0) == 0 and load(words, QUEUE, HEAD) >= len(batch.rows.side))


@implements(take_step, SharedForest)
def _take_step(
    index: SharedForest, batch: SharedBatch, scheduler: Any, worker: int, output: MatchBuffer
) -> bool:
    stage = scheduler.workers[worker].stage
    if stage == TAKE:
        if not _merge_if_due(index, batch, scheduler, worker):
            _take(index, batch, scheduler, worker)
    elif stage == SEARCH:
        _search(index, batch, scheduler, worker)
    elif stage == LOOK_UP:
        return _look_up(index, batch, scheduler, worker, output)
    elif stage == INSERT:
        _insert(index, batch, scheduler, worker, output)
    elif stage == PARKED:
        # What keeps tasks back may be an edge tuple that nobody moved.
        for side in range(len(batch.base)):
            advance_edge(batch, side)
        scheduler.workers[worker].stage = TAKE
    elif stage == DRAINING:
        if load(batch.words, RUNNING, 0) == 0:
            scheduler.workers[worker].stage = index.merge[0].after_drain
    else:
        _go_on_merging(index, batch, scheduler, worker)
    return True


@inlined
def _take(index: SharedForest, batch: SharedBatch, scheduler: Any, worker: int) -> None:
    """Take the next task of the work queue, if there is one and it does not have to wait."""
    words, task, n = batch.words, scheduler.workers[worker], len(batch.rows.side)
    if load(words, GATE, 0) != 0:
        task.stage = PARKED
        return
    if load(words, QUEUE, HEAD) == n:
        task.stage = IDLE
        return
    wait_for(scheduler, worker, batch.free_at, QUEUE)
    lock(words, QUEUE, LOCK)
    begin = load(words, QUEUE, HEAD)
    end = min(begin + batch.task_rows, n)
    is_free = begin < end and load(words, GATE, 0) == 0
    for side in range(len(batch.base)):
        is_free = is_free and _may_begin(index, batch, side, begin, end)
    if is_free:
        store(words, QUEUE, HEAD, end)
        fetch_add(words, RUNNING, 0, 1)
        task.row, task.end, task.stage = begin, end, SEARCH
        # The paper's workers also mark each tuple of a task as active, which nothing here reads.
        scheduler.counters[ATOMICS] += 2 + end - begin
    else:
        task.stage = PARKED
    unlock(words, QUEUE, LOCK)
    leave(scheduler, worker, batch.free_at, QUEUE)


@inlined
def _may_begin(index: SharedForest, batch: SharedBatch, side: int, begin: int, end: int) -> bool:
    """Return whether a task of rows *begin* to *end* - 1 stays within the slack of a side."""
    forest = index.forest
    edge = load(batch.words, SIDES + side, EDGE)
    entries = load(forest.tree_entries, active_tree(forest, side), 0)
    # A task may be larger than the slack: it is then taken alone.
    fits = batch.arrived[side, end] - edge <= batch.slack or batch.arrived[side, begin] == edge
    return bool(entries < forest.sides[side].limit + batch.slack and fits)


@inlined
def _search(index: SharedForest, batch: SharedBatch, scheduler: Any, worker: int) -> None:
    """Find the places of the next rows in the immutable trees, which need no lock."""
    task, progress = scheduler.workers[worker], index.progress[worker]
    places = index.places[worker]
    begin, end = task.row, min(task.row + len(places), task.end)
    look_up_block(index.forest, batch.rows, begin, end, places, scheduler.counters)
    progress.block, progress.block_end, task.stage = begin, end, LOOK_UP
    spend(scheduler, worker)


@implements(probe_indexed, SharedForest)
def _probe_indexed(
    index: SharedForest,
    batch: SharedBatch,
    scheduler: Any,
    worker: int,
    row: int,
    edge: int,
    output: MatchBuffer,
) -> int:
    """Of the subindexes that a range stretches over, cores wait for the first one's lock alone."""
    forest, rows, counters = index.forest, batch.rows, scheduler.counters
    probed = probed_side(len(forest.sides), rows.side[row])
    places = index.places[worker, row - index.progress[worker].block]
    run, tree = run_slot(forest, probed, 0), active_tree(forest, probed)
    sought = Sought(rows.low[row], rows.high[row], rows.start[row], min(rows.stop[row], edge), row)
    found = found_leaf(places, read_leaf(forest, 0))
    probe_tree(forest, run, tree, places[READ], found, sought, output, counters, concurrent=True)
    locked_ps = unpriced_ps(scheduler)
    probe_run(forest, run, places[PLACES], sought, output, counters)
    return locked_ps


@inlined
def _look_up(
    index: SharedForest, batch: SharedBatch, scheduler: Any, worker: int, output: MatchBuffer
) -> bool:
    """Look a row up; return whether there was room for its matches."""
    task, forest = scheduler.workers[worker], index.forest
    row = task.row
    has_room, locked_ps = look_up(index, batch, scheduler, worker, row, output)
    if not has_room:
        return False
    if batch.rows.low[row] <= batch.rows.high[row]:
        tree = active_tree(forest, probed_side(len(forest.sides), batch.rows.side[row]))
        places = index.places[worker, row - index.progress[worker].block]
        line = subindex_row(forest, tree, places[READ])
        occupy(scheduler, worker, index.free_at, line, locked_ps)
    scheduler.counters[ATOMICS] += 1
    spend(scheduler, worker)
    if load(batch.words, SIDES + batch.rows.side[row], PHASE) != BUILDING:
        task.stage = INSERT
    else:
        _end_row(index, batch, scheduler, worker, output)
    return True


@inlined
def _insert(
    index: SharedForest, batch: SharedBatch, scheduler: Any, worker: int, output: MatchBuffer
) -> None:
    """Index a row."""
    task, progress, forest = scheduler.workers[worker], index.progress[worker], index.forest
    row = task.row
    own, places = batch.rows.side[row], index.places[worker, row - progress.block]
    subindex, found = places[WRITTEN], found_leaf(places, WRITTEN_LEAF)
    line = subindex_row(forest, active_tree(forest, own), subindex)
    wait_for(scheduler, worker, index.free_at, line)
    _index_tuple(index, batch, own, subindex, found, batch.rows.position[row], scheduler.counters)
    leave(scheduler, worker, index.free_at, line)
    progress.inserted_0 += own == 0
    progress.inserted_1 += own == 1
    _end_row(index, batch, scheduler, worker, output)


@inlined
def _index_tuple(
    index: SharedForest,
    batch: SharedBatch,
    side: int,
    subindex: int,
    found: FoundLeaf,
    position: int,
    counters: np.ndarray,
) -> None:
    """Insert a tuple into its side's active tree and mark it as indexed."""
    tree = active_tree(index.forest, side)
    at = position - batch.base[side]
    insert_locked(index.forest, tree, subindex, found, batch.keys[side, at], position, counters)
    store(batch.indexed, side, at, 1)


@inlined
def _end_row(
    index: SharedForest, batch: SharedBatch, scheduler: Any, worker: int, output: MatchBuffer
) -> None:
    """Go on to the task's next row, or end the task."""
    task, progress = scheduler.workers[worker], index.progress[worker]
    task.row += 1
    if task.row == task.end or moves_edge_with_every_row(scheduler):
        for side in range(len(batch.base)):
            inserted = progress.inserted_1 if side else progress.inserted_0
            if inserted:
                tree = active_tree(index.forest, side)
                fetch_add(index.forest.tree_entries, tree, 0, inserted)
                scheduler.counters[ATOMICS] += 3
                spend(scheduler, worker)
                move_edge(batch, scheduler, worker, side)
        progress.inserted_0 = progress.inserted_1 = 0
    if task.row < task.end:
        task.stage = LOOK_UP if task.row < progress.block_end else SEARCH
        return
    fetch_add(batch.words, RUNNING, 0, -1)
    scheduler.counters[ATOMICS] += 2
    spend(scheduler, worker)
    hand_on(batch, scheduler, worker, output)
    finish_task(scheduler, worker)
    task.stage = TAKE
    if load(batch.words, RUNNING, 0) == 0:
        wake(scheduler, worker, DRAINING, index.merge[0].after_drain)


@inlined
def _is_due(forest: Forest, side: int) -> bool:
    """Return whether the active tree of a side has reached its limit."""
    tree = active_tree(forest, side)
    return bool(load(forest.tree_entries, tree, 0) >= forest.sides[side].limit)


@inlined
def _merge_if_due(index: SharedForest, batch: SharedBatch, scheduler: Any, worker: int) -> bool:
    """Become the merging worker if a merge is due and there is none; return whether."""
    for side in range(len(batch.base)):
        if _is_due(index.forest, side) and try_lock(batch.words, MERGER, LOCK):
            if _is_due(index.forest, side):  # Another worker may just have merged.
                index.merge[0].side = side
                index.merge[0].after_drain = BUILD
                scheduler.workers[worker].stage = CLOSE
                return True
            unlock(batch.words, MERGER, LOCK)
    return False


@kernel
def _go_on_merging(index: SharedForest, batch: SharedBatch, scheduler: Any, worker: int) -> None:
    """Take the merging worker's next step."""
    words, task, merge = batch.words, scheduler.workers[worker], index.merge[0]
    if task.stage == CLOSE:
        lock(words, QUEUE, LOCK)
        store(words, GATE, 0, 1)
        unlock(words, QUEUE, LOCK)
        task.stage = merge.after_drain if load(words, RUNNING, 0) == 0 else DRAINING
    elif task.stage == BUILD:
        horizon = batch.seen[merge.side, load(words, QUEUE, HEAD)]
        if index.nonblocking:
            store(words, SIDES + merge.side, PHASE, BUILDING)
            _open_gate(batch, scheduler, worker)
        # The trees in use stay as they are.
        tree, depth = tree_slot(index.forest, merge.side, 1), index.insertion_depth
        build_next(index.forest, merge.side, tree, depth, horizon, scheduler.counters)
        spend(scheduler, worker)
        merge.after_drain = SWAP
        task.stage = CLOSE if index.nonblocking else SWAP
    elif task.stage == SWAP:
        _swap_in(index, batch, merge.side)
        if index.nonblocking:
            store(words, SIDES + merge.side, PHASE, PENDING)
            merge.next = load(words, SIDES + merge.side, EDGE)
            merge.end = batch.arrived[merge.side, load(words, QUEUE, HEAD)]
            task.stage = APPLY
        _open_gate(batch, scheduler, worker)
        if not index.nonblocking:
            _end_merge(batch, scheduler, worker)
    else:
        _apply_pending(index, batch, scheduler, worker)


@inlined
def _open_gate(batch: SharedBatch, scheduler: Any, worker: int) -> None:
    store(batch.words, GATE, 0, 0)
    wake(scheduler, worker, PARKED, TAKE)


@inlined
def _end_merge(batch: SharedBatch, scheduler: Any, worker: int) -> None:
    unlock(batch.words, MERGER, LOCK)
    scheduler.workers[worker].stage = TAKE


@inlined
def _swap_in(index: SharedForest, batch: SharedBatch, side: int) -> None:
    """Put the trees that were built in the place of those in use.

    The next merge is due when the new tree has its share of the window as it is now.
    """
    state = index.forest.sides[side]
    head = load(batch.words, QUEUE, HEAD)
    window = batch.arrived[side, head] - batch.seen[side, head]
    state.limit = max(1, math.ceil(index.merge_ratio * window))
    state.run_first = 1 - state.run_first
    state.tree_first = 1 - state.tree_first


@inlined
def _apply_pending(index: SharedForest, batch: SharedBatch, scheduler: Any, worker: int) -> None:
    """Index the next tuple that was joined while the new trees were built."""
    forest, merge, counters = index.forest, index.merge[0], scheduler.counters
    side = merge.side
    base = batch.base[side]
    # Others may have moved the edge tuple, and with a new batch the base, beyond the next one.
    position = max(merge.next, load(batch.words, SIDES + side, EDGE))
    while position < merge.end and load(batch.indexed, side, position - base) != 0:
        position += 1
    merge.next = position + 1
    if position >= merge.end:
        advance_edge(batch, side)
        store(batch.words, SIDES + side, PHASE, NO_MERGE)
        _end_merge(batch, scheduler, worker)
        return
    tree, run = active_tree(forest, side), run_slot(forest, side, 0)
    subindex = route(forest, run, tree, batch.keys[side, position - base], counters)
    spend(scheduler, worker)
    line = subindex_row(forest, tree, subindex)
    wait_for(scheduler, worker, index.free_at, line)
    _index_tuple(index, batch, side, subindex, NOT_FOUND, position, counters)
    fetch_add(forest.tree_entries, tree, 0, 1)
    counters[ATOMICS] += 2
    leave(scheduler, worker, index.free_at, line)
