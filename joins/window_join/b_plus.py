"""The index-based window join over B+-trees (PIM-Tree, section 2.2.1): the classic baseline.

Every tuple is deleted by itself when it expires: what the structures of `joins.indexes.pim_tree`
do without.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.indexes.b_plus.b_plus_tree import NODE_ENTRIES, BPlusTree
from joins.indexes.b_plus.nodes import NONE, Nodes, has_room, prefetch_leaf
from joins.indexes.b_plus.probe import find_first
from joins.indexes.b_plus.update import delete_entry, insert_entry
from joins.indexes.pim_tree.status import DONE, NO_NODES, NO_OUTPUT
from joins.machine.compiling import inlined, kernel
from joins.matches import MatchBuffer, add_match, begin_row, commit_row
from joins.window_join.driver import WindowJoin
from joins.window_join.rows import Rows
from joins.window_join.window_keys import WindowKeys
from joins.work import COMPARISONS, MATCHES, NO_WORK, Work

AHEAD = 4
"""Rows between asking for a leaf's cache lines and using them."""


class BPlusTreeJoin(WindowJoin):
    """Each tuple probes the other stream's tree and is inserted into its own stream's.

    What it can no longer see is deleted first.

    Parameters
    ----------
    self_join
        Whether the one stream is joined with itself.
    node_entries
        Entries per leaf and children per node.
    """

    def __init__(self, *, self_join: bool = False, node_entries: int = NODE_ENTRIES) -> None:
        sides = 1 if self_join else 2
        self._trees = [
            BPlusTree(leaf_entries=node_entries, fanout=node_entries) for _ in range(sides)
        ]
        self._window = WindowKeys(sides)

    def _run(
        self, rows: Rows, begin: int, output: MatchBuffer, enumerate: bool, counters: np.ndarray
    ) -> tuple[int, int]:
        window = self._window
        first, last = self._trees[0].nodes, self._trees[-1].nodes
        return _join_rows(
            first, last, window.keys, window.ends, rows, begin, output, enumerate, counters
        )

    def _mend(self, side: int, why: int) -> Work:
        window = self._window
        if window.ends[side, 1] - window.ends[side, 0] == window.keys.shape[1]:
            window.grow()
        tree = self._trees[side]
        if not has_room(tree.nodes):
            tree._grow()
        return NO_WORK

    def snapshot(self) -> dict[str, Any]:
        """Return the trees and the windows' keys."""
        trees = [tree.snapshot() for tree in self._trees]
        return {"trees": trees, "window": self._window.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._trees = [BPlusTree.restore(tree) for tree in state["trees"]]
        self._window.restore(state["window"])

    @property
    def nbytes(self) -> int:
        """Bytes that the trees and the windows' keys occupy."""
        return sum(tree.nbytes for tree in self._trees) + self._window.nbytes


@inlined
def _probe(tree: Nodes, rows: Rows, row: int, output: MatchBuffer, counters: np.ndarray) -> None:
    low, high = rows.low[row], rows.high[row]
    if low > high:
        return
    start, stop = rows.start[row], rows.stop[row]
    leaf, i = find_first(tree, low, counters)
    while leaf != NONE:
        begin, size = i, tree.leaf_size[leaf]
        while i < size and tree.leaf_keys[leaf, i] <= high:
            position = tree.leaf_positions[leaf, i]
            if start <= position < stop:
                add_match(output, row, position)
            i += 1
        counters[COMPARISONS] += i - begin + (i < size)
        if i < size:
            break
        leaf, i = tree.leaf_next[leaf], 0


@inlined
def _step(
    own: Nodes,
    other: Nodes,
    keys: np.ndarray,
    ends: np.ndarray,
    rows: Rows,
    row: int,
    output: MatchBuffer,
    enumerating: bool,
    counters: np.ndarray,
) -> int:
    side = rows.side[row]
    probed = side if len(ends) == 1 else 1 - side
    mask = keys.shape[1] - 1
    while ends[probed, 0] < min(rows.start[row], ends[probed, 1]):
        expired = ends[probed, 0]
        delete_entry(other, keys[probed, expired & mask], expired, counters)
        ends[probed, 0] += 1
    if ends[side, 1] - ends[side, 0] > mask or not has_room(own):
        return NO_NODES
    begin_row(output, counters)
    _probe(other, rows, row, output, counters)
    if not commit_row(output, row, counters):
        return NO_OUTPUT
    counters[MATCHES] += output.matches[row]
    position = rows.position[row]
    if ends[side, 1] == 0:
        ends[side, 0] = position
    insert_entry(own, rows.key[row], position, counters)
    keys[side, position & mask] = rows.key[row]
    ends[side, 1] = position + 1
    return DONE


@inlined
def _fetch(
    own: Nodes, other: Nodes, keys: np.ndarray, ends: np.ndarray, rows: Rows, row: int
) -> None:
    """Ask for the leaves that a row will read and write, its expired tuple's among them."""
    side = rows.side[row]
    probed = side if len(ends) == 1 else 1 - side
    prefetch_leaf(other, rows.low[row])
    prefetch_leaf(own, rows.key[row])
    expired = rows.start[row] - 1
    if ends[probed, 0] <= expired < ends[probed, 1]:
        prefetch_leaf(other, keys[probed, expired & (keys.shape[1] - 1)])


@kernel
def _join_rows(
    first: Nodes,
    last: Nodes,
    keys: np.ndarray,
    ends: np.ndarray,
    rows: Rows,
    begin: int,
    output: MatchBuffer,
    enumerating: bool,
    counters: np.ndarray,
) -> tuple[int, int]:
    """Join the rows from *begin* on; *first* and *last* are the sides' trees, or one tree twice."""
    n = len(rows.side)
    for row in range(begin, n):
        ahead = row + AHEAD
        if ahead < n:
            if rows.side[ahead]:
                _fetch(last, first, keys, ends, rows, ahead)
            else:
                _fetch(first, last, keys, ends, rows, ahead)
        if rows.side[row]:
            why = _step(last, first, keys, ends, rows, row, output, enumerating, counters)
        else:
            why = _step(first, last, keys, ends, rows, row, output, enumerating, counters)
        if why != DONE:
            return row, why
    return n, DONE
