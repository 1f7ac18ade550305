"""The index-based window join over B+-trees (PIM-Tree, section 2.2.1): the classic baseline.

Every tuple is deleted by itself when it expires: what the structures of `joins.indexes.pim_tree`
do without.

The join is tuple by tuple, and three leaves are read or written for each: where its range begins,
where it is inserted, and where what expires is deleted. In windows larger than the cache each is a
wait for memory. So the leaves of a block of tuples are looked up together, before the first of them
is joined; they are then hints (`joins.indexes.b_plus.nodes`).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.b_plus.nodes import (
    Nodes,
    delete_near,
    fetch_positions,
    find_leaf_below,
    find_parent,
    has_free_nodes,
    insert_near,
    match_range_near,
)
from joins.indexes.index import NONE, Sought
from joins.machine.compiling import inlined, kernel
from joins.machine.dispatch import DONE, NO_ROOM, implements
from joins.matches import MatchBuffer
from joins.window_join.rows import (
    KernelRows,
    Rings,
    WindowKeys,
    append_key,
    is_full,
    key_at,
    probed_side,
)
from joins.window_join.window_join import LOOKUP_ROWS, RowsJoin, insert_row, prepare_row, probe_row
from joins.work import NO_WORK, Work, new_counters

LEAF_ENTRIES, FANOUT = 32, 32
"""Entries per leaf and children per node: a probe reads a leaf's keys and a few positions, and an
insertion moves half a leaf. `--sweep` in benchmarks/pim_tree.py tries others."""
_FEW = 3
"""Entries that a range is expected to have, when their cache lines are fetched ahead."""
FOUND = np.dtype([("read", "i8"), ("written", "i8"), ("expired", "i8")])
"""The leaves found for a row: where its range begins, where the row goes, and where the last tuple
is that it no longer sees; `NONE` where there is none."""


class BPlusTreeJoin(RowsJoin):
    """Each tuple probes the other stream's tree and is inserted into its own stream's.

    What it can no longer see is deleted first.

    Parameters
    ----------
    self_join
        Whether the one stream is joined with itself.
    leaf_entries, fanout
        Entries per leaf and children per inner node.
    lookup_rows
        Tuples whose leaves are looked up together; 1 looks them up one after the other.
    """

    state = ("_trees", "_window")

    def __init__(
        self,
        *,
        self_join: bool = False,
        leaf_entries: int = LEAF_ENTRIES,
        fanout: int = FANOUT,
        lookup_rows: int = LOOKUP_ROWS,
    ) -> None:
        super().__init__()
        sides = 1 if self_join else 2
        self._trees = [BPlusTree(leaf_entries=leaf_entries, fanout=fanout) for _ in range(sides)]
        self._window = WindowKeys(sides)
        self._found = np.zeros(lookup_rows, FOUND)

    def expire(self, side: int, before: int) -> Work:
        """Delete a side's positions below *before*, which no later row sees."""
        rings, counters = self._window.rings, new_counters()
        if rings.spans["first"][side] < before:
            _delete_expired(rings, self._trees[side].nodes, side, before, counters)
        return Work.from_counters(counters)

    def _record(self) -> BPlusWindows:
        first, last = self._trees[0].nodes, self._trees[-1].nodes
        return BPlusWindows(first, last, self._window.rings, self._found, self._block)

    def _mend(self, side: int, why: int) -> Work:
        if is_full(self._window.rings, side):
            self._window.grow()
        tree = self._trees[side]
        if not has_free_nodes(tree.nodes):
            tree.grow()
        return NO_WORK


class BPlusWindows(NamedTuple):
    """The sides' trees and the keys of their windows."""

    first: Nodes
    last: Nodes
    """The trees, or one tree twice."""
    rings: Rings
    """The keys of the windows."""
    found: np.ndarray
    """`FOUND`, one for each row of a block."""
    block: np.ndarray
    """One `SPAN`: the rows of the block."""


# A row of side 0 is inserted into the first tree and probes the last, one of side 1 the reverse.
# Each choice is a branch: kernels that take whichever tree it is are a fifth slower.


@implements(prepare_row, BPlusWindows)
def _prepare_row(index: BPlusWindows, rows: KernelRows, row: int, counters: np.ndarray) -> int:
    if row >= index.block[0].end:
        _look_up_block(index, rows, row)
    if rows.side[row]:
        return _expire(index, index.last, index.first, rows, row, counters)
    return _expire(index, index.first, index.last, rows, row, counters)


