"""The parallel index-based window join on simulated cores (PIM-Tree, section 4).

One process holds the shared index and takes the steps of all threads itself, in the order in which
N cores would get to them: each core has a clock, moved by what its work costs and by its waiting
for locks. So two cores can tell what 16 or 128 would do, and the same run always ends the same.

Batches follow one another as tasks do: the time of a batch is that until its last task is finished,
and a core that is still merging then goes on merging into the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from joins.indexes.columns import at_least_one
from joins.indexes.pim_tree.lookahead import make_places
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.indexes.pim_tree.status import NO_OUTPUT
from joins.matches import MatchList, ProbeResult
from joins.window_join.cores.clocks import elapse
from joins.window_join.cores.kernels import run_cores
from joins.window_join.cores.state import Cores
from joins.window_join.live.output_stream import propagate_all
from joins.window_join.live.shared_join import SharedJoin
from joins.window_join.live.shared_windows import SharedWindows
from joins.window_join.live.state import SIDES, Setting
from joins.window_join.rows import Rows
from joins.work import COUNTERS, Work

TASK_ROWS = 8
"""Task size of the paper's experiments (section 5.2)."""

_NO_LIMIT = 1 << 60
"""Slack: nothing but the gate holds a task back, as every batch has room for all its tuples."""


class CoresJoin(SharedJoin[SharedWindows]):
    """Joins batches of arrivals on simulated cores.

    Parameters
    ----------
    index
        A `PimTree` (or `ImTree`) with two sides; with one for a self join.
    unit_ps
        What a unit of each counter of `joins.work.Work` takes, picoseconds.
    threads, cores
        Threads, at least 1, and the cores they have; None gives each its own. Where there are more
        threads than cores, all of them are slower alike.
    task_rows, nonblocking
        As of `joins.window_join.live.pim_tree.LiveJoin`.
    """

    def __init__(
        self,
        index: PimTree,
        *,
        unit_ps: Sequence[int],
        threads: int,
        cores: int | None = None,
        task_rows: int = TASK_ROWS,
        nonblocking: bool = True,
    ) -> None:
        at_least_one(threads=threads, cores=cores, task_rows=task_rows)
        sides = len(index.forest.sides)
        self._windows = SharedWindows(index)
        self._physical = cores or threads
        self._setting = Setting(
            task_rows,
            _NO_LIMIT,
            index.merge_ratio,
            index.insertion_depth,
            nonblocking,
            sides == 1,
            False,
            0,
        )
        self._cores = Cores(
            state=np.zeros((threads, 2), np.int64),
            tasks=np.zeros((threads, 2), np.int64),
            places=make_places(index.forest, threads),
            merge=np.zeros(4, np.int64),
            free=np.zeros(SIDES + sides, np.int64),
            subindex_free=np.zeros(0, np.int64),
            latest=np.zeros(1, np.int64),
            unit_ps=np.array(unit_ps, np.int64),
        )

    def join(self, rows: Rows, *, enumerate: bool = False) -> ProbeResult:
        """Join the next arrivals; return a row of results for each of them, in the same order.

        The work is that of all cores together; its ``elapsed_ns`` is what they took for it.
        """
        n = len(rows.side)
        live = self._windows.open(rows, n + self._setting.task_rows)
        forest = self._windows.index.forest
        setting = self._setting._replace(enumerating=enumerate)
        self._cores.free[:] = 0
        cores = self._cores._replace(subindex_free=np.zeros(len(forest.subindexes), np.int64))
        matches = MatchList(n, enumerate=enumerate)
        counters = np.zeros(len(COUNTERS), np.int64)
        while run_cores(forest, rows, live, setting, cores, matches.buffer, counters) == NO_OUTPUT:
            matches.add_chunk()
        match_id = propagate_all(rows, live, [matches])
        self._windows.close(live)
        return ProbeResult(
            count=matches.buffer.matches,
            fingerprint=matches.buffer.fingerprint,
            match_id=match_id,
            work=replace(
                Work.from_counters(counters), elapsed_ns=elapse(self._cores, self._physical)
            ),
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the windows, and what the cores are at."""
        kept = {name: getattr(self._cores, name).copy() for name in ("state", "merge")}
        return {"windows": super().snapshot(), "cores": kept}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        super().restore(state["windows"])
        kept = {name: np.array(values, np.int64) for name, values in state["cores"].items()}
        self._cores = self._cores._replace(**kept)
