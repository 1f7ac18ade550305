"""Inserting into one side and probing it, as an index by itself."""

from __future__ import annotations

import numpy as np

from joins.indexes.pim_tree.immutable import descend, place_in_leaf
from joins.indexes.pim_tree.layout import (
    DEPTH,
    ENTRIES,
    LEVELS,
    LIMIT,
    NEXT_POSITION,
    NODES,
    NONE,
    ROOM_NODES,
    RUN_COUNT,
    SLOT_NODES,
    TREE_COUNT,
    Forest,
)
from joins.indexes.pim_tree.mutable import insert_into_subindex, route
from joins.indexes.pim_tree.probe import (
    Sought,
    active_tree,
    probe_run,
    probe_tree,
    run_slot,
    tree_slot,
)
from joins.machine.compiling import kernel
from joins.machine.stops import DONE, MAINTAIN, NO_ROOM
from joins.matches import MatchBuffer, begin_row, commit_row


@kernel
def insert_entries(
    forest: Forest,
    side: int,
    keys: np.ndarray,
    positions: np.ndarray,
    begin: int,
    counters: np.ndarray,
) -> tuple[int, int]:
    """Insert entries from row *begin* on; return the row it stopped at, and why."""
    tree = active_tree(forest, side)
    run = run_slot(forest, side, 0)
    for row in range(begin, len(keys)):
        if forest.tree_state[tree, ENTRIES] >= forest.sides[side, LIMIT]:
            return row, MAINTAIN
        if forest.tree_state[tree, NODES] + ROOM_NODES > forest.ring[SLOT_NODES]:
            return row, NO_ROOM
        subindex = route(forest, run, tree, keys[row], counters)
        insert_into_subindex(forest, tree, subindex, NONE, keys[row], positions[row], counters)
        forest.tree_state[tree, ENTRIES] += 1
        forest.sides[side, NEXT_POSITION] = positions[row] + 1
    return len(keys), DONE


@kernel
def probe_entries(
    forest: Forest,
    side: int,
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray,
    stop: np.ndarray,
    begin: int,
    output: MatchBuffer,
    counters: np.ndarray,
) -> int:
    """Probe all live trees of a side, row by row from *begin* on; return the row it came to."""
    for row in range(begin, len(low)):
        begin_row(output, counters)
        if low[row] > high[row]:
            continue
        key, subindex = low[row], 0
        sought = Sought(key, high[row], start[row], stop[row], row)
        run = run_slot(forest, side, 0)
        depth = forest.tree_state[active_tree(forest, side), DEPTH]
        for k in range(forest.sides[side, RUN_COUNT]):
            run = run_slot(forest, side, k)
            subindex = descend(forest, run, 0, 0, depth, key, counters)
            levels = forest.run_shape[run, LEVELS]
            leaf = descend(forest, run, subindex, depth, levels, key, counters)
            place = place_in_leaf(forest, run, leaf, key, counters)
            probe_run(forest, run, place, sought, output, counters)
        for k in range(forest.sides[side, TREE_COUNT]):
            tree = tree_slot(forest, side, k)
            probe_tree(forest, run, tree, subindex, NONE, sought, output, counters, False)
        if not commit_row(output, row, counters):
            return row
    return len(low)
