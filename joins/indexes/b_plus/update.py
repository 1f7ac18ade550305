"""The kernels that change a B+-tree: insert, split, delete.

A node is split when it is full, and refilled when deletions have emptied it
(`joins.indexes.b_plus.balance`).
"""

from __future__ import annotations

import numpy as np

from joins.indexes.b_plus.balance import close_gap, copy_inner, rebalance
from joins.indexes.b_plus.nodes import (
    ENTRIES,
    HEIGHT,
    INNER_FREE,
    INNER_HIGH,
    INNER_LIVE,
    LEAF_FREE,
    LEAF_HIGH,
    LEAF_LIVE,
    NONE,
    ROOT,
    Nodes,
    find_in_leaf,
    find_leaf_of_entry,
    has_room,
)
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import move_entries
from joins.work import INSERTS, MOVES


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
    return leaf


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
    return node


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
    """Hang *child* behind separator (key, position), right of the path; split up to the root."""
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
