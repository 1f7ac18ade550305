"""The parallel index-based window join over Bw-Trees on simulated cores.

As of `joins.window_join.cores.pim_tree`, but the cores lock nothing: what they do to each other is
to make compare-and-swaps fail, and to wait for the lines of memory that others swap.

What a tree takes to make room for a batch is done by all cores alike: the paper's epochs end
whenever a thread leaves, and whoever comes next takes what is free again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from joins.found import Found
from joins.indexes.bw_tree.bw_tree import CHAIN, WIDTH
from joins.indexes.bw_tree.pages import LINE
from joins.indexes.pim_tree.probe import Output
from joins.indexes.pim_tree.status import NO_OUTPUT
from joins.window_join.cores.bw_tree_kernels import run_bw_cores
from joins.window_join.cores.bw_tree_state import BwCores
from joins.window_join.cores.clocks import elapse
from joins.window_join.cores.pim_tree import TASK_ROWS
from joins.window_join.cores.state import CLOCK
from joins.window_join.live.bw_tree_kernels import Sharing
from joins.window_join.live.bw_tree_windows import BwTreeWindows
from joins.window_join.live.kernels import gather, propagate
from joins.window_join.live.state import SIDES
from joins.window_join.rows import Rows
from joins.work import COUNTERS, Work

_FIRST_MATCHES = 1024


class BwCoresJoin:
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
        for name, value in (("threads", threads), ("cores", cores), ("task_rows", task_rows)):
            if value is not None and value < 1:
                raise ValueError(f"{name} is {value}, must be at least 1")
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

    def join(self, rows: Rows, *, enumerate: bool = False) -> Found:
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
        output = Output(
            np.zeros(n, np.int64),
            np.zeros(n, np.uint64),
            np.empty(_FIRST_MATCHES if enumerate else 0, np.int64),
            np.zeros(1, np.int64),
        )
        counters = np.zeros(len(COUNTERS), np.int64)
        while run_bw_cores(first, last, rows, live, sharing, cores, output, counters) == NO_OUTPUT:
            longer = np.empty(2 * len(output.match_id), np.int64)
            longer[: len(output.match_id)] = output.match_id
            output = output._replace(match_id=longer)
        propagate(rows, live, output)
        match_id = None
        if enumerate:
            match_id = np.empty(int(output.matches.sum()), np.int64)
            gather(live, 0, output.matches, output.match_id, match_id)
        closing = self._windows.close(live, sharing)
        cores.latest[0] = cores.state[:, CLOCK].max() + self._share_ps(closing)
        work = opening + Work.from_counters(counters) + closing
        return Found(
            count=output.matches,
            fingerprint=output.fingerprint,
            match_id=match_id,
            work=replace(work, elapsed_ns=elapse(cores, self._physical)),
        )

    def _share_ps(self, work: Work) -> int:
        """Return what each core takes for its share of *work*."""
        counters = np.array([getattr(work, name) for name in COUNTERS], np.int64)
        return int(counters @ self._cores.unit_ps) // len(self._tasks)

    @property
    def nbytes(self) -> int:
        """Bytes that the trees and the windows' keys occupy."""
        return self._windows.nbytes

    def snapshot(self) -> dict[str, Any]:
        """Return the windows; between batches the cores have nothing to do."""
        return self._windows.snapshot()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._windows.restore(state)
