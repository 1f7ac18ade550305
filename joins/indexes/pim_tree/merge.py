"""Merging the mutable tree into the immutable one (PIM-Tree, sections 3.2 and 3.3.1)."""

from __future__ import annotations

import numpy as np

from joins.indexes.pim_tree.coarse import build_coarse
from joins.indexes.pim_tree.immutable import build_inner, nodes_at
from joins.indexes.pim_tree.layout import (
    HORIZON,
    KEYS,
    LENGTH,
    NEXT,
    NONE,
    RING_RUNS,
    RUN_FIRST,
    SIZE,
    Forest,
)
from joins.indexes.pim_tree.mutable import clear_tree, fetch_node, first_node, tree_width
from joins.indexes.pim_tree.probe import active_tree, run_slot
from joins.machine.compiling import kernel
from joins.work import BYTES_COPIED, COMPARISONS

_ENTRY_BYTES = 16


@kernel
def merge_runs(
    forest: Forest, source: int, tree: int, target: int, horizon: int, counters: np.ndarray
) -> None:
    """Write what run *source* and mutable *tree* hold from position *horizon* on to run *target*.

    Neither source changes. A *source* of `NONE` holds nothing. Where keys tie, the older come
    first.
    """
    keys, positions, pool = forest.run_keys, forest.run_positions, forest.pool
    entries = forest.run_shape[source, LENGTH] if source != NONE else 0
    width, base = tree_width(forest), first_node(forest, tree)
    old, written, leaf = 0, 0, 0
    while leaf != NONE:
        node = base + leaf
        # The next leaf may lie anywhere, and nothing else tells the machine that it will be read.
        leaf = pool[node, NEXT]
        if leaf != NONE:
            fetch_node(forest, base + leaf, pool.shape[1])
        for i in range(KEYS, KEYS + pool[node, SIZE]):
            key = pool[node, i]
            while old < entries and keys[source, old] <= key:
                # Written in any case, and overwritten by the next when it has expired: which of
                # the two is not to be foreseen, and a branch would be guessed wrong.
                keys[target, written] = keys[source, old]
                positions[target, written] = positions[source, old]
                written += positions[source, old] >= horizon
                old += 1
            keys[target, written] = key
            positions[target, written] = pool[node, i + width]
            written += pool[node, i + width] >= horizon
    while old < entries:
        keys[target, written] = keys[source, old]
        positions[target, written] = positions[source, old]
        written += positions[source, old] >= horizon
        old += 1
    counters[COMPARISONS] += entries
    counters[BYTES_COPIED] += _ENTRY_BYTES * written
    build_inner(forest, target, written, counters)
    build_coarse(forest, target)


@kernel
def merge_side(forest: Forest, side: int, insertion_depth: int, counters: np.ndarray) -> None:
    """Merge the active tree of a side into its run, and begin with empty subindexes.

    Entries below the side's horizon are left behind. There are two run slots: one is read, the
    other is written and then takes its place.
    """
    tree = active_tree(forest, side)
    source, target = run_slot(forest, side, 0), run_slot(forest, side, 1)
    merge_runs(forest, source, tree, target, forest.sides[side, HORIZON], counters)
    forest.sides[side, RUN_FIRST] = (forest.sides[side, RUN_FIRST] + 1) % forest.ring[RING_RUNS]
    depth, subindexes = nodes_at(forest, target, insertion_depth)
    clear_tree(forest, tree, subindexes, depth)
