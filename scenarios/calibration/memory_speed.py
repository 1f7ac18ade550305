"""Measure how fast this machine reads memory, by how much it reads and how many cores do.

Each core follows a chain of places that jumps all over its memory, several chains at a time, as
searches down a tree do. What it takes is measured alone, beside other cores that read memory of
their own, and beside others that read the same memory.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np

from joins.machine.compiling import kernel
from joins.machine.memory import aligned
from joins.threads import usable_cores
from netsim.cost import Memory

SIZES = tuple(1 << bits for bits in range(14, 28))
"""Bytes that are read from."""
_READS = 1 << 20
_ROUNDS = 3
_CHAINS = 4
_WORDS_A_LINE = 8


@kernel
def chase(following: np.ndarray, steps: int) -> int:
    """Follow a chain of places: each read waits for the one before."""
    place = 0
    for _ in range(steps):
        place = int(following[place])
    return place


@kernel
def chase_many(following: np.ndarray, starts: np.ndarray, steps: int) -> int:
    """Follow four chains side by side; return where they end, in all."""
    a, b, c, d = starts[0], starts[1], starts[2], starts[3]
    for _ in range(steps):
        a = following[a]
        b = following[b]
        c = following[c]
        d = following[d]
    return int(a + b + c + d)


def chain(nbytes: int, seed: int = 1) -> np.ndarray:
    """Return memory of so many bytes as one chain: a place per line, in random order."""
    following = aligned((nbytes // 8,))
    lines = np.random.default_rng(seed).permutation(len(following) // _WORDS_A_LINE)
    following[lines * _WORDS_A_LINE] = np.roll(lines, -1) * _WORDS_A_LINE
    return following


def measure_memory(sizes: Sequence[int] = SIZES, cores: int | None = None) -> Memory:
    """Return what a read takes on this machine, by the bytes that are read from.

    Parameters
    ----------
    sizes
        Bytes, ascending.
    cores
        How many read at once where several do; by default all of the machine.
    """
    cores = cores or usable_cores()
    alone, waits, apart, same = [], [], [], []
    for nbytes in sizes:
        chains = [chain(nbytes, seed) for seed in range(1, cores + 1)]
        waits.append(wait_ps(chains[0]))
        alone.append(_read_ps(chains[:1]))
        apart.append(_read_ps(chains))
        same.append(_read_ps([chains[0]] * cores))
    return Memory(
        cores=cores,
        sizes=tuple(sizes),
        wait_ps=tuple(waits),
        read_ps=tuple(alone),
        apart_percents=_percents(apart, alone),
        same_percents=_percents(same, alone),
    )


def _percents(together: Sequence[int], alone: Sequence[int]) -> tuple[int, ...]:
    return tuple(
        max(100, round(100 * many / one)) for many, one in zip(together, alone, strict=True)
    )


def wait_ps(following: np.ndarray) -> int:
    """Return what a read takes, in a `chain`, that waits for the one before."""
    chase(following, len(following))
    times = []
    for _ in range(_ROUNDS):
        started = time.thread_time()
        chase(following, _READS)
        times.append(time.thread_time() - started)
    return round(min(times) / _READS * 1e12)


def _read_ps(chains: Sequence[np.ndarray]) -> int:
    """Return what a read takes each of several cores, in several chains, if all read at once."""
    barrier = Barrier(len(chains))

    def read(following: np.ndarray) -> float:
        lines = len(following) // _WORDS_A_LINE
        starts = np.arange(_CHAINS) * (lines // _CHAINS) * _WORDS_A_LINE
        chase_many(following, starts, lines)
        times = []
        for _ in range(_ROUNDS):
            barrier.wait(timeout=60)
            started = time.thread_time()
            chase_many(following, starts, _READS // _CHAINS)
            times.append(time.thread_time() - started)
        return min(times)

    with ThreadPoolExecutor(len(chains)) as pool:
        times = list(pool.map(read, chains))
    return round(sum(times) / len(times) / _READS * 1e12)
