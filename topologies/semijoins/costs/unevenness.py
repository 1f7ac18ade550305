"""How far streams are from the even values that cost formulas assume.

Few frequent values are in every window and asked for in every interval: more tuples match than of
as many even ones, so that semijoins leave out less of what they ship.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import permutations

import numpy as np

from topologies.semijoins.costs.operands import distinct_among
from topologies.semijoins.costs.statistics import StreamStatistics


def unevenness(columns: Sequence[np.ndarray], streams: Sequence[StreamStatistics]) -> float:
    """Return how many times as many tuples match as even values would let, at the most; 1 or more.

    Parameters
    ----------
    columns
        Values of the join attribute in each stream.
    streams
        The streams that they are from.
    """
    values = reduce(np.union1d, columns)
    seen = [np.isin(values, column) for column in columns]
    frequency = [
        np.bincount(np.searchsorted(values, column), minlength=len(values)) / len(column)
        for column in columns
    ]
    worst = 1.0
    for a, b in permutations(range(len(columns)), 2):
        if not (seen[a] & seen[b]).any():
            continue
        # Tuples of a that meet those of b in a window: b's own, or as long as the window of a.
        window_s = [streams[one].window_rows / streams[one].rate_tps for one in (a, b)]
        for rows in (streams[b].rate_tps * seconds for seconds in window_s):
            met = frequency[a] @ -np.expm1(rows * np.log1p(-np.minimum(frequency[b], 1 - 1e-12)))
            values_of_b = int(seen[b].sum())
            even = frequency[a] @ seen[b] * distinct_among(values_of_b, rows) / values_of_b
            worst = max(worst, float(met / even))
    return worst
