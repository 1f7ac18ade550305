"""The parallel index-based window join over Bw-Trees: what PIM-Tree is compared with (section 5).

As in `joins.window_join.live.pim_tree`, threads take tuples from one queue, find what is surely
indexed in the tree and scan the window from the edge tuple on. But nothing is locked, nothing is
merged, and every tuple is deleted by itself, once no tuple that sees it can still be waiting. One
thread is the single-threaded join.
"""

from __future__ import annotations

import numpy as np

from joins.indexes.bw_tree.bw_tree import CHAIN, WIDTH
from joins.indexes.columns import at_least_one
from joins.indexes.pim_tree.status import DONE
from joins.machine.memory import LINE, aligned, own_lines
from joins.matches import MatchList, ProbeResult
from joins.threads import side_by_side
from joins.window_join.live.bw_tree_kernels import Sharing, work_on_batch
from joins.window_join.live.bw_tree_windows import BwTreeWindows
from joins.window_join.live.output_stream import propagate_all
from joins.window_join.live.pim_tree import TASK_ROWS
from joins.window_join.live.shared_join import SharedJoin
from joins.window_join.rows import Rows
from joins.work import COUNTERS, Work


class BwTreeJoin(SharedJoin[BwTreeWindows]):
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
        at_least_one(threads=threads, task_rows=task_rows)
        self._windows = BwTreeWindows(
            1 if self_join else 2,
            width=width,
            chain=chain,
            threads=threads,
            pauses=pauses,
            seed=seed,
        )
        self._task_rows = task_rows
        self._tasks = aligned((threads, LINE))

    def join(self, rows: Rows, *, enumerate: bool = False) -> ProbeResult:
        """Join the next arrivals; return a row of results for each of them, in the same order."""
        n = len(rows.side)
        live, opening = self._windows.open(rows)
        first, last = self._windows.pages
        sharing = Sharing(self._windows.keys, self._tasks, self._task_rows, enumerate)
        total = MatchList(n, enumerate=False)

        def work(thread: int) -> tuple[MatchList, np.ndarray]:
            counters = own_lines(len(COUNTERS))
            matches = MatchList(n, enumerate=enumerate, share=total)
            while (
                work_on_batch(first, last, rows, live, sharing, thread, matches.buffer, counters)
                != DONE
            ):
                matches.add_chunk()
            return matches, counters

        threads = range(len(self._tasks))
        parts = side_by_side(work, threads, len(threads))
        match_id = propagate_all(rows, live, [matches for matches, _ in parts])
        done = (Work.from_counters(counters) for _, counters in parts)
        return ProbeResult(
            count=total.buffer.matches,
            fingerprint=total.buffer.fingerprint,
            match_id=match_id,
            work=sum(done, opening + self._windows.close(live, sharing)),
        )
