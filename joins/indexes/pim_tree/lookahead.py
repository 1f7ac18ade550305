"""Finding where the next tuples will search, and asking for those cache lines ahead of time.

A window larger than the cache waits for memory at every step down a tree. But the immutable tree
does not change between two merges: where a tuple's range begins there, and which subindexes it will
read and write, can be found for a block of tuples before the first of them is joined. What is
looked up in this way is final. In the mutable trees, which every tuple changes, only the lines are
asked for; the search itself is done when the tuple's turn comes. So the join remains tuple by
tuple, whatever the block.
"""

from __future__ import annotations

import numpy as np

from joins.indexes.pim_tree.immutable import count_less, descend, place_in_leaf
from joins.indexes.pim_tree.layout import (
    DEPTH,
    HEIGHT,
    KEYS,
    LEVELS,
    LINE,
    ROOT,
    RUN_COUNT,
    RUN_WIDTH,
    SLOT_NODES,
    TREE_COUNT,
    Forest,
)
from joins.indexes.pim_tree.mutable import fetch_node, first_node, route, subindex_row, tree_width
from joins.indexes.pim_tree.probe import active_tree, run_slot, tree_slot
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import prefetch_entry

READ, WRITTEN, PLACES = 0, 1, 2
"""Columns of the places found: the subindex that is read first, the one that is written, and per
immutable tree the place where the range begins."""
_FEW = 3
"""Entries of an immutable tree that a range is thought to hold, when their lines are asked for."""


@kernel
def look_up_block(
    forest: Forest,
    side: np.ndarray,
    key: np.ndarray,
    low: np.ndarray,
    begin: int,
    end: int,
    self_join: bool,
    places: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Fill in *places*, a row for each of the tuples *begin* to *end* - 1, and ask for the rest.

    The searches whose results are used are counted; those that will be repeated are not.
    """
    for row in range(begin, end):
        i = row - begin
        own = side[row]
        probed = own if self_join else 1 - own
        width = forest.ring[RUN_WIDTH]
        active = active_tree(forest, probed)
        depth = forest.tree_state[active, DEPTH]
        places[i, READ] = 0
        for k in range(forest.sides[probed, RUN_COUNT]):
            run = run_slot(forest, probed, k)
            node = descend(forest, run, 0, 0, depth, low[row], counters)
            places[i, READ] = node
            levels = forest.run_shape[run, LEVELS]
            leaf = descend(forest, run, node, depth, levels, low[row], counters)
            places[i, PLACES + k] = leaf
            for word in range(leaf * width, leaf * width + width, LINE):
                prefetch_entry(forest.run_keys, run, word)
        prefetch_entry(forest.subindexes, subindex_row(forest, active, places[i, READ]), 0)
        written = active_tree(forest, own)
        run = run_slot(forest, own, 0)
        places[i, WRITTEN] = route(forest, run, written, key[row], counters)
        prefetch_entry(forest.subindexes, subindex_row(forest, written, places[i, WRITTEN]), 0)

    words = KEYS + tree_width(forest)
    for row in range(begin, end):
        i = row - begin
        own = side[row]
        probed = own if self_join else 1 - own
        for k in range(forest.sides[probed, RUN_COUNT]):
            run = run_slot(forest, probed, k)
            place = place_in_leaf(forest, run, places[i, PLACES + k], low[row], counters)
            places[i, PLACES + k] = place
            prefetch_entry(forest.run_positions, run, place)
            # It may be in the next line, and that in the next leaf.
            prefetch_entry(forest.run_positions, run, place + _FEW)
            prefetch_entry(forest.run_keys, run, place + _FEW)
        for k in range(forest.sides[probed, TREE_COUNT]):
            tree = tree_slot(forest, probed, k)
            root = forest.subindexes[subindex_row(forest, tree, places[i, READ]), ROOT]
            fetch_node(forest, first_node(forest, tree) + root, words)
        tree = active_tree(forest, own)
        root = forest.subindexes[subindex_row(forest, tree, places[i, WRITTEN]), ROOT]
        fetch_node(forest, first_node(forest, tree) + root, words)

    words += tree_width(forest)
    for row in range(begin, end):
        i = row - begin
        own = side[row]
        probed = own if self_join else 1 - own
        for k in range(forest.sides[probed, TREE_COUNT]):
            _fetch_leaf(forest, tree_slot(forest, probed, k), places[i, READ], low[row])
        _fetch_leaf(forest, active_tree(forest, own), places[i, WRITTEN], key[row])


@inlined
def _fetch_leaf(forest: Forest, tree: int, subindex: int, key: int) -> None:
    """Ask for the leaf of *key*.

    No lock is taken: another thread may be splitting these nodes. What is read may then make no
    sense, so it is checked to be a node before it is followed; following a wrong one does no harm.
    """
    line = subindex_row(forest, tree, subindex)
    node, height = forest.subindexes[line, ROOT], forest.subindexes[line, HEIGHT]
    width, base = tree_width(forest), first_node(forest, tree)
    for _ in range(height):
        child = min(count_less(forest.pool, base + node, KEYS, width, key), width - 1)
        node = forest.pool[base + node, KEYS + width + child]
        if node < 0 or node >= forest.ring[SLOT_NODES]:
            return
    fetch_node(forest, base + node, KEYS + 2 * width)
