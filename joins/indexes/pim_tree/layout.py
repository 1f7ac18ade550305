"""Where the trees of a join lie: a few arrays of int64, shared by all its sides.

Whatever the structure (B-chain, IB-chain, IM-Tree, PIM-Tree), a side of a join holds some immutable
trees and some mutable ones, and the last mutable one takes what is inserted. Both kinds lie in
rings of slots, so that one set of kernels serves all structures and both sides, and nothing is
allocated while tuples flow. Keys are whole numbers in their order (see `ordered`).

An immutable tree (a CSS-tree) is a sorted column and its inner nodes, breadth first, root first.
Slot i of a node holds the greatest key below its child i, and INF for the last child of a level and
beyond, so a search counts the smaller slots of a node and never leaves the tree.

A mutable tree is a list of subindexes over ascending ranges of keys, one per node of the immutable
tree at the insertion depth, or a single one. Each is a B+-tree that is only inserted into. Their
nodes share a pool; the leaves of all of them form one list. A node is a row: its size, the next
leaf, keys filled up with INF, and positions or children. Leaf i is the first of subindex i.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.machine.memory import aligned, own_lines

INF = np.iinfo(np.int64).max
NONE = -1

LENGTH, LEVELS, LEVEL_STARTS = 0, 1, 2
"""Places in a row of `Forest.run_shape`: entries, inner levels, where each level begins."""
LEVELS_MAX = 32

LOCK, ROOT, HEIGHT, SPLITS = range(4)
"""Places in a row of `Forest.subindexes`; a row fills a cache line, so that locks do not share.
`SPLITS` changes whenever a node is split: until then each key's leaf is the one it was."""
SUBINDEX_WORDS = 8

SIZE, NEXT, KEYS = 0, 1, 8
"""Places in a node; keys begin at a cache line of their own."""

SUBINDEXES, DEPTH, NODES, ENTRIES = 0, 1, 8, 16
"""Places in a row of `Forest.tree_state`: subindexes, and the levels of the immutable tree that
lead to them; nodes ever used; entries. What changes with every tuple has a cache line of its own,
or each change would take what all threads read from them."""
TREE_WORDS = 24

RUN_FIRST, RUN_COUNT, TREE_FIRST, TREE_COUNT, LIMIT, HORIZON, NEXT_POSITION = range(7)
"""Places in a row of `Forest.sides`: the rings' live slots, the entries of the active tree at which
the side needs maintenance, the positions below which all are expired, and the next position."""

ROOM_NODES = LEVELS_MAX
"""Nodes that must be free before an insert: it splits every level at the most."""


class Forest(NamedTuple):
    """The arrays; runs are immutable trees. Slot k of side s is row ``s * slots + k``.

    Attributes
    ----------
    run_keys, run_positions
        Entries in key order, shape (run slots, capacity).
    run_inner
        Inner nodes, shape (run slots, room).
    run_coarse, run_fences
        int16 and int64: what is searched first, see `joins.indexes.pim_tree.coarse`; one for each
        leaf, shape (run slots, leaves).
    run_shape
        See `LENGTH`.
    pool
        Nodes of the mutable trees, shape (tree slots * nodes per slot, words).
    subindexes
        See `LOCK`; row ``slot * capacity + subindex``.
    tree_state
        See `NODES`.
    sides
        See `RUN_FIRST`; one row a side.
    ring
        Numbers that do not change, see `RING_RUNS`.
    """

    run_keys: np.ndarray
    run_positions: np.ndarray
    run_inner: np.ndarray
    run_coarse: np.ndarray
    run_fences: np.ndarray
    run_shape: np.ndarray
    pool: np.ndarray
    subindexes: np.ndarray
    tree_state: np.ndarray
    sides: np.ndarray
    ring: np.ndarray


RING_RUNS, RING_TREES, RUN_WIDTH, SLOT_NODES, SLOT_SUBINDEXES = range(5)
"""Places in `Forest.ring`: run slots and tree slots per side, entries per leaf and children per
node of a run, nodes and subindexes that a tree slot has room for."""


