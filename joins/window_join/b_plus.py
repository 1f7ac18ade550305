"""The index-based window join over B+-trees (PIM-Tree, section 2.2.1): the classic baseline.

Every tuple is deleted by itself when it expires: what the structures of `joins.indexes.pim_tree`
do without.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.b_plus.b_plus_tree import NODE_ENTRIES, BPlusTree
from joins.indexes.b_plus.nodes import (
    Nodes,
    delete_entry,
    has_room,
    insert_entry,
    match_range,
    prefetch_leaf,
)
from joins.machine.compiling import inlined
from joins.machine.steps import implements
from joins.machine.stops import DONE, NO_ROOM
from joins.matches import MatchBuffer
from joins.window_join.rows import Rows
from joins.window_join.window_join import RowsJoin, insert_row, prepare_row, probe_row
from joins.window_join.window_keys import WindowKeys, append_key, is_full, key_at, probed_side
from joins.work import NO_WORK, Work

AHEAD = 4
"""Rows between asking for a leaf's cache lines and using them."""


class BPlusTreeJoin(RowsJoin):
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
        if is_full(window.keys, window.ends, side):
            window.grow()
        tree = self._trees[side]
        if not has_room(tree.nodes):
            tree.grow()
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


# A row of side 0 is inserted into the first tree and probes the last, one of side 1 the reverse.
# Each choice is a branch: kernels that take whichever tree it is are a fifth slower.


@implements(prepare_row, BPlusWindows)
def _prepare_row(index: BPlusWindows, rows: Rows, row: int, counters: np.ndarray) -> int:
    ahead = row + AHEAD
    if ahead < len(rows.side):
        if rows.side[ahead]:
            _fetch(index, index.last, index.first, rows, ahead)
        else:
            _fetch(index, index.first, index.last, rows, ahead)
    if rows.side[row]:
        return _expire(index, index.last, index.first, rows, row, counters)
    return _expire(index, index.first, index.last, rows, row, counters)


@implements(probe_row, BPlusWindows)
def _probe_row(
    index: BPlusWindows, rows: Rows, row: int, output: MatchBuffer, counters: np.ndarray
) -> None:
    low, high, start, stop = rows.low[row], rows.high[row], rows.start[row], rows.stop[row]
    if rows.side[row]:
        match_range(index.first, low, high, start, stop, row, output, counters)
    else:
        match_range(index.last, low, high, start, stop, row, output, counters)


@implements(insert_row, BPlusWindows)
def _insert_row(index: BPlusWindows, rows: Rows, row: int, counters: np.ndarray) -> None:
    side, key, position = rows.side[row], rows.key[row], rows.position[row]
    if side:
        insert_entry(index.last, key, position, counters)
    else:
        insert_entry(index.first, key, position, counters)
    append_key(index.keys, index.ends, side, key, position)


@inlined
def _fetch(index: BPlusWindows, own: Nodes, probed: Nodes, rows: Rows, row: int) -> None:
    """Ask for the leaves that a row will read and write, its expired tuple's among them."""
    prefetch_leaf(own, rows.key[row])
    prefetch_leaf(probed, rows.low[row])
    side, expired = probed_side(index.ends, rows.side[row]), rows.start[row] - 1
    if index.ends[side, 0] <= expired < index.ends[side, 1]:
        prefetch_leaf(probed, key_at(index.keys, side, expired))


@inlined
def _expire(
    index: BPlusWindows, own: Nodes, probed: Nodes, rows: Rows, row: int, counters: np.ndarray
) -> int:
    """Delete what a row no longer sees; return whether there is room for the row itself."""
    ends, side = index.ends, probed_side(index.ends, rows.side[row])
    while ends[side, 0] < min(rows.start[row], ends[side, 1]):
        delete_entry(probed, key_at(index.keys, side, ends[side, 0]), ends[side, 0], counters)
        ends[side, 0] += 1
    has_key_room = not is_full(index.keys, ends, rows.side[row])
    return DONE if has_key_room and has_room(own) else NO_ROOM
