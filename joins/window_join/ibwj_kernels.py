"""The index-based window join, tuple by tuple, over the trees of a forest (PIM-Tree, section 2.2).

One kernel serves B-chain, IB-chain, IM-Tree and PIM-Tree: they differ in which trees are live, and
in what is done when the active one is full.
"""

from __future__ import annotations

import numpy as np

from joins.indexes.pim_tree.layout import (
    ENTRIES,
    HORIZON,
    LIMIT,
    NEXT_POSITION,
    NODES,
    ROOM_NODES,
    RUN_COUNT,
    SLOT_NODES,
    TREE_COUNT,
    Forest,
)
from joins.indexes.pim_tree.lookahead import (
    PLACES,
    READ,
    WRITTEN,
    WRITTEN_LEAF,
    leaf_found,
    look_up_block,
    read_leaf,
)
from joins.indexes.pim_tree.mutable import insert_into_subindex
from joins.indexes.pim_tree.probe import (
    Sought,
    active_tree,
    probe_run,
    probe_tree,
    run_slot,
    tree_slot,
)
from joins.indexes.pim_tree.status import DONE, MAINTAIN, NO_NODES, NO_OUTPUT
from joins.machine.compiling import inlined, kernel
from joins.matches import MatchBuffer, begin_row, commit_row
from joins.window_join.rows import Rows
from joins.work import COMPARISONS, MATCHES

BLOCK = 16
"""Tuples whose cache lines are asked for together: enough to keep memory busy, few enough that the
lines are still there when their turn comes."""


@inlined
def _block_end(forest: Forest, begin: int, end: int) -> int:
    """Return where the block of *begin* ends: no side may need maintenance within a block."""
    room = end - begin
    for side in range(len(forest.sides)):
        tree = active_tree(forest, side)
        room = min(room, forest.sides[side, LIMIT] - forest.tree_state[tree, ENTRIES])
    return begin + max(1, min(room, BLOCK))


@kernel
def join_rows(
    forest: Forest,
    rows: Rows,
    begin: int,
    end: int,
    self_join: bool,
    output: MatchBuffer,
    enumerating: bool,
    places: np.ndarray,
    counters: np.ndarray,
) -> tuple[int, int]:
    """Join the rows from *begin* on; return the row it stopped at, and why.

    Parameters
    ----------
    enumerating
        Whether matches must find room in *output*.
    places
        Working memory of `BLOCK` rows, see `make_places`.
    """
    pool_nodes = forest.ring[SLOT_NODES]
    while begin < end:
        block = _block_end(forest, begin, end)
        tree = active_tree(forest, rows.side[begin])
        if forest.tree_state[tree, ENTRIES] >= forest.sides[rows.side[begin], LIMIT]:
            return begin, MAINTAIN
        look_up_block(
            forest, rows.side, rows.key, rows.low, begin, block, self_join, places, counters
        )
        for row in range(begin, block):
            own = rows.side[row]
            tree = active_tree(forest, own)
            if forest.tree_state[tree, NODES] + ROOM_NODES > pool_nodes:
                return row, NO_NODES
            probed = own if self_join else 1 - own
            compared = counters[COMPARISONS]
            begin_row(output, counters)
            _probe(forest, rows, row, probed, places[row - begin], output, counters)
            if not commit_row(output, row, counters):
                # What will be looked up once more is not counted twice.
                look_up_block(
                    forest, rows.side, rows.key, rows.low, row, block, self_join, places, counters
                )
                counters[COMPARISONS] = 2 * compared - counters[COMPARISONS]
                return row, NO_OUTPUT
            counters[MATCHES] += output.matches[row]
            forest.sides[probed, HORIZON] = rows.start[row]
            written = places[row - begin, WRITTEN]
            insert_into_subindex(
                forest,
                tree,
                written,
                leaf_found(forest, tree, written, places[row - begin], WRITTEN_LEAF),
                rows.key[row],
                rows.position[row],
                counters,
            )
            forest.tree_state[tree, ENTRIES] += 1
            forest.sides[own, NEXT_POSITION] = rows.position[row] + 1
        begin = block
    return end, DONE


@inlined
def _probe(
    forest: Forest,
    rows: Rows,
    row: int,
    probed: int,
    places: np.ndarray,
    output: MatchBuffer,
    counters: np.ndarray,
) -> None:
    """Look up the matches of a row in all live trees of the side it probes."""
    low, high = rows.low[row], rows.high[row]
    if low > high:
        return
    sought = Sought(low, high, rows.start[row], rows.stop[row], row)
    run = run_slot(forest, probed, 0)
    for k in range(forest.sides[probed, RUN_COUNT]):
        run = run_slot(forest, probed, k)
        probe_run(forest, run, places[PLACES + k], sought, output, counters)
    for k in range(forest.sides[probed, TREE_COUNT]):
        tree = tree_slot(forest, probed, k)
        leaf = leaf_found(forest, tree, places[READ], places, read_leaf(forest, k))
        probe_tree(forest, run, tree, places[READ], leaf, sought, output, counters, False)
