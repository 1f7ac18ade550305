"""Ending what others start below this process, also when they are interrupted while they do."""

from __future__ import annotations

import ctypes
import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil

from actors.hosting import watcher

_PR_SET_CHILD_SUBREAPER = 36  # of Linux's prctl: see its manual page
_LEAVE_S = 2  # for processes to end by themselves


@contextmanager
def ending_with(stop: Callable[[], object], start: Callable[[], object]) -> Iterator[None]:
    """Call *start*, and *stop* at the end of the ``with``; then end all processes it left.

    Ray, interrupted while it comes up, forgets some of its processes, and its agents go on for a
    minute without the others. Processes that somebody else starts here are left alone.

    If this process is killed, they end as well, within seconds (`watcher`).
    """
    with _watched() as mark:
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


@contextmanager
def _watched() -> Iterator[str]:
    """Start a watcher that ends all processes with the yielded mark if this one is killed."""
    mark = secrets.token_hex(8)
    # In a session of its own and not marked: it survives when the process group, or everything
    # with the mark, is ended.
    with subprocess.Popen(
        [sys.executable, "-I", watcher.__file__, mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={name: value for name, value in os.environ.items() if name != watcher.MARK},
        start_new_session=True,
    ) as process:
        try:
            yield mark
        finally:
            assert process.stdin
            with suppress(BrokenPipeError):
                process.stdin.write(b".")
                process.stdin.close()


@contextmanager
def _environment(mark: str) -> Iterator[None]:
    """Mark new processes for the watcher."""
    # SPT_NOENV: Ray's processes keep their environment intact when they change their title.
    changed = {watcher.MARK: mark, "SPT_NOENV": "1"}
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
