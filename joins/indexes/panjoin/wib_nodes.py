"""The inner nodes of a WiB+-Tree, and the descent that remembers its path (section III-E).

A node's child i holds the values from its key i on, up to key i + 1; key 0 is not read. No key
occurs twice. A child on the lowest level is a leaf, which is a partition of the LLAT.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.machine.compiling import kernel
from joins.work import COMPARISONS, MOVES

LEVELS_MAX = 64
ROOT, HEIGHT, NODES = range(3)
PATH_NODE, PATH_SLOT, PATH_HIGH, PATH_OPEN = range(4)


class Inner(NamedTuple):
    """The inner nodes and the path to the leaf last visited.

    Attributes
    ----------
    keys, child
        int64 and int32, shape (nodes, fanout).
    size
        int32, children of each node.
    state
        int64: root (a leaf at height 0), height, nodes in use.
    path
        int64, shape (4, levels): per level the node, the child taken, the least value that is past
        that child, and whether none is.
    """

    keys: np.ndarray
    child: np.ndarray
    size: np.ndarray
    state: np.ndarray
    path: np.ndarray


def make_inner(leaves: int, fanout: int) -> Inner:
    """Return room for a tree over so many leaves."""
    # Nodes are at least half full: a geometric sum, and one more on each level.
    nodes = leaves // (max(2, fanout // 2) - 1) + LEVELS_MAX
    return Inner(
        keys=np.empty((nodes, fanout), np.int64),
        child=np.empty((nodes, fanout), np.int32),
        size=np.zeros(nodes, np.int32),
        state=np.zeros(3, np.int64),
        path=np.zeros((4, LEVELS_MAX), np.int64),
    )


@kernel
def descend(inner: Inner, level: int, code: int, counters: np.ndarray) -> int:
    """Go down from the path's node at *level* to the leaf of *code*, writing the path."""
    path = inner.path
    node = inner.state[ROOT] if level == 0 else path[PATH_NODE, level]
    height = inner.state[HEIGHT]
    for depth in range(level, height):
        size = inner.size[node]
        slot = 0
        for i in range(1, size):
            slot += inner.keys[node, i] <= code
        counters[COMPARISONS] += size - 1
        path[PATH_NODE, depth], path[PATH_SLOT, depth] = node, slot
        if slot + 1 < size:
            path[PATH_HIGH, depth], path[PATH_OPEN, depth] = inner.keys[node, slot + 1], 0
        elif depth == 0:
            path[PATH_OPEN, depth] = 1
        else:
            path[PATH_HIGH, depth] = path[PATH_HIGH, depth - 1]
            path[PATH_OPEN, depth] = path[PATH_OPEN, depth - 1]
        node = inner.child[node, slot]
    return node


@kernel
def advance(inner: Inner, leaf: int, before: int, code: int, counters: np.ndarray) -> int:
    """Return the leaf of *code*, starting from the path to *leaf*, which holds *before*.

    Goes up only as far as *code* is past what the path's nodes hold.
    """
    if code < before:
        return descend(inner, 0, code, counters)
    level = inner.state[HEIGHT]
    while level > 0:
        counters[COMPARISONS] += 1
        if inner.path[PATH_OPEN, level - 1] == 1 or code < inner.path[PATH_HIGH, level - 1]:
            break
        level -= 1
    if level == inner.state[HEIGHT]:
        return leaf
    return descend(inner, level, code, counters)


@kernel
def _new_node(inner: Inner) -> int:
    node = inner.state[NODES]
    inner.state[NODES] += 1
    return node


@kernel
def _put(inner: Inner, node: int, slot: int, key: int, child: int, counters: np.ndarray) -> None:
    """Make *child* child number *slot* of a node with room."""
    for i in range(inner.size[node], slot, -1):
        inner.keys[node, i] = inner.keys[node, i - 1]
        inner.child[node, i] = inner.child[node, i - 1]
    counters[MOVES] += inner.size[node] - slot + 1
    inner.keys[node, slot], inner.child[node, slot] = key, child
    inner.size[node] += 1


@kernel
def _split(inner: Inner, node: int, counters: np.ndarray) -> int:
    """Move the upper half of a full node to a new one."""
    fanout = inner.keys.shape[1]
    half = fanout // 2
    right = _new_node(inner)
    for i in range(half, fanout):
        inner.keys[right, i - half] = inner.keys[node, i]
        inner.child[right, i - half] = inner.child[node, i]
    inner.size[node], inner.size[right] = half, fanout - half
    counters[MOVES] += fanout - half
    return right


@kernel
def add_leaf(inner: Inner, key: int, leaf: int, counters: np.ndarray) -> None:
    """Put *leaf*, which holds the values from *key* on, after the leaf that the path leads to.

    The path is out of date afterwards.
    """
    new = leaf
    for level in range(inner.state[HEIGHT] - 1, -1, -1):
        node, slot = inner.path[PATH_NODE, level], inner.path[PATH_SLOT, level] + 1
        if inner.size[node] < inner.keys.shape[1]:
            _put(inner, node, slot, key, new, counters)
            return
        right = _split(inner, node, counters)
        separator = inner.keys[right, 0]
        half = inner.size[node]
        if slot > half:
            _put(inner, right, slot - half, key, new, counters)
        else:
            _put(inner, node, slot, key, new, counters)
        key, new = separator, right
    root = _new_node(inner)
    inner.child[root, 0] = inner.state[ROOT]
    inner.size[root] = 1
    _put(inner, root, 1, key, new, counters)
    inner.state[ROOT] = root
    inner.state[HEIGHT] += 1
