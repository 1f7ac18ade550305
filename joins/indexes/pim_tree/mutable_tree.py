"""The mutable component: B+-trees over disjoint ranges that are only inserted into.

PIM-Tree, section 3.3 and appendix A.1 (Algorithm 1). Nothing is deleted: what expires leaves at a
merge, or with the whole tree. So a full node is split on the way down, and no path has to be
remembered.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.codes import GREATEST
from joins.indexes.index import NONE
from joins.indexes.pim_tree.forest import (
    HEIGHT,
    KEYS,
    LOCK,
    NEXT,
    ROOT,
    SIZE,
    SPLITS,
    Forest,
    first_node,
    subindex_row,
    tree_width,
)
from joins.indexes.pim_tree.immutable_tree import descend
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import (
    fetch_add,
    load,
    lock,
    move_entries,
    prefetch_entry,
    prefetch_to_write,
    store,
    unlock,
)
from joins.machine.lanes import NODE_SLOTS, count_less, insert_in_node
from joins.machine.memory import LINE
from joins.work import ATOMICS, COMPARISONS, INSERTS, MOVES


class FoundLeaf(NamedTuple):
    """A leaf that was looked up ahead of time, and its subindex's splits before.

    The leaf is `NONE` where none was looked up, or a node above it is full.
    """

    leaf: int
    splits: int


NOT_FOUND = FoundLeaf(NONE, NONE)


@kernel
def clear_tree(forest: Forest, slot: int, subindexes: int, depth: int) -> None:
    """Make a mutable tree empty, with that many subindexes below *depth* of the run."""
    pool = forest.pool
    width, base = tree_width(forest), first_node(forest, slot)
    first = subindex_row(forest, slot, 0)
    for i in range(subindexes):
        pool[base + i, SIZE] = 0
        pool[base + i, NEXT] = i + 1 if i + 1 < subindexes else NONE
        for at in range(KEYS, KEYS + width):
            pool[base + i, at] = GREATEST
        forest.subindexes[first + i, LOCK] = 0
        forest.subindexes[first + i, ROOT] = i
        forest.subindexes[first + i, HEIGHT] = 0
        forest.subindexes[first + i, SPLITS] = 0
    forest.tree_nodes[slot, 0] = subindexes
    forest.tree_entries[slot, 0] = 0
    forest.tree_subindexes[slot] = subindexes
    forest.tree_depth[slot] = depth


@inlined
def fetch_node(forest: Forest, node: int) -> None:
    """Ask for a node without waiting for it."""
    for word in range(0, forest.pool.shape[1], LINE):
        prefetch_entry(forest.pool, node, word)


@inlined
def fetch_keys(forest: Forest, node: int) -> None:
    """Ask for a node's size and keys without waiting for them."""
    for word in range(0, KEYS + tree_width(forest), LINE):
        prefetch_entry(forest.pool, node, word)


@inlined
def claim_node(forest: Forest, node: int) -> None:
    """Ask for a node that will be written.

    A line that another thread has written is then fetched before the lock is taken.
    """
    for word in range(0, forest.pool.shape[1], LINE):
        prefetch_to_write(forest.pool, node, word)


@inlined
def route(forest: Forest, run: int, tree: int, key: int, counters: np.ndarray) -> int:
    """Return the subindex whose range holds *key*: a descent of the run to the insertion depth."""
    return descend(forest, run, 0, 0, forest.tree_depth[tree], key, counters)


@inlined
def splits_of(forest: Forest, row: int) -> int:
    """Return how many nodes have been split below a row of `Forest.subindexes`.

    What is read afterwards, without a lock, is what these splits left or what later ones did.
    """
    return int(load(forest.subindexes, row, SPLITS))


@inlined
def leaf_still_right(forest: Forest, row: int, found: FoundLeaf) -> int:
    """Return the leaf that was looked up; `NONE` if nodes below the row have been split since."""
    return found.leaf if forest.subindexes[row, SPLITS] == found.splits else NONE


@inlined
def find_leaf(forest: Forest, slot: int, node: int, height: int, key: int) -> int:
    """Return the leaf below *node* where the first entry with at least *key* is, or would be."""
    pool = forest.pool
    width, base = tree_width(forest), first_node(forest, slot)
    for _ in range(height):
        child = count_less(pool, base + node, KEYS, width, key)
        node = pool[base + node, KEYS + width + child]
    return node


@inlined
def _count_split(forest: Forest, row: int) -> None:
    """Count a split, for threads that look up leaves without the lock: after all that it wrote."""
    store(forest.subindexes, row, SPLITS, forest.subindexes[row, SPLITS] + 1)


@kernel
def _split(forest: Forest, slot: int, node: int, height: int, counters: np.ndarray) -> int:
    """Move the upper half of a full *node* into a new one and return that.

    The key that divides the two is then the last of the left one: a leaf (of *height* 0) keeps it
    as an entry, an inner node beyond its size, where the caller takes it away.
    """
    pool = forest.pool
    width, base = tree_width(forest), first_node(forest, slot)
    right = fetch_add(forest.tree_nodes, slot, 0, 1)
    keep = width >> 1
    at = KEYS + keep
    move_entries(pool, base + node, at, base + right, KEYS, width - keep)
    move_entries(pool, base + node, at + width, base + right, KEYS + width, width - keep)
    for i in range(width - keep, width):
        pool[base + right, KEYS + i] = GREATEST
    for i in range(keep, width):
        pool[base + node, KEYS + i] = GREATEST
    pool[base + node, SIZE] = keep
    pool[base + right, SIZE] = width - keep
    if height == 0:
        pool[base + right, NEXT] = pool[base + node, NEXT]
        pool[base + node, NEXT] = right
    counters[MOVES] += width - keep
    return int(right)


