"""Threads inside a worker (section III-G3)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np

BLOCK = 256
"""Probes per block. Searches start afresh at a block, so that the work counted does not depend on
how blocks are dealt out to threads; and what a block prefetches fits into the first cache."""

_SHARES_PER_THREAD = 4
"""More shares than threads: where ranges are wider, a share takes longer. With fewer blocks than
shares, waking a thread takes longer than what it would do."""


@cache
def _pool(threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads)


def in_threads(answer: Callable[[int, int], np.ndarray], probes: int, threads: int) -> np.ndarray:
    """Answer *probes* probes in several threads; return the sum of the counters.

    Probes are sorted, so a run of consecutive ones goes to a run of consecutive partitions: that is
    how the work is divided. *answer* is called with begin and end of a run, in whole blocks.
    """
    blocks = -(-probes // BLOCK)
    shares = threads * _SHARES_PER_THREAD
    if threads == 1 or blocks < shares:
        return answer(0, probes)
    cuts = [min(share * blocks // shares * BLOCK, probes) for share in range(shares + 1)]
    return np.sum(list(_pool(threads).map(answer, cuts[:-1], cuts[1:])), axis=0)
