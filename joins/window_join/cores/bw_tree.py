"""The parallel index-based window join over Bw-Trees on simulated cores.

As of `joins.window_join.cores.pim_tree`, but the cores lock nothing: what they do to each other is
to make compare-and-swaps fail, and to wait for the lines of memory that others swap.

What a tree takes to make room for a batch is done by all cores alike: the paper's epochs end
whenever a thread leaves, and whoever comes next takes what is free again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from joins.indexes.bw_tree.bw_tree import CHAIN, WIDTH
from joins.indexes.columns import at_least_one
from joins.indexes.pim_tree.status import NO_OUTPUT
from joins.machine.memory import LINE
from joins.matches import MatchList, ProbeResult
from joins.window_join.cores.bw_tree_kernels import run_bw_cores
from joins.window_join.cores.bw_tree_state import BwCores
from joins.window_join.cores.clocks import elapse
from joins.window_join.cores.pim_tree import TASK_ROWS
from joins.window_join.cores.state import CLOCK
from joins.window_join.live.bw_tree_kernels import Sharing
from joins.window_join.live.bw_tree_windows import BwTreeWindows
from joins.window_join.live.output_stream import propagate_all
from joins.window_join.live.shared_join import SharedJoin
from joins.window_join.live.state import SIDES
from joins.window_join.rows import Rows
from joins.work import COUNTERS, Work


class BwCoresJoin(SharedJoin[BwTreeWindows]):
    """Joins batches of arrivals on simulated cores that share Bw-Trees.

    Parameters
    ----------
    self_join
        Whether the one stream is joined with itself.
    unit_ps, threads, cores, task_rows
        As of `joins.window_join.cores.pim_tree.CoresJoin`.
    width, chain
        See `joins.indexes.bw_tree.bw_tree.BwTree`.
    """

    def __init__(
        self,
        *,
        self_join: bool = False,
        unit_ps: Sequence[int],
        threads: int,
        cores: int | None = None,
        task_rows: int = TASK_ROWS,
        width: int = WIDTH,
        chain: int = CHAIN,
    ) -> None:
        at_least_one(threads=threads, cores=cores, task_rows=task_rows)
        sides = 1 if self_join else 2
        self._windows = BwTreeWindows(sides, width=width, chain=chain, threads=threads)
        self._physical = cores or threads
        self._task_rows = task_rows
        self._tasks = np.zeros((threads, 2), np.int64)
        self._cores = BwCores(
            state=np.zeros((threads, 2), np.int64),
            free=np.zeros(SIDES + sides, np.int64),
            latest=np.zeros(1, np.int64),
            unit_ps=np.array(unit_ps, np.int64),
            expiring=np.zeros((threads, 3), np.int64),
            line_free=np.zeros((sides, 0), np.int64),
        )

    def join(self, rows: Rows, *, enumerate: bool = False) -> ProbeResult:
        """Join the next arrivals; return a row of results for each of them, in the same order.

        The work is that of all cores together; its ``elapsed_ns`` is what they took for it.
        """
        n = len(rows.side)
        live, opening = self._windows.open(rows)
        first, last = self._windows.pages
        sharing = Sharing(self._windows.keys, self._tasks, self._task_rows, enumerate)
        lines = max(len(first.mapping), len(last.mapping)) // LINE + 1
        cores = self._cores._replace(line_free=np.zeros((len(live.base), lines), np.int64))
        cores.free[:] = 0
        cores.state[:, CLOCK] += self._share_ps(opening)
        matches = MatchList(n, enumerate=enumerate)
        counters = np.zeros(len(COUNTERS), np.int64)
        while (
            run_bw_cores(first, last, rows, live, sharing, cores, matches.buffer, counters)
            == NO_OUTPUT
        ):
            matches.add_chunk()
        match_id = propagate_all(rows, live, [matches])
        closing = self._windows.close(live, sharing)
        cores.latest[0] = cores.state[:, CLOCK].max() + self._share_ps(closing)
        work = opening + Work.from_counters(counters) + closing
        return ProbeResult(
            count=matches.buffer.matches,
            fingerprint=matches.buffer.fingerprint,
            match_id=match_id,
            work=replace(work, elapsed_ns=elapse(cores, self._physical)),
        )

    def _share_ps(self, work: Work) -> int:
        """Return what each core takes for its share of *work*."""
        counters = np.array([getattr(work, name) for name in COUNTERS], np.int64)
        return int(counters @ self._cores.unit_ps) // len(self._tasks)
