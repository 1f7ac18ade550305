"""The parallel index-based window join: with real threads, or on simulated cores.

Both run the same kernel, which takes one step after another (`joins.window_join.schedulers`). A
batch is joined when `join` returns. Threads then have nothing left to do. Simulated cores begin the
next batch as they begin the next task: the time of a batch is that until its last task is finished,
and a core that is still merging then goes on into the next one. So two real cores can find out what
16 or 128 would do, and the same run always has the same result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from joins.indexes.index import check_least
from joins.machine.compiling import kernel
from joins.machine.dispatch import DONE, NO_OUTPUT, dispatched
from joins.machine.memory import aligned, own_lines
from joins.matches import MatchBuffer, MatchList, ProbeResult
from joins.state import Stateful
from joins.threads import side_by_side, threads_for
from joins.window_join.rows import KernelRows
from joins.window_join.schedulers import (
    IDLE,
    TAKE,
    WORKER,
    Threads,
    elapse,
    make_cores,
    next_worker,
)
from joins.window_join.shared_batch import SharedBatch, gather, propagate
from joins.window_join.window_join import WindowJoin
from joins.work import COUNTERS, NO_WORK, Work

THREAD_TASK_ROWS = 64
"""Task size of real threads: a lock a task is less than one a tuple."""
JOIN_ROWS_A_THREAD = 512
"""Tuples of a batch for which another thread is worth waking."""
CORE_TASK_ROWS = 8
"""Task size of the paper's experiments (section 5.2)."""
SLACK = 1 << 14
_NO_LIMIT = 1 << 60


@dataclass(frozen=True, kw_only=True)
class Tasks:
    """How a batch is cut into tasks."""

    workers: int
    """How many take tasks."""
    simulated: bool
    """Whether they are simulated cores."""
    rows: int
    """Task size: tuples that a worker takes at a time."""
    slack: int
    """Tuples that may be joined and not yet be indexed, per side."""

    def most_unindexed(self, n: int) -> int:
        """Return how many of a batch's *n* tuples may be joined and not yet be indexed."""
        return n + self.rows if self.simulated else self.slack + (self.workers + 1) * self.rows


class SharedIndex(Stateful, ABC):
    """An index that workers share, with the windows of both sides.

    Its record implements the steps `take_step`, `joins.window_join.schedulers.is_over` and
    `joins.window_join.shared_batch.probe_indexed`.
    """

    sides: int

    @abstractmethod
    def open(self, rows: KernelRows, tasks: Tasks) -> tuple[Any, SharedBatch, Work]:
        """Return the index's record and what is shared while *rows* are joined, and the work."""

    @abstractmethod
    def close(self, index: Any, batch: SharedBatch) -> Work:
        """Store what the next batch needs of this one, of which every row has been joined."""

    @abstractmethod
    def expire(self, side: int, before: int) -> None:
        """Let workers drop a side's positions below *before* from the next batch on."""


@dispatched
def take_step(
    index: Any, batch: SharedBatch, scheduler: Any, worker: int, output: MatchBuffer
) -> bool:
    """Take a worker's next step, by its stage; without room for a row's matches return False."""
    raise NotImplementedError


@kernel
def _run_steps(index: Any, batch: SharedBatch, scheduler: Any, output: MatchBuffer) -> int:
    """Take steps until the batch is done; `NO_OUTPUT` asks for room and to be called again."""
    worker = next_worker(scheduler, index, batch)
    while worker >= 0:
        if not take_step(index, batch, scheduler, worker, output):
            return NO_OUTPUT
        worker = next_worker(scheduler, index, batch)
    return DONE


