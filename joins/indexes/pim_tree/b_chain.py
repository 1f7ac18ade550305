"""B-chain and IB-chain: a window as a chain of trees that expire whole (PIM-Tree, section 5.1).

The active tree takes what is inserted; when it holds its share of the window it is archived, in an
IB-chain as an immutable tree, and a new one begins. A chain of length L covers the window with
L - 1 archived trees, so that only they and the active one are ever searched.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from joins.codes import LEAST
from joins.indexes.index import NONE
from joins.indexes.pim_tree.forest import active_tree, nodes_room, run_slot, tree_width
from joins.indexes.pim_tree.forest_index import WIDTH, ForestIndex, merge_runs
from joins.indexes.pim_tree.mutable_tree import clear_tree
from joins.work import NO_WORK, Work, new_counters

_PATIENCE = 64
"""When archiving is not possible yet (in a growing window the active tree may lack its share, or no
slot be free), the active tree grows by at least one part in so many before the next try."""


class TreeChain(ForestIndex):
    """A chain of B+-trees (B-chain), or of immutable trees behind one B+-tree (IB-chain).

    Parameters
    ----------
    length
        Trees in the chain, the active one included; at least 2.
    immutable
        Whether trees become immutable when they are archived.
    """

    state: ClassVar[tuple[str, ...]] = ("_newest",)

    def __init__(
        self,
        *,
        sides: int = 1,
        length: int = 2,
        immutable: bool = True,
        run_width: int = WIDTH,
        tree_width: int = WIDTH,
    ) -> None:
        if length < 2:
            raise ValueError(f"a chain of length {length}: it has at least 2 trees, one active")
        self._length = length
        self._immutable = immutable
        super().__init__(
            sides=sides,
            runs=length - 1 if immutable else 1,
            trees=1 if immutable else length,
            run_width=run_width,
            tree_width=tree_width,
        )
        self._newest = [np.zeros(0, np.int64) for _ in range(sides)]

    def maintain(self, side: int) -> Work:
        """Drop the oldest tree if all of it has expired, and archive the active one."""
        state = self.forest.sides[side]
        newest = self._newest[side]
        while len(newest) and newest[0] < state["horizon"]:
            newest = newest[1:]
            self._drop_oldest(side)
        self._newest[side] = newest
        share = -(-self.live(side) // (self._length - 1))
        entries = self.active_entries(side)
        later = entries + entries // _PATIENCE
        if entries < share:
            state["limit"] = max(share, later)
            return NO_WORK
        if len(newest) == self._length - 1:
            state["limit"] = max(entries + newest[0] + 1 - state["horizon"], later)
            return NO_WORK
        work = self._archive_immutable(side, entries) if self._immutable else self._archive(side)
        self._newest[side] = np.append(newest, state["next_position"] - 1)
        state["limit"] = share
        return work

    def _drop_oldest(self, side: int) -> None:
        state = self.forest.sides[side]
        if self._immutable:
            state["run_first"] = (state["run_first"] + 1) % self.forest.slots.runs
            state["run_count"] -= 1
        else:
            state["tree_first"] = (state["tree_first"] + 1) % self.forest.slots.trees
            state["tree_count"] -= 1

    def _archive(self, side: int) -> Work:
        self.forest.sides[side]["tree_count"] += 1
        clear_tree(self.forest, active_tree(self.forest, side), 1, 0)
        return NO_WORK

    def _archive_immutable(self, side: int, entries: int) -> Work:
        nodes = nodes_room(entries, 1, tree_width(self.forest))
        self.reserve(run_entries=entries, tree_nodes=nodes)
        counters = new_counters()
        forest = self.forest
        tree = active_tree(forest, side)
        target = run_slot(forest, side, int(forest.sides[side]["run_count"]))
        merge_runs(forest, NONE, tree, target, LEAST, counters)
        forest.sides[side]["run_count"] += 1
        clear_tree(forest, tree, 1, 0)
        return Work.from_counters(counters)
