"""Worker processes, programs of ours beside this one, and the memory that processes take.

Workers end with this process, whatever ends it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import TypeVar

from actors.hosting.descendants import ending_with

T = TypeVar("T")

_ORIGIN = ("__file__", "__spec__")
"""Where it is written what file a module came from."""


class _Process(SpawnProcess):
    """A process that does not import the caller's script: it would run all of that again.

    It never sees a Ctrl-C: a terminal sends that to all processes, and one that is importing would
    print a traceback. The process that started it sees to its end.
    """

    def start(self) -> None:
        """Start it, while the script looks as if it came from no file that could be imported."""
        unblocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # is inherited
        script = vars(sys.modules["__main__"])
        origin = {name: value for name, value in script.items() if name in _ORIGIN}
        script.update(dict.fromkeys(origin))
        try:
            super().start()
        finally:
            script.update(origin)
            signal.pthread_sigmask(signal.SIG_SETMASK, unblocked)


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


def start_program(module: str, *, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """Start *module* as a program, which the caller kills when it needs it no more.

    It prints nothing, and a Ctrl-C is for this process alone.
    """
    return subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


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
