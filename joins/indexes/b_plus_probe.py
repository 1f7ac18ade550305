"""The kernels that read a B+-tree: marking, counting and listing what lies in a range of keys.

Each finds the leaf of the range's lower end and walks the linked leaves from there, once per probe.
"""

from __future__ import annotations

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.b_plus_nodes import FIRST_LEAF, NONE, Nodes, count_below, find_leaf_of_key
from joins.machine import inlined, kernel
from joins.work import BITS, COMPARISONS, MATCHES

_WORD_SHIFT = np.uint64(6)
_BIT_MASK = np.uint64(63)
_ONE = np.uint64(1)


@inlined
def find_first(nodes: Nodes, key: float, counters: np.ndarray) -> tuple[int, int]:
    """Return leaf and place of the first entry with a key of at least *key*.

    The place may be the end of the leaf: the entry, if any, then begins the next leaf.
    """
    leaf = find_leaf_of_key(nodes, key, counters)
    size = nodes.leaf_size[leaf]
    counters[COMPARISONS] += size
    return leaf, count_below(nodes.leaf_keys, leaf, 0, size, key)


@kernel
def mark_all(nodes: Nodes, base: int, bits: int, row: np.ndarray, counters: np.ndarray) -> bool:
    """Set the bit of every entry; False when a position is not within *bits* of *base*."""
    leaf = FIRST_LEAF
    while leaf != NONE:
        for i in range(nodes.leaf_size[leaf]):
            bit = nodes.leaf_positions[leaf, i] - base
            if bit < 0 or bit >= bits:
                return False
            row[np.uint64(bit) >> _WORD_SHIFT] |= _ONE << (np.uint64(bit) & _BIT_MASK)
        counters[BITS] += nodes.leaf_size[leaf]
        leaf = nodes.leaf_next[leaf]
    return True


@kernel
def mark_ranges(
    nodes: Nodes,
    lo: np.ndarray,
    hi: np.ndarray,
    base: int,
    bits: int,
    rows: np.ndarray,
    counters: np.ndarray,
) -> bool:
    """Flip in row i the bit of every entry with ``lo[i] <= key <= hi[i]``.

    Return False when a position is not within *bits* of *base*.
    """
    for row in range(np.uint64(len(lo))):
        key_max = hi[row]
        if not lo[row] <= key_max:  # written so that a NaN bound makes an empty range
            continue
        leaf, begin = find_first(nodes, lo[row], counters)
        while leaf != NONE:
            # Unsigned, or every index would be tested for counting from the end: 1.4 times as slow.
            i, size = np.uint64(begin), np.uint64(nodes.leaf_size[leaf])
            while i < size and nodes.leaf_keys[np.uint64(leaf), i] <= key_max:
                bit = np.uint64(nodes.leaf_positions[np.uint64(leaf), i] - base)
                if bit >= np.uint64(bits):  # A position before the base is a huge number, too.
                    return False
                rows[row, bit >> _WORD_SHIFT] ^= _ONE << (bit & _BIT_MASK)
                i += _ONE
            marked = np.int64(i) - begin
            counters[BITS] += marked
            counters[COMPARISONS] += marked + (i < size)
            if i < size:
                break
            leaf, begin = nodes.leaf_next[leaf], 0
    return True


@kernel
def probe_ranges(
    nodes: Nodes,
    lo: np.ndarray,
    hi: np.ndarray,
    negated: bool,
    start: np.ndarray,
    stop: np.ndarray,
    count: np.ndarray,
    fingerprint: np.ndarray,
    match_id: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Fill in *count* and *fingerprint* of each probe, and *match_id* as far as it has room."""
    listed = 0
    for row in range(len(lo)):
        key_min, key_max = lo[row], hi[row]
        matches = 0
        total = np.uint64(0)
        leaf, i = FIRST_LEAF, 0
        if not negated:
            leaf = NONE
            if key_min <= key_max:
                leaf, i = find_first(nodes, key_min, counters)
        while leaf != NONE:
            begin, size = i, nodes.leaf_size[leaf]
            while i < size:
                key = nodes.leaf_keys[leaf, i]
                if not negated and key > key_max:
                    break
                position = nodes.leaf_positions[leaf, i]
                wanted = not negated or key < key_min or key > key_max or not key_min <= key_max
                if wanted and start[row] <= position < stop[row]:
                    matches += 1
                    total += splitmix64(position)
                    if listed < len(match_id):
                        match_id[listed] = position
                        listed += 1
                i += 1
            counters[COMPARISONS] += i - begin + (i < size)
            if i < size:
                break
            leaf, i = nodes.leaf_next[leaf], 0
        count[row] = matches
        fingerprint[row] = total
        counters[MATCHES] += matches


@kernel
def copy_entries(nodes: Nodes, keys: np.ndarray, positions: np.ndarray) -> None:
    """Copy all entries in order by walking the linked leaves."""
    at = 0
    leaf = FIRST_LEAF
    while leaf != NONE:
        for i in range(nodes.leaf_size[leaf]):
            keys[at] = nodes.leaf_keys[leaf, i]
            positions[at] = nodes.leaf_positions[leaf, i]
            at += 1
        leaf = nodes.leaf_next[leaf]
