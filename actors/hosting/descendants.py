"""Ending what others start below this process, also when it is interrupted or killed.

Run as a script, this file is the watcher of the process that runs it, and imports nothing of ours:
whatever ends a process, even a signal that nothing can handle, the system closes its pipe to the
watcher. What it started has no parent then, and is recognised by a variable of its environment,
which processes inherit. A process that has ended them all sends its watcher a byte, and the watcher
does nothing.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO

import psutil

_MARK = "JOINSIM_STARTED_BY"
"""Variable of the environment of what was started, for the watcher."""

_PR_SET_CHILD_SUBREAPER = 36  # of Linux's prctl: see its manual page
_LEAVE_S = 2  # for processes to end by themselves
_AGAIN_S = 0.2
_QUIET = 5
"""So many times in turn nothing may be left: one that was just being started is not missed."""


@contextmanager
def ending_with(stop: Callable[[], object], start: Callable[[], object]) -> Iterator[None]:
    """Call *start*, and *stop* at the end of the ``with``; then end all processes it left.

    Ray, interrupted while it comes up, forgets some of its processes, and its agents go on for a
    minute without the others. Processes that somebody else starts here are left alone.

    If this process is killed, or interrupted once more as it ends them, they end as well, within
    seconds (`_end_all_marked`).
    """
    with _watched() as (mark, watcher):
        before = psutil.Process().children()
        started: list[psutil.Process] = []
        try:
            try:
                with _adopting_orphans(), _environment(mark):
                    start()
            finally:
                started = [child for child in psutil.Process().children() if child not in before]
            yield
        finally:
            others = [child for child in psutil.Process().children() if child not in started]
            with _adopting_orphans():
                stop()
                _end_all_but(others)
            with suppress(BrokenPipeError):
                watcher.write(b".")


@contextmanager
def _watched() -> Iterator[tuple[str, IO[bytes]]]:
    """Start a watcher that ends all processes with a mark, unless it is sent a byte.

    Yield the mark, and where the byte is to be written.
    """
    mark = os.urandom(8).hex()
    # In a session of its own and not marked: it survives when the process group, or everything
    # with the mark, is ended.
    with subprocess.Popen(
        [sys.executable, "-I", __file__, mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if name != _MARK},
        start_new_session=True,
        bufsize=0,
    ) as process:
        assert process.stdin
        yield mark, process.stdin


@contextmanager
def _environment(mark: str) -> Iterator[None]:
    """Mark new processes for the watcher."""
    # SPT_NOENV: Ray's processes keep their environment intact when they change their title.
    changed = {_MARK: mark, "SPT_NOENV": "1"}
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@contextmanager
def _adopting_orphans() -> Iterator[None]:
    """Make this process adopt descendants whose parents end (on Linux only)."""
    adopt = ctypes.CDLL(None).prctl if sys.platform == "linux" else lambda *_: None
    adopt(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        adopt(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _end_all_but(others: list[psutil.Process]) -> None:
    while left := [child for child in psutil.Process().children() if child not in others]:
        _, left = psutil.wait_procs(left, timeout=_LEAVE_S)
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(left)


def _end_all_marked(mark: str) -> None:
    """Kill all processes that have this *mark*, until there are none."""
    quiet = 0
    while quiet < _QUIET:
        quiet += 1
        for process in psutil.process_iter():
            with suppress(psutil.Error, OSError):
                if process.environ().get(_MARK) == mark and process.status() != "zombie":
                    process.kill()
                    quiet = 0
        time.sleep(_AGAIN_S)


if __name__ == "__main__":
    if not sys.stdin.buffer.read(1):
        _end_all_marked(sys.argv[1])
