"""The window join of one thread over any forest (PIM-Tree, sections 2.2 and 3).

B-chain, IB-chain, IM-Tree and PIM-Tree differ in which trees are live, and in what is done when the
active one is full. The join finds where the next tuples will search, and fetches those cache lines
ahead of time; so does the join that shares a forest (`joins.window_join.shared_pim_tree`).

A window larger than the cache waits for memory at every step down a tree. But the immutable tree
does not change between two merges: where a tuple's range begins there, and which subindexes it will
read and write, can be found for a block of tuples before the first of them is joined. What is
looked up in this way is final. In a mutable tree, which every tuple changes, a leaf that was found
remains the right one until a node is split, and every lookup learns whether one was. So the join
remains tuple by tuple, whatever the block.

Memory delivers a line in some nanoseconds however early its fetch begins. So a search of an
immutable tree goes from one line to the next, all tuples of the block taking each step before any
takes the next one. Of mutable trees, which are small, only leaves are fetched, and of those that
are read only the keys: to ask for roots too took longer than it saved, from 2^14 to 2^20 tuples.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.index import NONE, Sought
from joins.indexes.pim_tree.forest import (
    HEIGHT,
    KEYS,
    ROOM_NODES,
    ROOT,
    SIZE,
    Forest,
    active_tree,
    first_node,
    run_slot,
    subindex_row,
    tree_slot,
    tree_width,
)
from joins.indexes.pim_tree.forest_index import ForestIndex, probe_run, probe_tree
from joins.indexes.pim_tree.immutable_tree import (
    descend,
    first_place,
    leaf_below,
    place_from,
)
from joins.indexes.pim_tree.mutable_tree import (
    FoundLeaf,
    claim_node,
    fetch_keys,
    insert_into_subindex,
    route,
    splits_of,
)
from joins.machine.compiling import inlined, kernel
from joins.machine.dispatch import DONE, MAINTAIN, NO_ROOM, implements
from joins.machine.instructions import prefetch_entry, prefetch_to_write
from joins.machine.lanes import count_less
from joins.machine.memory import LINE, aligned
from joins.matches import MatchBuffer
from joins.window_join.rows import KernelRows, probed_side
from joins.window_join.window_join import LOOKUP_ROWS, RowsJoin, insert_row, prepare_row, probe_row
from joins.work import COMPARISONS, Work

READ, WRITTEN, WRITTEN_LEAF, PLACES = 0, 1, 2, 4
"""Columns of the places found: the subindex that is read first, the one that is written, the leaf
that is written and its subindex's splits, and per immutable tree the place where the range begins;
then per mutable tree the leaf that is read first and its subindex's splits."""


_MATCHES_AHEAD = LINE // 2
"""Entries of an immutable tree that are fetched beyond the first that may match: a range that
begins late in a line goes on in the next."""


class ForestJoin(RowsJoin):
    """Joins in one thread over a forest.

    Parameters
    ----------
    index
        `PimTree` or `TreeChain`, with two sides; with one for a self join.
    lookup_rows
        Tuples that are looked up together; 1 looks them up one after the other.
    """

    state = ("index",)

    def __init__(self, index: ForestIndex, *, lookup_rows: int = LOOKUP_ROWS) -> None:
        super().__init__()
        self.index = index
        self._places = make_places(index.forest, lookup_rows)

    def expire(self, side: int, before: int) -> Work:
        """Mark a side's positions below *before* as expired; its next maintenance drops them."""
        return self.index.expire(before, side=side)

    def _record(self) -> OwnForest:
        return OwnForest(self.index.forest, self._places, self._block)

    def _mend(self, side: int, why: int) -> Work:
        return self.index.mend(side, why)


class OwnForest(NamedTuple):
    """A forest that one thread has for itself."""

    forest: Forest
    """The trees."""
    places: np.ndarray
    """Working memory of a block of rows, see `make_places`."""
    block: np.ndarray
    """One `SPAN`: the rows that were looked up."""


@implements(prepare_row, OwnForest)
def _prepare_row(index: OwnForest, rows: KernelRows, row: int, counters: np.ndarray) -> int:
    """Look a block of rows up when the last one is joined: no side needs maintenance within it."""
    forest, block = index.forest, index.block[0]
    if row >= block.end:
        tree = active_tree(forest, rows.side[row])
        if forest.tree_entries[tree, 0] >= forest.sides[rows.side[row]].limit:
            return MAINTAIN
        room = len(rows.side) - row
        for side in range(len(forest.sides)):
            tree = active_tree(forest, side)
            room = min(room, forest.sides[side].limit - forest.tree_entries[tree, 0])
        block.first, block.end = row, row + max(1, min(room, len(index.places)))
        look_up_block(forest, rows, block.first, block.end, index.places, counters)
    tree = active_tree(forest, rows.side[row])
    if forest.tree_nodes[tree, 0] + ROOM_NODES > forest.slots.nodes:
        block.end = row
        return NO_ROOM
    return DONE


