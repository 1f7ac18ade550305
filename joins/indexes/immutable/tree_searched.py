"""Sealed segments whose keys are searched by CSS-trees, one per predicate."""

from __future__ import annotations

import numpy as np

from joins.indexes.immutable.css_tree import CssTree, find_ranges_in_tree
from joins.indexes.immutable.segment import Segment
from joins.indexes.search import Brackets
from joins.work import Work


class TreeSearchedSegment(Segment):
    """A CSS-tree over every predicate's keys; a subclass adds to what is sealed."""

    def _seal(self) -> Work:
        self._trees = tuple(CssTree(column) for column in self.keys)
        copied = Work(bytes_copied=sum(key.nbytes for key in self.keys))
        return sum((tree.work for tree in self._trees), copied)

    def _own_arrays(self) -> list[np.ndarray]:
        return [tree.nodes.inner for tree in self._trees]

    def _find_places(
        self,
        predicate: int,
        low: np.ndarray,
        high: np.ndarray,
        brackets: Brackets | None,
        places: tuple[np.ndarray, np.ndarray],
        counters: np.ndarray,
    ) -> None:
        find_ranges_in_tree(self._trees[predicate].nodes, low, high, *places, counters)
