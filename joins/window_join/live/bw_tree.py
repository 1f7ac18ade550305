"""The parallel index-based window join over Bw-Trees: what PIM-Tree is compared with (section 5).

As in `joins.window_join.live.pim_tree`, threads take tuples from one queue, find what is surely
indexed in the tree and scan the window from the edge tuple on. But nothing is locked, nothing is
merged, and every tuple is deleted by itself, once no tuple that sees it can still be waiting. One
thread is the single-threaded join.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from joins.found import Found
from joins.indexes.bw_tree.bw_tree import CHAIN, WIDTH
from joins.indexes.pim_tree.probe import Output
from joins.indexes.pim_tree.status import DONE
from joins.window_join.live.bw_tree_kernels import Sharing, work_on_batch
from joins.window_join.live.bw_tree_windows import BwTreeWindows
from joins.window_join.live.kernels import gather, propagate
from joins.window_join.live.pim_tree import TASK_ROWS
from joins.window_join.live.state import OUTPUT, TOTAL
from joins.window_join.rows import Rows
from joins.work import COUNTERS, Work

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
    width, chain, pauses, seed
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
        pauses: int = 0,
        seed: int = 0,
    ) -> None:
        for name, value in (("threads", threads), ("task_rows", task_rows)):
            if value < 1:
                raise ValueError(f"{name} is {value}, must be at least 1")
        self._windows = BwTreeWindows(
            1 if self_join else 2,
            width=width,
            chain=chain,
            threads=threads,
            pauses=pauses,
            seed=seed,
        )
        self._task_rows = task_rows
        self._tasks = np.zeros((threads, 2), np.int64)
        self._pool = ThreadPoolExecutor(threads)

    def close(self) -> None:
        """End the threads."""
        self._pool.shutdown()

    def join(self, rows: Rows, *, enumerate: bool = False) -> Found:
        """Join the next arrivals; return a row of results for each of them, in the same order."""
        n = len(rows.side)
        live, opening = self._windows.open(rows)
        first, last = self._windows.pages
        sharing = Sharing(self._windows.keys, self._tasks, self._task_rows, enumerate)
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

        threads = range(len(self._tasks))
        parts = list(self._pool.map(work, threads)) if len(threads) > 1 else [work(0)]
        propagate(rows, live, parts[0][0])
        match_id = None
        if enumerate:
            match_id = np.empty(live.words[OUTPUT, TOTAL], np.int64)
            for thread, (output, _) in zip(threads, parts, strict=True):
                gather(live, thread, count, output.match_id, match_id)
        done = (Work.from_counters(counters) for _, counters in parts)
        return Found(
            count=count,
            fingerprint=fingerprint,
            match_id=match_id,
            work=sum(done, opening + self._windows.close(live, sharing)),
        )

    @property
    def nbytes(self) -> int:
        """Bytes that the trees and the windows' keys occupy."""
        return self._windows.nbytes

    def snapshot(self) -> dict[str, Any]:
        """Return the windows."""
        return self._windows.snapshot()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._windows.restore(state)
