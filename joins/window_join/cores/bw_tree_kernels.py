"""The join over Bw-Trees on simulated cores, step by step.

The steps are those of live threads (`joins.window_join.live.bw_tree_kernels`), on the same arrays.
A change of a tree takes two: what it publishes is made ready, and is swapped in when that is done.
What other cores have swapped in by then is there, so a compare-and-swap fails for the reason for
which it fails in a machine, and the core begins anew. One line of memory is swapped by one core at
a time; who only reads it waits for nobody.
"""

from __future__ import annotations

import numpy as np

from joins.indexes.bw_tree.pages import DELETED, INSERTED, PAGE, Pages
from joins.indexes.bw_tree.update import begin_change, is_changing, prepare, swap
from joins.indexes.pim_tree.status import DONE, NO_OUTPUT
from joins.machine.atomics import fetch_add
from joins.machine.compiling import kernel
from joins.machine.memory import LINE
from joins.matches import MatchBuffer
from joins.window_join.cores.bw_tree_state import (
    END,
    EXPIRE,
    LOOK_UP,
    NEXT,
    PREPARE,
    PUBLISH,
    SIDE,
    BwCores,
)
from joins.window_join.cores.clocks import acquire, next_core, release, spend, total_ps
from joins.window_join.cores.state import FREE, IDLE, STAGE
from joins.window_join.cores.turns import hand_on, move_edge
from joins.window_join.live.bw_tree_kernels import (
    Sharing,
    claim_expired,
    key_of,
    look_up,
    mark_indexed,
)
from joins.window_join.live.state import HEAD, QUEUE, SIDES, Live
from joins.window_join.rows import Rows
from joins.work import ATOMICS


@kernel
def run_bw_cores(
    first: Pages,
    last: Pages,
    rows: Rows,
    live: Live,
    sharing: Sharing,
    cores: BwCores,
    output: MatchBuffer,
    counters: np.ndarray,
) -> int:
    """Step until no core has anything to do; `NO_OUTPUT` asks for room and to be called again.

    *first* and *last* are the sides' trees, or one tree twice.
    """
    core = next_core(cores)
    while core >= 0:
        stage = cores.state[core, STAGE]
        if stage == FREE:
            _take(rows, live, sharing, cores, core, counters)
        elif stage == LOOK_UP:
            if not _look_up(first, last, rows, live, sharing, cores, core, output, counters):
                return NO_OUTPUT
        elif stage == EXPIRE:
            _expire(first, last, live, sharing, cores, core, counters)
        else:
            side = _changed(rows, sharing, cores, core)
            tree = last if side else first
            if stage == PREPARE:
                before = total_ps(cores, counters)
                prepare(tree, core, counters)
                spend(cores, core, before, counters)
                cores.state[core, STAGE] = PUBLISH
            elif _publish(tree, side, cores, core, counters):
                _go_on(first, last, rows, live, sharing, cores, core, output, counters)
        core = next_core(cores)
    return DONE


@kernel
def _take(
    rows: Rows, live: Live, sharing: Sharing, cores: BwCores, core: int, counters: np.ndarray
) -> None:
    """Take a task, or find out that there are no more."""
    acquire(cores, core, cores.free, QUEUE)
    before = total_ps(cores, counters)
    begin, n = fetch_add(live.words, QUEUE, HEAD, sharing.task_rows), len(rows.side)
    counters[ATOMICS] += 1
    spend(cores, core, before, counters)
    release(cores, core, cores.free, QUEUE)
    task = sharing.tasks[core]
    task[0], task[1] = min(begin, n), min(begin + sharing.task_rows, n)
    cores.state[core, STAGE] = LOOK_UP if begin < n else IDLE


@kernel
def _look_up(
    first: Pages,
    last: Pages,
    rows: Rows,
    live: Live,
    sharing: Sharing,
    cores: BwCores,
    core: int,
    output: MatchBuffer,
    counters: np.ndarray,
) -> bool:
    """Look a row up and begin to insert it.

    Tell whether there was room for the matches; if not, nothing has happened.
    """
    row = sharing.tasks[core, 0]
    own, other = (last, first) if rows.side[row] else (first, last)
    before = total_ps(cores, counters)
    if not look_up(other, rows, row, live, sharing, 0, output, counters):
        return False
    begin_change(own, core, INSERTED, rows.key[row], rows.position[row], counters)
    spend(cores, core, before, counters)
    cores.state[core, STAGE] = PREPARE
    return True


@kernel
def _changed(rows: Rows, sharing: Sharing, cores: BwCores, core: int) -> int:
    """Return the side whose tree a core is changing: whose tuple it deletes, or inserts."""
    gone = cores.expiring[core]
    return gone[SIDE] if gone[NEXT] < gone[END] else rows.side[sharing.tasks[core, 0]]


@kernel
def _publish(tree: Pages, side: int, cores: BwCores, core: int, counters: np.ndarray) -> bool:
    """Swap in what has been prepared, or fail to; tell whether that completes the change."""
    line = tree.own[core, PAGE] // LINE
    acquire(cores, core, cores.line_free[side], line)
    before = total_ps(cores, counters)
    swap(tree, core, counters)
    spend(cores, core, before, counters)
    release(cores, core, cores.line_free[side], line)
    cores.state[core, STAGE] = PREPARE
    return not is_changing(tree, core)


@kernel
def _go_on(
    first: Pages,
    last: Pages,
    rows: Rows,
    live: Live,
    sharing: Sharing,
    cores: BwCores,
    core: int,
    output: MatchBuffer,
    counters: np.ndarray,
) -> None:
    """Begin what comes after a change: the next deletion, or the task's next row or end."""
    gone, task = cores.expiring[core], sharing.tasks[core]
    if gone[NEXT] < gone[END]:
        gone[NEXT] += 1
        _delete_next(first, last, sharing, cores, core, counters)
        return
    before = total_ps(cores, counters)
    mark_indexed(live, rows.side[task[0]], rows.position[task[0]], counters)
    spend(cores, core, before, counters)
    task[0] += 1
    cores.state[core, STAGE] = LOOK_UP
    if task[0] == task[1]:
        hand_on(rows, live, cores, core, output, counters)
        for side in range(len(live.base)):
            move_edge(live, cores, core, side, counters)
        cores.state[core, STAGE] = EXPIRE


@kernel
def _expire(
    first: Pages,
    last: Pages,
    live: Live,
    sharing: Sharing,
    cores: BwCores,
    core: int,
    counters: np.ndarray,
) -> None:
    """Claim what can be deleted; if there is nothing, take the next task."""
    gone = cores.expiring[core]
    for side in range(len(live.base)):
        acquire(cores, core, cores.free, SIDES + side)
        before = total_ps(cores, counters)
        gone[SIDE] = side
        gone[NEXT], gone[END] = claim_expired(live, sharing, side, counters)
        spend(cores, core, before, counters)
        release(cores, core, cores.free, SIDES + side)
        if gone[NEXT] < gone[END]:
            _delete_next(first, last, sharing, cores, core, counters)
            return
    cores.state[core, STAGE] = FREE


@kernel
def _delete_next(
    first: Pages, last: Pages, sharing: Sharing, cores: BwCores, core: int, counters: np.ndarray
) -> None:
    gone = cores.expiring[core]
    if gone[NEXT] == gone[END]:
        cores.state[core, STAGE] = EXPIRE
        return
    side = gone[SIDE]
    key = key_of(sharing, side, gone[NEXT])
    tree = last if side else first
    begin_change(tree, core, DELETED, key, gone[NEXT], counters)
    cores.state[core, STAGE] = PREPARE
