"""The kernels that read a B+-tree: marking, counting and listing what lies in a range of keys.

Each finds the leaf of the range's lower end and walks the linked leaves from there, once per probe.
"""

from __future__ import annotations

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.b_plus.nodes import FIRST_LEAF, NONE, Nodes, count_below, find_leaf_of_key
from joins.indexes.search import lower_bound, upper_bound
from joins.machine.compiling import inlined, kernel
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
def all_within(nodes: Nodes, base: int, bits: int) -> bool:
    """Tell whether every entry's position is less than *bits* from *base* on, so that it has a bit.

    Asked once for many probes, it costs less than a test of every bit that they mark.
    """
    outside = 0
    leaf = FIRST_LEAF
    while leaf != NONE:
        for i in range(np.uint64(nodes.leaf_size[leaf])):
            # Unsigned, a position before the base is a huge number, too.
            bit = np.uint64(nodes.leaf_positions[np.uint64(leaf), i] - base)
            outside += int(bit >= np.uint64(bits))
        leaf = nodes.leaf_next[leaf]
    return outside == 0


@kernel
def mark_all(nodes: Nodes, base: int, rows: np.ndarray, counters: np.ndarray) -> None:
    """Flip in row 0 the bit of every entry, counted from position *base* on."""
    leaf = FIRST_LEAF
    while leaf != NONE:
        _flip(nodes, leaf, 0, nodes.leaf_size[leaf], base, rows, 0, counters)
        leaf = nodes.leaf_next[leaf]


@kernel
def mark_ranges(
    nodes: Nodes,
    lo: np.ndarray,
    hi: np.ndarray,
    base: int,
    rows: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Flip in row i the bit of every entry with ``lo[i] <= key <= hi[i]``.

    Only the two leaves where the range begins and ends are searched, by bisection; of one between
    them the last key is compared, and all its entries are marked without a look at theirs.
    """
    for row in range(len(lo)):
        key_max = hi[row]
        if not lo[row] <= key_max:  # written so that a NaN bound makes an empty range
            continue
        leaf = find_leaf_of_key(nodes, lo[row], counters)
        size = nodes.leaf_size[leaf]
        begin = lower_bound(nodes.leaf_keys[leaf], 0, size, lo[row], counters)
        goes_on = True
        while goes_on and leaf != NONE:
            end = nodes.leaf_size[leaf]
            goes_on = end > 0 and nodes.leaf_keys[leaf, end - 1] <= key_max
            counters[COMPARISONS] += 1
            if not goes_on:
                end = upper_bound(nodes.leaf_keys[leaf], begin, end, key_max, counters)
            _flip(nodes, leaf, begin, end, base, rows, row, counters)
            leaf, begin = nodes.leaf_next[leaf], 0


@inlined
def _flip(
    nodes: Nodes,
    leaf: int,
    begin: int,
    end: int,
    base: int,
    rows: np.ndarray,
    row: int,
    counters: np.ndarray,
) -> None:
    """Flip the bits of a leaf's entries *begin* to *end* - 1."""
    # Unsigned, or every index would be tested for counting from the end: 1.4 times as slow.
    for i in range(np.uint64(begin), np.uint64(end)):
        bit = np.uint64(nodes.leaf_positions[np.uint64(leaf), i] - base)
        rows[np.uint64(row), bit >> _WORD_SHIFT] ^= _ONE << (bit & _BIT_MASK)
    counters[BITS] += end - begin


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
