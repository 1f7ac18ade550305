"""The machine that work runs on: its name and libraries, how fast it reads memory, its processes.

Memory is measured by how much of it is read, and how many cores do. Each core follows a chain of
places that jumps all over its memory, several chains at a time, as searches down a tree do. What it
takes is measured alone, beside other cores that read memory of their own, and beside others that
read the same memory.

Processes that work is given to end with this one, whatever ends it.
"""

from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from threading import Barrier
from typing import TypeVar

import numpy as np
import psutil

from actors.hosting.descendants import ending_with
from joins.machine.compiling import kernel
from joins.machine.memory import aligned
from joins.threads import usable_cores
from netsim.cost import Memory

_LIBRARIES = ("joinsim", "numpy", "numba", "pyarrow", "pyspark", "ray", "simpy")
_CPU_INFO = Path("/proc/cpuinfo")  # Linux; platform.processor() is empty there.

T = TypeVar("T")

_ORIGIN = ("__file__", "__spec__")
"""What says of a module where it came from."""

SIZES = tuple(1 << bits for bits in range(14, 28))
"""Bytes that are read from."""
_READS = 1 << 20
_ROUNDS = 3
_CHAINS = 4
_WORDS_A_LINE = 8


@cache
def describe_machine() -> dict[str, str | int]:
    """Return the ``processor``'s name, how many ``cores`` a process may use, and the ``system``.

    Two machines with equal descriptions are taken for one kind.
    """
    return {
        "processor": _processor(),
        "cores": usable_cores(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that a run depends on, where they are."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):  # Spark and Ray are extras
            found[name] = version(name)
    return found


def free_memory_bytes() -> int:
    """Return how many bytes a process can take without the system swapping."""
    return int(psutil.virtual_memory().available)


def _processor() -> str:
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


class _Process(SpawnProcess):
    """A process that does not import the caller's script: it would run all of that again."""

    def start(self) -> None:
        """Start it, while the script looks as if it came from no file that could be imported."""
        script = vars(sys.modules["__main__"])
        origin = {name: value for name, value in script.items() if name in _ORIGIN}
        script.update(dict.fromkeys(origin))
        try:
            super().start()
        finally:
            script.update(origin)


class _Spawning(SpawnContext):
    Process = _Process


@contextmanager
def process_pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """Yield a pool of so many processes, which are started at once.

    What they are given must be of modules: they know nothing of the script that runs.

    At the end of the ``with``, after an interrupt too, work that has not begun is dropped, and the
    processes end with all that they have started.
    """
    resource_tracker.ensure_running()  # multiprocessing's, for all such processes
    # Not forked: threads of Arrow would be missing in the copies.
    pool = ProcessPoolExecutor(processes, mp_context=_Spawning())

    def stop() -> None:
        pool.shutdown(wait=False, cancel_futures=True)  # it would wait for the work to end

    def start() -> None:
        for future in [pool.submit(os.getpid) for _ in range(processes)]:
            future.result()

    with ending_with(stop, start=start):
        yield pool


def run_alone(work: Callable[..., T], *arguments: object) -> tuple[T, int]:
    """Run *work* in a process of its own; return its result and the process's peak memory, bytes.

    An interrupt ends that process and all that it has started.
    """
    with process_pool(1) as pool:
        return pool.submit(_with_peak_bytes, work, arguments).result()


def _with_peak_bytes(work: Callable[..., T], arguments: tuple[object, ...]) -> tuple[T, int]:
    return work(*arguments), tree_peak_bytes(os.getpid())


def tree_peak_bytes(process: int) -> int:
    """Return the peak resident bytes of *process* and its living descendants, added up."""
    folder = Path("/proc") / str(process)
    try:
        status = (folder / "status").read_text()
        children = [list_.read_text() for list_ in folder.glob("task/*/children")]
    except OSError:  # it ended meanwhile
        return 0
    peak = next((line for line in status.splitlines() if line.startswith("VmHWM")), "VmHWM: 0")
    below = (tree_peak_bytes(int(child)) for child in " ".join(children).split())
    return int(peak.split()[1]) * 1024 + sum(below)


@kernel
def chase(following: np.ndarray, steps: int) -> int:
    """Follow a chain of places: each read waits for the one before."""
    place = 0
    for _ in range(steps):
        place = int(following[np.uint64(place)])
    return place


@kernel
def chase_many(following: np.ndarray, starts: np.ndarray, steps: int) -> int:
    """Follow four chains side by side; return where they end, in all."""
    a, b, c, d = starts[0], starts[1], starts[2], starts[3]
    for _ in range(steps):
        a = following[np.uint64(a)]
        b = following[np.uint64(b)]
        c = following[np.uint64(c)]
        d = following[np.uint64(d)]
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
