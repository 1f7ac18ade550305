"""The immutable B+-tree in CSS layout: children are found by counting, not by reference.

PIM-Tree, section 3.1 and appendix A.3 (Algorithm 3).

A search touches few cache lines, by way of a coarse copy of the keys. A node of eight-byte keys
fills four lines, a leaf as many, and a window's nodes and leaves are more than a cache holds. For a
key that must be between two others, some 15 bits nearly always decide. So each node above
the leaves has a copy of 16 bits a key, one line, and each leaf a word: the greatest keys of its
first three quarters, its fences. Where the bits do not decide, the keys are searched. The tree, and
the work counted, are those of an ordinary search.
"""

from __future__ import annotations

import numpy as np

from joins.codes import GREATEST, LEAST
from joins.indexes.pim_tree.forest import Forest
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import leading_zeros
from joins.machine.lanes import LOOKAHEAD, count_less, leading_less
from joins.work import COMPARISONS, MOVES


@kernel
def build_inner(forest: Forest, slot: int, entries: int, counters: np.ndarray) -> None:
    """Build the inner nodes over a run's sorted keys, *entries* of them, from the bottom up.

    Algorithm 3 fills all levels in one pass over the leaves and moves the key that a full node has
    no slot for up to the parent. Here a node keeps that key too, which fills its last slot, and the
    levels are filled one after the other; the nodes and their ranges are the same.
    """
    keys, inner = forest.run_keys, forest.run_inner
    width = forest.slots.run_width
    leaves = max(1, -(-entries // width))
    for i in range(entries, leaves * width):
        keys[slot, i] = GREATEST
    levels, below = 0, leaves
    while below > 1:
        below = -(-below // width)
        levels += 1
    forest.run_length[slot] = entries
    forest.run_levels[slot] = levels
    below = leaves
    for level in range(levels - 1, -1, -1):
        start = 0
        for above in range(level):
            start += _level_nodes(leaves, levels, width, above) * width
        nodes = _level_nodes(leaves, levels, width, level)
        forest.level_starts[slot, level] = start
        for child in range(below - 1):
            if level == levels - 1:
                greatest = keys[slot, child * width + width - 1]
            else:
                lower = forest.level_starts[slot, level + 1]
                greatest = inner[slot, lower + child * width + width - 1]
            inner[slot, start + child] = greatest
        for child in range(below - 1, nodes * width):
            inner[slot, start + child] = GREATEST
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
    levels = forest.run_levels[slot]
    depth = max(0, min(depth, levels - 1))
    width = forest.slots.run_width
    leaves = max(1, -(-forest.run_length[slot] // width))
    return depth, _level_nodes(leaves, levels, width, depth) if levels > 0 else 1


@inlined
def descend(
    forest: Forest, slot: int, node: int, begin: int, end: int, key: int, counters: np.ndarray
) -> int:
    """Go from *node* of level *begin* down to level *end* where *key* is, or would be.

    Levels are counted from the root; the level below the deepest inner one is that of the leaves.
    """
    width = forest.slots.run_width
    for level in range(begin, end):
        at = forest.level_starts[slot, level] + node * width
        node = node * width + count_less(forest.run_inner, slot, at, width, key)
    counters[COMPARISONS] += (end - begin) * width
    return node


@inlined
def place_in_leaf(forest: Forest, slot: int, leaf: int, key: int, counters: np.ndarray) -> int:
    """Return the place of the first entry of a run with at least *key*, in its *leaf*."""
    width = forest.slots.run_width
    counters[COMPARISONS] += width
    place = leaf * width + count_less(forest.run_keys, slot, leaf * width, width, key)
    return min(place, int(forest.run_length[slot]))


@inlined
def greatest_key(forest: Forest, slot: int, depth: int, node: int) -> int:
    """Return the greatest key that goes to *node* at *depth*; `GREATEST` for the last one."""
    if depth == 0:
        return GREATEST
    return int(forest.run_inner[slot, forest.level_starts[slot, depth - 1] + node])


_COARSE_BITS = 15
"""What an int16 holds of the distance between two keys."""

_FENCE_BITS = 16
_FENCE_MASK = (1 << _FENCE_BITS) - 1
_SHIFT_MASK = 63
_NO_FENCES = 63
"""The word of a leaf without fences: of all keys but their signs nothing is left."""


@kernel
def build_coarse(forest: Forest, slot: int) -> None:
    """Write the coarse copy of a run whose inner nodes are built."""
    width = forest.slots.run_width
    leaves = max(1, -(-forest.run_length[slot] // width))
    if forest.run_levels[slot] > 0:
        for node in range(-(-leaves // width)):
            _copy_node(forest, slot, node)
    # Any key may be looked for in the first leaf and in the last.
    forest.run_fences[slot, 0] = forest.run_fences[slot, leaves - 1] = _NO_FENCES
    for leaf in range(1, leaves - 1):
        forest.run_fences[slot, leaf] = _fences_of(forest, slot, leaf)


@inlined
def _copy_node(forest: Forest, slot: int, node: int) -> None:
    below, shift = _scale(forest, slot, node)
    width = forest.slots.run_width
    keys = forest.level_starts[slot, forest.run_levels[slot] - 1]
    for leaf in range(node * width, node * width + width):
        greatest = forest.run_inner[slot, keys + leaf]
        forest.run_coarse[slot, leaf] = _coarse(greatest, below, shift)


@inlined
def _fences_of(forest: Forest, slot: int, leaf: int) -> int:
    """Return the word of a leaf: how many low bits of keys are left out, then 16 of each fence.

    Two keys of the leaf differ by less than half of the range of 16 bits, so that the difference
    of those bits has the right sign, whatever is above them.
    """
    keys, width = forest.run_keys, forest.slots.run_width
    begin = leaf * width
    span = keys[slot, begin + width - 1] - keys[slot, begin - 1]
    shift = max(0, 64 - leading_zeros(span) - (_FENCE_BITS - 2))
    word = shift
    for quarter in range(1, 4):
        fence = keys[slot, begin + quarter * (width >> 2) - 1] >> shift
        word |= (fence & _FENCE_MASK) << (quarter * _FENCE_BITS)
    return int(word)


@inlined
def _scale(forest: Forest, slot: int, node: int) -> tuple[int, int]:
    """Return what keys of a *node* above the leaves are measured from, and the low bits left out.

    All that are looked for in the node are greater, but in the first one, where none is less.
    """
    levels = forest.run_levels[slot]
    below, greatest = LEAST, GREATEST
    if levels > 1:
        above = forest.level_starts[slot, levels - 2] + node
        greatest = forest.run_inner[slot, above]
        if node > 0:
            below = forest.run_inner[slot, above - 1]
    return below, max(0, 64 - leading_zeros(greatest - below) - _COARSE_BITS)


@inlined
def _coarse(key: int, below: int, shift: int) -> int:
    """Return the coarse bits of a key: of its distance, which may need all 64 bits."""
    return int(np.int64(np.uint64(key - below) >> np.uint64(shift)))


@inlined
def leaf_below(forest: Forest, slot: int, node: int, key: int) -> int:
    """Return the leaf where *key* is, or would be, below a *node* of the deepest inner level."""
    width = forest.slots.run_width
    begin = node * width
    below, shift = _scale(forest, slot, node)
    coarse = _coarse(key, below, shift)
    less = count_less(forest.run_coarse, slot, begin, width, coarse)
    if forest.run_coarse[slot, begin + less] == coarse:
        keys = forest.level_starts[slot, forest.run_levels[slot] - 1]
        less = count_less(forest.run_inner, slot, keys + begin, width, key)
    return begin + less


@inlined
def first_place(forest: Forest, slot: int, leaf: int, key: int) -> int:
    """Return where a quarter of a leaf begins before which all entries are less than *key*."""
    word, width = forest.run_fences[slot, leaf], forest.slots.run_width
    coarse, sign = key >> (word & _SHIFT_MASK), _FENCE_BITS - 1
    less = ((word >> _FENCE_BITS) - coarse) >> sign & 1
    less += ((word >> 2 * _FENCE_BITS) - coarse) >> sign & 1
    less += ((word >> 3 * _FENCE_BITS) - coarse) >> sign & 1
    return int(leaf * width + less * (width >> 2))


@inlined
def place_from(forest: Forest, slot: int, begin: int, key: int) -> int:
    """Return the first place of a run with at least *key*, which is not before *begin*."""
    place, entries = begin, forest.run_length[slot]
    while place < entries:
        less = leading_less(forest.run_keys[slot], place, key)
        place += less
        if less < LOOKAHEAD:
            break
    return int(min(place, entries))
