"""Runs work on several threads: kernels release the lock of the interpreter."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, TypeVar

ROWS_A_THREAD = 4096
"""Rows for which another thread is worth waking: that takes some 50 µs, a row some tens of ns."""

Item = TypeVar("Item")
Result = TypeVar("Result")


def usable_cores() -> int:
    """Return how many cores this process may use: all of the machine, unless it is pinned."""
    if hasattr(os, "sched_getaffinity"):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def threads_for(rows: int, threads: int, rows_a_thread: int = ROWS_A_THREAD) -> int:
    """Return how many of *threads* help with so many rows, at least 1."""
    return max(1, min(threads, rows // rows_a_thread))


def side_by_side(
    work: Callable[[Item], Result], items: Sequence[Item], threads: int
) -> list[Result]:
    """Return what *work* returns for each of *items*, which several threads take in turn.

    The caller is one of them: it begins at once, and goes on until nothing is left, while the
    others wake up.
    """
    results: list[Any] = [None] * len(items)
    left = iter(range(len(items)))  # The interpreter hands out each of them once.

    def take_turns() -> None:
        for place in left:
            results[place] = work(items[place])

    others = [_pool(threads - 1).submit(take_turns) for _ in range(threads - 1)]
    take_turns()
    for other in others:
        if not other.cancel():  # It has begun, or is done.
            other.result()
    return results
