"""The mutable component's index: a B+-tree with linked leaves (SPO-Join, section 3.2).

It is inserted into and probed tuple by tuple, and its linked leaves give the sorted order from
which the immutable component is built (section 3.3), so that nothing is sorted at a merge.

The tree maps keys to stream positions, duplicates allowed, and holds one field of one stream. It
lives in a few arrays (see `joins.indexes.b_plus.nodes`) and grows by half when they are full.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.bit_array import words_for
from joins.indexes.b_plus.nodes import (
    ENTRIES,
    INNER_HIGH,
    INNER_LIVE,
    LEAF_HIGH,
    LEAF_LIVE,
    make_nodes,
    reset,
)
from joins.indexes.b_plus.probe import (
    all_within,
    copy_entries,
    mark_all,
    mark_ranges,
    probe_ranges,
)
from joins.indexes.b_plus.update import delete_entries, insert_entries
from joins.indexes.columns import column, key_dtype, keys_column, window_columns
from joins.matches import ProbeResult
from joins.work import COUNTERS, Work

NODE_ENTRIES = 128
"""Entries per node. Measured with two sliding windows of 2^20 tuples (`--sweep` in
benchmarks/b_plus_tree_join.py): 64 and 128 lie within a tenth of each other, 128 with less memory.
32 makes the tree higher, 256 moves more entries at an insert; both cost a tenth or more."""

_NODE_ENTRIES_MIN = (
    8  # A quarter of a node must be two children, or a node could have no neighbour.
)
_ENTRY_BYTES = 16


class BPlusTree:
    """Entries (key, position) in key order, ties in position order.

    Parameters
    ----------
    dtype
        The keys': int64 or float64.
    leaf_entries, fanout
        Entries per leaf and children per inner node, at least 8.
    """

    def __init__(
        self, dtype: Any = "int64", *, leaf_entries: int = NODE_ENTRIES, fanout: int = NODE_ENTRIES
    ) -> None:
        for name, value in (("leaf_entries", leaf_entries), ("fanout", fanout)):
            if value < _NODE_ENTRIES_MIN:
                raise ValueError(f"{name} is {value}, must be at least {_NODE_ENTRIES_MIN}")
        self.dtype = key_dtype(dtype, "B+-tree")
        self.nodes = make_nodes(self.dtype, 4, leaf_entries, 2, fanout)

    def __len__(self) -> int:
        return int(self.nodes.state[ENTRIES])

    @property
    def nbytes(self) -> int:
        """Bytes that the tree's arrays occupy, unused nodes included."""
        return sum(array.nbytes for array in self.nodes)

    def insert(self, keys: np.ndarray, positions: np.ndarray) -> Work:
        """Insert entries one after the other.

        Raise :exc:`ValueError` when a key is NaN, or at the first entry that is there already
        (those before it are then inserted).
        """
        keys = keys_column(keys, self.dtype, "keys to insert")
        positions = column(positions, np.int64, "positions to insert", len(keys))
        counters = np.zeros(len(COUNTERS), np.int64)
        done = 0
        while done < len(keys):
            done, present = insert_entries(self.nodes, keys, positions, done, counters)
            if present:
                raise ValueError(
                    f"row {done}: key {keys[done]} at position {positions[done]} is in the tree "
                    "already; every position may hold a key once"
                )
            if done < len(keys):
                self._grow()
        return Work.from_counters(counters)

    def delete(self, keys: np.ndarray, positions: np.ndarray) -> Work:
        """Delete entries one after the other, as when a window slides past them.

        Raise :exc:`KeyError` at the first entry that is not there (those before it are deleted).
        """
        keys = keys_column(keys, self.dtype, "keys to delete")
        positions = column(positions, np.int64, "positions to delete", len(keys))
        counters = np.zeros(len(COUNTERS), np.int64)
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
            Bit b of a row stands for position base + b, 0 <= b < bits.
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
            When the tree holds a position that has no bit.
        """
        lo = column(lo, self.dtype, "lo")
        hi = column(hi, self.dtype, "hi", len(lo))
        counters = np.zeros(len(COUNTERS), np.int64)
        if not all_within(self.nodes, base, bits):
            raise ValueError(
                f"the tree holds positions outside {base} to {base + bits - 1}, "
                f"which {bits} bits from {base} on can mark"
            )
        everything = np.zeros((1, words_for(bits)), np.uint64)
        if negated:
            mark_all(self.nodes, base, everything, counters)
        rows = np.repeat(everything, len(lo), axis=0)
        mark_ranges(self.nodes, lo, hi, base, rows, counters)
        work = Work.from_counters(counters)
        return rows, work + Work(bytes_copied=rows.nbytes if negated else 0)

    def probe(
        self,
        lo: np.ndarray,
        hi: np.ndarray,
        *,
        start: np.ndarray | None = None,
        stop: np.ndarray | None = None,
        negated: bool = False,
        enumerate: bool = False,
    ) -> ProbeResult:
        """Find for every probe the entries whose key is in its range and position in its window.

        Parameters
        ----------
        lo, hi
            The ranges' ends, both inclusive; a range with lo > hi is empty.
        start, stop
            int64, probe i sees positions start[i] to stop[i] - 1; None sees all.
        negated
            Find the stored keys outside the range instead.
        enumerate
            List the positions found too, in key order.
        """
        lo = column(lo, self.dtype, "lo")
        hi = column(hi, self.dtype, "hi", len(lo))
        start, stop = window_columns(start, stop, len(lo))
        count = np.zeros(len(lo), np.int64)
        fingerprint = np.zeros(len(lo), np.uint64)
        match_id = np.empty(0, np.int64)
        counters = np.zeros(len(COUNTERS), np.int64)
        ranges = (self.nodes, lo, hi, negated, start, stop, count, fingerprint)
        probe_ranges(*ranges, match_id, counters)
        if enumerate:
            # Walking twice is cheaper than growing a list of unknown length.
            match_id = np.empty(int(count.sum()), np.int64)
            probe_ranges(*ranges, match_id, np.zeros_like(counters))
        return ProbeResult(
            count=count,
            fingerprint=fingerprint,
            match_id=match_id if enumerate else None,
            work=Work.from_counters(counters),
        )

    def scan(self) -> tuple[np.ndarray, np.ndarray, Work]:
        """Return all keys in order, their positions, and what copying them cost."""
        keys = np.empty(len(self), self.dtype)
        positions = np.empty(len(self), np.int64)
        copy_entries(self.nodes, keys, positions)
        return keys, positions, Work(bytes_copied=_ENTRY_BYTES * len(self))

    def clear(self) -> None:
        """Delete all entries; the memory is kept for the next epoch."""
        reset(self.nodes)

    def reserve(self, entries: int) -> None:
        """Make room for *entries* in all, so that no insert up to there has to grow the tree."""
        # Leaves are at least a quarter full; a stream in random order fills them to about 0.6.
        leaves = 2 * entries // self.nodes.leaf_keys.shape[1] + 4
        self._resize(leaves, 3 * leaves // self.nodes.inner_child.shape[1] + 8)

    def snapshot(self) -> dict[str, Any]:
        """Return the tree, node by node, as plain arrays.

        A restored tree has the same nodes and therefore does the same work as the original would.
        """
        nodes = self.nodes
        high = {"leaf": int(nodes.state[LEAF_HIGH]), "inner": int(nodes.state[INNER_HIGH])}
        return {
            name: array[: high.get(name.partition("_")[0], len(array))].copy()
            for name, array in nodes._asdict().items()
            if name != "path"
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> BPlusTree:
        """Return the tree that `snapshot` described."""
        leaf_keys, inner_child = snapshot["leaf_keys"], snapshot["inner_child"]
        tree = cls(leaf_keys.dtype, leaf_entries=leaf_keys.shape[1], fanout=inner_child.shape[1])
        tree._resize(len(leaf_keys), len(inner_child))
        for name, array in snapshot.items():
            target = getattr(tree.nodes, name)
            target[: len(array)] = array
        return tree

    def _grow(self) -> None:
        leaves, inners = len(self.nodes.leaf_size), len(self.nodes.inner_size)
        live = self.nodes.state
        full = live[LEAF_LIVE] == leaves
        # A split takes an inner node on every level at the most, hence the constant.
        self._resize(
            leaves + leaves // 2 + 1 if full else leaves,
            inners + inners // 2 + 4 if live[INNER_LIVE] * 4 >= inners * 3 or not full else inners,
        )

    def _resize(self, leaves: int, inners: int) -> None:
        """Move to arrays of at least so many nodes."""
        old = self.nodes
        leaves, inners = max(leaves, len(old.leaf_size)), max(inners, len(old.inner_size))
        self.nodes = make_nodes(
            self.dtype, leaves, old.leaf_keys.shape[1], inners, old.inner_child.shape[1]
        )
        for name, array in old._asdict().items():
            getattr(self.nodes, name)[: len(array)] = array
