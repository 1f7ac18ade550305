"""The memory of a join's trees: a few arrays of int64, shared by all its sides.

Whatever the structure (B-chain, IB-chain, IM-Tree, PIM-Tree), a side of a join holds some immutable
trees and some mutable ones, and the last mutable one takes what is inserted. Both kinds are in
rings of slots, so that one set of kernels serves all structures and both sides, and nothing is
allocated while tuples flow. Keys are codes (`joins.indexes.index`).

An immutable tree (a CSS-tree) is a sorted column and its inner nodes, breadth first, root first.
Slot i of a node holds the greatest key below its child i, and `GREATEST` for the last child of a
level and beyond, so a search counts the smaller slots of a node and never leaves the tree.

A mutable tree is a list of subindexes over ascending ranges of keys, one per node of the immutable
tree at the insertion depth, or a single one. Each is a B+-tree that is only inserted into. Their
nodes share a pool; the leaves of all of them form one list. A node is a row: its size, the next
leaf, keys filled up with `GREATEST`, and positions or children. Leaf i is the first of subindex i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.codes import GREATEST
from joins.machine.compiling import inlined
from joins.machine.memory import LINE, aligned, own_lines, record
from joins.state import storable

LEVELS_MAX = 32

LOCK, ROOT, HEIGHT, SPLITS = range(4)
"""Places in a row of `Forest.subindexes`; a row is a cache line, so that locks do not share.
`SPLITS` changes whenever a node is split: until then each key's leaf is the one it was."""

SIZE, NEXT, KEYS = 0, 1, 8
"""Places in a node; keys begin at a cache line of their own. A node is one row, since it is read as
a whole: with its parts in arrays of their own joins took longer."""

SIDE = record(
    "run_first",
    "run_count",
    "tree_first",
    "tree_count",
    "limit",
    "horizon",
    "next_position",
    words=LINE,
)
"""A side, one cache line: the rings' live slots, the entries of the active tree at which the side
needs maintenance, the position below which all are expired, and the next position."""

ROOM_NODES = LEVELS_MAX
"""Nodes that must be free before an insert: it splits every level at the most."""


@storable
class Sizes(NamedTuple):
    """What does not change while kernels run."""

    runs: int
    trees: int
    """Slots of each side."""
    run_width: int
    """Entries per leaf and children per node of a run."""
    nodes: int
    subindexes: int
    """How many of each a tree slot has room for."""


@storable
class Forest(NamedTuple):
    """The arrays; runs are immutable trees. Slot k of side s is row ``s * slots + k``."""

    run_keys: np.ndarray
    run_positions: np.ndarray
    """Entries in key order, shape (run slots, capacity)."""
    run_inner: np.ndarray
    """Inner nodes, shape (run slots, room)."""
    run_coarse: np.ndarray
    run_fences: np.ndarray
    """int16 and int64: what is searched first, see `joins.indexes.pim_tree.immutable_tree`; one for
    each leaf, shape (run slots, leaves)."""
    run_length: np.ndarray
    run_levels: np.ndarray
    level_starts: np.ndarray
    """Of each run its entries and inner levels, and where each level begins in *run_inner*."""
    pool: np.ndarray
    """Nodes of the mutable trees, shape (tree slots * nodes per slot, words)."""
    subindexes: np.ndarray
    """See `LOCK`; row ``slot * capacity + subindex``."""
    tree_depth: np.ndarray
    tree_subindexes: np.ndarray
    """Of each mutable tree the levels of the immutable tree that lead to its subindexes, and how
    many there are."""
    tree_nodes: np.ndarray
    tree_entries: np.ndarray
    """Of each mutable tree the nodes ever used and the entries, in column 0. They change all the
    time, and have a cache line of their own: each change takes the line from all threads."""
    sides: np.ndarray
    """`SIDE`, one for each side."""
    slots: Sizes
    """How many slots there are, and how large they are."""


