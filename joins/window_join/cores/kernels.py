"""The parallel join on simulated cores, step by step (PIM-Tree, section 4.1).

The steps are those of live threads (`joins.window_join.live.kernels`) and change the same arrays.
Which core takes the next step is not the system's choice here but the clocks': always the one whose
work is done first. A step begins where a lock is taken, so that cores get a lock in the order in
which they ask for it; who comes while it is held waits, or with a test-and-set goes on without.
"""

from __future__ import annotations

import numpy as np

from joins.indexes.pim_tree.layout import ENTRIES, NONE, Forest
from joins.indexes.pim_tree.lookahead import PLACES, READ, WRITTEN, look_up_block
from joins.indexes.pim_tree.mutable import subindex_row
from joins.indexes.pim_tree.probe import Sought, active_tree, probe_run, probe_tree, run_slot
from joins.indexes.pim_tree.status import DONE, NO_OUTPUT
from joins.machine.atomics import fetch_add, load, store
from joins.machine.compiling import kernel
from joins.matches import MatchBuffer, begin_row, commit_row
from joins.window_join.cores.clocks import acquire, drained, next_core, release, spend, total_ps
from joins.window_join.cores.merge import go_on_merging, merge_if_due
from joins.window_join.cores.state import (
    CLOCK,
    FREE,
    IDLE,
    INSERT,
    LOOK_UP,
    PARKED,
    SEARCH,
    STAGE,
    Cores,
)
from joins.window_join.cores.turns import hand_on, move_edge
from joins.window_join.live.kernels import scan_unindexed, take_task
from joins.window_join.live.merge import index_tuple
from joins.window_join.live.state import (
    BUILDING,
    COMPLETED,
    EDGE,
    GATE,
    HEAD,
    PHASE,
    QUEUE,
    RUNNING,
    SIDES,
    Live,
    Setting,
    Worker,
)
from joins.window_join.rows import Rows
from joins.work import ATOMICS, MATCHES


@kernel
def run_cores(
    forest: Forest,
    rows: Rows,
    live: Live,
    setting: Setting,
    cores: Cores,
    output: MatchBuffer,
    counters: np.ndarray,
) -> int:
    """Step until every row is joined; `NO_OUTPUT` asks for room and to be called again."""
    n = len(rows.side)
    while load(live.words, RUNNING, 0) != 0 or load(live.words, QUEUE, HEAD) < n:
        core = next_core(cores)
        stage = cores.state[core, STAGE]
        if stage == FREE:
            if not merge_if_due(forest, live, cores, core, counters):
                _take(forest, rows, live, setting, cores, core, counters)
        elif stage == SEARCH:
            _search(forest, rows, setting, cores, core, counters)
        elif stage == LOOK_UP:
            if not _look_up(forest, rows, live, setting, cores, core, output, counters):
                return NO_OUTPUT
        elif stage == INSERT:
            _insert(forest, rows, live, cores, core, output, counters)
        else:
            go_on_merging(forest, live, setting, cores, core, counters)
    return DONE


@kernel
def _take(
    forest: Forest,
    rows: Rows,
    live: Live,
    setting: Setting,
    cores: Cores,
    core: int,
    counters: np.ndarray,
) -> None:
    """Take a task, or find out that there is none to be had."""
    if load(live.words, GATE, 0) != 0:
        cores.state[core, STAGE] = PARKED
        return
    if load(live.words, QUEUE, HEAD) == len(rows.side):
        cores.state[core, STAGE] = IDLE
        return
    acquire(cores, core, cores.free, QUEUE)
    before = total_ps(cores, counters)
    task = cores.tasks[core]
    take_task(forest, rows, live, setting, Worker(task, task, cores.places))
    counters[ATOMICS] += 2 + task[1] - task[0]
    spend(cores, core, before, counters)
    release(cores, core, cores.free, QUEUE)
    cores.state[core, STAGE] = SEARCH


