"""The node pool of the B+-tree, and how an entry is found in it.

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

from joins.machine.compiling import inlined
from joins.machine.instructions import prefetch_entry
from joins.work import COMPARISONS

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
        int64, entries held and the next leaf in key order (`NONE` for the last).
    inner_keys, inner_positions, inner_child
        Separators in front of each child, and the children; shape (inner nodes, fanout).
    inner_size
        int64, children held.
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
    """Tell whether one more insert finds the nodes it needs, should it split up to the root."""
    state = nodes.state
    return state[LEAF_LIVE] < len(nodes.leaf_size) and state[INNER_LIVE] + state[HEIGHT] < len(
        nodes.inner_size
    )


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
    return node


@inlined
def prefetch_leaf(nodes: Nodes, key: float) -> None:
    """Ask for the cache lines of the leaf where *key* is, or would be, without waiting for them.

    A tree much larger than the cache waits for a leaf at every operation. A caller that knows its
    next operations asks for all their leaves first, and waits once. Nothing is counted: the result
    of no operation depends on it.
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
    return node


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
