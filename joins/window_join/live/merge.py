"""Merging while the join goes on, or while it waits (PIM-Tree, section 4.2)."""

from __future__ import annotations

import math

import numpy as np

from joins.indexes.pim_tree.immutable import nodes_at
from joins.indexes.pim_tree.layout import (
    ENTRIES,
    LIMIT,
    RING_RUNS,
    RING_TREES,
    RUN_FIRST,
    TREE_FIRST,
    Forest,
)
from joins.indexes.pim_tree.merge import merge_runs
from joins.indexes.pim_tree.mutable import clear_tree, insert_locked, route
from joins.indexes.pim_tree.probe import active_tree, run_slot, tree_slot
from joins.machine.atomics import (
    fetch_add,
    load,
    lock,
    offer_core,
    offer_now_and_then,
    store,
    try_lock,
    unlock,
)
from joins.machine.compiling import inlined, kernel
from joins.window_join.live.state import (
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
    Live,
    Setting,
    Worker,
)


@kernel
def pause(setting: Setting, worker: Worker) -> None:
    """Let others run now and then, where a test wants to see every interleaving."""
    offer_now_and_then(setting.pauses, worker.random, 0)


@kernel
def advance_edge(live: Live, side: int) -> None:
    """Move a side's edge tuple to its next tuple not indexed, unless another thread does."""
    line = SIDES + side
    base, end = live.base[side], live.arrived[side, live.arrived.shape[1] - 1]
    edge = load(live.words, line, EDGE)
    if edge == end or load(live.indexed, side, edge - base) == 0:
        return
    if not try_lock(live.words, line, LOCK):
        return
    edge = load(live.words, line, EDGE)
    while edge < end and load(live.indexed, side, edge - base) != 0:
        edge += 1
    store(live.words, line, EDGE, edge)
    unlock(live.words, line, LOCK)


@inlined
def index_tuple(
    forest: Forest, live: Live, side: int, subindex: int, position: int, counters: np.ndarray
) -> None:
    """Insert a tuple into its side's active tree and mark it as indexed."""
    tree = active_tree(forest, side)
    at = position - live.base[side]
    insert_locked(forest, tree, subindex, live.keys[side, at], position, counters)
    store(live.indexed, side, at, 1)


@kernel
def _close_gate(live: Live, setting: Setting, worker: Worker) -> None:
    """Let no task be assigned, and wait until all that were are finished."""
    lock(live.words, QUEUE, LOCK)
    store(live.words, GATE, 0, 1)
    unlock(live.words, QUEUE, LOCK)
    while load(live.words, RUNNING, 0) != 0:
        offer_core()
    pause(setting, worker)


@kernel
def is_due(forest: Forest, side: int) -> bool:
    """Tell whether the active tree of a side has reached its limit."""
    tree = active_tree(forest, side)
    return load(forest.tree_state, tree, ENTRIES) >= forest.sides[side, LIMIT]


@kernel
def build_fresh(
    forest: Forest, side: int, horizon: int, insertion_depth: int, counters: np.ndarray
) -> None:
    """Build the trees that come next beside those in use, which stay as they are."""
    tree, fresh = active_tree(forest, side), tree_slot(forest, side, 1)
    source, target = run_slot(forest, side, 0), run_slot(forest, side, 1)
    merge_runs(forest, source, tree, target, horizon, counters)
    depth, subindexes = nodes_at(forest, target, insertion_depth)
    clear_tree(forest, fresh, subindexes, depth)


@kernel
def swap_in(forest: Forest, live: Live, setting: Setting, side: int) -> None:
    """Put the trees that were built in the place of those in use.

    The next merge is due when the new tree holds its share of the window as it is now.
    """
    state = forest.sides[side]
    head = load(live.words, QUEUE, HEAD)
    window = live.arrived[side, head] - live.seen[side, head]
    state[LIMIT] = max(1, math.ceil(setting.merge_ratio * window))
    state[RUN_FIRST] = 1 - state[RUN_FIRST] if forest.ring[RING_RUNS] == 2 else 0
    state[TREE_FIRST] = 1 - state[TREE_FIRST] if forest.ring[RING_TREES] == 2 else 0


@kernel
def merge_if_due(
    forest: Forest, live: Live, setting: Setting, worker: Worker, counters: np.ndarray
) -> None:
    """Become the merging thread if a merge is due and there is none."""
    for side in range(len(forest.sides)):
        if is_due(forest, side) and try_lock(live.words, MERGER, LOCK):
            if is_due(forest, side):  # another thread may just have done it
                _merge(forest, live, setting, side, worker, counters)
            unlock(live.words, MERGER, LOCK)


@kernel
def _merge(
    forest: Forest,
    live: Live,
    setting: Setting,
    side: int,
    worker: Worker,
    counters: np.ndarray,
) -> None:
    line = SIDES + side
    _close_gate(live, setting, worker)
    queue_head = load(live.words, QUEUE, HEAD)
    if setting.nonblocking:
        store(live.words, line, PHASE, BUILDING)
        store(live.words, GATE, 0, 0)
    horizon = live.seen[side, queue_head]
    build_fresh(forest, side, horizon, setting.insertion_depth, counters)
    pause(setting, worker)
    if setting.nonblocking:
        _close_gate(live, setting, worker)
    swap_in(forest, live, setting, side)
    end = live.arrived[side, load(live.words, QUEUE, HEAD)]
    if setting.nonblocking:
        store(live.words, line, PHASE, PENDING)
    store(live.words, GATE, 0, 0)
    if setting.nonblocking:
        _apply_pending(forest, live, setting, side, end, worker, counters)
        store(live.words, line, PHASE, NO_MERGE)


@kernel
def _apply_pending(
    forest: Forest,
    live: Live,
    setting: Setting,
    side: int,
    end: int,
    worker: Worker,
    counters: np.ndarray,
) -> None:
    """Index the tuples before position *end* that were joined while the new tree was built."""
    tree, run = active_tree(forest, side), run_slot(forest, side, 0)
    base = live.base[side]
    inserted = 0
    for position in range(load(live.words, SIDES + side, EDGE), end):
        if load(live.indexed, side, position - base) == 0:
            key = live.keys[side, position - base]
            subindex = route(forest, run, tree, key, counters)
            index_tuple(forest, live, side, subindex, position, counters)
            inserted += 1
            pause(setting, worker)
    fetch_add(forest.tree_state, tree, ENTRIES, inserted)
    advance_edge(live, side)