@kernel
def _search(
    forest: Forest, rows: Rows, setting: Setting, cores: Cores, core: int, counters: np.ndarray
) -> None:
    """Find the places in the immutable trees, which need no lock."""
    before = total_ps(cores, counters)
    row = cores.tasks[core, 0]
    look_up_block(
        forest,
        rows.side,
        rows.key,
        rows.low,
        row,
        row + 1,
        setting.self_join,
        cores.places[core : core + 1],
        counters,
    )
    spend(cores, core, before, counters)
    cores.state[core, STAGE] = LOOK_UP


@kernel
def _look_up(
    forest: Forest,
    rows: Rows,
    live: Live,
    setting: Setting,
    cores: Cores,
    core: int,
    output: MatchBuffer,
    counters: np.ndarray,
) -> bool:
    """Look a row up in two steps: before the edge tuple in the index, from it on in the window.

    Of the subindexes that a range stretches over, only the first one's lock is waited for.
    Tell whether there was room for the matches; if not, nothing has happened.
    """
    row, places = cores.tasks[core, 0], cores.places[core]
    low, high = rows.low[row], rows.high[row]
    own = rows.side[row]
    probed = own if setting.self_join else 1 - own
    begin_row(output, counters)
    before = held = total_ps(cores, counters)
    run, tree = run_slot(forest, probed, 0), active_tree(forest, probed)
    line = subindex_row(forest, tree, places[READ])
    if low <= high:
        edge = load(live.words, SIDES + probed, EDGE)
        sought = Sought(low, high, rows.start[row], min(rows.stop[row], edge), row)
        probe_tree(forest, run, tree, places[READ], NONE, sought, output, counters, True)
        held = total_ps(cores, counters)
        probe_run(forest, run, places[PLACES], sought, output, counters)
        scan_unindexed(live, rows, row, probed, edge, output, counters)
    if not commit_row(output, row, counters):
        return False
    if low <= high:
        acquire(cores, core, cores.subindex_free, line)
        cores.subindex_free[line] = cores.state[core, CLOCK] + held - before
    counters[MATCHES] += output.matches[row]
    live.place[0, row] = 0
    live.place[1, row] = output.before + output.listed[0] - output.matches[row]
    store(live.status, 0, row, COMPLETED)
    counters[ATOMICS] += 1
    spend(cores, core, before, counters)
    if load(live.words, SIDES + own, PHASE) != BUILDING:
        cores.state[core, STAGE] = INSERT
    else:
        _end_row(rows, live, cores, core, output, counters)
    return True


@kernel
def _insert(
    forest: Forest,
    rows: Rows,
    live: Live,
    cores: Cores,
    core: int,
    output: MatchBuffer,
    counters: np.ndarray,
) -> None:
    """Index a row, and move the edge tuple unless another core does."""
    row = cores.tasks[core, 0]
    own = rows.side[row]
    subindex = cores.places[core, WRITTEN]
    tree = active_tree(forest, own)
    line = subindex_row(forest, tree, subindex)
    acquire(cores, core, cores.subindex_free, line)
    before = total_ps(cores, counters)
    index_tuple(forest, live, own, subindex, rows.position[row], counters)
    spend(cores, core, before, counters)
    release(cores, core, cores.subindex_free, line)

    before = total_ps(cores, counters)
    fetch_add(forest.tree_state, tree, ENTRIES, 1)
    counters[ATOMICS] += 3
    spend(cores, core, before, counters)
    move_edge(live, cores, core, own, counters)
    _end_row(rows, live, cores, core, output, counters)


@kernel
def _end_row(
    rows: Rows, live: Live, cores: Cores, core: int, output: MatchBuffer, counters: np.ndarray
) -> None:
    """Go on to the task's next row; after its last propagate results, unless another core does."""
    task = cores.tasks[core]
    task[0] += 1
    if task[0] < task[1]:
        cores.state[core, STAGE] = SEARCH
        return
    before = total_ps(cores, counters)
    fetch_add(live.words, RUNNING, 0, -1)
    counters[ATOMICS] += 2
    spend(cores, core, before, counters)
    hand_on(rows, live, cores, core, output, counters)
    cores.latest[0] = max(cores.latest[0], cores.state[core, CLOCK])
    cores.state[core, STAGE] = FREE
    drained(live, cores, core)
