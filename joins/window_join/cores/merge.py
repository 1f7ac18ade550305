"""Merging on a simulated core, while others join or while they wait (PIM-Tree, section 4.2)."""

from __future__ import annotations

import numpy as np

from joins.indexes.pim_tree.layout import ENTRIES, Forest
from joins.indexes.pim_tree.mutable import route, subindex_row
from joins.indexes.pim_tree.probe import active_tree, run_slot
from joins.machine.atomics import fetch_add, load, store, try_lock, unlock
from joins.machine.compiling import kernel
from joins.window_join.cores.clocks import acquire, open_gate, release, spend, total_ps
from joins.window_join.cores.state import (
    AFTER_DRAIN,
    BUILD,
    CLOSE,
    DRAINING,
    END,
    FREE,
    NEXT,
    PENDING,
    SIDE,
    STAGE,
    SWAP,
    Cores,
)
from joins.window_join.live.merge import (
    advance_edge,
    build_fresh,
    index_tuple,
    is_due,
    swap_in,
)
from joins.window_join.live.state import (
    BUILDING,
    EDGE,
    GATE,
    HEAD,
    LOCK,
    MERGER,
    NO_MERGE,
    PHASE,
    QUEUE,
    RUNNING,
    SIDES,
    Live,
    Setting,
)
from joins.window_join.live.state import PENDING as PENDING_PHASE
from joins.work import ATOMICS


@kernel
def merge_if_due(forest: Forest, live: Live, cores: Cores, core: int, counters: np.ndarray) -> bool:
    """Let a core become the merging one if a merge is due and none is going on; tell whether."""
    for side in range(len(forest.sides)):
        if is_due(forest, side) and try_lock(live.words, MERGER, LOCK):
            cores.merge[SIDE] = side
            cores.merge[AFTER_DRAIN] = BUILD
            cores.state[core, STAGE] = CLOSE
            return True
    return False


@kernel
def go_on_merging(
    forest: Forest, live: Live, setting: Setting, cores: Cores, core: int, counters: np.ndarray
) -> None:
    """Take the merging core's next step."""
    stage = cores.state[core, STAGE]
    if stage == CLOSE:
        store(live.words, GATE, 0, 1)
        counters[ATOMICS] += 2
        free = load(live.words, RUNNING, 0) == 0
        cores.state[core, STAGE] = cores.merge[AFTER_DRAIN] if free else DRAINING
    elif stage == BUILD:
        _build(forest, live, setting, cores, core, counters)
    elif stage == SWAP:
        _swap(forest, live, setting, cores, core)
    else:
        _apply_pending(forest, live, cores, core, counters)


@kernel
def _build(
    forest: Forest, live: Live, setting: Setting, cores: Cores, core: int, counters: np.ndarray
) -> None:
    side = cores.merge[SIDE]
    horizon = live.seen[side, load(live.words, QUEUE, HEAD)]
    if setting.nonblocking:
        store(live.words, SIDES + side, PHASE, BUILDING)
        store(live.words, GATE, 0, 0)
        open_gate(cores, core)
    before = total_ps(cores, counters)
    build_fresh(forest, side, horizon, setting.insertion_depth, counters)
    spend(cores, core, before, counters)
    cores.merge[AFTER_DRAIN] = SWAP
    cores.state[core, STAGE] = CLOSE if setting.nonblocking else SWAP


@kernel
def _swap(forest: Forest, live: Live, setting: Setting, cores: Cores, core: int) -> None:
    side = cores.merge[SIDE]
    swap_in(forest, live, setting, side)
    if setting.nonblocking:
        store(live.words, SIDES + side, PHASE, PENDING_PHASE)
        cores.merge[NEXT] = load(live.words, SIDES + side, EDGE)
        cores.merge[END] = live.arrived[side, load(live.words, QUEUE, HEAD)]
        cores.state[core, STAGE] = PENDING
    else:
        _leave(live, cores, core)
    store(live.words, GATE, 0, 0)
    open_gate(cores, core)


@kernel
def _apply_pending(
    forest: Forest, live: Live, cores: Cores, core: int, counters: np.ndarray
) -> None:
    """Index the next tuple that was joined while the new trees were built."""
    side = cores.merge[SIDE]
    base = live.base[side]
    # The others may have moved the edge tuple, and with a new batch the base, beyond the next one.
    position = max(cores.merge[NEXT], load(live.words, SIDES + side, EDGE))
    while position < cores.merge[END] and load(live.indexed, side, position - base) != 0:
        position += 1
    cores.merge[NEXT] = position + 1
    if position >= cores.merge[END]:
        advance_edge(live, side)
        store(live.words, SIDES + side, PHASE, NO_MERGE)
        _leave(live, cores, core)
        return
    tree, run = active_tree(forest, side), run_slot(forest, side, 0)
    before = total_ps(cores, counters)
    subindex = route(forest, run, tree, live.keys[side, position - base], counters)
    spend(cores, core, before, counters)
    line = subindex_row(forest, tree, subindex)
    acquire(cores, core, cores.subindex_free, line)
    before = total_ps(cores, counters)
    index_tuple(forest, live, side, subindex, position, counters)
    fetch_add(forest.tree_state, tree, ENTRIES, 1)
    counters[ATOMICS] += 2
    spend(cores, core, before, counters)
    release(cores, core, cores.subindex_free, line)


@kernel
def _leave(live: Live, cores: Cores, core: int) -> None:
    unlock(live.words, MERGER, LOCK)
    cores.state[core, STAGE] = FREE
