"""What each thread of a live join does (PIM-Tree, section 4.1)."""

from __future__ import annotations

import numpy as np

from joins.indexes.pim_tree.layout import ENTRIES, LIMIT, NONE, Forest
from joins.indexes.pim_tree.lookahead import PLACES, READ, WRITTEN, look_up_block
from joins.indexes.pim_tree.probe import (
    Sought,
    active_tree,
    probe_run,
    probe_tree,
    run_slot,
)
from joins.indexes.pim_tree.status import DONE, NO_OUTPUT
from joins.machine.atomics import fetch_add, load, lock, offer_core, store, unlock
from joins.machine.compiling import inlined, kernel
from joins.machine.lanes import LANES, lanes_greater, lanes_less
from joins.matches import MatchBuffer, add_match, begin_row, commit_row
from joins.window_join.ibwj_kernels import BLOCK
from joins.window_join.live.merge import advance_edge, index_tuple, merge_if_due, pause
from joins.window_join.live.output_stream import propagate
from joins.window_join.live.state import (
    ACTIVE,
    BUILDING,
    COMPLETED,
    EDGE,
    GATE,
    HEAD,
    LOCK,
    PHASE,
    QUEUE,
    RUNNING,
    SIDES,
    Live,
    Setting,
    Worker,
)
from joins.window_join.rows import Rows
from joins.work import COMPARISONS, MATCHES


@kernel
def work_on_batch(
    forest: Forest,
    rows: Rows,
    live: Live,
    setting: Setting,
    thread: int,
    worker: Worker,
    output: MatchBuffer,
    counters: np.ndarray,
) -> int:
    """Take tasks until there are none; `NO_OUTPUT` asks for room and to be called again."""
    task = worker.task
    while True:
        if task[0] == task[1] and not take_task(forest, rows, live, setting, worker):
            if load(live.words, QUEUE, HEAD) == len(rows.side):
                return DONE
            merge_if_due(forest, live, setting, worker, counters)
            for side in range(len(forest.sides)):
                advance_edge(live, side)
            offer_core()
            continue
        why = _join_task(forest, rows, live, setting, thread, worker, output, counters)
        if why != DONE:
            return why
        fetch_add(live.words, RUNNING, 0, -1)
        propagate(rows, live, output)
        merge_if_due(forest, live, setting, worker, counters)


@kernel
def take_task(forest: Forest, rows: Rows, live: Live, setting: Setting, worker: Worker) -> bool:
    """Take the next tuples of the work queue, if there are any and none has to wait."""
    pause(setting, worker)
    lock(live.words, QUEUE, LOCK)
    begin = load(live.words, QUEUE, HEAD)
    end = min(begin + setting.task_rows, len(rows.side))
    free = begin < end and load(live.words, GATE, 0) == 0
    for side in range(len(forest.sides)):
        ahead = live.arrived[side, end] - load(live.words, SIDES + side, EDGE)
        tree = active_tree(forest, side)
        entries = load(forest.tree_state, tree, ENTRIES)
        free = free and entries < forest.sides[side, LIMIT] + setting.slack
        # A task may be larger than the slack: it is then taken alone.
        free = free and (
            ahead <= setting.slack
            or live.arrived[side, begin] == load(live.words, SIDES + side, EDGE)
        )
    if free:
        store(live.words, QUEUE, HEAD, end)
        fetch_add(live.words, RUNNING, 0, 1)
        for row in range(begin, end):
            live.status[0, row] = ACTIVE
        worker.task[0], worker.task[1] = begin, end
    unlock(live.words, QUEUE, LOCK)
    return free


@kernel
def _join_task(
    forest: Forest,
    rows: Rows,
    live: Live,
    setting: Setting,
    thread: int,
    worker: Worker,
    output: MatchBuffer,
    counters: np.ndarray,
) -> int:
    """Join and index the rows of the task that are left."""
    task = worker.task
    inserted_0 = inserted_1 = 0
    why = DONE
    while why == DONE and task[0] < task[1]:
        first, block = task[0], min(task[0] + BLOCK, task[1])
        look_up_block(
            forest,
            rows.side,
            rows.key,
            rows.low,
            first,
            block,
            setting.self_join,
            worker.places,
            counters,
        )
        for row in range(first, block):
            pause(setting, worker)
            places = worker.places[row - first]
            if not _look_up(forest, rows, row, live, setting, places, output, counters):
                why = NO_OUTPUT
                break
            live.place[0, row] = thread
            live.place[1, row] = output.before + output.listed[0] - output.matches[row]
            store(live.status, 0, row, COMPLETED)
            own = rows.side[row]
            if load(live.words, SIDES + own, PHASE) != BUILDING:
                index_tuple(forest, live, own, places[WRITTEN], rows.position[row], counters)
                inserted_0 += own == 0
                inserted_1 += own == 1
            task[0] = row + 1
    for side in range(len(forest.sides)):
        inserted = inserted_1 if side else inserted_0
        if inserted:
            fetch_add(forest.tree_state, active_tree(forest, side), ENTRIES, inserted)
            pause(setting, worker)
            advance_edge(live, side)
    return why


@inlined
def _look_up(
    forest: Forest,
    rows: Rows,
    row: int,
    live: Live,
    setting: Setting,
    places: np.ndarray,
    output: MatchBuffer,
    counters: np.ndarray,
) -> bool:
    """Find a row's matches: before the edge tuple in the index, from it on in the window.

    Tell whether there was room for them; if not, nothing is left of them.
    """
    low, high = rows.low[row], rows.high[row]
    probed = rows.side[row] if setting.self_join else 1 - rows.side[row]
    begin_row(output, counters)
    if low <= high:
        edge = load(live.words, SIDES + probed, EDGE)
        sought = Sought(low, high, rows.start[row], min(rows.stop[row], edge), row)
        run, tree = run_slot(forest, probed, 0), active_tree(forest, probed)
        probe_run(forest, run, places[PLACES], sought, output, counters)
        probe_tree(forest, run, tree, places[READ], NONE, sought, output, counters, True)
        scan_unindexed(live, rows, row, probed, edge, output, counters)
    if not commit_row(output, row, counters):
        return False
    counters[MATCHES] += output.matches[row]
    return True


@inlined
def scan_unindexed(
    live: Live,
    rows: Rows,
    row: int,
    probed: int,
    edge: int,
    output: MatchBuffer,
    counters: np.ndarray,
) -> None:
    """Report a row's matches among what it sees from position *edge* on, in the window itself."""
    low, high = rows.low[row], rows.high[row]
    base, begin, end = live.base[probed], max(rows.start[row], edge), rows.stop[row]
    for some in range(begin, end, LANES):
        outside = lanes_less(live.keys, probed, some - base, low)
        outside += lanes_greater(live.keys, probed, some - base, high)
        if outside == LANES:
            continue
        for position in range(some, min(some + LANES, end)):
            if low <= live.keys[probed, position - base] <= high:
                add_match(output, row, position)
    counters[COMPARISONS] += max(0, end - begin)