@kernel
def _split_child(
    forest: Forest, slot: int, parent: int, at: int, height: int, counters: np.ndarray
) -> None:
    """Split the full child *at*, of that *height*, of a *parent* that has room."""
    pool = forest.pool
    width, base = tree_width(forest), first_node(forest, slot)
    child = pool[base + parent, KEYS + width + at]
    right = _split(forest, slot, child, height, counters)
    last = KEYS + (width >> 1) - 1
    divider = pool[base + child, last]
    if height > 0:
        pool[base + child, last] = GREATEST
    size = pool[base + parent, SIZE]
    row, gap = base + parent, KEYS + at
    move_entries(pool, row, gap, row, gap + 1, size - 1 - at)
    move_entries(pool, row, gap + width + 1, row, gap + width + 2, size - 1 - at)
    pool[row, gap] = divider
    pool[row, gap + width + 1] = right
    pool[row, SIZE] = size + 1
    counters[MOVES] += size - at


@kernel
def _split_root(forest: Forest, slot: int, row: int, counters: np.ndarray) -> None:
    pool = forest.pool
    width, base = tree_width(forest), first_node(forest, slot)
    root = fetch_add(forest.tree_nodes, slot, 0, 1)
    for i in range(width):
        pool[base + root, KEYS + i] = GREATEST
    pool[base + root, KEYS + width] = forest.subindexes[row, ROOT]
    pool[base + root, SIZE] = 1
    height = forest.subindexes[row, HEIGHT]
    _split_child(forest, slot, root, 0, height, counters)
    forest.subindexes[row, ROOT] = root
    forest.subindexes[row, HEIGHT] = height + 1


@inlined
def _leaf_with_room(forest: Forest, slot: int, row: int, key: int, counters: np.ndarray) -> int:
    """Return the leaf of *key* below a row of `Forest.subindexes`, splitting full nodes above."""
    pool = forest.pool
    width, base = tree_width(forest), first_node(forest, slot)
    if pool[base + forest.subindexes[row, ROOT], SIZE] == width:
        _split_root(forest, slot, row, counters)
        _count_split(forest, row)
    node = forest.subindexes[row, ROOT]
    height = forest.subindexes[row, HEIGHT]
    for level in range(height):
        at = count_less(pool, base + node, KEYS, width, key)
        child = pool[base + node, KEYS + width + at]
        if pool[base + child, SIZE] == width:
            _split_child(forest, slot, node, at, height - 1 - level, counters)
            _count_split(forest, row)
            at += pool[base + node, KEYS + at] < key
            child = pool[base + node, KEYS + width + at]
        node = child
    return int(node)


@inlined
def insert_into_subindex(
    forest: Forest,
    slot: int,
    subindex: int,
    found: FoundLeaf,
    key: int,
    position: int,
    counters: np.ndarray,
) -> None:
    """Insert one entry; `ROOM_NODES` nodes must be free, and the subindex no other thread's.

    *found* is the leaf of *key*, if it was looked up. The work is that of a search for it in any
    case.
    """
    pool = forest.pool
    width, base = tree_width(forest), first_node(forest, slot)
    row = subindex_row(forest, slot, subindex)
    leaf = leaf_still_right(forest, row, found)
    if leaf == NONE or pool[base + leaf, SIZE] == width:
        leaf = _leaf_with_room(forest, slot, row, key, counters)
    counters[COMPARISONS] += (forest.subindexes[row, HEIGHT] + 1) * width
    node = base + leaf
    at = count_less(pool, node, KEYS, width, key)
    moved = pool[node, SIZE] - at
    if width == NODE_SLOTS:
        insert_in_node(pool, node, KEYS, at, key)
        insert_in_node(pool, node, KEYS + width, at, position)
    else:
        gap = KEYS + at
        move_entries(pool, node, gap, node, gap + 1, moved)
        move_entries(pool, node, gap + width, node, gap + width + 1, moved)
        pool[node, gap] = key
        pool[node, gap + width] = position
    pool[node, SIZE] += 1
    counters[INSERTS] += 1
    counters[MOVES] += moved


@inlined
def insert_locked(
    forest: Forest,
    slot: int,
    subindex: int,
    found: FoundLeaf,
    key: int,
    position: int,
    counters: np.ndarray,
) -> None:
    """Insert one entry under the subindex's lock (Algorithm 1, lines 8 to 11)."""
    row = subindex_row(forest, slot, subindex)
    lock(forest.subindexes, row, LOCK)
    insert_into_subindex(forest, slot, subindex, found, key, position, counters)
    unlock(forest.subindexes, row, LOCK)
    counters[ATOMICS] += 2
