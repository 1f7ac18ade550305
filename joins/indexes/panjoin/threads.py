"""Threads inside a worker (section III-G3)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

BLOCK = 256
"""Probes per block. Searches start afresh at a block, so that the work counted does not depend on
how blocks are dealt out to threads; and what a block prefetches fits into the first cache."""

_FEWEST = 8
"""Blocks of a share: for fewer, calling a kernel takes too long beside what it does. With fewer
than two shares a thread, waking one takes longer than what it would do."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def side_by_side(
    work: Callable[[Item], Result], items: Sequence[Item], threads: int
) -> list[Result]:
    """Return what *work* returns for each of *items*, which several threads take by turns.

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


def in_threads(answer: Callable[[int, int], np.ndarray], probes: int, threads: int) -> np.ndarray:
    """Answer *probes* probes in several threads; return the sum of the counters.

    Probes are sorted, so a run of consecutive ones goes to a run of consecutive partitions: that is
    how the work is divided. *answer* is called with begin and end of a run, in whole blocks.

    A share is a part of what is left: few calls for most of it, and at the end no thread waits long
    for another, though where ranges are wider a share takes longer.
    """
    blocks = -(-probes // BLOCK)
    if threads == 1 or blocks < 2 * threads * _FEWEST:
        return answer(0, probes)
    cuts = [0]
    while cuts[-1] < blocks:
        cuts.append(min(blocks, cuts[-1] + max(_FEWEST, (blocks - cuts[-1]) // (2 * threads))))
    ends = [min(cut * BLOCK, probes) for cut in cuts]
    shares = list(pairwise(ends))
    return np.sum(side_by_side(lambda share: answer(*share), shares, threads), axis=0)