def level_nodes(entries: int, width: int) -> list[int]:
    """Return the nodes of each inner level of an immutable tree of *entries*, from the bottom up.

    *width* is how many entries a leaf has, and how many children a node.
    """
    nodes, below = [], -(-max(entries, 1) // width)
    while below > 1:
        below = -(-below // width)
        nodes.append(below)
    return nodes


def nodes_room(entries: int, subindexes: int, width: int) -> int:
    """Return a number of nodes that *entries* inserts into *subindexes* subindexes stay within.

    Splitting leaves half a node on either side, so there is a leaf per half node of entries at the
    most, beside the first leaf of each subindex; and inner nodes likewise.
    """
    split = 2 * entries // width + 1
    leaves = subindexes + split
    return leaves + 2 * leaves // (width - 2) + min(split, subindexes) + 2 * ROOM_NODES


def make_forest(slots: Sizes, *, sides: int, run_entries: int, tree_width: int) -> Forest:
    """Return arrays with these *slots*, and room for *run_entries* in each run; all are empty."""
    runs, trees, run_width = sides * slots.runs, sides * slots.trees, slots.run_width
    # A merge writes one entry beyond what it keeps, and the last leaf is filled up with `GREATEST`.
    padded = (-(-run_entries // run_width) + 2) * run_width
    inner_words = max(1, run_width * sum(level_nodes(padded, run_width)))
    # Nodes are copied whole.
    leaves = -(-(padded // run_width) // run_width) * run_width
    forest = Forest(
        run_keys=aligned((runs, padded)),
        run_positions=aligned((runs, padded)),
        run_inner=aligned((runs, inner_words)),
        run_coarse=aligned((runs, leaves), "int16"),
        run_fences=aligned((runs, leaves)),
        run_length=own_lines(runs),
        run_levels=own_lines(runs),
        level_starts=aligned((runs, LEVELS_MAX)),
        pool=aligned((trees * slots.nodes, KEYS + 2 * tree_width)),
        subindexes=aligned((trees * slots.subindexes, LINE)),
        tree_depth=own_lines(trees),
        tree_subindexes=own_lines(trees),
        tree_nodes=aligned((trees, LINE)),
        tree_entries=aligned((trees, LINE)),
        sides=aligned((sides,), SIDE),
        slots=slots,
    )
    forest.run_keys[:, :run_width] = GREATEST
    return forest


def resize(forest: Forest, *, run_entries: int, tree_nodes: int, subindexes: int) -> Forest:
    """Return the forest with at least so much room per slot; itself if it has that already."""
    slots = forest.slots
    room = forest.run_keys.shape[1] - 2 * slots.run_width
    if run_entries <= room and tree_nodes <= slots.nodes and subindexes <= slots.subindexes:
        return forest
    grown = make_forest(
        slots._replace(
            nodes=max(tree_nodes, slots.nodes), subindexes=max(subindexes, slots.subindexes)
        ),
        sides=len(forest.sides),
        run_entries=max(run_entries, room),
        tree_width=tree_width(forest),
    )
    trees = len(forest.tree_depth)
    most = {
        "pool": int(forest.tree_nodes[:, 0].max()),
        "subindexes": int(forest.tree_subindexes.max()),
    }
    for name in set(Forest._fields) - {"slots"}:
        old, new = getattr(forest, name), getattr(grown, name)
        if name in most:
            old, new = (array.reshape(trees, -1, array.shape[1]) for array in (old, new))
            new[:, : most[name]] = old[:, : most[name]]
        elif old.ndim == 2:
            new[:, : old.shape[1]] = old
        else:
            new[...] = old
    return grown


@inlined
def tree_width(forest: Forest) -> int:
    """Return the entries per leaf and children per node of the mutable trees."""
    return int((forest.pool.shape[1] - KEYS) >> 1)


@inlined
def first_node(forest: Forest, slot: int) -> int:
    """Return the row of `Forest.pool` where the nodes of a tree slot begin."""
    return slot * forest.slots.nodes


@inlined
def subindex_row(forest: Forest, slot: int, subindex: int) -> int:
    """Return the row of `Forest.subindexes` that describes a subindex."""
    return slot * forest.slots.subindexes + subindex


@inlined
def run_slot(forest: Forest, side: int, place: int) -> int:
    """Return the slot of the live run at *place* in the ring, oldest first."""
    runs = forest.slots.runs
    slot = forest.sides[side]["run_first"] + place
    return int(side * runs + (slot if slot < runs else slot - runs))


@inlined
def tree_slot(forest: Forest, side: int, place: int) -> int:
    """Return the slot of the live mutable tree at *place* in the ring, oldest first."""
    trees = forest.slots.trees
    slot = forest.sides[side]["tree_first"] + place
    return int(side * trees + (slot if slot < trees else slot - trees))


@inlined
def active_tree(forest: Forest, side: int) -> int:
    """Return the slot of the tree that takes what is inserted."""
    return tree_slot(forest, side, forest.sides[side]["tree_count"] - 1)
