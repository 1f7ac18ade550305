"""The immutable B+-tree in CSS layout: children are found by counting, not by reference.

PIM-Tree, section 3.1 and appendix A.3 (Algorithm 3).
"""

from __future__ import annotations

import numpy as np

from joins.indexes.pim_tree.layout import (
    INF,
    LENGTH,
    LEVEL_STARTS,
    LEVELS,
    RUN_WIDTH,
    Forest,
)
from joins.machine.compiling import inlined, kernel
from joins.machine.lanes import LANES, lanes_less
from joins.work import COMPARISONS, MOVES

_NODE = 2 * LANES
"""Slots of a node, unless another width is asked for."""


@inlined
def count_less(rows: np.ndarray, row: int, begin: int, width: int, key: int) -> int:
    """Count the slots from *begin*, *width* of them, that are less than *key*; no branches.

    Vectors of `LANES` slots, whose counts are single bits: the compiler's own vectors add up words.
    """
    if width == _NODE:  # Nearly always; a loop over vectors takes longer to set up than to run.
        return lanes_less(rows, row, begin, key) + lanes_less(rows, row, begin + LANES, key)
    return _count_less_of(rows, row, begin, width, key)


@kernel
def _count_less_of(rows: np.ndarray, row: int, begin: int, width: int, key: int) -> int:
    less, vectors = 0, width - width % LANES
    for i in range(0, vectors, LANES):
        less += lanes_less(rows, row, begin + i, key)
    for i in range(vectors, width):
        less += rows[row, begin + i] < key
    return less


@kernel
def build_inner(forest: Forest, slot: int, entries: int, counters: np.ndarray) -> None:
    """Raise the inner nodes over the *entries* sorted keys of a run, from the bottom up.

    Algorithm 3 fills all levels in one pass over the leaves and moves the key that a full node has
    no slot for up to the parent. Here a node keeps that key too, which fills its last slot, and the
    levels are filled one after the other; the nodes and their ranges are the same.
    """
    keys, inner, shape = forest.run_keys, forest.run_inner, forest.run_shape
    width = forest.ring[RUN_WIDTH]
    leaves = max(1, -(-entries // width))
    for i in range(entries, leaves * width):
        keys[slot, i] = INF
    levels, below = 0, leaves
    while below > 1:
        below = -(-below // width)
        levels += 1
    shape[slot, LENGTH] = entries
    shape[slot, LEVELS] = levels
    below = leaves
    for level in range(levels - 1, -1, -1):
        start = 0
        for above in range(level):
            start += _level_nodes(leaves, levels, width, above) * width
        nodes = _level_nodes(leaves, levels, width, level)
        shape[slot, LEVEL_STARTS + level] = start
        for child in range(below - 1):
            if level == levels - 1:
                greatest = keys[slot, child * width + width - 1]
            else:
                lower = shape[slot, LEVEL_STARTS + level + 1]
                greatest = inner[slot, lower + child * width + width - 1]
            inner[slot, start + child] = greatest
        for child in range(below - 1, nodes * width):
            inner[slot, start + child] = INF
        counters[MOVES] += nodes * width
        below = nodes


@kernel
def _level_nodes(leaves: int, levels: int, width: int, level: int) -> int:
    nodes = leaves
    for _ in range(levels - level):
        nodes = -(-nodes // width)
    return nodes


@kernel
def nodes_at(forest: Forest, slot: int, depth: int) -> tuple[int, int]:
    """Return how deep the insertion depth *depth* can be in a run, and how many nodes are there.

    There is one node at depth 0 even in a run without inner nodes.
    """
    levels = forest.run_shape[slot, LEVELS]
    depth = max(0, min(depth, levels - 1))
    width = forest.ring[RUN_WIDTH]
    leaves = max(1, -(-forest.run_shape[slot, LENGTH] // width))
    return depth, _level_nodes(leaves, levels, width, depth) if levels > 0 else 1


@inlined
def descend(
    forest: Forest, slot: int, node: int, begin: int, end: int, key: int, counters: np.ndarray
) -> int:
    """Go from *node* of level *begin* down to level *end* where *key* is, or would be.

    Levels are counted from the root; the level below the deepest inner one is that of the leaves.
    """
    width = forest.ring[RUN_WIDTH]
    for level in range(begin, end):
        at = forest.run_shape[slot, LEVEL_STARTS + level] + node * width
        node = node * width + count_less(forest.run_inner, slot, at, width, key)
    counters[COMPARISONS] += (end - begin) * width
    return node


@inlined
def place_in_leaf(forest: Forest, slot: int, leaf: int, key: int, counters: np.ndarray) -> int:
    """Return the place of the first entry of a run with at least *key*, given its leaf."""
    width = forest.ring[RUN_WIDTH]
    counters[COMPARISONS] += width
    return min(
        leaf * width + count_less(forest.run_keys, slot, leaf * width, width, key),
        forest.run_shape[slot, LENGTH],
    )


@inlined
def greatest_key(forest: Forest, slot: int, depth: int, node: int) -> int:
    """Return the greatest key that goes to *node* at *depth*; INF for the last one."""
    if depth == 0:
        return INF
    return forest.run_inner[slot, forest.run_shape[slot, LEVEL_STARTS + depth - 1] + node]
