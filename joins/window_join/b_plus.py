"""The index-based window join over B+-trees (PIM-Tree, section 2.2.1): the classic baseline.

Every tuple is deleted by itself when it expires: what the structures of `joins.indexes.pim_tree`
do without.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.b_plus.b_plus_tree import NODE_ENTRIES, BPlusTree
from joins.indexes.b_plus.nodes import (
    NONE,
    Nodes,
    delete_entry,
    find_first,
    has_room,
    insert_entry,
    prefetch_leaf,
)
from joins.machine.compiling import inlined
from joins.machine.steps import implements
from joins.machine.stops import DONE, NO_ROOM
from joins.matches import MatchBuffer, add_match
from joins.window_join.rows import Rows
from joins.window_join.window_join import WindowJoin, insert_row, prepare_row, probe_row
from joins.window_join.window_keys import WindowKeys
from joins.work import COMPARISONS, NO_WORK, Work

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

    state = ("_trees", "_window")

    def __init__(self, *, self_join: bool = False, node_entries: int = NODE_ENTRIES) -> None:
        sides = 1 if self_join else 2
        self._trees = [
            BPlusTree(leaf_entries=node_entries, fanout=node_entries) for _ in range(sides)
        ]
        self._window = WindowKeys(sides)

    def _record(self) -> BPlusWindows:
        window = self._window
        return BPlusWindows(self._trees[0].nodes, self._trees[-1].nodes, window.keys, window.ends)

    def _mend(self, side: int, why: int) -> Work:
        window = self._window
        if window.ends[side, 1] - window.ends[side, 0] == window.keys.shape[1]:
            window.grow()
        tree = self._trees[side]
        if not has_room(tree.nodes):
            tree._grow()
        return NO_WORK


class BPlusWindows(NamedTuple):
    """The sides' trees and the keys of their windows.

    Attributes
    ----------
    first, last
        The trees, or one tree twice.
    keys, ends
        See `joins.window_join.window_keys`.
    """

    first: Nodes
    last: Nodes
    keys: np.ndarray
    ends: np.ndarray


@inlined
def _probed_side(index: BPlusWindows, rows: Rows, row: int) -> int:
    side = rows.side[row]
    return side if len(index.ends) == 1 else 1 - side


@implements(prepare_row, BPlusWindows)
def _prepare_row(index: BPlusWindows, rows: Rows, row: int, counters: np.ndarray) -> int:
    keys, ends = index.keys, index.ends
    if row + AHEAD < len(rows.side):
        _fetch(index, rows, row + AHEAD)
    side, probed = rows.side[row], _probed_side(index, rows, row)
    mask = keys.shape[1] - 1
    while ends[probed, 0] < min(rows.start[row], ends[probed, 1]):
        expired = ends[probed, 0]
        if probed:
            delete_entry(index.last, keys[probed, expired & mask], expired, counters)
        else:
            delete_entry(index.first, keys[probed, expired & mask], expired, counters)
        ends[probed, 0] += 1
    has_nodes = has_room(index.last) if side else has_room(index.first)
    return DONE if has_nodes and ends[side, 1] - ends[side, 0] <= mask else NO_ROOM


@implements(probe_row, BPlusWindows)
def _probe_row(
    index: BPlusWindows, rows: Rows, row: int, output: MatchBuffer, counters: np.ndarray
) -> None:
    if _probed_side(index, rows, row):
        _probe(index.last, rows, row, output, counters)
    else:
        _probe(index.first, rows, row, output, counters)


@implements(insert_row, BPlusWindows)
def _insert_row(index: BPlusWindows, rows: Rows, row: int, counters: np.ndarray) -> None:
    side, key, position = rows.side[row], rows.key[row], rows.position[row]
    if index.ends[side, 1] == 0:
        index.ends[side, 0] = position
    if side:
        insert_entry(index.last, key, position, counters)
    else:
        insert_entry(index.first, key, position, counters)
    index.keys[side, position & (index.keys.shape[1] - 1)] = key
    index.ends[side, 1] = position + 1


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
def _fetch(index: BPlusWindows, rows: Rows, row: int) -> None:
    """Ask for the leaves that a row will read and write, its expired tuple's among them."""
    side, probed = rows.side[row], _probed_side(index, rows, row)
    if side:
        prefetch_leaf(index.last, rows.key[row])
    else:
        prefetch_leaf(index.first, rows.key[row])
    expired = rows.start[row] - 1
    deletes = index.ends[probed, 0] <= expired < index.ends[probed, 1]
    key = index.keys[probed, expired & (index.keys.shape[1] - 1)]
    if probed:
        prefetch_leaf(index.last, rows.low[row])
        if deletes:
            prefetch_leaf(index.last, key)
    else:
        prefetch_leaf(index.first, rows.low[row])
        if deletes:
            prefetch_leaf(index.first, key)
