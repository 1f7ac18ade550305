"""The windows of a join over Bw-Trees, from one batch to the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.indexes.bw_tree.bw_tree import BwTree
from joins.indexes.bw_tree.pages import Pages
from joins.window_join.live.bw_tree_kernels import EXPIRED, Sharing, expire
from joins.window_join.live.state import EDGE, HEAD, QUEUE, SIDES, WORDS, Live
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
        n, ends = len(rows.side), self._window.ends
        sides = len(ends)
        live = Live(
            words=np.zeros((SIDES + sides, WORDS), np.int64),
            status=np.zeros((1, n), np.int64),
            keys=np.zeros((sides, n), np.int64),
            indexed=np.zeros((sides, n), np.int64),
            base=np.zeros(sides, np.int64),
            arrived=np.zeros((sides, n + 1), np.int64),
            seen=np.zeros((sides, n + 1), np.int64),
            place=np.zeros((2, n), np.int64),
            first=np.zeros(n, np.int64),
        )
        live.words[QUEUE, HEAD] = 0
        work = NO_WORK
        for side, tree in enumerate(self._trees):
            mine = rows.side == side
            if mine.any() and ends[side, 1] == 0:
                ends[side] = rows.position[mine][0]
            begin = int(ends[side, 1])
            live.base[side] = live.words[SIDES + side, EDGE] = begin
            live.words[SIDES + side, EXPIRED] = ends[side, 0]
            live.keys[side, : mine.sum()] = rows.key[mine]
            live.arrived[side, 0] = begin
            live.arrived[side, 1:] = begin + np.cumsum(mine)
            probing = mine if sides == 1 else ~mine
            starts = rows.start[probing]
            starts = np.append(starts, starts[-1:] if len(starts) else ends[side, 0])
            live.seen[side] = starts[np.append(np.cumsum(probing) - probing, probing.sum())]
            self._keep(side, rows.key[mine])
            gone = max(0, int(live.seen[side, -1] - ends[side, 0]))
            work += tree.reserve(int(mine.sum()) + gone)
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
