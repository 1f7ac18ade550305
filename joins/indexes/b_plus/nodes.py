"""The nodes of the B+-tree, and the kernels that find, insert and delete an entry.

Nodes are rows of matrices, so a tree is a handful of arrays: no object per node, nothing for a
garbage collector to follow, and a snapshot is a copy. Entries are ordered by (key, position): equal
keys have one place each, so a tuple that expires is found among any number of equal keys in
logarithmic time. Inside a node every key is compared, without branches and in vector registers:
that reads the node's cache lines side by side where a binary search would wait for them in turn.
Behind a node's last key lies the greatest int64, so that whole vectors are compared.

Leaves and inner nodes have the same form, so that one set of kernels splits, merges and frees both.
Entry i of an inner node is the separator in front of child i; entry 0, which no search reads,
repeats the separator in front of the whole node. Two neighbours can thus be merged, or share, by
moving entries from one to the other.

A tree larger than the cache waits for memory at every step down. A caller that knows its next
operations looks up all their leaves first, side by side (`find_parent`, `find_leaf_below`), and
then takes the leaf that it found as a hint. Whether an entry belongs in a leaf its neighbours there
decide, so a hint that a split or a merge has made wrong costs a descent, and changes no result.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.codes import GREATEST
from joins.indexes.index import NONE, Sought
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import move_entries, prefetch_entry
from joins.machine.lanes import LANES, NODE_SLOTS, count_less
from joins.machine.memory import LINE, aligned
from joins.matches import MatchBuffer, add_match
from joins.state import storable
from joins.work import COMPARISONS, INSERTS, MOVES

TREE = np.dtype([("root", "i8"), ("height", "i8"), ("entries", "i8")])
"""A tree: the node at the top, the inner levels, and the entries in all leaves."""
USED = np.dtype([("high", "i8"), ("free", "i8"), ("live", "i8")])
"""What a pool has used: rows ever used, the head of the list of unused rows, and nodes."""
STEP = np.dtype([("node", "i8"), ("slot", "i8")])
"""A step of a descent: an inner node, and the slot of the child that was taken."""

FIRST_LEAF = 0  # Merging always empties the right neighbour, so the first leaf never moves.
_LEVELS_MAX = 32  # A node has at least four children, so no tree that fits in memory is higher.


@storable
class NodePool(NamedTuple):
    """The leaves of a tree or its inner nodes; a row is a node."""

    keys: np.ndarray
    positions: np.ndarray
    """Entries, int64, shape (nodes, width): what a leaf contains, and the separators in front of an
    inner node's children."""
    child: np.ndarray
    """int64, shape (nodes, width): the children; leaves have no such columns."""
    size: np.ndarray
    next: np.ndarray
    """int64, entries in use, and the next node of the same level (`NONE` for the last)."""
    used: np.ndarray
    """One `USED`."""


@storable
class Nodes(NamedTuple):
    """The arrays of one tree."""

    leaves: NodePool
    inners: NodePool
    """Its nodes."""
    path: np.ndarray
    """Scratch: a `STEP` for each level of the last descent that inserts or deletes."""
    tree: np.ndarray
    """One `TREE`."""


def _make_pool(nodes: int, width: int, children: int) -> NodePool:
    return NodePool(
        keys=aligned((nodes, width), fill=GREATEST),
        positions=aligned((nodes, width)),
        child=aligned((nodes, children)),
        size=np.zeros(nodes, np.int64),
        next=np.full(nodes, NONE, np.int64),
        used=np.zeros(1, USED),
    )


def make_nodes(leaves: int, leaf_entries: int, inners: int, fanout: int) -> Nodes:
    """Return an empty tree with room for *leaves* leaves and *inners* inner nodes.

    Unused places are never arbitrary, so that equal trees have equal snapshots.
    """
    nodes = Nodes(
        leaves=_make_pool(leaves, leaf_entries, 0),
        inners=_make_pool(inners, fanout, fanout),
        path=np.zeros(_LEVELS_MAX, STEP),
        tree=np.zeros(1, TREE),
    )
    reset(nodes)
    return nodes


def resize(nodes: Nodes, leaves: int, inners: int) -> Nodes:
    """Return the same tree with room for at least so many leaves and inner nodes."""
    old = nodes.leaves, nodes.inners
    leaves, inners = max(leaves, len(old[0].size)), max(inners, len(old[1].size))
    grown = make_nodes(leaves, old[0].keys.shape[1], inners, old[1].keys.shape[1])
    for pool, larger in zip(old, (grown.leaves, grown.inners), strict=True):
        for array, target in zip(pool, larger, strict=True):
            target[: len(array)] = array
    grown.tree[:] = nodes.tree
    return grown


