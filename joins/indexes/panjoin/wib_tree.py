"""WiB+-Tree: the Wide B+-Tree (section III-C).

Wide unsorted leaves in an LLAT under the narrow sorted inner nodes of a B+-tree: it adapts to any
distribution as it goes, rising values included, and needs no statistics beforehand.

A descent remembers its path (section III-E): the next tuple, or probe, is seldom smaller, and goes
up only as far as it must.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.codes import GREATEST
from joins.indexes.index import NONE
from joins.indexes.panjoin.llat import Llat, append, match_partitions, new_llat, use_entry
from joins.indexes.panjoin.lookup import BLOCK, Lookup
from joins.machine.compiling import kernel
from joins.state import Stateful, storable
from joins.work import COMPARISONS, INSERTS, MOVES, Work, new_counters

FANOUT = 64
"""Children of an inner node: 512 bytes of keys, few enough for inner nodes to stay in the cache."""

LEVELS_MAX = 64


@storable
class Inner(NamedTuple):
    """The inner nodes.

    A node's child i covers the values from its key i on, up to key i + 1; key 0 is not read. No key
    occurs twice. A child on the lowest level is a leaf, which is a partition of the LLAT.
    """

    keys: np.ndarray
    child: np.ndarray
    """int64 and int32, shape (nodes, fanout)."""
    size: np.ndarray
    """int32, children of each node."""
    root: np.ndarray
    height: np.ndarray
    nodes: np.ndarray
    """int64, shape (1,): the root (a leaf at height 0), the levels, the nodes in use."""


class Path(NamedTuple):
    """The way from the root to the leaf last visited, int64, by level."""

    node: np.ndarray
    slot: np.ndarray
    """The node, and which child was taken."""
    stop: np.ndarray
    """The least value that is past that child."""
    is_last: np.ndarray
    """1 where no value is past it; *stop* then has no meaning."""


@storable
class Leaves(NamedTuple):
    """The leaves, by the LLAT entry they begin with, int64.

    All tuples of one value are in one leaf, so a leaf can be split only between two values, and a
    leaf with many equal ones may outgrow its entry. How far off the middle a split may be the paper
    does not say. Here it must leave at least half an entry on either side; where none does, the
    leaf grows on and is tried again when it is half as large again. So every leaf but a lone one
    has at least C/2 tuples, C an entry's capacity; then ⌈n / C⌉ ≤ 2n / C for each, and the table
    needs 2N / C = 2P / σ < 2P entries at the most. With any smaller remainder, values that arrive
    in descending order beside a frequent one would take an entry each.
    """

    tuples: np.ndarray
    """How many each has."""
    attempt: np.ndarray
    """The count at which to try to split it."""


class SplitScratch(NamedTuple):
    """Room for the tuples of a leaf while it is split."""

    keys: np.ndarray
    places: np.ndarray
    selected: np.ndarray


def _new_inner(leaves: int, fanout: int) -> Inner:
    """Return room for a tree over so many leaves; the root is leaf 0."""
    # Nodes are at least half full: a geometric sum, and one more on each level.
    nodes = leaves // (max(2, fanout // 2) - 1) + LEVELS_MAX
    return Inner(
        np.zeros((nodes, fanout), np.int64),
        np.zeros((nodes, fanout), np.int32),
        np.zeros(nodes, np.int32),
        *np.zeros((3, 1), np.int64),
    )


def _new_path() -> Path:
    return Path(*np.zeros((len(Path._fields), LEVELS_MAX), np.int64))


class WibTree(Stateful):
    """The tuples of a subwindow in a tree of wide leaves.

    Parameters
    ----------
    capacity
        N_Sub, the most tuples.
    partitions
        P, about the number of leaves.
    sigma
        σ, above 1: an LLAT entry, and so a leaf, has room for (N_Sub / P)·σ tuples.
    fanout
        Children of an inner node, at least 4.
    """

    state = ("llat", "leaves", "inner")

    def __init__(self, capacity: int, partitions: int, sigma: float, fanout: int = FANOUT) -> None:
        self.llat = new_llat(capacity, partitions, sigma)
        entries, room = self.llat.keys.shape
        self.leaves = Leaves(np.zeros(entries, np.int64), np.full(entries, room, np.int64))
        self.inner = _new_inner(entries, fanout)
        use_entry(self.llat)

    def __len__(self) -> int:
        return int(self.leaves.tuples.sum())

    def insert(self, codes: np.ndarray, places: np.ndarray) -> Work:
        """Insert a batch in ascending order of *codes*."""
        most = len(self) + len(codes)
        scratch = SplitScratch(
            np.empty(most, np.int64), np.empty(most, np.int32), np.empty(most, np.int64)
        )
        counters = new_counters()
        _insert(self.llat, self.leaves, self.inner, _new_path(), scratch, codes, places, counters)
        return Work.from_counters(counters)

    def answer(self, lookup: Lookup, begin: int, end: int) -> None:
        """Answer probes *begin* to *end*."""
        # Two paths of this call's own: other calls walk the same tree at the same time.
        _answer(self.llat, self.inner, _new_path(), _new_path(), lookup, begin, end)


@kernel
def _insert(
    llat: Llat,
    leaves: Leaves,
    inner: Inner,
    path: Path,
    scratch: SplitScratch,
    codes: np.ndarray,
    places: np.ndarray,
    counters: np.ndarray,
) -> None:
    leaf, stale = 0, True
    for i in range(len(codes)):
        code = codes[i]
        if stale:
            leaf = _descend(inner, path, 0, code, counters)
        else:
            leaf = _advance(inner, path, leaf, codes[i - 1], code, counters)
        stale = False
        append(llat, leaf, code, places[i])
        leaves.tuples[leaf] += 1
        if leaves.tuples[leaf] >= leaves.attempt[leaf]:
            right, separator = _split_leaf(llat, leaves, leaf, scratch, counters)
            if right != NONE:
                _add_leaf(inner, path, separator, right, counters)
                stale = True
    counters[INSERTS] += len(codes)


@kernel
def _answer(
    llat: Llat, inner: Inner, low_path: Path, high_path: Path, lookup: Lookup, begin: int, end: int
) -> None:
    lows, highs, counters = lookup.ranges.low[0], lookup.ranges.high[0], lookup.counters
    first = last = 0
    for row in range(begin, end):
        low, high = lows[row], highs[row]
        if row % BLOCK == 0:
            first = _descend(inner, low_path, 0, low, counters)
            last = _descend(inner, high_path, 0, high, counters)
        else:
            first = _advance(inner, low_path, first, lows[row - 1], low, counters)
            last = _advance(inner, high_path, last, highs[row - 1], high, counters)
        match_partitions(llat, lookup, row, first, last)


# Inner nodes.


@kernel
def _descend(inner: Inner, path: Path, level: int, code: int, counters: np.ndarray) -> int:
    """Go down from the path's node at *level* to the leaf of *code*, writing the path."""
    node = inner.root[0] if level == 0 else path.node[level]
    for depth in range(level, inner.height[0]):
        size = inner.size[node]
        slot = 0
        for i in range(1, size):
            slot += inner.keys[node, i] <= code
        counters[COMPARISONS] += size - 1
        path.node[depth], path.slot[depth] = node, slot
        if slot + 1 < size:
            path.stop[depth], path.is_last[depth] = inner.keys[node, slot + 1], 0
        elif depth == 0:
            path.is_last[depth] = 1
        else:
            path.stop[depth] = path.stop[depth - 1]
            path.is_last[depth] = path.is_last[depth - 1]
        node = inner.child[node, slot]
    return int(node)


