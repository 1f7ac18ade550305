"""Threads inside a worker (section III-G3)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np

from joins.threads import side_by_side

BLOCK = 256
"""Probes per block. Searches start afresh at a block, so that the work counted does not depend on
how blocks are dealt out to threads; and what a block prefetches fits into the first cache."""

_FEWEST = 8
"""Blocks of a share: for fewer, calling a kernel takes too long beside what it does. With fewer
than two shares a thread, waking one takes longer than what it would do."""


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
