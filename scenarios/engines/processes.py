"""What engines use: the peak memory of processes, a process for one engine, and a time limit."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from scenarios.process_pool import process_pool
from spark_bridge.errors import EngineFailed

T = TypeVar("T")


def run_alone(work: Callable[..., T], *arguments: object) -> tuple[T, int]:
    """Run *work* in a process of its own; return its result and the process's peak memory, bytes.

    An interrupt ends that process and all that it has started.
    """
    with process_pool(1) as pool:
        return pool.submit(_with_peak_bytes, work, arguments).result()


def _with_peak_bytes(work: Callable[..., T], arguments: tuple[object, ...]) -> tuple[T, int]:
    return work(*arguments), peak_bytes(os.getpid())


def peak_bytes(process: int) -> int:
    """Return the peak resident bytes of *process* and its living descendants, added up."""
    folder = Path("/proc") / str(process)
    try:
        status = (folder / "status").read_text()
        children = [list_.read_text() for list_ in folder.glob("task/*/children")]
    except OSError:  # it ended meanwhile
        return 0
    peak = next((line for line in status.splitlines() if line.startswith("VmHWM")), "VmHWM: 0")
    return int(peak.split()[1]) * 1024 + sum(peak_bytes(int(c)) for c in " ".join(children).split())


@contextmanager
def limit_time(seconds: float | None) -> Iterator[None]:
    """Interrupt the body of the ``with`` after *seconds* of wall time; None is no limit.

    The interrupt is that of Ctrl-C, on which every engine ends its processes. It works in the main
    thread only.

    Raise :exc:`EngineFailed` in place of whatever the interrupted engine raised.
    """
    if seconds is None:
        yield
        return
    over = False

    def interrupt(*_: object) -> None:
        nonlocal over
        over = True
        raise KeyboardInterrupt  # Ray and Spark lose other exceptions

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except (KeyboardInterrupt, Exception) as error:
        if not over:
            raise
        raise EngineFailed(f"stopped: it had not ended after {seconds:.3g} s") from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
