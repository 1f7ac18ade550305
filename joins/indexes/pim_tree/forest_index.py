"""What B-chain, IB-chain, IM-Tree and PIM-Tree have in common: a forest, and how it is used.

Below the class are its kernels: range queries over all live trees of a side (PIM-Tree, appendix
A.2, Algorithm 2), and merging a mutable tree into an immutable one (sections 3.2 and 3.3.1).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, ClassVar

import numpy as np

from joins.indexes.index import NONE, Ranges, Sought, check_ranges
from joins.indexes.pim_tree.forest import (
    HEIGHT,
    KEYS,
    LOCK,
    NEXT,
    ROOM_NODES,
    ROOT,
    SIZE,
    Forest,
    Sizes,
    active_tree,
    first_node,
    make_forest,
    nodes_room,
    resize,
    run_slot,
    subindex_row,
    tree_slot,
    tree_width,
)
from joins.indexes.pim_tree.immutable_tree import (
    build_coarse,
    build_inner,
    descend,
    greatest_key,
    nodes_at,
    place_in_leaf,
)
from joins.indexes.pim_tree.mutable_tree import (
    NOT_FOUND,
    FoundLeaf,
    clear_tree,
    fetch_node,
    find_leaf,
    insert_into_subindex,
    leaf_still_right,
    route,
)
from joins.indexes.windows.window_tuples import check_tuples
from joins.machine.compiling import inlined, kernel
from joins.machine.dispatch import DONE, MAINTAIN, NO_ROOM
from joins.machine.instructions import lock, unlock
from joins.machine.lanes import count_less
from joins.machine.memory import aligned
from joins.matches import MatchBuffer, ProbeResult, add_match, begin_row, commit_row, find_matches
from joins.state import State, Stateful
from joins.work import ATOMICS, BYTES_COPIED, COMPARISONS, ENTRY_BYTES, NO_WORK, Work, new_counters

WIDTH = 32
"""Entries per leaf and children per node, of both kinds of trees: four cache lines of keys."""

_WIDTH_MIN = 4
_FIRST_ENTRIES = 64
"""Entries that there is room for at first; all arrays grow when they must."""


class ForestIndex(Stateful, ABC):
    """Keys and stream positions of each side of a join, in immutable and mutable trees.

    It is a `joins.indexes.index.Index` over one predicate, whose methods have a side, too. When it
    is time to merge, or to archive a tree, `insert` does so.

    Parameters
    ----------
    sides
        Streams that are indexed: 1, or 2 for a join of two streams.
    run_width, tree_width
        Entries per leaf and children per node of the immutable and of the mutable trees, even and
        at least 4.
    """

    state: ClassVar[tuple[str, ...]] = ("forest",)

    def __init__(
        self, *, sides: int, runs: int, trees: int, run_width: int, tree_width: int
    ) -> None:
        for name, width in (("run_width", run_width), ("tree_width", tree_width)):
            if width < _WIDTH_MIN or width % 2:
                raise ValueError(f"{name} is {width}, must be even and at least {_WIDTH_MIN}")
        if sides not in (1, 2):
            raise ValueError(f"{sides} sides: a join has one (itself) or two")
        nodes = nodes_room(_FIRST_ENTRIES, 1, tree_width)
        self.forest: Forest = make_forest(
            Sizes(runs, trees, run_width, nodes, subindexes=1),
            sides=sides,
            run_entries=_FIRST_ENTRIES,
            tree_width=tree_width,
        )
        for slot in range(sides * trees):
            clear_tree(self.forest, slot, 1, 0)
        self.forest.sides["tree_count"] = self.forest.sides["limit"] = 1

    @abstractmethod
    def maintain(self, side: int) -> Work:
        """Do what is due when the active tree has reached its limit: merge, or archive it."""

    def __len__(self) -> int:
        return sum(self.entries(side) for side in range(len(self.forest.sides)))

    def entries(self, side: int) -> int:
        """Return how many entries a side holds, expired ones that are still there included."""
        forest = self.forest
        in_runs = sum(
            forest.run_length[run_slot(forest, side, k)]
            for k in range(forest.sides[side]["run_count"])
        )
        in_trees = sum(
            forest.tree_entries[tree_slot(forest, side, k), 0]
            for k in range(forest.sides[side]["tree_count"])
        )
        return int(in_runs + in_trees)

    def live(self, side: int) -> int:
        """Return how many positions of a side have not expired, missing ones included."""
        state = self.forest.sides[side]
        return max(1, int(state["next_position"] - state["horizon"]))

    def insert(
        self, columns: Sequence[np.ndarray], positions: np.ndarray, *, side: int = 0
    ) -> Work:
        """Insert tuples one after the other, given the column of their keys.

        Raise what `check_tuples` raises, and insert nothing then.
        """
        last = np.array([self.forest.sides[side]["next_position"] - 1])
        (keys,), positions = check_tuples(1, columns, positions, last)
        counters = new_counters()
        work, done = NO_WORK, 0
        while True:
            done, why = insert_entries(self.forest, side, keys, positions, done, counters)
            if why == DONE:
                return work + Work.from_counters(counters)
            work += self.mend(side, why)

    def mend(self, side: int, why: int) -> Work:
        """Do what a kernel stopped for: maintain the side, or make room for nodes."""
        if why == MAINTAIN:
            return self.maintain(side)
        nodes = int(self.forest.slots.nodes)
        self.reserve(tree_nodes=nodes + nodes // 2)
        return NO_WORK

    def probe(self, ranges: Ranges, *, enumerate: bool = False, side: int = 0) -> ProbeResult:
        """Find matches as `Index.probe` says, none of them expired.

        Raise :exc:`ValueError` when the range is negated: it has no least key.
        """
        check_ranges(ranges, 1)
        if ranges.negated[0]:
            raise ValueError("the range is negated; a forest finds the keys inside a range")
        live = np.maximum(ranges.start, self.forest.sides[side]["horizon"])
        step = partial(_probe_entries, self.forest, side, ranges._replace(start=live))
        return find_matches(step, len(live), enumerate=enumerate)

    def expire(self, before: int, *, side: int = 0) -> Work:
        """Mark positions below *before* as expired; they leave at a merge, or with their tree."""
        state = self.forest.sides[side]
        state["horizon"] = max(state["horizon"], before)
        return NO_WORK

    def reserve(self, *, run_entries: int = 0, tree_nodes: int = 0, subindexes: int = 0) -> None:
        """Make room for so much in every slot."""
        self.forest = resize(
            self.forest, run_entries=run_entries, tree_nodes=tree_nodes, subindexes=subindexes
        )

    def restore(self, state: State) -> None:
        """Go back to a state that `snapshot` returned; arrays begin at cache lines again."""
        super().restore(state)
        arrays: Any = {
            name: _aligned_copy(value)
            for name, value in self.forest._asdict().items()
            if name != "slots"
        }
        self.forest = self.forest._replace(**arrays)

    def active_entries(self, side: int) -> int:
        """Return how many entries the tree holds that takes what is inserted."""
        return int(self.forest.tree_entries[active_tree(self.forest, side), 0])


def _aligned_copy(values: np.ndarray) -> np.ndarray:
    copy = aligned(values.shape, values.dtype)
    copy[...] = values
    return copy


@inlined
def probe_run(
    forest: Forest, slot: int, begin: int, sought: Sought, output: MatchBuffer, counters: np.ndarray
) -> None:
    """Report what a run holds from place *begin* on, that of the least key sought."""
    place = begin
    entries = forest.run_length[slot]
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
    found: FoundLeaf,
    sought: Sought,
    output: MatchBuffer,
    counters: np.ndarray,
    concurrent: bool,
) -> None:
    """Report what a mutable tree holds, from *subindex* on, that of the least key sought.

    *found* is its leaf, if it was looked up; the work is that of a search for it in any case.
    Leaves are followed from one subindex to the next as long as its range begins below the
    greatest. With *concurrent* a subindex is read under its lock, and the next one's is taken
    before this one's is released.
    """
    pool, low, high = forest.pool, sought.low, sought.high
    width, base = tree_width(forest), first_node(forest, slot)
    first, line = subindex, subindex_row(forest, slot, subindex)
    depth = forest.tree_depth[slot]
    if concurrent:
        lock(forest.subindexes, line, LOCK)
    root, height = forest.subindexes[line, ROOT], forest.subindexes[line, HEIGHT]
    leaf = leaf_still_right(forest, line, found)
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


@kernel
def merge_runs(
    forest: Forest, source: int, tree: int, target: int, horizon: int, counters: np.ndarray
) -> None:
    """Write what run *source* and mutable *tree* have from position *horizon* on to run *target*.

    Neither source changes. A *source* of `NONE` holds nothing. Where keys tie, those of the
    run come first.
    """
    keys, positions, pool = forest.run_keys, forest.run_positions, forest.pool
    entries = forest.run_length[source] if source != NONE else 0
    width, base = tree_width(forest), first_node(forest, tree)
    old, written, leaf = 0, 0, 0
    while leaf != NONE:
        node = base + leaf
        # The next leaf may be anywhere, and the processor cannot foresee that it will be read.
        leaf = pool[node, NEXT]
        if leaf != NONE:
            fetch_node(forest, base + leaf)
        for i in range(KEYS, KEYS + pool[node, SIZE]):
            key = pool[node, i]
            while old < entries and keys[source, old] <= key:
                # Written in any case, and overwritten by the next when it has expired: which of
                # the two is not to be foreseen, and a branch would be guessed wrong.
                keys[target, written] = keys[source, old]
                positions[target, written] = positions[source, old]
                written += positions[source, old] >= horizon
                old += 1
            keys[target, written] = key
            positions[target, written] = pool[node, i + width]
            written += pool[node, i + width] >= horizon
    while old < entries:
        keys[target, written] = keys[source, old]
        positions[target, written] = positions[source, old]
        written += positions[source, old] >= horizon
        old += 1
    counters[COMPARISONS] += entries
    counters[BYTES_COPIED] += ENTRY_BYTES * written
    build_inner(forest, target, written, counters)
    build_coarse(forest, target)


@kernel
def build_next(
    forest: Forest, side: int, tree: int, insertion_depth: int, horizon: int, counters: np.ndarray
) -> None:
    """Merge the active tree of a side into its next run, and empty *tree* for what comes then.

    Entries below position *horizon* are left behind. There are two run slots: one is read, the
    other is written. Unless it is *tree*, the active tree stays as it is.
    """
    source, target = run_slot(forest, side, 0), run_slot(forest, side, 1)
    merge_runs(forest, source, active_tree(forest, side), target, horizon, counters)
    depth, subindexes = nodes_at(forest, target, insertion_depth)
    clear_tree(forest, tree, subindexes, depth)


@kernel
def insert_entries(
    forest: Forest,
    side: int,
    keys: np.ndarray,
    positions: np.ndarray,
    begin: int,
    counters: np.ndarray,
) -> tuple[int, int]:
    """Insert entries from row *begin* on; return the row it stopped at, and why."""
    tree = active_tree(forest, side)
    run = run_slot(forest, side, 0)
    for row in range(begin, len(keys)):
        if forest.tree_entries[tree, 0] >= forest.sides[side].limit:
            return row, MAINTAIN
        if forest.tree_nodes[tree, 0] + ROOM_NODES > forest.slots.nodes:
            return row, NO_ROOM
        subindex = route(forest, run, tree, keys[row], counters)
        insert_into_subindex(forest, tree, subindex, NOT_FOUND, keys[row], positions[row], counters)
        forest.tree_entries[tree, 0] += 1
        forest.sides[side].next_position = positions[row] + 1
    return len(keys), DONE


@kernel
def _probe_entries(
    forest: Forest, side: int, ranges: Ranges, begin: int, output: MatchBuffer, counters: np.ndarray
) -> int:
    """Probe all live trees of a side, row by row from *begin* on; return the row it came to."""
    low, high = ranges.low[0], ranges.high[0]
    for row in range(begin, len(low)):
        begin_row(output, counters)
        if low[row] > high[row]:
            continue
        key, subindex = low[row], 0
        sought = Sought(key, high[row], ranges.start[row], ranges.stop[row], row)
        run = run_slot(forest, side, 0)
        depth = forest.tree_depth[active_tree(forest, side)]
        for k in range(forest.sides[side].run_count):
            run = run_slot(forest, side, k)
            subindex = descend(forest, run, 0, 0, depth, key, counters)
            levels = forest.run_levels[run]
            leaf = descend(forest, run, subindex, depth, levels, key, counters)
            place = place_in_leaf(forest, run, leaf, key, counters)
            probe_run(forest, run, place, sought, output, counters)
        for k in range(forest.sides[side].tree_count):
            tree = tree_slot(forest, side, k)
            probe_tree(
                forest, run, tree, subindex, NOT_FOUND, sought, output, counters, concurrent=False
            )
        if not commit_row(output, row, counters):
            return row
    return len(low)
