"""The windows of a join over Bw-Trees, from one batch to the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.indexes.bw_tree.bw_tree import BwTree
from joins.indexes.bw_tree.pages import Pages
from joins.machine.memory import aligned
from joins.window_join.live.bw_tree_kernels import EXPIRED, Sharing, expire
from joins.window_join.live.opening import first_position, lay_out, open_live
from joins.window_join.live.state import EDGE, SIDES, WORDS, Live
from joins.window_join.rows import Rows
from joins.window_join.window_keys import WindowKeys
from joins.work import COUNTERS, NO_WORK, Work


class BwTreeWindows:
    """A tree and the keys of each window, and what threads share while they join a batch.

    Parameters
    ----------
    sides
        2, or 1 for a self join.
    options
        Of `joins.indexes.bw_tree.bw_tree.BwTree`.
    """

    def __init__(self, sides: int, **options: int) -> None:
        self._trees = [BwTree(**options) for _ in range(sides)]
        self._window = WindowKeys(sides)

    @property
    def pages(self) -> tuple[Pages, Pages]:
        """The first side's tree and the last one's; the one tree twice in a self join."""
        return self._trees[0].pages, self._trees[-1].pages

    @property
    def keys(self) -> np.ndarray:
        """The windows' keys, see `joins.window_join.window_keys`."""
        return self._window.keys

    def open(self, rows: Rows) -> tuple[Live, Work]:
        """Return the shared arrays of the next arrivals, and make room for them in the trees."""
        ends = self._window.ends
        live = open_live(aligned((SIDES + len(ends), WORDS)), rows, 0)
        for side in range(len(ends)):
            first = first_position(rows, side)
            if first >= 0 and ends[side, 1] == 0:
                ends[side] = first
            live.base[side] = live.words[SIDES + side, EDGE] = ends[side, 1]
            live.words[SIDES + side, EXPIRED] = ends[side, 0]
            lay_out(rows, live, side, 0, ends[side, 0])
        work = NO_WORK
        for side, tree in enumerate(self._trees):
            mine = int(live.arrived[side, -1] - live.base[side])
            self._keep(side, live.keys[side, :mine])
            gone = max(0, int(live.seen[side, -1] - ends[side, 0]))
            work += tree.reserve(mine + gone)
        return live, work

    def _keep(self, side: int, keys: np.ndarray) -> None:
        window = self._window
        first, begin = window.ends[side].tolist()
        while begin + len(keys) - first > window.keys.shape[1]:
            window.grow()
        places = np.arange(begin, begin + len(keys)) & (window.keys.shape[1] - 1)
        window.keys[side, places] = keys
        window.ends[side, 1] = begin + len(keys)

    def close(self, live: Live, sharing: Sharing) -> Work:
        """Delete what no later row can see; every row of the batch has been joined."""
        counters = np.zeros(len(COUNTERS), np.int64)
        for side, tree in enumerate(self._trees):
            live.words[SIDES + side, EDGE] = live.arrived[side, -1]
            expire(tree.pages, live, sharing, side, 0, counters)
            self._window.ends[side, 0] = live.words[SIDES + side, EXPIRED]
        return Work.from_counters(counters)

    @property
    def nbytes(self) -> int:
        """Bytes that the trees and the windows' keys occupy."""
        return sum(tree.nbytes for tree in self._trees) + self._window.nbytes

    def snapshot(self) -> dict[str, Any]:
        """Return the trees and the windows' keys."""
        trees = [tree.snapshot() for tree in self._trees]
        return {"trees": trees, "window": self._window.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._trees = [BwTree.restore(tree) for tree in state["trees"]]
        self._window.restore(state["window"])