def reset(nodes: Nodes) -> None:
    """Empty the tree: one leaf, which is the root."""
    nodes.tree[:] = (FIRST_LEAF, 0, 0)
    nodes.leaves.used[:] = (1, NONE, 1)
    nodes.inners.used[:] = (0, NONE, 0)
    nodes.leaves.keys[FIRST_LEAF] = GREATEST
    nodes.leaves.size[FIRST_LEAF] = 0
    nodes.leaves.next[FIRST_LEAF] = NONE


@inlined
def has_free_nodes(nodes: Nodes) -> bool:
    """Return whether there are the nodes that one more insert needs if it splits up to the root."""
    leaves, inners = nodes.leaves, nodes.inners
    has_leaf = leaves.used[0]["live"] < len(leaves.size)
    needed = inners.used[0]["live"] + nodes.tree[0]["height"]
    return bool(has_leaf and needed < len(inners.size))


@inlined
def _count_below(keys: np.ndarray, node: int, size: int, key: int) -> int:
    """Count the keys of row *node*, *size* in use, that are less than *key*."""
    width = keys.shape[1]
    # A node of the usual width is compared whole: a branch on its size would be mispredicted.
    if width != NODE_SLOTS:
        width = min(width, size + -size % LANES)
    return count_less(keys, node, 0, width, key)


@inlined
def _child_slot(inners: NodePool, node: int, key: int) -> int:
    """Return the slot of the child where the first entry with a key of at least *key* is."""
    below = _count_below(inners.keys, node, inners.size[node], key)
    return int(below - (inners.keys[node, 0] < key))


# Searches count nothing: they return what they compared, and their callers count that, or what the
# same search takes without a hint.


@inlined
def find_leaf_of_key(nodes: Nodes, key: int) -> tuple[int, int]:
    """Return the leaf where the first entry with a key of at least *key* is, or would be.

    Return also the comparisons that lead there.
    """
    node, compared = nodes.tree[0].root, 0
    for _ in range(nodes.tree[0].height):
        compared += nodes.inners.size[node] - 1
        node = nodes.inners.child[node, _child_slot(nodes.inners, node, key)]
    return int(node), compared


@inlined
def _find_leaf_of_entry(nodes: Nodes, key: int, position: int) -> tuple[int, int]:
    """Return the leaf that entry (key, position) belongs to, and the comparisons that lead there.

    The path to it is remembered.
    """
    node, compared = nodes.tree[0].root, 0
    for level in range(nodes.tree[0].height):
        size = nodes.inners.size[node]
        compared += size - 1
        slot = _child_slot(nodes.inners, node, key)
        while (
            slot + 1 < size
            and nodes.inners.keys[node, slot + 1] == key
            and nodes.inners.positions[node, slot + 1] <= position
        ):
            slot += 1
        nodes.path[level].node = node
        nodes.path[level].slot = slot
        node = nodes.inners.child[node, slot]
    return int(node), compared


@inlined
def _find_in_leaf(nodes: Nodes, leaf: int, key: int, position: int) -> tuple[int, bool]:
    """Return where entry (key, position) is in *leaf*, or would be, and whether it is there."""
    size = nodes.leaves.size[leaf]
    at = _count_below(nodes.leaves.keys, leaf, size, key)
    while at < size and nodes.leaves.keys[leaf, at] == key:
        if nodes.leaves.positions[leaf, at] >= position:
            return at, nodes.leaves.positions[leaf, at] == position
        at += 1
    return at, False


@inlined
def find_first(nodes: Nodes, key: int) -> tuple[int, int, int]:
    """Return leaf and place of the first entry with a key of at least *key*, and the comparisons.

    The place may be the end of the leaf: the entry, if any, then begins the next leaf.
    """
    leaf, compared = find_leaf_of_key(nodes, key)
    size = nodes.leaves.size[leaf]
    return leaf, _count_below(nodes.leaves.keys, leaf, size, key), compared + size


@inlined
def match_range(nodes: Nodes, sought: Sought, output: MatchBuffer, counters: np.ndarray) -> None:
    """Report the entries that are sought; an empty range has no matches.

    Leaves are walked from the first entry on.
    """
    if sought.low <= sought.high:
        leaf, i, compared = find_first(nodes, sought.low)
        counters[COMPARISONS] += compared
        _match_from(nodes, leaf, i, sought, output, counters)