class SharedJoin(WindowJoin, ABC):
    """Joins batches of arrivals with workers side by side.

    Parameters
    ----------
    windows
        The index that they share.
    tasks
        What they take at a time.
    """

    state: ClassVar[tuple[str, ...]] = ("windows",)

    def __init__(self, windows: SharedIndex, tasks: Tasks) -> None:
        self.windows = windows
        self._tasks = tasks

    def join(self, rows: KernelRows, *, enumerate: bool = False) -> ProbeResult:
        """Join the next arrivals; return a row of results for each of them, in the same order."""
        index, batch, opening = self.windows.open(rows, self._tasks)
        total = MatchList(len(rows.side), enumerate=False)
        run = partial(self._run, index, batch, total, enumerate=enumerate)
        results = self._run_all(run, len(rows.side), opening)
        propagate(batch, total.buffer)
        closing = self.windows.close(index, batch)
        work = sum((result.work for result in results), opening + closing)
        return ProbeResult(
            count=total.buffer.matches,
            fingerprint=total.buffer.fingerprint,
            match_id=gather(batch, results),
            work=work._replace(elapsed_ns=self._elapse(closing)),
        )

    def expire(self, side: int, before: int) -> Work:
        """Let workers drop a side's positions below *before*, which no later row sees."""
        self.windows.expire(side, before)
        return NO_WORK

    def _run(
        self, index: Any, batch: SharedBatch, total: MatchList, scheduler: Any, *, enumerate: bool
    ) -> ProbeResult:
        """Take all steps of a scheduler; return what it listed, and the work counted."""
        matches = MatchList(len(total.buffer.matches), enumerate=enumerate, share=total)
        while _run_steps(index, batch, scheduler, matches.buffer) == NO_OUTPUT:
            matches.add_chunk()
        return matches.result(scheduler.counters)

    @abstractmethod
    def _run_all(self, run: Run, rows: int, opening: Work) -> list[ProbeResult]:
        """Call *run* with each scheduler, for so many *rows*; opening the batch took that work."""

    def _elapse(self, closing: Work) -> int:
        """Return how long simulated cores took for the batch, which took that work to close."""
        return 0


Run = Callable[[Any], ProbeResult]
"""Takes all steps of a scheduler."""


class ThreadsJoin(SharedJoin):
    """Joins batches of arrivals in several threads.

    Parameters
    ----------
    windows, task_rows, slack
        As of `SharedJoin` and of its `Tasks`.
    threads
        How many, at least 1.
    rows_a_thread
        Tuples of a batch for which a thread is woken: a small batch is joined by fewer threads.
    """

    state: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        windows: SharedIndex,
        *,
        threads: int,
        task_rows: int = THREAD_TASK_ROWS,
        slack: int = SLACK,
        rows_a_thread: int = JOIN_ROWS_A_THREAD,
    ) -> None:
        check_least(
            1, threads=threads, task_rows=task_rows, slack=slack, rows_a_thread=rows_a_thread
        )
        self._rows_a_thread = rows_a_thread
        super().__init__(
            windows, Tasks(workers=threads, simulated=False, rows=task_rows, slack=slack)
        )

    def _run_all(self, run: Run, rows: int, opening: Work) -> list[ProbeResult]:
        threads = threads_for(rows, self._tasks.workers, self._rows_a_thread)
        workers = aligned((threads,), WORKER)
        schedulers = [self._scheduler(workers, thread) for thread in range(threads)]
        return side_by_side(run, schedulers, threads)

    def _scheduler(self, workers: np.ndarray, thread: int) -> Threads:
        return Threads(workers, own_lines(len(COUNTERS)), thread)


class CoresJoin(SharedJoin):
    """Joins batches of arrivals on simulated cores.

    The work of a batch is that of all cores together; its ``elapsed_ns`` is what they took for it.
    What the index takes to open and close a batch is done by all cores alike.

    Parameters
    ----------
    windows, task_rows
        As of `SharedJoin` and of its `Tasks`.
    unit_ps
        What a unit of each counter of `joins.work.Work` takes, picoseconds.
    threads, cores
        Threads, at least 1, and the cores they have; None gives each its own. Where there are more
        threads than cores, all of them are slower alike.
    """

    state: ClassVar[tuple[str, ...]] = ("_cores",)

    def __init__(
        self,
        windows: SharedIndex,
        *,
        unit_ps: Sequence[int],
        threads: int,
        cores: int | None = None,
        task_rows: int = CORE_TASK_ROWS,
    ) -> None:
        check_least(1, threads=threads, cores=cores, task_rows=task_rows)
        super().__init__(
            windows, Tasks(workers=threads, simulated=True, rows=task_rows, slack=_NO_LIMIT)
        )
        self._physical = cores or threads
        self._cores = make_cores(threads, unit_ps)

    def _run_all(self, run: Run, rows: int, opening: Work) -> list[ProbeResult]:
        cores = self._cores
        stages = cores.workers["stage"]
        stages[stages == IDLE] = TAKE
        cores.counters[:] = cores.priced[:] = 0
        cores.clock[:] += self._share_ps(opening)
        return [run(cores)]

    def _elapse(self, closing: Work) -> int:
        self._cores.latest[:] += self._share_ps(closing)
        return elapse(self._cores, self._physical)

    def _share_ps(self, work: Work) -> int:
        """Return what each core takes for its share of *work*."""
        return int(np.array(work) @ self._cores.unit_ps) // len(self._cores.clock)
