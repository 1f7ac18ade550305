"""What B-chain, IB-chain, IM-Tree and PIM-Tree have in common: a forest, and how it is used."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from joins.indexes.columns import column, key_dtype, keys_column, window_columns
from joins.indexes.pim_tree.index_kernels import insert_entries, probe_entries
from joins.indexes.pim_tree.layout import (
    ENTRIES,
    HORIZON,
    LENGTH,
    NEXT_POSITION,
    RING_TREES,
    RUN_COUNT,
    SLOT_NODES,
    TREE_COUNT,
    Forest,
    make_forest,
    nodes_room,
    ordered,
    resize,
)
from joins.indexes.pim_tree.mutable import clear_tree
from joins.indexes.pim_tree.probe import active_tree, run_slot, tree_slot
from joins.machine.memory import aligned
from joins.machine.stops import DONE, MAINTAIN
from joins.matches import MatchBuffer, ProbeResult, find_matches
from joins.state import State, Stateful
from joins.work import COUNTERS, NO_WORK, Work

WIDTH = 32
"""Entries per leaf and children per node, of both kinds of trees: four cache lines of keys."""

_WIDTH_MIN = 4
_FIRST_ENTRIES = 64
"""Entries that there is room for at first; all arrays grow when they must."""


class ForestIndex(Stateful, ABC):
    """Keys and stream positions of each side of a join, in immutable and mutable trees.

    Parameters
    ----------
    sides
        Streams that are indexed: 1, or 2 for a join of two streams.
    dtype
        The keys': int64 or float64.
    run_width, tree_width
        Entries per leaf and children per node of the immutable and of the mutable trees, at least
        4; *tree_width* even.
    """

    state: ClassVar[tuple[str, ...]] = ("forest",)

    def __init__(
        self,
        *,
        sides: int,
        dtype: Any,
        runs: int,
        trees: int,
        run_width: int,
        tree_width: int,
    ) -> None:
        for name, width in (("run_width", run_width), ("tree_width", tree_width)):
            if width < _WIDTH_MIN or width % 2:
                raise ValueError(f"{name} is {width}, must be even and at least {_WIDTH_MIN}")
        if sides not in (1, 2):
            raise ValueError(f"{sides} sides: a join has one (itself) or two")
        self.dtype = key_dtype(dtype, type(self).__name__)
        self.forest: Forest = make_forest(
            sides=sides,
            runs=runs,
            trees=trees,
            run_entries=_FIRST_ENTRIES,
            tree_nodes=nodes_room(_FIRST_ENTRIES, 1, tree_width),
            subindexes=1,
            run_width=run_width,
            tree_width=tree_width,
        )
        self._tree_width = tree_width
        for slot in range(sides * trees):
            clear_tree(self.forest, slot, 1, 0)
        for side in range(sides):
            self.forest.sides[side, TREE_COUNT] = 1
            self._begin(side)

    @abstractmethod
    def _begin(self, side: int) -> None:
        """Set the live runs and the limit of an empty side."""

    @abstractmethod
    def maintain(self, side: int) -> Work:
        """Do what is due when the active tree has reached its limit: merge, or archive it."""

    def __len__(self) -> int:
        return sum(self.entries(side) for side in range(len(self.forest.sides)))

    def entries(self, side: int) -> int:
        """Return how many entries a side holds, expired ones that are still there included."""
        forest = self.forest
        in_runs = sum(
            forest.run_shape[run_slot(forest, side, k), LENGTH]
            for k in range(forest.sides[side, RUN_COUNT])
        )
        in_trees = sum(
            forest.tree_state[tree_slot(forest, side, k), ENTRIES]
            for k in range(forest.sides[side, TREE_COUNT])
        )
        return int(in_runs + in_trees)

    def live(self, side: int) -> int:
        """Return how many positions of a side have not expired, missing ones included."""
        state = self.forest.sides[side]
        return max(1, int(state[NEXT_POSITION] - state[HORIZON]))

    def insert(self, keys: np.ndarray, positions: np.ndarray, *, side: int = 0) -> Work:
        """Insert entries one after the other; *positions* ascend from one call to the next.

        Raise :exc:`ValueError` when a key is NaN, or a position is not greater than the last.
        """
        keys = ordered(keys_column(keys, self.dtype, "keys to insert"))
        positions = column(positions, np.int64, "positions to insert", len(keys))
        self._check_ascending(positions, side)
        counters = np.zeros(len(COUNTERS), np.int64)
        work, done = NO_WORK, 0
        while True:
            done, why = insert_entries(self.forest, side, keys, positions, done, counters)
            if why == DONE:
                return work + Work.from_counters(counters)
            work += self.mend(side, why)

    def _check_ascending(self, positions: np.ndarray, side: int) -> None:
        before = np.concatenate([[self.forest.sides[side, NEXT_POSITION] - 1], positions])
        if (positions <= before[:-1]).any():
            row = int((positions <= before[:-1]).argmax())
            raise ValueError(
                f"row {row}: position {positions[row]} follows {before[row]}; positions must ascend"
            )

    def mend(self, side: int, why: int) -> Work:
        """Do what a kernel stopped for: maintain the side, or make room for nodes."""
        if why == MAINTAIN:
            return self.maintain(side)
        nodes = int(self.forest.ring[SLOT_NODES])
        self.reserve(tree_nodes=nodes + nodes // 2)
        return NO_WORK

    def probe(
        self,
        lo: np.ndarray,
        hi: np.ndarray,
        *,
        start: np.ndarray | None = None,
        stop: np.ndarray | None = None,
        enumerate: bool = False,
        side: int = 0,
    ) -> ProbeResult:
        """Find for every probe the entries whose key is in its range and position in its window.

        Parameters
        ----------
        lo, hi
            The ranges' ends, both inclusive; a range with lo > hi or a NaN end is empty.
        start, stop
            int64, probe i sees positions start[i] to stop[i] - 1; None sees all that have not
            expired.
        enumerate
            List the positions found too.
        """
        low, high = ordered_ranges(lo, hi, self.dtype)
        if start is None:
            start = np.full(len(low), self.forest.sides[side, HORIZON])
        start, stop = window_columns(start, stop, len(low))

        def step(row: int, buffer: MatchBuffer, counters: np.ndarray) -> int:
            return probe_entries(self.forest, side, low, high, start, stop, row, buffer, counters)

        return find_matches(step, len(low), enumerate=enumerate)

    def expire(self, before: int, *, side: int = 0) -> Work:
        """Let positions less than *before* go; they leave at the next merge, or with their tree."""
        state = self.forest.sides[side]
        state[HORIZON] = max(state[HORIZON], before)
        return NO_WORK

    def reserve(self, *, run_entries: int = 0, tree_nodes: int = 0, subindexes: int = 0) -> None:
        """Make room for so much in every slot."""
        self.forest = resize(
            self.forest, run_entries=run_entries, tree_nodes=tree_nodes, subindexes=subindexes
        )

    def restore(self, state: State) -> None:
        """Go back to a state that `snapshot` returned; arrays begin at cache lines again."""
        super().restore(state)
        self.forest = Forest(*map(_aligned_copy, self.forest))

    def active_entries(self, side: int) -> int:
        """Return how many entries the tree holds that takes what is inserted."""
        return int(self.forest.tree_state[active_tree(self.forest, side), ENTRIES])

    @property
    def _trees(self) -> int:
        return int(self.forest.ring[RING_TREES])


def _aligned_copy(values: np.ndarray) -> np.ndarray:
    copy = aligned(values.shape, values.dtype)
    copy[...] = values
    return copy


def ordered_ranges(lo: Any, hi: Any, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
    """Return ranges of keys as whole numbers; a range with a NaN end becomes empty."""
    lo = column(lo, dtype, "lo")
    hi = column(hi, dtype, "hi", len(lo))
    if dtype.kind == "f":
        nan = np.isnan(lo) | np.isnan(hi)
        if nan.any():
            lo, hi = np.where(nan, 1.0, lo), np.where(nan, 0.0, hi)
    return ordered(lo), ordered(hi)
