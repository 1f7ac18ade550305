"""Ending what others start below this process, also when they are interrupted while they do."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psutil

_PR_SET_CHILD_SUBREAPER = 36  # of Linux's prctl: see its manual page
_LEAVE_S = 2  # for processes to end by themselves


@contextmanager
def ending_with(stop: Callable[[], object], start: Callable[[], object]) -> Iterator[None]:
    """Call *start*, and at the end of the ``with`` *stop*; then end what is left of what it began.

    Ray, interrupted while it comes up, forgets some of its processes, and its agents go on for a
    minute without the others. Processes that somebody else starts here are left alone.
    """
    before = psutil.Process().children()
    started: list[psutil.Process] = []
    try:
        try:
            with _adopting_orphans():
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
def _adopting_orphans() -> Iterator[None]:
    """Have processes below whose parents end become children of this one; only Linux can do it."""
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
