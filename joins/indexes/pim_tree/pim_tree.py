"""IM-Tree and PIM-Tree: new tuples go to a mutable tree, which is merged into an immutable one.

PIM-Tree, section 3. The mutable component is cut into subindexes, one for each node of the
immutable tree at the insertion depth; merging moves their borders after the tuples' distribution.
With insertion depth 0 there is one node and one subindex, an ordinary B+-tree: that is the IM-Tree.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from joins.indexes.index import check_least
from joins.indexes.pim_tree.forest import active_tree, nodes_room, run_slot, tree_width
from joins.indexes.pim_tree.forest_index import WIDTH, ForestIndex, build_next
from joins.work import Work, new_counters

MERGE_RATIO = 1 / 8
INSERTION_DEPTH = 2
"""For windows of 2^20 tuples; `python -m benchmarks.pim_tree --sweep` tries others.

A merge reads and writes in order, 7 to 11 ns an entry, and a mutable component that outgrows the
cache costs every tuple more than merging four times as often does.
"""
SHARED_MERGE_RATIO = 1.0
"""For the paper's threads, which share the index: a merge stalls all of them, so the fewest merges
are best (Figure 9a)."""
THREADS_MERGE_RATIO = 1 / 4
"""For real threads: one and two of them took 0.65 to 0.95 times as long as with 1, in windows of
2^16 and 2^20; ``--sweep`` tries others."""


class PimTree(ForestIndex):
    """Partitioned In-memory Merge-Tree.

    Parameters
    ----------
    merge_ratio
        m, in (0, 1]: a merge is due when the mutable component holds m times the window. The window
        is what has not expired, so that windows of time, which grow and shrink, need no length.
    insertion_depth
        D_I, from 0, which makes it an IM-Tree. If the tree is less deep, its deepest inner level
        is taken.
    """

    state: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        *,
        sides: int = 1,
        merge_ratio: float = MERGE_RATIO,
        insertion_depth: int = INSERTION_DEPTH,
        run_width: int = WIDTH,
        tree_width: int = WIDTH,
    ) -> None:
        if not 0 < merge_ratio <= 1:
            raise ValueError(f"merge_ratio is {merge_ratio}, must be above 0 and at most 1")
        check_least(0, insertion_depth=insertion_depth)
        self.merge_ratio = merge_ratio
        self.insertion_depth = insertion_depth
        super().__init__(sides=sides, runs=2, trees=2, run_width=run_width, tree_width=tree_width)
        self.forest.sides["run_count"] = 1

    def merge_limit(self, live: int) -> int:
        """Return the entries of the mutable component at which a merge is due."""
        return max(1, math.ceil(self.merge_ratio * live))

    def make_room(self, merged: int, inserted: int) -> None:
        """Make room for *merged* entries after a merge and *inserted* until the next one."""
        width = int(self.forest.slots.run_width)
        leaves = -(-merged // width)
        subindexes = max(1, min(width**self.insertion_depth, -(-leaves // width)))
        self.reserve(
            run_entries=merged,
            subindexes=subindexes,
            tree_nodes=nodes_room(inserted, subindexes, tree_width(self.forest)),
        )

    def maintain(self, side: int) -> Work:
        """Merge the mutable component of a side into the immutable one."""
        limit = self.merge_limit(self.live(side))
        self.make_room(min(self.live(side), self.entries(side)), limit)
        counters = new_counters()
        state, tree = self.forest.sides[side], active_tree(self.forest, side)
        build_next(self.forest, side, tree, self.insertion_depth, int(state["horizon"]), counters)
        state["run_first"] = 1 - state["run_first"]
        state["limit"] = limit
        return Work.from_counters(counters)

    def spread(self, keys: np.ndarray) -> np.ndarray:
        """Return how many of *keys* would go to each subindex of the first side."""
        forest = self.forest
        run, tree = run_slot(forest, 0, 0), active_tree(forest, 0)
        depth, subindexes = forest.tree_depth[tree], forest.tree_subindexes[tree]
        if depth == 0:
            return np.array([len(keys)])
        begin, end = forest.level_starts[run, depth - 1 : depth + 1]
        place = np.searchsorted(forest.run_inner[run, begin:end], keys)
        return np.bincount(place, minlength=subindexes)