@implements(probe_row, OwnForest)
def _probe_row(
    index: OwnForest, rows: KernelRows, row: int, output: MatchBuffer, counters: np.ndarray
) -> None:
    """Look up the matches of a row in all live trees of the side it probes."""
    low, high = rows.low[row], rows.high[row]
    if low > high:
        return
    forest, places = index.forest, index.places[row - index.block[0].first]
    probed = probed_side(len(forest.sides), rows.side[row])
    sought = Sought(low, high, rows.start[row], rows.stop[row], row)
    run = run_slot(forest, probed, 0)
    for k in range(forest.sides[probed].run_count):
        run = run_slot(forest, probed, k)
        probe_run(forest, run, places[PLACES + k], sought, output, counters)
    for k in range(forest.sides[probed].tree_count):
        tree = tree_slot(forest, probed, k)
        found = found_leaf(places, read_leaf(forest, k))
        probe_tree(
            forest, run, tree, places[READ], found, sought, output, counters, concurrent=False
        )


@implements(insert_row, OwnForest)
def _insert_row(index: OwnForest, rows: KernelRows, row: int, counters: np.ndarray) -> None:
    forest, places = index.forest, index.places[row - index.block[0].first]
    own, position = rows.side[row], rows.position[row]
    forest.sides[probed_side(len(forest.sides), own)].horizon = rows.start[row]
    tree, subindex = active_tree(forest, own), places[WRITTEN]
    found = found_leaf(places, WRITTEN_LEAF)
    insert_into_subindex(forest, tree, subindex, found, rows.key[row], position, counters)
    forest.tree_entries[tree, 0] += 1
    forest.sides[own].next_position = position + 1


# Looking up a block of tuples, all of them taking each step before any takes the next one.


def make_places(forest: Forest, tuples: int) -> np.ndarray:
    """Return working memory for `look_up_block`, a row for each of *tuples* tuples."""
    columns = PLACES + forest.slots.runs + 2 * forest.slots.trees
    return aligned((tuples, columns))


@inlined
def read_leaf(forest: Forest, tree: int) -> int:
    """Return the column of the leaf that is read first in the mutable tree at a place in the ring.

    Its subindex's splits are in the next.
    """
    return PLACES + forest.slots.runs + 2 * tree


@inlined
def found_leaf(places: np.ndarray, column: int) -> FoundLeaf:
    """Return the leaf that was looked up and put into *column* and the next."""
    return FoundLeaf(places[column], places[column + 1])


@kernel
def look_up_block(
    forest: Forest, rows: KernelRows, begin: int, end: int, places: np.ndarray, counters: np.ndarray
) -> None:
    """Fill in *places*, a row for each of the tuples *begin* to *end* - 1, and ask for the rest.

    The searches of immutable trees are counted; those of mutable ones are when they are used.
    """
    for row in range(begin, end):
        _look_up_runs(forest, rows, row, places[row - begin], counters)
    for row in range(begin, end):
        _find_leaves(forest, rows, row, places[row - begin], counters)
    for row in range(begin, end):
        _find_lines(forest, rows, row, places[row - begin])
    for row in range(begin, end):
        _find_places(forest, rows, row, places[row - begin], counters)
        _look_up_leaves(forest, rows, row, places[row - begin])


@inlined
def _sides(forest: Forest, rows: KernelRows, row: int) -> tuple[int, int]:
    """Return the side that a tuple is inserted into, and the one that it looks at."""
    own = rows.side[row]
    return own, probed_side(len(forest.sides), own)


