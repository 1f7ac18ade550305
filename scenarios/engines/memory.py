"""Peak memory of real processes, as the system counts it, and a process to be counted alone."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context, resource_tracker
from pathlib import Path
from typing import TypeVar

from actors.hosting.descendants import ending_with

T = TypeVar("T")


def alone(work: Callable[..., T], *arguments: object) -> tuple[T, int]:
    """Run *work* in a process of its own; return what it returns, and that process's peak bytes.

    An interrupt ends that process and all that it has started.
    """
    resource_tracker.ensure_running()  # multiprocessing's, for all such processes
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))

    def stop() -> None:
        pool.shutdown(wait=False)  # it would wait for the work to end

    with ending_with(stop, start=lambda: pool.submit(int).result()):
        return pool.submit(_weighed, work, arguments).result()


def _weighed(work: Callable[..., T], arguments: tuple[object, ...]) -> tuple[T, int]:
    return work(*arguments), peak_bytes(os.getpid())


def peak_bytes(process: int) -> int:
    """Return the peak resident bytes of *process* and its living descendants, added up."""
    folder = Path("/proc") / str(process)
    try:
        status = (folder / "status").read_text()
        children = [list_.read_text() for list_ in folder.glob("task/*/children")]
    except OSError:  # it ended meanwhile
        return 0
    told = next((line for line in status.splitlines() if line.startswith("VmHWM")), "VmHWM: 0")
    return int(told.split()[1]) * 1024 + sum(peak_bytes(int(c)) for c in " ".join(children).split())