@kernel
def _advance(
    inner: Inner, path: Path, leaf: int, before: int, code: int, counters: np.ndarray
) -> int:
    """Return the leaf of *code*, starting from the path to *leaf*, where code *before* is.

    Goes up only as far as *code* is past what the path's nodes cover.
    """
    if code < before:
        return _descend(inner, path, 0, code, counters)
    level = height = inner.height[0]
    while level > 0:
        counters[COMPARISONS] += 1
        if path.is_last[level - 1] == 1 or code < path.stop[level - 1]:
            break
        level -= 1
    if level == height:
        return leaf
    return _descend(inner, path, level, code, counters)


@kernel
def _add_leaf(inner: Inner, path: Path, key: int, leaf: int, counters: np.ndarray) -> None:
    """Put *leaf*, which covers the values from *key* on, after the leaf that the path leads to.

    The path is out of date afterwards.
    """
    new = leaf
    for level in range(inner.height[0] - 1, -1, -1):
        node, slot = path.node[level], path.slot[level] + 1
        if inner.size[node] < inner.keys.shape[1]:
            _put_child(inner, node, slot, key, new, counters)
            return
        right = _split_node(inner, node, counters)
        separator = inner.keys[right, 0]
        half = inner.size[node]
        if slot > half:
            _put_child(inner, right, slot - half, key, new, counters)
        else:
            _put_child(inner, node, slot, key, new, counters)
        key, new = separator, right
    root = _new_node(inner)
    inner.child[root, 0] = inner.root[0]
    inner.size[root] = 1
    _put_child(inner, root, 1, key, new, counters)
    inner.root[0] = root
    inner.height[0] += 1


