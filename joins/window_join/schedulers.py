"""Who takes the next step of a join whose index several threads share: a real thread, or a core.

The steps are written once (`joins.window_join.shared_batch`, and beside each index), for workers
that each have a task and a stage. Real threads run them side by side, each its own worker's.
Simulated cores take turns in one thread: always the core whose clock shows the earliest time takes
its next step.

The two differ in time alone. A real thread waits and works in real time, so the steps about time do
nothing for it. A simulated core has a clock, in picoseconds from the batch's beginning, moved by
what its work costs and by its waiting for locks and lines of memory. Both take the locks; between
simulated cores, whose steps never overlap, only virtual time makes anyone wait.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from joins.machine.dispatch import dispatched, implements, only_for
from joins.machine.instructions import offer_core
from joins.machine.memory import aligned, own_lines, record
from joins.state import storable
from joins.work import COUNTERS

TAKE = 0
"""The stage in which a worker takes its next task; an index's own stages come after it."""
FIRST_BLOCKED = 64
PARKED, DRAINING, IDLE = range(FIRST_BLOCKED, FIRST_BLOCKED + 3)
"""Stages that others end: no task may be assigned; a merge waits for running tasks; nothing is left
in the queue. A real thread tries again and again, but is done when it is idle; a simulated core
does nothing until it is woken."""


WORKER = record("stage", "row", "end")
"""A worker: its stage, and the rows of its task that are left, *row* to *end* - 1."""

_PS_PER_NS = 1000


class Threads(NamedTuple):
    """One real thread's view of all threads."""

    workers: np.ndarray
    """`WORKER`, one for each thread."""
    counters: np.ndarray
    """The thread's work, in the order of `joins.work.COUNTERS`."""
    thread: int
    """Which worker it is, and which list of matches it writes to."""


@storable
class Cores(NamedTuple):
    """Simulated cores."""

    workers: np.ndarray
    """`WORKER`, one for each core."""
    counters: np.ndarray
    """The work of all cores, in the order of `joins.work.COUNTERS`."""
    clock: np.ndarray
    """int64, for each core the time up to which its work is done."""
    priced: np.ndarray
    """int64, one number: what all work costs that has moved a clock."""
    latest: np.ndarray
    """int64, one number: when the last task was finished."""
    unit_ps: np.ndarray
    """int64, what a unit of each counter takes."""
    thread: int = 0
    """Which list of matches they write to: the first, as they run in one thread."""


def make_cores(cores: int, unit_ps: Any) -> Cores:
    """Return *cores* at the beginning of time."""
    return Cores(
        workers=aligned((cores,), WORKER),
        counters=own_lines(len(COUNTERS)),
        clock=np.zeros(cores, np.int64),
        priced=np.zeros(1, np.int64),
        latest=np.zeros(1, np.int64),
        unit_ps=np.array(unit_ps, np.int64),
    )


@dispatched
def next_worker(scheduler: Any, index: Any, batch: Any) -> int:
    """Return the worker that takes the next step, -1 if this call of the kernel has no more."""
    raise NotImplementedError


@dispatched
def is_over(index: Any, batch: Any) -> bool:
    """Return whether simulated cores stop where they are, because all rows of a batch are joined.

    An index that leaves nothing to the next batch returns False: its cores stop when none of them
    has anything to do.
    """
    raise NotImplementedError


@implements(next_worker, Threads)
def _next_of_threads(threads: Threads, index: Any, batch: Any) -> int:
    stage = threads.workers[threads.thread].stage
    if stage == IDLE:
        return -1
    if stage >= FIRST_BLOCKED:
        offer_core()
    return threads.thread


@implements(next_worker, Cores)
def _next_of_cores(cores: Cores, index: Any, batch: Any) -> int:
    """Return the core whose work is done first, of those that are not blocked."""
    first = -1
    for core in range(0 if is_over(index, batch) else len(cores.clock)):
        if cores.workers[core].stage < FIRST_BLOCKED and (
            first < 0 or cores.clock[core] < cores.clock[first]
        ):
            first = core
    return first


# What follows is about time alone, or about what simulated cores do in the paper's order: real
# threads do nothing for it.


@only_for(Cores, otherwise=False)
def moves_edge_with_every_row(cores: Cores) -> bool:
    """Return whether a worker moves the edge tuple after every row, as in the paper.

    Real threads do it once a task, which saves locks and changes no result.
    """
    return True


@only_for(Cores)
def spend(cores: Cores, worker: int) -> None:
    """Move a core's clock by what the work costs that was counted since a clock was last moved."""
    cost = unpriced_ps(cores)
    cores.clock[worker] += cost
    cores.priced[0] += cost


@only_for(Cores, otherwise=0)
def unpriced_ps(cores: Cores) -> int:
    """Return what the work costs that was counted since a clock was last moved."""
    total = 0
    for counter in range(len(cores.counters)):
        total += cores.counters[counter] * cores.unit_ps[counter]
    return int(total - cores.priced[0])


@only_for(Cores)
def charge(cores: Cores, counter: int, units: int) -> None:
    """Count work that only simulated cores are charged."""
    cores.counters[counter] += units


@only_for(Cores, otherwise=False)
def is_busy(cores: Cores, worker: int, free_at: np.ndarray, line: int) -> bool:
    """Return whether a test-and-set would fail, because another core still uses *line*."""
    return bool(free_at[line] > cores.clock[worker])


@only_for(Cores)
def wait_for(cores: Cores, worker: int, free_at: np.ndarray, line: int) -> None:
    """Make a core wait until *line* is free: ``free_at[line]``."""
    cores.clock[worker] = max(cores.clock[worker], free_at[line])


@only_for(Cores)
def leave(cores: Cores, worker: int, free_at: np.ndarray, line: int) -> None:
    """Move a core's clock by its work, and free *line* at that time."""
    spend(cores, worker)
    free_at[line] = cores.clock[worker]


@only_for(Cores)
def occupy(cores: Cores, worker: int, free_at: np.ndarray, line: int, ps: int) -> None:
    """Make a core wait until *line* is free, and let it be busy for *ps* from then on."""
    wait_for(cores, worker, free_at, line)
    free_at[line] = cores.clock[worker] + ps


@only_for(Cores)
def wake(cores: Cores, worker: int, blocked: int, stage: int) -> None:
    """Move all cores in the stage *blocked* to *stage*, at *worker*'s time at the earliest.

    Threads find out by themselves.
    """
    for core in range(len(cores.clock)):
        if cores.workers[core].stage == blocked:
            cores.clock[core] = max(cores.clock[core], cores.clock[worker])
            cores.workers[core].stage = stage


@only_for(Cores)
def finish_task(cores: Cores, worker: int) -> None:
    """Note when the last task was finished."""
    cores.latest[0] = max(cores.latest[0], cores.clock[worker])


def elapse(cores: Cores, physical: int) -> int:
    """Count time from the end of a batch on; return how long it took on *physical* cores, ns.

    A core that several threads share does for all of them together what it does for one. A thread
    has its turns while it waits for others, too.
    """
    threads, elapsed_ps = len(cores.clock), int(cores.latest[0])
    cores.clock[:] = np.maximum(cores.clock - elapsed_ps, 0)
    cores.latest[0] = 0
    if threads > physical:
        elapsed_ps = elapsed_ps * threads // physical
    return elapsed_ps // _PS_PER_NS
