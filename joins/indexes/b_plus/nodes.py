"""The nodes of the B+-tree, and the kernels that find, insert and delete an entry.

Nodes are rows of matrices, so a tree is a handful of arrays: no object per node, nothing for a
garbage collector to follow, and a snapshot is a copy. Entries are ordered by (key, position): equal
keys have one place each, so a tuple that expires is found among any number of equal keys in
logarithmic time. Inside a node every key is compared, without branches and in vector registers:
that reads the node's cache lines side by side where a binary search would wait for them in turn.

An inner row has the same form as a leaf row: entry i is the separator in front of child i, and
entry 0, which no search reads, repeats the separator in front of the whole node. Two neighbours can
thus be merged, or share, by moving entries from one to the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import move_entries, prefetch_entry
from joins.work import COMPARISONS, INSERTS, MOVES

ROOT, HEIGHT, ENTRIES, LEAF_HIGH, LEAF_FREE, LEAF_LIVE, INNER_HIGH, INNER_FREE, INNER_LIVE = range(
    9
)
"""Places in `Nodes.state`: HIGH counts the rows ever used, FREE heads the list of unused rows."""

FIRST_LEAF = 0  # Merging always empties the right neighbour, so the first leaf never moves.
NONE = -1
_LINE_ENTRIES = 8  # Eight-byte entries in a cache line of 64 bytes.
_LEVELS_MAX = 32  # A node has at least four children, so no tree that fits in memory is higher.


class Nodes(NamedTuple):
    """The arrays of one tree; a row is a node.

    Attributes
    ----------
    leaf_keys, leaf_positions
        Entries, of the key's dtype and int64, shape (leaves, entries per leaf).
    leaf_size, leaf_next
        int64, entries in use and the next leaf in key order (`NONE` for the last).
    inner_keys, inner_positions, inner_child
        Separators in front of each child, and the children; shape (inner nodes, fanout).
    inner_size
        int64, children in use.
    path
        int64 scratch, shape (2, levels): the inner nodes and child slots of the last descent.
    state
        int64, see `ROOT` and the names beside it.
    """

    leaf_keys: np.ndarray
    leaf_positions: np.ndarray
    leaf_size: np.ndarray
    leaf_next: np.ndarray
    inner_keys: np.ndarray
    inner_positions: np.ndarray
    inner_child: np.ndarray
    inner_size: np.ndarray
    path: np.ndarray
    state: np.ndarray


def make_nodes(dtype: np.dtype, leaves: int, leaf_entries: int, inners: int, fanout: int) -> Nodes:
    """Return an empty tree with room for *leaves* leaves and *inners* inner nodes.

    Unused entries are zero rather than arbitrary, so that equal trees have equal snapshots.
    """
    nodes = Nodes(
        leaf_keys=np.zeros((leaves, leaf_entries), dtype),
        leaf_positions=np.zeros((leaves, leaf_entries), np.int64),
        leaf_size=np.zeros(leaves, np.int64),
        leaf_next=np.full(leaves, NONE, np.int64),
        inner_keys=np.zeros((inners, fanout), dtype),
        inner_positions=np.zeros((inners, fanout), np.int64),
        inner_child=np.zeros((inners, fanout), np.int64),
        inner_size=np.zeros(inners, np.int64),
        path=np.zeros((2, _LEVELS_MAX), np.int64),
        state=np.zeros(9, np.int64),
    )
    reset(nodes)
    return nodes


def reset(nodes: Nodes) -> None:
    """Empty the tree: one leaf, which is the root."""
    nodes.state[:] = (FIRST_LEAF, 0, 0, 1, NONE, 1, 0, NONE, 0)
    nodes.leaf_size[FIRST_LEAF] = 0
    nodes.leaf_next[FIRST_LEAF] = NONE


@inlined
def has_room(nodes: Nodes) -> bool:
    """Return whether there are the nodes that one more insert needs if it splits up to the root."""
    state = nodes.state
    has_leaf = state[LEAF_LIVE] < len(nodes.leaf_size)
    return bool(has_leaf and state[INNER_LIVE] + state[HEIGHT] < len(nodes.inner_size))


@inlined
def count_below(keys: np.ndarray, node: int, begin: int, size: int, key: float) -> int:
    """Count the keys of row *node*, from *begin* to *size*, that are less than *key*."""
    row = np.uint64(node)
    below = 0
    for i in range(np.uint64(begin), np.uint64(size)):
        below += keys[row, i] < key
    return below


@inlined
def find_leaf_of_key(nodes: Nodes, key: float, counters: np.ndarray) -> int:
    """Return the leaf where the first entry with a key of at least *key* is, or would be."""
    node = nodes.state[ROOT]
    for _ in range(nodes.state[HEIGHT]):
        size = nodes.inner_size[node]
        counters[COMPARISONS] += size - 1
        node = nodes.inner_child[node, count_below(nodes.inner_keys, node, 1, size, key)]
    return int(node)


@inlined
def prefetch_leaf(nodes: Nodes, key: float) -> None:
    """Prefetch the cache lines of the leaf where *key* is, or would be.

    A tree much larger than the cache waits for a leaf at every operation. A caller with several
    operations ahead prefetches all their leaves first, and waits once. Nothing is counted: the
    result of no operation depends on it.
    """
    node = nodes.state[ROOT]
    for _ in range(nodes.state[HEIGHT]):
        size = nodes.inner_size[node]
        node = nodes.inner_child[node, count_below(nodes.inner_keys, node, 1, size, key)]
    for i in range(0, nodes.leaf_size[node] + 1, _LINE_ENTRIES):
        prefetch_entry(nodes.leaf_keys, node, i)
        prefetch_entry(nodes.leaf_positions, node, i)


@inlined
def find_leaf_of_entry(nodes: Nodes, key: float, position: int, counters: np.ndarray) -> int:
    """Return the leaf that entry (key, position) belongs to and remember the path to it."""
    node = nodes.state[ROOT]
    for level in range(nodes.state[HEIGHT]):
        size = nodes.inner_size[node]
        counters[COMPARISONS] += size - 1
        slot = count_below(nodes.inner_keys, node, 1, size, key)
        while (
            slot + 1 < size
            and nodes.inner_keys[node, slot + 1] == key
            and nodes.inner_positions[node, slot + 1] <= position
        ):
            slot += 1
        nodes.path[0, level] = node
        nodes.path[1, level] = slot
        node = nodes.inner_child[node, slot]
    return int(node)


@inlined
def find_in_leaf(
    nodes: Nodes, leaf: int, key: float, position: int, counters: np.ndarray
) -> tuple[int, bool]:
    """Return where entry (key, position) is in *leaf*, or would be, and whether it is there."""
    size = nodes.leaf_size[leaf]
    counters[COMPARISONS] += size
    at = count_below(nodes.leaf_keys, leaf, 0, size, key)
    while at < size and nodes.leaf_keys[leaf, at] == key:
        if nodes.leaf_positions[leaf, at] >= position:
            return at, nodes.leaf_positions[leaf, at] == position
        at += 1
    return at, False


@inlined
def find_first(nodes: Nodes, key: float, counters: np.ndarray) -> tuple[int, int]:
    """Return leaf and place of the first entry with a key of at least *key*.

    The place may be the end of the leaf: the entry, if any, then begins the next leaf.
    """
    leaf = find_leaf_of_key(nodes, key, counters)
    size = nodes.leaf_size[leaf]
    counters[COMPARISONS] += size
    return leaf, count_below(nodes.leaf_keys, leaf, 0, size, key)


# Changing the tree. A node is split when it is full, and refilled when deletions have emptied it.


@inlined
def insert_entry(nodes: Nodes, key: float, position: int, counters: np.ndarray) -> bool:
    """Insert one entry; `has_room` must hold. Return False when it is there already."""
    leaf = find_leaf_of_entry(nodes, key, position, counters)
    at, present = find_in_leaf(nodes, leaf, key, position, counters)
    if present:
        return False
    size = nodes.leaf_size[leaf]
    _open_gap(nodes.leaf_keys, leaf, at, size)
    _open_gap(nodes.leaf_positions, leaf, at, size)
    nodes.leaf_keys[leaf, at] = key
    nodes.leaf_positions[leaf, at] = position
    nodes.leaf_size[leaf] = size + 1
    nodes.state[ENTRIES] += 1
    counters[INSERTS] += 1
    counters[MOVES] += size - at
    if size + 1 == nodes.leaf_keys.shape[1]:
        right = _split_leaf(nodes, leaf, counters)
        _add_child(
            nodes,
            nodes.state[HEIGHT] - 1,
            nodes.leaf_keys[right, 0],
            nodes.leaf_positions[right, 0],
            right,
            counters,
        )
    return True


@inlined
def delete_entry(nodes: Nodes, key: float, position: int, counters: np.ndarray) -> bool:
    """Delete one entry. Return False when it is not there."""
    leaf = find_leaf_of_entry(nodes, key, position, counters)
    at, present = find_in_leaf(nodes, leaf, key, position, counters)
    if not present:
        return False
    size = nodes.leaf_size[leaf]
    close_gap(nodes.leaf_keys, leaf, at, 1, size)
    close_gap(nodes.leaf_positions, leaf, at, 1, size)
    nodes.leaf_size[leaf] = size - 1
    nodes.state[ENTRIES] -= 1
    counters[MOVES] += size - at - 1
    if size - 1 < nodes.leaf_keys.shape[1] // 4 and nodes.state[HEIGHT] > 0:
        rebalance(nodes, counters)
    return True


@kernel
def insert_entries(
    nodes: Nodes, keys: np.ndarray, positions: np.ndarray, begin: int, counters: np.ndarray
) -> tuple[int, bool]:
    """Insert entries from row *begin* on, as long as there is room for the next.

    Return the row it came to and whether it stopped there because that entry exists already.
    """
    for i in range(begin, len(keys)):
        if not has_room(nodes):
            return i, False
        if not insert_entry(nodes, keys[i], positions[i], counters):
            return i, True
    return len(keys), False


@kernel
def delete_entries(
    nodes: Nodes, keys: np.ndarray, positions: np.ndarray, counters: np.ndarray
) -> int:
    """Delete entries up to the first that does not exist; return its row, or how many there are."""
    for i in range(len(keys)):
        if not delete_entry(nodes, keys[i], positions[i], counters):
            return i
    return len(keys)


@inlined
def _open_gap(rows: np.ndarray, node: int, at: int, size: int) -> None:
    move_entries(rows, node, at, node, at + 1, size - at)


@kernel
def _new_leaf(nodes: Nodes) -> int:
    state = nodes.state
    leaf = state[LEAF_FREE]
    if leaf == NONE:
        leaf = state[LEAF_HIGH]
        state[LEAF_HIGH] += 1
    else:
        state[LEAF_FREE] = nodes.leaf_next[leaf]
    state[LEAF_LIVE] += 1
    return int(leaf)


@kernel
def _new_inner(nodes: Nodes) -> int:
    state = nodes.state
    node = state[INNER_FREE]
    if node == NONE:
        node = state[INNER_HIGH]
        state[INNER_HIGH] += 1
    else:
        state[INNER_FREE] = nodes.inner_child[node, 0]
    state[INNER_LIVE] += 1
    return int(node)


@kernel
def _split_leaf(nodes: Nodes, leaf: int, counters: np.ndarray) -> int:
    """Move the upper half of a full *leaf* into a new one and return that."""
    right = _new_leaf(nodes)
    size = nodes.leaf_size[leaf]
    keep = size // 2
    move_entries(nodes.leaf_keys, leaf, keep, right, 0, size - keep)
    move_entries(nodes.leaf_positions, leaf, keep, right, 0, size - keep)
    nodes.leaf_size[leaf] = keep
    nodes.leaf_size[right] = size - keep
    nodes.leaf_next[right] = nodes.leaf_next[leaf]
    nodes.leaf_next[leaf] = right
    counters[MOVES] += size - keep
    return right


@kernel
def _add_child(
    nodes: Nodes, level: int, key: float, position: int, child: int, counters: np.ndarray
) -> None:
    """Add *child* behind separator (key, position), right of the path; split up to the root."""
    while level >= 0:
        node = nodes.path[0, level]
        at = nodes.path[1, level] + 1
        size = nodes.inner_size[node]
        _open_gap(nodes.inner_keys, node, at, size)
        _open_gap(nodes.inner_positions, node, at, size)
        _open_gap(nodes.inner_child, node, at, size)
        nodes.inner_keys[node, at] = key
        nodes.inner_positions[node, at] = position
        nodes.inner_child[node, at] = child
        size += 1
        nodes.inner_size[node] = size
        counters[MOVES] += size - at
        if size < nodes.inner_child.shape[1]:
            return
        child = _new_inner(nodes)
        keep = size // 2
        copy_inner(nodes, node, keep, child, 0, size - keep)
        nodes.inner_size[node] = keep
        nodes.inner_size[child] = size - keep
        counters[MOVES] += size - keep
        key = nodes.inner_keys[child, 0]
        position = nodes.inner_positions[child, 0]
        level -= 1
    root = _new_inner(nodes)
    nodes.inner_child[root, 0] = nodes.state[ROOT]
    nodes.inner_keys[root, 1] = key
    nodes.inner_positions[root, 1] = position
    nodes.inner_child[root, 1] = child
    nodes.inner_size[root] = 2
    nodes.state[ROOT] = root
    nodes.state[HEIGHT] += 1


# Refilling. A node is refilled when it is less than a quarter full: merged with a neighbour if the
# two fit into three quarters of a node, else the two share evenly. Every node but the root is thus
# at least a quarter full, so a sliding window cannot leak memory, and no tuple at a border makes a
# node merge and split in turn.


@kernel
def rebalance(nodes: Nodes, counters: np.ndarray) -> None:
    """Refill the leaf at the end of the path from a neighbour, and so on towards the root."""
    bottom = nodes.state[HEIGHT] - 1
    for level in range(bottom, -1, -1):
        parent = nodes.path[0, level]
        slot = max(nodes.path[1, level], 1)  # the right one of the two neighbours
        left = nodes.inner_child[parent, slot - 1]
        right = nodes.inner_child[parent, slot]
        if level == bottom:
            merged = _even_out_leaves(nodes, left, right, counters)
            key, position = nodes.leaf_keys[right, 0], nodes.leaf_positions[right, 0]
        else:
            merged = _even_out_inners(nodes, left, right, counters)
            key, position = nodes.inner_keys[right, 0], nodes.inner_positions[right, 0]
        if not merged:
            nodes.inner_keys[parent, slot] = key
            nodes.inner_positions[parent, slot] = position
            return
        size = nodes.inner_size[parent]
        close_gap(nodes.inner_keys, parent, slot, 1, size)
        close_gap(nodes.inner_positions, parent, slot, 1, size)
        close_gap(nodes.inner_child, parent, slot, 1, size)
        nodes.inner_size[parent] = size - 1
        counters[MOVES] += size - slot - 1
        if level == 0:
            if size - 1 == 1:
                nodes.state[ROOT] = nodes.inner_child[parent, 0]
                nodes.state[HEIGHT] -= 1
                _free_inner(nodes, parent)
            return
        if size - 1 >= nodes.inner_child.shape[1] // 4:
            return


@kernel
def _even_out_leaves(nodes: Nodes, left: int, right: int, counters: np.ndarray) -> bool:
    """Merge two neighbours when they fit well into one (True), else share their entries evenly."""
    keys, positions, size = nodes.leaf_keys, nodes.leaf_positions, nodes.leaf_size
    total = size[left] + size[right]
    merged = bool(total <= keys.shape[1] * 3 // 4)
    keep = total if merged else total // 2
    moved = keep - size[left]
    if moved > 0:
        move_entries(keys, right, 0, left, size[left], moved)
        move_entries(positions, right, 0, left, size[left], moved)
        close_gap(keys, right, 0, moved, size[right])
        close_gap(positions, right, 0, moved, size[right])
    else:
        move_entries(keys, right, 0, right, -moved, size[right])
        move_entries(positions, right, 0, right, -moved, size[right])
        move_entries(keys, left, keep, right, 0, -moved)
        move_entries(positions, left, keep, right, 0, -moved)
    counters[MOVES] += total - keep + abs(moved)
    size[left] = keep
    size[right] = total - keep
    if merged:
        nodes.leaf_next[left] = nodes.leaf_next[right]
        nodes.leaf_next[right] = nodes.state[LEAF_FREE]
        nodes.state[LEAF_FREE] = right
        nodes.state[LEAF_LIVE] -= 1
    return merged


@kernel
def _even_out_inners(nodes: Nodes, left: int, right: int, counters: np.ndarray) -> bool:
    """Do for two inner nodes what `_even_out_leaves` does."""
    size = nodes.inner_size
    total = size[left] + size[right]
    merged = bool(total <= nodes.inner_child.shape[1] * 3 // 4)
    keep = total if merged else total // 2
    moved = keep - size[left]
    if moved > 0:
        copy_inner(nodes, right, 0, left, size[left], moved)
        close_gap(nodes.inner_keys, right, 0, moved, size[right])
        close_gap(nodes.inner_positions, right, 0, moved, size[right])
        close_gap(nodes.inner_child, right, 0, moved, size[right])
    else:
        copy_inner(nodes, right, 0, right, -moved, size[right])
        copy_inner(nodes, left, keep, right, 0, -moved)
    counters[MOVES] += total - keep + abs(moved)
    size[left] = keep
    size[right] = total - keep
    if merged:
        _free_inner(nodes, right)
    return merged


@kernel
def _free_inner(nodes: Nodes, node: int) -> None:
    nodes.inner_child[node, 0] = nodes.state[INNER_FREE]
    nodes.state[INNER_FREE] = node
    nodes.state[INNER_LIVE] -= 1


@inlined
def close_gap(rows: np.ndarray, node: int, at: int, width: int, size: int) -> None:
    """Take *width* entries from place *at* on out of a node of *size* entries."""
    move_entries(rows, node, at + width, node, at, size - width - at)


@kernel
def copy_inner(nodes: Nodes, source: int, at: int, target: int, to: int, count: int) -> None:
    """Copy *count* children of an inner node, with their separators, into another place."""
    move_entries(nodes.inner_keys, source, at, target, to, count)
    move_entries(nodes.inner_positions, source, at, target, to, count)
    move_entries(nodes.inner_child, source, at, target, to, count)
