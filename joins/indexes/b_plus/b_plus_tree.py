"""The mutable component's index: a B+-tree with linked leaves (SPO-Join, section 3.2).

It is inserted into and probed tuple by tuple, and its linked leaves yield the sorted order from
which the immutable component is built (section 3.3), so that nothing is sorted at a merge.

The tree maps keys to stream positions, duplicates allowed, for one field of one stream. It is
stored in a few arrays (see `joins.indexes.b_plus.nodes`) and grows by half when they are full.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from joins.bit_array import BIT_MASK, FIRST_BIT, WORD_SHIFT, words_for
from joins.indexes.b_plus.nodes import (
    FIRST_LEAF,
    Nodes,
    delete_entries,
    find_leaf_of_key,
    insert_entries,
    make_nodes,
    match_range,
    reset,
    resize,
)
from joins.indexes.index import NONE, Ranges, Sought, as_column, check_least, check_ranges
from joins.indexes.range_search import lower_bound, upper_bound
from joins.machine.compiling import inlined, kernel
from joins.matches import MatchBuffer, ProbeResult, add_match, begin_row, commit_row, find_matches
from joins.state import Stateful
from joins.work import BITS, COMPARISONS, ENTRY_BYTES, Work, new_counters

NODE_ENTRIES = 128
"""Entries per node. Measured with two sliding windows of 2^20 tuples (`--sweep` in
benchmarks/pim_tree.py): 64 and 128 lie within a tenth of each other, 128 with less memory.
32 makes the tree higher, 256 moves more entries at an insert; both cost a tenth or more."""

_NODE_ENTRIES_MIN = 8
"""A quarter of a node must be two children, or a node could have no neighbour."""


class BPlusTree(Stateful):
    """Entries (key, position), both int64, in key order, ties in position order.

    It is a part of indexes (`joins.indexes.windows.window_tree`) and no `joins.indexes.index.Index`
    itself: it finds an entry that expires by its key alone, which its owner stores.

    Parameters
    ----------
    leaf_entries, fanout
        Entries per leaf and children per inner node, at least 8.

    A tree restored from a snapshot has the same nodes and does the same work as the original would.
    """

    state = ("nodes",)

    def __init__(self, *, leaf_entries: int = NODE_ENTRIES, fanout: int = NODE_ENTRIES) -> None:
        check_least(_NODE_ENTRIES_MIN, leaf_entries=leaf_entries, fanout=fanout)
        self.nodes = make_nodes(4, leaf_entries, 2, fanout)

    def __len__(self) -> int:
        return int(self.nodes.tree["entries"][0])

    def insert(self, keys: np.ndarray, positions: np.ndarray) -> Work:
        """Insert entries one after the other.

        Raise :exc:`ValueError` at the first entry that is there already (those before it are then
        inserted).
        """
        keys = as_column(keys, np.int64, "keys to insert")
        positions = as_column(positions, np.int64, "positions to insert", len(keys))
        counters = new_counters()
        done = 0
        while done < len(keys):
            done, present = insert_entries(self.nodes, keys, positions, done, counters)
            if present:
                raise ValueError(
                    f"row {done}: key {keys[done]} at position {positions[done]} is in the tree "
                    "already; every position may hold a key once"
                )
            if done < len(keys):
                self.grow()
        return Work.from_counters(counters)

    def delete(self, keys: np.ndarray, positions: np.ndarray) -> Work:
        """Delete entries one after the other, as when a window slides past them.

        Raise :exc:`KeyError` at the first entry that is not there (those before it are deleted).
        """
        keys = as_column(keys, np.int64, "keys to delete")
        positions = as_column(positions, np.int64, "positions to delete", len(keys))
        counters = new_counters()
        done = delete_entries(self.nodes, keys, positions, counters)
        if done < len(keys):
            raise KeyError(f"row {done}: no key {keys[done]} at position {positions[done]}")
        return Work.from_counters(counters)

    def mark(
        self, lo: np.ndarray, hi: np.ndarray, *, base: int, bits: int, negated: bool = False
    ) -> tuple[np.ndarray, Work]:
        """Mark for every probe the positions whose key is in its range, one bit array per probe.

        Parameters
        ----------
        lo, hi
            The ranges' ends, both inclusive; a range with lo > hi is empty.
        base, bits
            Bit b of a row is that of position base + b, 0 <= b < bits.
        negated
            Mark the stored keys outside the range instead.

        Returns
        -------
        rows
            uint64 matrix, a row per probe, ceil(bits / 64) words each.
        work
            What it cost.

        Raises
        ------
        ValueError
            When the tree has a position that has no bit.
        """
        lo = as_column(lo, np.int64, "lo")
        hi = as_column(hi, np.int64, "hi", len(lo))
        counters = new_counters()
        if not _all_within(self.nodes, base, bits):
            raise ValueError(
                f"the tree has positions outside {base} to {base + bits - 1}, "
                f"which {bits} bits from {base} on can mark"
            )
        everything = np.zeros((1, words_for(bits)), np.uint64)
        if negated:
            _mark_all(self.nodes, base, everything, counters)
        rows = np.repeat(everything, len(lo), axis=0)
        _mark_ranges(self.nodes, lo, hi, base, rows, counters)
        work = Work.from_counters(counters)
        return rows, work + Work(bytes_copied=rows.nbytes if negated else 0)

    def probe(self, ranges: Ranges, *, enumerate: bool = False) -> ProbeResult:
        """Return for every probe the entries with a key in its range and a position in its window.

        *ranges* are of one predicate. With *enumerate* list the positions too, in key order.
        """
        check_ranges(ranges, 1)
        step = partial(_probe, self.nodes, ranges)
        return find_matches(step, len(ranges.start), enumerate=enumerate)

    def scan(self) -> tuple[np.ndarray, np.ndarray, Work]:
        """Return all keys in order, their positions, and what copying them cost."""
        keys = np.empty(len(self), np.int64)
        positions = np.empty(len(self), np.int64)
        _copy_leaves(self.nodes, keys, positions)
        return keys, positions, Work(bytes_copied=ENTRY_BYTES * len(self))

    def clear(self) -> None:
        """Delete all entries; the memory stays for the next epoch."""
        reset(self.nodes)

    def grow(self) -> None:
        """Make room for at least one more insert."""
        leaves, inners = (len(pool.size) for pool in (self.nodes.leaves, self.nodes.inners))
        live = [int(pool.used["live"][0]) for pool in (self.nodes.leaves, self.nodes.inners)]
        full = live[0] == leaves
        # A split takes an inner node on every level at the most, hence the constant.
        more = not full or live[1] * 4 >= inners * 3
        self.nodes = resize(
            self.nodes,
            leaves + leaves // 2 + 1 if full else leaves,
            inners + inners // 2 + 4 if more else inners,
        )


# Marking and matching: each walks the linked leaves, of a range from its lower end on.


@kernel
def _all_within(nodes: Nodes, base: int, bits: int) -> bool:
    """Return whether every position has a bit, being less than *bits* from *base* on.

    Once for many probes this costs less than a test of every bit that they mark. One has none where
    a crash lost some of a stream's tuples and nothing replays them.
    """
    outside = 0
    leaf = FIRST_LEAF
    while leaf != NONE:
        for i in range(nodes.leaves.size[leaf]):
            # Unsigned, a position before the base is a huge number, too.
            bit = np.uint64(nodes.leaves.positions[leaf, i] - base)
            outside += int(bit >= np.uint64(bits))
        leaf = nodes.leaves.next[leaf]
    return outside == 0


@kernel
def _mark_all(nodes: Nodes, base: int, rows: np.ndarray, counters: np.ndarray) -> None:
    """Flip in row 0 the bit of every entry, counted from position *base* on."""
    leaf = FIRST_LEAF
    while leaf != NONE:
        _flip(nodes, leaf, 0, nodes.leaves.size[leaf], base, rows, 0, counters)
        leaf = nodes.leaves.next[leaf]


@kernel
def _mark_ranges(
    nodes: Nodes, lo: np.ndarray, hi: np.ndarray, base: int, rows: np.ndarray, counters: np.ndarray
) -> None:
    """Flip in row i the bit of every entry with ``lo[i] <= key <= hi[i]``.

    Only the two leaves where the range begins and ends are searched, by bisection; of one between
    them the last key is compared, and all its entries are marked without a look at theirs.
    """
    for row in range(len(lo)):
        key_max = hi[row]
        if lo[row] > key_max:
            continue
        leaf, compared = find_leaf_of_key(nodes, lo[row])
        counters[COMPARISONS] += compared
        size = nodes.leaves.size[leaf]
        begin = lower_bound(nodes.leaves.keys[leaf], 0, size, lo[row], counters)
        goes_on = True
        while goes_on and leaf != NONE:
            end = nodes.leaves.size[leaf]
            goes_on = end > 0 and nodes.leaves.keys[leaf, end - 1] <= key_max
            counters[COMPARISONS] += 1
            if not goes_on:
                end = upper_bound(nodes.leaves.keys[leaf], begin, end, key_max, counters)
            _flip(nodes, leaf, begin, end, base, rows, row, counters)
            leaf, begin = nodes.leaves.next[leaf], 0


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
    for i in range(begin, end):
        bit = np.uint64(nodes.leaves.positions[leaf, i] - base)
        rows[row, bit >> WORD_SHIFT] ^= FIRST_BIT << (bit & BIT_MASK)
    counters[BITS] += end - begin


@kernel
def _probe(
    nodes: Nodes, ranges: Ranges, begin: int, buffer: MatchBuffer, counters: np.ndarray
) -> int:
    """Add the matches of the probes from *begin* on until the buffer is full; return the next."""
    for row in range(begin, len(ranges.start)):
        begin_row(buffer, counters)
        if ranges.negated[0]:
            _match_outside(nodes, _sought(ranges, row), buffer, counters)
        else:
            match_range(nodes, _sought(ranges, row), buffer, counters)
        if not commit_row(buffer, row, counters):
            return row
    return len(ranges.start)


@inlined
def _sought(ranges: Ranges, row: int) -> Sought:
    low, high = ranges.low[0, row], ranges.high[0, row]
    return Sought(low, high, ranges.start[row], ranges.stop[row], row)


@inlined
def _match_outside(nodes: Nodes, sought: Sought, buffer: MatchBuffer, counters: np.ndarray) -> None:
    leaf = FIRST_LEAF
    while leaf != NONE:
        size = nodes.leaves.size[leaf]
        for i in range(size):
            position = nodes.leaves.positions[leaf, i]
            inside = sought.low <= nodes.leaves.keys[leaf, i] <= sought.high
            if not inside and sought.start <= position < sought.stop:
                add_match(buffer, sought.row, position)
        counters[COMPARISONS] += size
        leaf = nodes.leaves.next[leaf]


@kernel
def _copy_leaves(nodes: Nodes, keys: np.ndarray, positions: np.ndarray) -> None:
    """Copy all entries in order by walking the linked leaves."""
    at = 0
    leaf = FIRST_LEAF
    while leaf != NONE:
        for i in range(nodes.leaves.size[leaf]):
            keys[at] = nodes.leaves.keys[leaf, i]
            positions[at] = nodes.leaves.positions[leaf, i]
            at += 1
        leaf = nodes.leaves.next[leaf]
