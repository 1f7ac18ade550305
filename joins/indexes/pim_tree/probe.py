"""Range queries over all live trees of a side (PIM-Tree, appendix A.2, Algorithm 2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.pim_tree.immutable import count_less, greatest_key
from joins.indexes.pim_tree.layout import (
    DEPTH,
    HEIGHT,
    KEYS,
    LENGTH,
    LOCK,
    NEXT,
    NONE,
    RING_RUNS,
    RING_TREES,
    ROOT,
    RUN_FIRST,
    SIZE,
    TREE_COUNT,
    TREE_FIRST,
    Forest,
)
from joins.indexes.pim_tree.mutable import find_leaf, first_node, subindex_row, tree_width
from joins.machine.atomics import lock, unlock
from joins.machine.compiling import inlined
from joins.matches import MatchBuffer, add_match
from joins.work import ATOMICS, COMPARISONS


class Sought(NamedTuple):
    """What a tuple looks for.

    Attributes
    ----------
    low, high
        The keys, both ends included.
    start, stop
        The positions: *start* to *stop* - 1.
    row
        Its row of the output.
    """

    low: int
    high: int
    start: int
    stop: int
    row: int


@inlined
def run_slot(forest: Forest, side: int, place: int) -> int:
    """Return the slot of the live run at *place* in the ring, oldest first."""
    runs = forest.ring[RING_RUNS]
    slot = forest.sides[side, RUN_FIRST] + place
    return side * runs + (slot if slot < runs else slot - runs)


@inlined
def tree_slot(forest: Forest, side: int, place: int) -> int:
    """Return the slot of the live mutable tree at *place* in the ring, oldest first."""
    trees = forest.ring[RING_TREES]
    slot = forest.sides[side, TREE_FIRST] + place
    return side * trees + (slot if slot < trees else slot - trees)


@inlined
def active_tree(forest: Forest, side: int) -> int:
    """Return the slot of the tree that takes what is inserted."""
    return tree_slot(forest, side, forest.sides[side, TREE_COUNT] - 1)


@inlined
def probe_run(
    forest: Forest,
    slot: int,
    begin: int,
    sought: Sought,
    output: MatchBuffer,
    counters: np.ndarray,
) -> None:
    """Report what a run holds from place *begin* on, that of the least key sought."""
    place = begin
    entries = forest.run_shape[slot, LENGTH]
    while place < entries and forest.run_keys[slot, place] <= sought.high:
        position = forest.run_positions[slot, place]
        if sought.start <= position < sought.stop:
            add_match(output, sought.row, position)
        place += 1
    counters[COMPARISONS] += place - begin + (place < entries)


@inlined
def probe_tree(
    forest: Forest,
    run: int,
    slot: int,
    subindex: int,
    leaf: int,
    sought: Sought,
    output: MatchBuffer,
    counters: np.ndarray,
    concurrent: bool,
) -> None:
    """Report what a mutable tree holds, from *subindex* on, that of the least key sought.

    So is *leaf* where it is known, or else `NONE`; the work is that of a search for it in any case.
    Leaves are followed from one subindex to the next as long as its range begins below the
    greatest. With *concurrent* a subindex is read under its lock, and the next one's is taken
    before this one's is given back.
    """
    pool, low, high = forest.pool, sought.low, sought.high
    width, base = tree_width(forest), first_node(forest, slot)
    first, line = subindex, subindex_row(forest, slot, subindex)
    depth = forest.tree_state[slot, DEPTH]
    if concurrent:
        lock(forest.subindexes, line, LOCK)
    root, height = forest.subindexes[line, ROOT], forest.subindexes[line, HEIGHT]
    leaf = find_leaf(forest, slot, root, height, low) if leaf == NONE else leaf
    counters[COMPARISONS] += height * width
    # Entries with lesser keys can only be in the first leaf.
    at = count_less(pool, base + leaf, KEYS, width, low)
    scanned = width
    below = True
    while below:
        size = pool[base + leaf, SIZE]
        while at < size and pool[base + leaf, KEYS + at] <= high:
            position = pool[base + leaf, KEYS + width + at]
            if sought.start <= position < sought.stop:
                add_match(output, sought.row, position)
            at += 1
        scanned += at
        below = at == size
        leaf = pool[base + leaf, NEXT]
        at = 0
        if leaf == NONE:
            break
        if below and leaf == subindex + 1:  # the first leaf of the next subindex
            if greatest_key(forest, run, depth, subindex) >= high:
                break
            subindex += 1
            if concurrent:
                lock(forest.subindexes, line + 1, LOCK)
                unlock(forest.subindexes, line, LOCK)
            line += 1
    counters[COMPARISONS] += scanned
    if concurrent:
        unlock(forest.subindexes, line, LOCK)
        counters[ATOMICS] += 2 * (1 + subindex - first)