@implements(probe_row, BPlusWindows)
def _probe_row(
    index: BPlusWindows, rows: KernelRows, row: int, output: MatchBuffer, counters: np.ndarray
) -> None:
    sought = Sought(rows.low[row], rows.high[row], rows.start[row], rows.stop[row], row)
    leaf = index.found[row - index.block[0].first].read
    if rows.side[row]:
        match_range_near(index.first, leaf, sought, output, counters)
    else:
        match_range_near(index.last, leaf, sought, output, counters)


@implements(insert_row, BPlusWindows)
def _insert_row(index: BPlusWindows, rows: KernelRows, row: int, counters: np.ndarray) -> None:
    side, key, position = rows.side[row], rows.key[row], rows.position[row]
    leaf = index.found[row - index.block[0].first].written
    if side:
        insert_near(index.last, leaf, key, position, counters)
    else:
        insert_near(index.first, leaf, key, position, counters)
    append_key(index.rings, side, key, position)


@inlined
def _expire(
    index: BPlusWindows, own: Nodes, probed: Nodes, rows: KernelRows, row: int, counters: np.ndarray
) -> int:
    """Delete what a row no longer sees; return `NO_ROOM` if there is none for the row itself."""
    rings = index.rings
    side = probed_side(len(rings.spans), rows.side[row])
    leaf = index.found[row - index.block[0].first].expired
    _delete_below(rings, probed, side, rows.start[row], leaf, counters)
    has_key_room = not is_full(rings, rows.side[row])
    return DONE if has_key_room and has_free_nodes(own) else NO_ROOM


@kernel
def _delete_expired(
    rings: Rings, tree: Nodes, side: int, before: int, counters: np.ndarray
) -> None:
    """Delete a side's positions below *before*."""
    _delete_below(rings, tree, side, before, NONE, counters)


@inlined
def _delete_below(
    rings: Rings, tree: Nodes, side: int, before: int, last: int, counters: np.ndarray
) -> None:
    """Delete a side's positions below *before*; *last* is the leaf of the last one, or `NONE`."""
    span = rings.spans[side]
    while span.first < min(before, span.end):
        position = span.first
        hint = last if position == before - 1 else NONE
        delete_near(tree, hint, key_at(rings, side, position), position, counters)
        span.first += 1


# Looking up the leaves of a block, all rows taking each step before any takes the next one.


@kernel
def _look_up_block(index: BPlusWindows, rows: KernelRows, begin: int) -> None:
    end = min(begin + len(index.found), len(rows.side))
    index.block[0].first, index.block[0].end = begin, end
    for row in range(begin, end):
        if rows.side[row]:
            _find_parents(index, index.last, index.first, rows, row)
        else:
            _find_parents(index, index.first, index.last, rows, row)
    for row in range(begin, end):
        if rows.side[row]:
            _find_leaves(index, index.last, index.first, rows, row)
        else:
            _find_leaves(index, index.first, index.last, rows, row)
    for row in range(begin, end):
        if rows.side[row]:
            _fetch_positions(index, index.last, index.first, rows, row)
        else:
            _fetch_positions(index, index.first, index.last, rows, row)


@inlined
def _find_parents(
    index: BPlusWindows, own: Nodes, probed: Nodes, rows: KernelRows, row: int
) -> None:
    found = index.found[row - index.block[0].first]
    found.read = find_parent(probed, rows.low[row])
    found.written = find_parent(own, rows.key[row])
    side, expired = probed_side(len(index.rings.spans), rows.side[row]), rows.start[row] - 1
    span = index.rings.spans[side]
    found.expired = NONE
    if span.first <= expired < span.end:
        found.expired = find_parent(probed, key_at(index.rings, side, expired))


@inlined
def _find_leaves(
    index: BPlusWindows, own: Nodes, probed: Nodes, rows: KernelRows, row: int
) -> None:
    found = index.found[row - index.block[0].first]
    found.read = find_leaf_below(probed, found.read, rows.low[row])
    found.written = find_leaf_below(own, found.written, rows.key[row])
    if found.expired != NONE:
        found.expired = find_leaf_below(probed, found.expired, _expired_key(index, rows, row))


@inlined
def _fetch_positions(
    index: BPlusWindows, own: Nodes, probed: Nodes, rows: KernelRows, row: int
) -> None:
    found = index.found[row - index.block[0].first]
    fetch_positions(probed, found.read, rows.low[row], _FEW)
    fetch_positions(own, found.written, rows.key[row], LEAF_ENTRIES)
    if found.expired != NONE:
        fetch_positions(probed, found.expired, _expired_key(index, rows, row), LEAF_ENTRIES)


@inlined
def _expired_key(index: BPlusWindows, rows: KernelRows, row: int) -> int:
    """Return the key of the last tuple that a row no longer sees."""
    side = probed_side(len(index.rings.spans), rows.side[row])
    return key_at(index.rings, side, rows.start[row] - 1)
