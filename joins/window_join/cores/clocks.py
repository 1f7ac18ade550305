"""Clocks of simulated cores: what work takes, who waits for whom."""

from __future__ import annotations

import numpy as np

from joins.machine.atomics import load
from joins.machine.compiling import kernel
from joins.window_join.cores.state import (
    AFTER_DRAIN,
    CLOCK,
    DRAINING,
    FIRST_BLOCKED,
    FREE,
    IDLE,
    PARKED,
    STAGE,
    Clocks,
    Cores,
)
from joins.window_join.live.state import RUNNING, Live

_PS_PER_NS = 1000

SHARED_CORE_PERCENT = 124
"""What a core does that runs two threads or more, over what it does for one: hyper-threading gives
24 % (Figure 12a)."""


def elapse(cores: Clocks, physical: int) -> int:
    """Count time from the end of a batch on; return how long it took on *physical* cores, ns."""
    state, threads = cores.state, len(cores.state)
    elapsed_ps = int(cores.latest[0])
    state[:, CLOCK] = np.maximum(state[:, CLOCK] - elapsed_ps, 0)
    state[state[:, STAGE] == IDLE, STAGE] = FREE
    cores.latest[0] = 0
    if threads > physical:
        shared = physical * SHARED_CORE_PERCENT
        elapsed_ps = max(elapsed_ps, elapsed_ps * threads * 100 // shared)
    return elapsed_ps // _PS_PER_NS


@kernel
def next_core(cores: Clocks) -> int:
    """Return the core that is done first of those that nothing blocks, -1 if there is none."""
    state = cores.state
    first, earliest = -1, 0
    for core in range(len(state)):
        if state[core, STAGE] < FIRST_BLOCKED and (first < 0 or state[core, CLOCK] < earliest):
            first, earliest = core, state[core, CLOCK]
    return first


@kernel
def total_ps(cores: Clocks, counters: np.ndarray) -> int:
    """Return what all work counted so far takes."""
    total = 0
    for i in range(len(counters)):
        total += counters[i] * cores.unit_ps[i]
    return total


@kernel
def spend(cores: Clocks, core: int, before: int, counters: np.ndarray) -> None:
    """Move a core's clock by what has been counted since the total was *before*."""
    cores.state[core, CLOCK] += total_ps(cores, counters) - before


@kernel
def acquire(cores: Clocks, core: int, free: np.ndarray, lock: int) -> None:
    """Let a core wait until a lock is given back."""
    cores.state[core, CLOCK] = max(cores.state[core, CLOCK], free[lock])


@kernel
def release(cores: Clocks, core: int, free: np.ndarray, lock: int) -> None:
    """Give a lock back at a core's present time."""
    free[lock] = cores.state[core, CLOCK]


@kernel
def wake(cores: Cores, core: int, blocked: int, stage: int) -> None:
    """Let all cores that are *blocked* go on, at *core*'s present time at the earliest."""
    state = cores.state
    for other in range(len(state)):
        if state[other, STAGE] == blocked:
            state[other, CLOCK] = max(state[other, CLOCK], state[core, CLOCK])
            state[other, STAGE] = stage


@kernel
def drained(live: Live, cores: Cores, core: int) -> None:
    """Let the merging core go on if *core* has finished the last task it had to wait for."""
    if load(live.words, RUNNING, 0) == 0:
        wake(cores, core, DRAINING, cores.merge[AFTER_DRAIN])


@kernel
def open_gate(cores: Cores, core: int) -> None:
    """Let those go on that found the gate before the queue closed."""
    wake(cores, core, PARKED, FREE)
