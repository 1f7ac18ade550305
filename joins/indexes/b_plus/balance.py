"""Refilling nodes of a B+-tree that deletions have emptied, from their neighbours.

A node is refilled when it is less than a quarter full: merged with a neighbour if the two fit into
three quarters of a node, else the two share evenly. Every node but the root is thus at least a
quarter full, so a sliding window cannot leak memory, and no tuple at a border makes a node merge
and split in turn.
"""

from __future__ import annotations

import numpy as np

from joins.indexes.b_plus.nodes import (
    HEIGHT,
    INNER_FREE,
    INNER_LIVE,
    LEAF_FREE,
    LEAF_LIVE,
    ROOT,
    Nodes,
)
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import move_entries
from joins.work import MOVES


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
    merged = total <= keys.shape[1] * 3 // 4
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
    merged = total <= nodes.inner_child.shape[1] * 3 // 4
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