@inlined
def _match_from(
    nodes: Nodes, leaf: int, i: int, sought: Sought, output: MatchBuffer, counters: np.ndarray
) -> None:
    """Do what `match_range` does from entry *i* of a leaf on, that of the range's least key."""
    leaves = nodes.leaves
    while leaf != NONE:
        begin, size = i, leaves.size[leaf]
        while i < size and leaves.keys[leaf, i] <= sought.high:
            position = leaves.positions[leaf, i]
            if sought.start <= position < sought.stop:
                add_match(output, sought.row, position)
            i += 1
        counters[COMPARISONS] += i - begin + (i < size)
        if i < size:
            return
        leaf, i = leaves.next[leaf], 0


# Changing the tree. A node is split when it is full, and refilled when deletions have emptied it.


@inlined
def _insert_into(nodes: Nodes, leaf: int, key: int, position: int, counters: np.ndarray) -> bool:
    """Insert one entry into the leaf at the end of the path; return False when it is there."""
    at, present = _find_in_leaf(nodes, leaf, key, position)
    if present:
        return False
    _insert_at(nodes, leaf, at, key, position, counters)
    if nodes.leaves.size[leaf] == nodes.leaves.keys.shape[1]:
        _add_child(nodes, _split(nodes.leaves, leaf, counters), counters)
    return True


@inlined
def _insert_at(
    nodes: Nodes, leaf: int, at: int, key: int, position: int, counters: np.ndarray
) -> None:
    leaves, size = nodes.leaves, nodes.leaves.size[leaf]
    _move(leaves, leaf, at, leaf, at + 1, size - at)
    leaves.keys[leaf, at] = key
    leaves.positions[leaf, at] = position
    leaves.size[leaf] = size + 1
    nodes.tree[0].entries += 1
    counters[INSERTS] += 1
    counters[MOVES] += size - at


@inlined
def _delete_from(nodes: Nodes, leaf: int, key: int, position: int, counters: np.ndarray) -> bool:
    """Delete one entry from the leaf at the end of the path; return False when it is not there."""
    at, present = _find_in_leaf(nodes, leaf, key, position)
    if not present:
        return False
    _delete_at(nodes, leaf, at, counters)
    if nodes.leaves.size[leaf] < nodes.leaves.keys.shape[1] // 4 and nodes.tree[0].height > 0:
        _rebalance(nodes, counters)
    return True


@inlined
def _delete_at(nodes: Nodes, leaf: int, at: int, counters: np.ndarray) -> None:
    leaves, size = nodes.leaves, nodes.leaves.size[leaf] - 1
    _move(leaves, leaf, at + 1, leaf, at, size - at)
    leaves.keys[leaf, size] = GREATEST
    leaves.size[leaf] = size
    nodes.tree[0].entries -= 1
    counters[MOVES] += size - at


# The same with hints. Looking leaves up ahead counts nothing; what uses a hint counts the work of a
# search for the entry in any case, whether the hint is right or not, a node that is compared whole
# being so many comparisons.


@inlined
def find_parent(nodes: Nodes, key: int) -> int:
    """Return the node above the leaf of *key*, and ask for its keys; the root if that is a leaf."""
    node = nodes.tree[0].root
    for _ in range(nodes.tree[0].height - 1):
        node = nodes.inners.child[node, _child_slot(nodes.inners, node, key)]
    if nodes.tree[0].height > 0:
        _fetch_keys(nodes.inners, node)
    return int(node)


@inlined
def find_leaf_below(nodes: Nodes, node: int, key: int) -> int:
    """Return the leaf of *key* below what `find_parent` returned, and ask for its keys."""
    if nodes.tree[0].height > 0:
        node = nodes.inners.child[node, _child_slot(nodes.inners, node, key)]
    _fetch_keys(nodes.leaves, node)
    return int(node)


@inlined
def fetch_positions(nodes: Nodes, leaf: int, key: int, entries: int) -> None:
    """Ask for the positions of a leaf's next *entries* entries from *key* on."""
    size = nodes.leaves.size[leaf]
    at = _count_below(nodes.leaves.keys, leaf, size, key)
    prefetch_entry(nodes.leaves.positions, leaf, at)
    prefetch_entry(nodes.leaves.positions, leaf, min(at + entries, size))


@inlined
def _fetch_keys(pool: NodePool, node: int) -> None:
    for i in range(0, pool.keys.shape[1], LINE):
        prefetch_entry(pool.keys, node, i)


