"""The parallel index-based window join with real threads (PIM-Tree, section 4).

Threads share one PIM-Tree per side and take tasks from one queue as they become free. A tuple finds
what is surely indexed in the tree, and scans the window from the edge tuple on; so its matches are
exactly those that it sees, in whichever order the threads run. Results come out in arrival order.

The boundaries t_e and t_l of a tuple's window are its `start` and `stop`, known when it arrives.
The paper updates the edge tuple and propagates results after every tuple; here both are done once a
task, which saves locks and changes no result. `join` takes a batch and returns when all of it is
done, so between batches everything is indexed.
"""

from __future__ import annotations

import numpy as np

from joins.indexes.columns import at_least_one
from joins.indexes.pim_tree.lookahead import make_places
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.indexes.pim_tree.status import DONE
from joins.machine.memory import own_lines
from joins.matches import MatchList, ProbeResult
from joins.threads import side_by_side
from joins.window_join.ibwj_kernels import BLOCK
from joins.window_join.live.kernels import work_on_batch
from joins.window_join.live.output_stream import propagate_all
from joins.window_join.live.shared_join import SharedJoin
from joins.window_join.live.shared_windows import SharedWindows
from joins.window_join.live.state import Setting, Worker
from joins.window_join.rows import Rows
from joins.work import COUNTERS, NO_WORK, Work

TASK_ROWS = 64
SLACK = 1 << 14


class LiveJoin(SharedJoin[SharedWindows]):
    """Joins batches of arrivals in several threads.

    Parameters
    ----------
    index
        A `PimTree` (or `ImTree`) with two sides; with one for a self join.
    threads
        How many, at least 1.
    task_rows
        Task size: tuples that a thread takes at a time.
    nonblocking
        Whether threads go on joining while one of them merges.
    slack
        Tuples that may be joined and not yet be indexed, per side.
    pauses, seed
        For tests: a thread pauses in one of *pauses* places where it meets others, at random.
    """

    def __init__(
        self,
        index: PimTree,
        *,
        threads: int,
        task_rows: int = TASK_ROWS,
        nonblocking: bool = True,
        slack: int = SLACK,
        pauses: int = 0,
        seed: int = 0,
    ) -> None:
        at_least_one(threads=threads, task_rows=task_rows, slack=slack)
        self._windows = SharedWindows(index)
        self._setting = Setting(
            task_rows,
            slack,
            index.merge_ratio,
            index.insertion_depth,
            nonblocking,
            len(index.forest.sides) == 1,
            False,
            pauses,
        )
        self._workers = [
            Worker(own_lines(2), own_lines(1), make_places(index.forest, BLOCK))
            for _ in range(threads)
        ]
        for thread, worker in enumerate(self._workers):
            worker.random[0] = seed * threads + thread + 1

    def join(self, rows: Rows, *, enumerate: bool = False) -> ProbeResult:
        """Join the next arrivals; return a row of results for each of them, in the same order."""
        n, threads = len(rows.side), len(self._workers)
        setting = self._setting
        live = self._windows.open(rows, setting.slack + (threads + 1) * setting.task_rows, threads)
        forest = self._windows.index.forest
        setting = setting._replace(enumerating=enumerate)
        total = MatchList(n, enumerate=False)

        def work(thread: int) -> tuple[MatchList, np.ndarray]:
            counters = own_lines(len(COUNTERS))
            matches = MatchList(n, enumerate=enumerate, share=total)
            worker = self._workers[thread]
            while (
                work_on_batch(forest, rows, live, setting, thread, worker, matches.buffer, counters)
                != DONE
            ):
                matches.add_chunk()
            return matches, counters

        parts = side_by_side(work, range(threads), threads)
        match_id = propagate_all(rows, live, [matches for matches, _ in parts])
        self._windows.close(live)
        return ProbeResult(
            count=total.buffer.matches,
            fingerprint=total.buffer.fingerprint,
            match_id=match_id,
            work=sum((Work.from_counters(counters) for _, counters in parts), NO_WORK),
        )