def inner_room(entries: int, width: int) -> int:
    """Return the words that the inner nodes over *entries* entries need."""
    words, below = 0, -(-max(entries, 1) // width)
    while below > 1:
        nodes = -(-below // width)
        words += nodes * width
        below = nodes
    return max(words, 1)


def inner_levels(entries: int, width: int) -> int:
    """Return the inner levels of an immutable tree over *entries* entries."""
    levels, below = 0, -(-max(entries, 1) // width)
    while below > 1:
        below = -(-below // width)
        levels += 1
    return levels


def nodes_room(entries: int, subindexes: int, width: int) -> int:
    """Return a number of nodes that *entries* inserts into *subindexes* subindexes stay within.

    Splitting leaves half a node on either side, so there is a leaf per half node of entries at the
    most, beside the first leaf of each subindex; and inner nodes likewise.
    """
    split = 2 * entries // width + 1
    leaves = subindexes + split
    return leaves + 2 * leaves // (width - 2) + min(split, subindexes) + 2 * ROOM_NODES


def make_forest(
    *,
    sides: int,
    runs: int,
    trees: int,
    run_entries: int,
    tree_nodes: int,
    subindexes: int,
    run_width: int,
    tree_width: int,
) -> Forest:
    """Return arrays with that many slots per side and room per slot; nothing is in them."""
    # A merge writes one entry beyond what it keeps, and the last leaf is filled up with INF.
    padded = (-(-run_entries // run_width) + 2) * run_width
    # Nodes are copied whole.
    leaves = -(-(padded // run_width) // run_width) * run_width
    forest = Forest(
        run_keys=aligned((sides * runs, padded)),
        run_positions=aligned((sides * runs, padded)),
        run_inner=aligned((sides * runs, inner_room(padded, run_width))),
        run_coarse=aligned((sides * runs, leaves), "int16"),
        run_fences=aligned((sides * runs, leaves)),
        run_shape=aligned((sides * runs, LEVEL_STARTS + LEVELS_MAX)),
        pool=aligned((sides * trees * tree_nodes, KEYS + 2 * tree_width)),
        subindexes=aligned((sides * trees * subindexes, SUBINDEX_WORDS)),
        tree_state=aligned((sides * trees, TREE_WORDS)),
        sides=aligned((sides, 8)),
        ring=own_lines(SLOT_SUBINDEXES + 1),
    )
    forest.ring[:] = runs, trees, run_width, tree_nodes, subindexes
    forest.run_keys[:, :run_width] = INF
    return forest


def resize(forest: Forest, *, run_entries: int, tree_nodes: int, subindexes: int) -> Forest:
    """Return the forest with at least so much room per slot; itself if it has that already."""
    ring = forest.ring
    sides = len(forest.sides)
    room = int(forest.run_keys.shape[1] - 2 * ring[RUN_WIDTH])
    wanted = (max(run_entries, room), max(tree_nodes, ring[SLOT_NODES]))
    if wanted == (room, ring[SLOT_NODES]) and subindexes <= ring[SLOT_SUBINDEXES]:
        return forest
    grown = make_forest(
        sides=sides,
        runs=int(ring[RING_RUNS]),
        trees=int(ring[RING_TREES]),
        run_entries=wanted[0],
        tree_nodes=int(wanted[1]),
        subindexes=max(subindexes, int(ring[SLOT_SUBINDEXES])),
        run_width=int(ring[RUN_WIDTH]),
        tree_width=(forest.pool.shape[1] - KEYS) // 2,
    )
    trees = len(forest.tree_state)
    for name in (
        "run_keys",
        "run_positions",
        "run_inner",
        "run_coarse",
        "run_fences",
        "run_shape",
        "tree_state",
        "sides",
    ):
        old = getattr(forest, name)
        getattr(grown, name)[:, : old.shape[1]] = old
    for name, count in (("pool", NODES), ("subindexes", SUBINDEXES)):
        used = int(forest.tree_state[:, count].max())
        old, new = (
            array.reshape(trees, -1, array.shape[1])
            for array in (getattr(forest, name), getattr(grown, name))
        )
        new[:, :used] = old[:, :used]
    return grown


def ordered(values: np.ndarray) -> np.ndarray:
    """Return int64 keys as they are, and float64 keys as whole numbers in the same order.

    Both zeros become one number; NaN must not occur.
    """
    if values.dtype == np.int64:
        return values
    bits = (values + 0.0).view(np.int64)  # adding 0 turns -0.0 into 0.0
    return np.where(bits < 0, bits ^ np.int64(INF), bits)