@inlined
def _compared(nodes: Nodes) -> int:
    """Return the comparisons of a search."""
    return int(nodes.tree[0].height * nodes.inners.keys.shape[1] + nodes.leaves.keys.shape[1])


@inlined
def match_range_near(
    nodes: Nodes, hint: int, sought: Sought, output: MatchBuffer, counters: np.ndarray
) -> None:
    """Do what `match_range` does, from leaf *hint* on if *low* is between two of its keys."""
    if not sought.low <= sought.high:
        return
    leaf, size = hint, nodes.leaves.size[hint]
    counters[COMPARISONS] += _compared(nodes)
    i = _count_below(nodes.leaves.keys, leaf, size, sought.low)
    if not 0 < i < size:
        leaf, i = _find_first(nodes, sought.low)
    _match_from(nodes, leaf, i, sought, output, counters)


@kernel
def _find_first(nodes: Nodes, key: int) -> tuple[int, int]:
    leaf, i, _ = find_first(nodes, key)
    return leaf, i


@inlined
def insert_near(nodes: Nodes, hint: int, key: int, position: int, counters: np.ndarray) -> None:
    """Insert an entry that is not there, into the leaf *hint* if it lies between two of its own."""
    counters[COMPARISONS] += _compared(nodes)
    at, _ = _find_in_leaf(nodes, hint, key, position)
    if 0 < at < nodes.leaves.size[hint] < nodes.leaves.keys.shape[1] - 1:
        _insert_at(nodes, hint, at, key, position, counters)
    else:
        _insert(nodes, key, position, counters)


@kernel
def _insert(nodes: Nodes, key: int, position: int, counters: np.ndarray) -> None:
    leaf, _ = _find_leaf_of_entry(nodes, key, position)
    _insert_into(nodes, leaf, key, position, counters)


@inlined
def delete_near(nodes: Nodes, hint: int, key: int, position: int, counters: np.ndarray) -> None:
    """Delete an entry that is there, from the leaf *hint* if it is in that; `NONE` is no hint."""
    counters[COMPARISONS] += _compared(nodes)
    at, present = 0, False
    if hint != NONE and nodes.leaves.size[hint] > nodes.leaves.keys.shape[1] // 4:
        at, present = _find_in_leaf(nodes, hint, key, position)
    if present:
        _delete_at(nodes, hint, at, counters)
    else:
        _delete(nodes, key, position, counters)


@kernel
def _delete(nodes: Nodes, key: int, position: int, counters: np.ndarray) -> None:
    leaf, _ = _find_leaf_of_entry(nodes, key, position)
    _delete_from(nodes, leaf, key, position, counters)


@kernel
def insert_entries(
    nodes: Nodes, keys: np.ndarray, positions: np.ndarray, begin: int, counters: np.ndarray
) -> tuple[int, bool]:
    """Insert entries from row *begin* on, as long as there is room for the next.

    Return the row it came to and whether it stopped there because that entry exists already.
    """
    for i in range(begin, len(keys)):
        if not has_free_nodes(nodes):
            return i, False
        leaf, compared = _find_leaf_of_entry(nodes, keys[i], positions[i])
        counters[COMPARISONS] += compared + nodes.leaves.size[leaf]
        if not _insert_into(nodes, leaf, keys[i], positions[i], counters):
            return i, True
    return len(keys), False


@kernel
def delete_entries(
    nodes: Nodes, keys: np.ndarray, positions: np.ndarray, counters: np.ndarray
) -> int:
    """Delete entries up to the first that does not exist; return its row, or how many there are."""
    for i in range(len(keys)):
        leaf, compared = _find_leaf_of_entry(nodes, keys[i], positions[i])
        counters[COMPARISONS] += compared + nodes.leaves.size[leaf]
        if not _delete_from(nodes, leaf, keys[i], positions[i], counters):
            return i
    return len(keys)


@kernel
def _new(pool: NodePool) -> int:
    used = pool.used[0]
    node = used.free
    if node == NONE:
        node = used.high
        used.high += 1
    else:
        used.free = pool.next[node]
    pool.next[node] = NONE
    used.live += 1
    _pad(pool, node, 0)
    return int(node)


@kernel
def _free(pool: NodePool, node: int) -> None:
    used = pool.used[0]
    pool.next[node] = used.free
    pool.size[node] = 0  # A stale hint to it finds no entry.
    used.free = node
    used.live -= 1


