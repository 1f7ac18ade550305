"""The parallel index-based window join over Bw-Trees: what PIM-Tree is compared with (section 5).

As in `joins.window_join.live`, threads take tuples from one queue, find what is surely indexed in
the tree and scan the window from the edge tuple on. But nothing is locked, nothing is merged, and
every tuple is deleted by itself, once no tuple that sees it can still be waiting. One thread is the
single-threaded join.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from joins.found import Found
from joins.indexes.bw_tree.bw_tree import CHAIN, WIDTH, BwTree
from joins.indexes.pim_tree.probe import Output
from joins.indexes.pim_tree.status import DONE
from joins.window_join.bw_tree_kernels import EXPIRED, Sharing, expire, work_on_batch
from joins.window_join.live import TASK_ROWS
from joins.window_join.live_kernels import gather, propagate
from joins.window_join.live_state import EDGE, HEAD, OUTPUT, QUEUE, SIDES, TOTAL, WORDS, Live
from joins.window_join.rows import Rows
from joins.window_join.window_keys import WindowKeys
from joins.work import COUNTERS, NO_WORK, Work

_FIRST_MATCHES = 1024


class BwTreeJoin:
    """Joins batches of arrivals in one thread or several.

    Parameters
    ----------
    self_join
        Whether the one stream is joined with itself.
    threads
        How many, at least 1.
    task_rows
        Tuples that a thread takes, or deletes, at a time.
    width, chain
        See `joins.indexes.bw_tree.bw_tree.BwTree`.
    """

    def __init__(
        self,
        *,
        self_join: bool = False,
        threads: int = 1,
        task_rows: int = TASK_ROWS,
        width: int = WIDTH,
        chain: int = CHAIN,
    ) -> None:
        for name, value in (("threads", threads), ("task_rows", task_rows)):
            if value < 1:
                raise ValueError(f"{name} is {value}, must be at least 1")
        sides = 1 if self_join else 2
        options = {"width": width, "chain": chain, "threads": threads}
        self._trees = [BwTree(**options) for _ in range(sides)]
        self._window = WindowKeys(sides)
        self._task_rows = task_rows
        self._tasks = np.zeros((threads, 2), np.int64)
        self._pool = ThreadPoolExecutor(threads)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def join(self, rows: Rows, *, enumerate: bool = False) -> Found:
        """Join the next arrivals; return a row of results for each of them, in the same order."""
        n, ends, sides = len(rows.side), self._window.ends, range(len(self._trees))
        live = self._open(rows)
        gone = np.maximum(live.seen[:, -1] - ends[:, 0], 0)
        works = [
            tree.reserve(int(live.arrived[side, -1] - live.base[side] + gone[side]))
            for side, tree in zip(sides, self._trees, strict=True)
        ]
        first, last = self._trees[0].pages, self._trees[-1].pages
        sharing = Sharing(self._window.keys, self._tasks, self._task_rows, enumerate)
        count, fingerprint = np.zeros(n, np.int64), np.zeros(n, np.uint64)

        def work(thread: int) -> tuple[Output, np.ndarray]:
            counters = np.zeros(len(COUNTERS), np.int64)
            ids = np.empty(_FIRST_MATCHES if enumerate else 0, np.int64)
            output = Output(count, fingerprint, ids, np.zeros(1, np.int64))
            while work_on_batch(first, last, rows, live, sharing, thread, output, counters) != DONE:
                longer = np.empty(2 * len(output.match_id), np.int64)
                longer[: len(output.match_id)] = output.match_id
                output = output._replace(match_id=longer)
            return output, counters

        parts = list(self._pool.map(work, range(len(self._tasks))))
        propagate(rows, live, parts[0][0])
        for side, tree in zip(sides, self._trees, strict=True):
            live.words[SIDES + side, EDGE] = live.arrived[side, -1]
            expire(tree.pages, rows, live, sharing, side, 0, parts[0][1])
            ends[side, 0] = live.words[SIDES + side, EXPIRED]
        match_id = None
        if enumerate:
            match_id = np.empty(live.words[OUTPUT, TOTAL], np.int64)
            for thread, (output, _) in zip(range(len(parts)), parts, strict=True):
                gather(live, thread, count, output.match_id, match_id)
        works += [Work.from_counters(counters) for _, counters in parts]
        return Found(
            count=count, fingerprint=fingerprint, match_id=match_id, work=sum(works, NO_WORK)
        )

    def _open(self, rows: Rows) -> Live:
        """Return the shared arrays of the next arrivals, and put their keys into the window."""
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
        for side in range(sides):
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
        return live

    def _keep(self, side: int, keys: np.ndarray) -> None:
        window = self._window
        first, begin = window.ends[side].tolist()
        while begin + len(keys) - first > window.keys.shape[1]:
            window.grow()
        places = np.arange(begin, begin + len(keys)) & (window.keys.shape[1] - 1)
        window.keys[side, places] = keys
        window.ends[side, 1] = begin + len(keys)

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
