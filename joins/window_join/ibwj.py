"""The index-based window join (PIM-Tree, section 2.2), tuple by tuple, one thread."""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.indexes.pim_tree.index import ForestIndex
from joins.indexes.pim_tree.lookahead import make_places
from joins.matches import MatchBuffer
from joins.window_join.driver import WindowJoin
from joins.window_join.ibwj_kernels import BLOCK, join_rows
from joins.window_join.rows import Rows
from joins.work import Work


class IndexJoin(WindowJoin):
    """Each tuple probes the other side's index, and is inserted into its own side's.

    Parameters
    ----------
    index
        `PimTree`, `ImTree` or `Chain`, with two sides; with one for a self join.
    """

    def __init__(self, index: ForestIndex) -> None:
        self.index = index
        self._places = make_places(index.forest, BLOCK)

    def _run(
        self, rows: Rows, begin: int, output: MatchBuffer, enumerate: bool, counters: np.ndarray
    ) -> tuple[int, int]:
        forest = self.index.forest
        self_join = len(forest.sides) == 1
        return join_rows(
            forest,
            rows,
            begin,
            len(rows.side),
            self_join,
            output,
            enumerate,
            self._places,
            counters,
        )

    def _mend(self, side: int, why: int) -> Work:
        return self.index.mend(side, why)

    def snapshot(self) -> dict[str, Any]:
        """Return the index."""
        return {"index": self.index.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.index = type(self.index).restore(state["index"])

    @property
    def nbytes(self) -> int:
        """Bytes that the indexes occupy; they are the windows too."""
        return self.index.nbytes