@inlined
def _pad(pool: NodePool, node: int, begin: int) -> None:
    """Fill up a node's keys from entry *begin* on."""
    for i in range(begin, pool.keys.shape[1]):
        pool.keys[node, i] = GREATEST


@inlined
def _move(pool: NodePool, source: int, at: int, target: int, to: int, count: int) -> None:
    """Copy *count* entries of a node, with their children if any, to another place."""
    move_entries(pool.keys, source, at, target, to, count)
    move_entries(pool.positions, source, at, target, to, count)
    if pool.child.shape[1]:
        move_entries(pool.child, source, at, target, to, count)


@kernel
def _split(pool: NodePool, node: int, counters: np.ndarray) -> int:
    """Move the upper half of a full *node* into a new one and return that."""
    right, size = _new(pool), pool.size[node]
    keep = size // 2
    _move(pool, node, keep, right, 0, size - keep)
    _pad(pool, node, keep)
    pool.size[node], pool.size[right] = keep, size - keep
    pool.next[right], pool.next[node] = pool.next[node], right
    counters[MOVES] += size - keep
    return right


@kernel
def _add_child(nodes: Nodes, right: int, counters: np.ndarray) -> None:
    """Add the leaf *right* next to the end of the path; split up to the root."""
    below, inners, tree = nodes.leaves, nodes.inners, nodes.tree[0]
    for level in range(tree.height - 1, -1, -1):
        node, at = nodes.path[level].node, nodes.path[level].slot + 1
        size = inners.size[node]
        _move(inners, node, at, node, at + 1, size - at)
        _set_child(inners, node, at, below, right)
        inners.size[node] = size + 1
        counters[MOVES] += size + 1 - at
        if size + 1 < inners.child.shape[1]:
            return
        below, right = inners, _split(inners, node, counters)
    root = _new(inners)
    inners.child[root, 0] = tree.root
    _set_child(inners, root, 1, below, right)
    inners.size[root] = 2
    tree.root = root
    tree.height += 1


@inlined
def _set_child(inners: NodePool, node: int, slot: int, below: NodePool, child: int) -> None:
    """Store *child*, a node of *below*, in a slot of a node, behind its own first entry."""
    inners.keys[node, slot] = below.keys[child, 0]
    inners.positions[node, slot] = below.positions[child, 0]
    inners.child[node, slot] = child


# Refilling. A node is refilled when it is less than a quarter full: merged with a neighbour if the
# two fit into three quarters of a node, else the two share evenly. Every node but the root is thus
# at least a quarter full, so a sliding window cannot leak memory, and no tuple at a border makes a
# node merge and split in turn.


@kernel
def _rebalance(nodes: Nodes, counters: np.ndarray) -> None:
    """Refill the leaf at the end of the path from a neighbour, and so on towards the root."""
    below, inners, tree = nodes.leaves, nodes.inners, nodes.tree[0]
    for level in range(tree.height - 1, -1, -1):
        parent = nodes.path[level].node
        slot = max(nodes.path[level].slot, 1)  # the right one of the two neighbours
        right = inners.child[parent, slot]
        if not _even_out(below, inners.child[parent, slot - 1], right, counters):
            _set_child(inners, parent, slot, below, right)
            return
        size = inners.size[parent] - 1
        _move(inners, parent, slot + 1, parent, slot, size - slot)
        _pad(inners, parent, size)
        inners.size[parent] = size
        counters[MOVES] += size - slot
        if level == 0 and size == 1:
            tree.root = inners.child[parent, 0]
            tree.height -= 1
            _free(inners, parent)
        if size >= inners.child.shape[1] // 4:
            return
        below = inners


@kernel
def _even_out(pool: NodePool, left: int, right: int, counters: np.ndarray) -> bool:
    """Merge two neighbours when they fit well into one (True), else share their entries evenly."""
    size = pool.size
    total = size[left] + size[right]
    merged = bool(total <= pool.keys.shape[1] * 3 // 4)
    keep = total if merged else total // 2
    moved = keep - size[left]
    if moved > 0:
        _move(pool, right, 0, left, size[left], moved)
        _move(pool, right, moved, right, 0, size[right] - moved)
    else:
        _move(pool, right, 0, right, -moved, size[right])
        _move(pool, left, keep, right, 0, -moved)
    counters[MOVES] += total - keep + abs(moved)
    size[left], size[right] = keep, total - keep
    _pad(pool, left, keep)
    _pad(pool, right, total - keep)
    if merged:
        pool.next[left] = pool.next[right]
        _free(pool, right)
    return merged