@kernel
def _new_node(inner: Inner) -> int:
    node = inner.nodes[0]
    inner.nodes[0] += 1
    return int(node)


@kernel
def _put_child(
    inner: Inner, node: int, slot: int, key: int, child: int, counters: np.ndarray
) -> None:
    """Make *child* child number *slot* of a node with room."""
    for i in range(inner.size[node], slot, -1):
        inner.keys[node, i] = inner.keys[node, i - 1]
        inner.child[node, i] = inner.child[node, i - 1]
    counters[MOVES] += inner.size[node] - slot + 1
    inner.keys[node, slot], inner.child[node, slot] = key, child
    inner.size[node] += 1


@kernel
def _split_node(inner: Inner, node: int, counters: np.ndarray) -> int:
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


# Leaves.


@kernel
def _split_leaf(
    llat: Llat, leaves: Leaves, leaf: int, scratch: SplitScratch, counters: np.ndarray
) -> tuple[int, int]:
    """Split a leaf if it can be; return the new leaf on its right (or `NONE`) and its least key.

    The paper sorts the leaf; to halve it, selecting the middle key is enough.
    """
    room = llat.keys.shape[1]
    count = _unload(llat, leaf, scratch)
    middle = _select(scratch.selected, count, count // 2)
    below = up_to = 0
    least, most = scratch.keys[0], scratch.keys[0]
    above = GREATEST
    for i in range(count):
        key = scratch.keys[i]
        below += key < middle
        up_to += key <= middle
        least, most = min(least, key), max(most, key)
        if key > middle:
            above = min(above, key)
    # Selecting reads every key about three times over.
    counters[COMPARISONS] += 3 * count
    before, after = min(below, count - below), min(up_to, count - up_to)
    if max(before, after) < room // 2:
        leaves.attempt[leaf] = count + max(room // 2, count // 2)
        return NONE, 0
    separator, left = (middle, below) if before >= after else (above, up_to)
    spare = _load(llat, leaf, scratch, count, least, separator - 1)
    right = use_entry(llat) if spare == NONE else spare
    _load(llat, right, scratch, count, separator, most)
    counters[MOVES] += count
    llat.follow[right] = llat.follow[leaf]
    llat.follow[leaf] = right
    leaves.tuples[leaf], leaves.tuples[right] = left, count - left
    leaves.attempt[leaf] = max(room, left + 1)
    leaves.attempt[right] = max(room, count - left + 1)
    return right, int(separator)


@kernel
def _unload(llat: Llat, leaf: int, scratch: SplitScratch) -> int:
    """Copy a leaf's tuples out of its entries; return how many."""
    count = 0
    entry = leaf
    while entry != NONE:
        for i in range(llat.size[entry]):
            scratch.keys[count] = scratch.selected[count] = llat.keys[entry, i]
            scratch.places[count] = llat.places[entry, i]
            count += 1
        entry = llat.next[entry]
    return count


@kernel
def _load(llat: Llat, head: int, scratch: SplitScratch, count: int, least: int, most: int) -> int:
    """Write the tuples with keys from *least* to *most* into *head* and the entries linked to it.

    Return the first linked entry that is not needed, or `NONE`; it is linked no more.
    """
    room = llat.keys.shape[1]
    entry, at = head, 0
    for i in range(count):
        key = scratch.keys[i]
        if not least <= key <= most:
            continue
        if at == room:
            llat.size[entry] = room
            if llat.next[entry] == NONE:
                llat.next[entry] = use_entry(llat)
            entry, at = llat.next[entry], 0
        llat.keys[entry, at] = key
        llat.places[entry, at] = scratch.places[i]
        at += 1
    llat.size[entry] = at
    llat.last[head] = entry
    spare = llat.next[entry]
    llat.next[entry] = NONE
    return int(spare)


@kernel
def _select(keys: np.ndarray, size: int, rank: int) -> int:
    """Return the key that would be at *rank* if ``keys[:size]`` were sorted; moves keys."""
    low, high = 0, size - 1
    while low < high:
        pivot = keys[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            break
    return int(keys[rank])
