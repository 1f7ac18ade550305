"""Searching an immutable tree in few cache lines: in a coarse copy of its keys.

A node of eight-byte keys fills four lines, a leaf as many, and a window's nodes and leaves are more
than a cache holds. Where a key lies between two others that it is known to lie between, some 15
bits of it tell nearly always. So each node above the leaves has a copy of 16 bits a key, one line,
and each leaf a word: the greatest keys of its first three quarters, its fences. Where the bits do
not tell, the keys are searched. The tree, and the work counted, are those of an ordinary search.
"""

from __future__ import annotations

import numpy as np

from joins.indexes.pim_tree.immutable import count_less
from joins.indexes.pim_tree.layout import INF, LENGTH, LEVEL_STARTS, LEVELS, RUN_WIDTH, Forest
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import leading_zeros
from joins.machine.lanes import LOOKAHEAD, leading_less

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
    width = forest.ring[RUN_WIDTH]
    leaves = max(1, -(-forest.run_shape[slot, LENGTH] // width))
    if forest.run_shape[slot, LEVELS] > 0:
        for node in range(-(-leaves // width)):
            _copy_node(forest, slot, node)
    # Any key may be looked for in the first leaf and in the last.
    forest.run_fences[slot, 0] = forest.run_fences[slot, leaves - 1] = _NO_FENCES
    for leaf in range(1, leaves - 1):
        forest.run_fences[slot, leaf] = _fences_of(forest, slot, leaf)


@inlined
def _copy_node(forest: Forest, slot: int, node: int) -> None:
    below, shift = _scale(forest, slot, node)
    width = forest.ring[RUN_WIDTH]
    keys = forest.run_shape[slot, LEVEL_STARTS + forest.run_shape[slot, LEVELS] - 1]
    for leaf in range(node * width, node * width + width):
        greatest = forest.run_inner[slot, keys + leaf]
        forest.run_coarse[slot, leaf] = _coarse(greatest, below, shift)


@inlined
def _fences_of(forest: Forest, slot: int, leaf: int) -> int:
    """Return the word of a leaf: how many low bits of keys are left out, then 16 of each fence.

    Two keys of the leaf differ by less than half of what 16 bits can tell, so that the difference
    of those bits has the right sign, whatever is above them.
    """
    keys, width = forest.run_keys, forest.ring[RUN_WIDTH]
    begin = leaf * width
    span = keys[slot, begin + width - 1] - keys[slot, begin - 1]
    shift = max(0, 64 - leading_zeros(span) - (_FENCE_BITS - 2))
    word = shift
    for quarter in range(1, 4):
        fence = keys[slot, begin + quarter * (width >> 2) - 1] >> shift
        word |= (fence & _FENCE_MASK) << (quarter * _FENCE_BITS)
    return word


@inlined
def _scale(forest: Forest, slot: int, node: int) -> tuple[int, int]:
    """Return what keys of a *node* above the leaves are measured from, and the low bits left out.

    All that are looked for in the node are greater, but in the first one, where none is less.
    """
    levels = forest.run_shape[slot, LEVELS]
    below, greatest = -INF - 1, INF
    above = forest.run_shape[slot, LEVEL_STARTS + levels - 2] + node
    if levels > 1:
        greatest = forest.run_inner[slot, above]
        if node > 0:
            below = forest.run_inner[slot, above - 1]
    return below, max(0, 64 - leading_zeros(greatest - below) - _COARSE_BITS)


@inlined
def _coarse(key: int, below: int, shift: int) -> int:
    """Return the bits that are kept of a key: of its distance, which may need all 64 bits."""
    return int(np.int64(np.uint64(key - below) >> np.uint64(shift)))


@inlined
def leaf_below(forest: Forest, slot: int, node: int, key: int) -> int:
    """Return the leaf where *key* is, or would be, below a *node* of the deepest inner level."""
    width = forest.ring[RUN_WIDTH]
    begin = node * width
    below, shift = _scale(forest, slot, node)
    coarse = _coarse(key, below, shift)
    less = count_less(forest.run_coarse, slot, begin, width, coarse)
    if forest.run_coarse[slot, begin + less] == coarse:
        keys = forest.run_shape[slot, LEVEL_STARTS + forest.run_shape[slot, LEVELS] - 1]
        less = count_less(forest.run_inner, slot, keys + begin, width, key)
    return begin + less


@inlined
def first_place(forest: Forest, slot: int, leaf: int, key: int) -> int:
    """Return where a quarter of a leaf begins before which all entries are less than *key*."""
    word, width = forest.run_fences[slot, leaf], forest.ring[RUN_WIDTH]
    coarse, sign = key >> (word & _SHIFT_MASK), _FENCE_BITS - 1
    less = ((word >> _FENCE_BITS) - coarse) >> sign & 1
    less += ((word >> 2 * _FENCE_BITS) - coarse) >> sign & 1
    less += ((word >> 3 * _FENCE_BITS) - coarse) >> sign & 1
    return leaf * width + less * (width >> 2)


@inlined
def place_from(forest: Forest, slot: int, begin: int, key: int) -> int:
    """Return the first place of a run with at least *key*, which is not before *begin*."""
    place, entries = begin, forest.run_shape[slot, LENGTH]
    while place < entries:
        less = leading_less(forest.run_keys[slot], place, key)
        place += less
        if less < LOOKAHEAD:
            break
    return min(place, entries)