@inlined
def _look_up_runs(
    forest: Forest, rows: KernelRows, row: int, found: np.ndarray, counters: np.ndarray
) -> None:
    """Find subindexes, and the nodes above the leaves where the range begins; ask for both."""
    (own, probed), low = _sides(forest, rows, row), rows.low[row]
    active = active_tree(forest, probed)
    depth, width = forest.tree_depth[active], forest.slots.run_width
    found[READ] = 0
    for k in range(forest.sides[probed].run_count):
        run = run_slot(forest, probed, k)
        node = descend(forest, run, 0, 0, depth, low, counters)
        found[READ] = node
        deepest = max(depth, forest.run_levels[run] - 1)
        node = descend(forest, run, node, depth, deepest, low, counters)
        found[PLACES + k] = node
        prefetch_entry(forest.run_coarse, run, node * width)
    prefetch_to_write(forest.subindexes, subindex_row(forest, active, found[READ]), 0)
    written = active_tree(forest, own)
    found[WRITTEN] = route(forest, run_slot(forest, own, 0), written, rows.key[row], counters)
    prefetch_to_write(forest.subindexes, subindex_row(forest, written, found[WRITTEN]), 0)


@inlined
def _find_leaves(
    forest: Forest, rows: KernelRows, row: int, found: np.ndarray, counters: np.ndarray
) -> None:
    """Find the leaves of immutable trees where the range begins, and ask for their fences."""
    (_, probed), low = _sides(forest, rows, row), rows.low[row]
    for k in range(forest.sides[probed].run_count):
        run = run_slot(forest, probed, k)
        if forest.run_levels[run] > 0:
            found[PLACES + k] = leaf_below(forest, run, found[PLACES + k], low)
            counters[COMPARISONS] += forest.slots.run_width
        prefetch_entry(forest.run_fences, run, found[PLACES + k])


@inlined
def _find_lines(forest: Forest, rows: KernelRows, row: int, found: np.ndarray) -> None:
    """Find the lines of those leaves where the range begins, and ask for them."""
    (_, probed), low = _sides(forest, rows, row), rows.low[row]
    for k in range(forest.sides[probed].run_count):
        run = run_slot(forest, probed, k)
        place = first_place(forest, run, found[PLACES + k], low)
        found[PLACES + k] = place
        prefetch_entry(forest.run_keys, run, place)


@inlined
def _find_places(
    forest: Forest, rows: KernelRows, row: int, found: np.ndarray, counters: np.ndarray
) -> None:
    """Find where exactly the range begins in immutable trees, and ask for what it holds."""
    (_, probed), low = _sides(forest, rows, row), rows.low[row]
    for k in range(forest.sides[probed].run_count):
        run = run_slot(forest, probed, k)
        place = place_from(forest, run, found[PLACES + k], low)
        counters[COMPARISONS] += forest.slots.run_width
        found[PLACES + k] = place
        prefetch_entry(forest.run_keys, run, place + _MATCHES_AHEAD)
        prefetch_entry(forest.run_positions, run, place)
        prefetch_entry(forest.run_positions, run, place + _MATCHES_AHEAD)


@inlined
def _look_up_leaves(forest: Forest, rows: KernelRows, row: int, found: np.ndarray) -> None:
    """Find the leaves that will be read and written, and ask for their keys."""
    (own, probed), key, low = _sides(forest, rows, row), rows.key[row], rows.low[row]
    for k in range(forest.sides[probed].tree_count):
        tree = tree_slot(forest, probed, k)
        _look_up_leaf(forest, tree, found[READ], low, found, read_leaf(forest, k))
        node = first_node(forest, tree) + found[read_leaf(forest, k)]
        fetch_keys(forest, node)
    tree = active_tree(forest, own)
    if _look_up_leaf(forest, tree, found[WRITTEN], key, found, WRITTEN_LEAF):
        found[WRITTEN_LEAF] = NONE
    else:
        node = first_node(forest, tree) + found[WRITTEN_LEAF]
        claim_node(forest, node)


@inlined
def _look_up_leaf(
    forest: Forest, tree: int, subindex: int, key: int, found: np.ndarray, column: int
) -> bool:
    """Find the leaf of *key*; return whether a node above it is full.

    No lock is taken: another thread may be splitting these nodes. What is read may then make no
    sense, so it is checked to be a node before it is followed; asking for a wrong one does no harm.
    """
    line = subindex_row(forest, tree, subindex)
    found[column + 1] = splits_of(forest, line)
    node, height = forest.subindexes[line, ROOT], forest.subindexes[line, HEIGHT]
    width, base = tree_width(forest), first_node(forest, tree)
    full = False
    for _ in range(height):
        full |= forest.pool[base + node, SIZE] == width
        at = min(count_less(forest.pool, base + node, KEYS, width, key), width - 1)
        child = forest.pool[base + node, KEYS + width + at]
        if child < 0 or child >= forest.slots.nodes:
            break
        node = child
    found[column] = node
    return full
