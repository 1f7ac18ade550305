"""From the model's cost of a tuple to the processor time that it takes on one machine.

`joins.window_join.prediction` adds up work at the price of its units: it knows no caches. Three
constants an index, none of them negative, make it a machine's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

CALIBRATED_BITS = (12, 16, 20)
"""Windows of 2^BITS tuples that the constants are fitted at; others are predicted."""
_LEAST_BITS = 12
_CACHED_BITS = 18
"""Windows of so many tuples, and their indexes, just fit into the last cache."""


@dataclass(frozen=True, kw_only=True)
class MachineTimes:
    """What an index's work takes on a machine.

    Attributes
    ----------
    work_percent
        The model's time, in percent.
    doubling_ps
        What each doubling of the window beyond 2^12 tuples adds to a tuple, as trees outgrow one
        cache after the other, picoseconds.
    uncached_ps
        What it adds on top beyond 2^18 tuples, where they have outgrown the last.
    """

    work_percent: int
    doubling_ps: int
    uncached_ps: int

    def tuple_ns(self, predicted_ns: float, window: float) -> float:
        """Return the processor time of a tuple, given the model's, ns."""
        constants = [self.work_percent / 100, self.doubling_ps / 1000, self.uncached_ps / 1000]
        return float((_terms([predicted_ns], [window]) @ constants).item())


def fit_times(
    windows: Sequence[float], predicted_ns: Sequence[float], took_ns: Sequence[float]
) -> MachineTimes:
    """Return the constants that bring the model nearest to what tuples *took*, window by window.

    Errors are relative, for the largest window must not outweigh the others.
    """
    terms = _terms(predicted_ns, windows) / np.array(took_ns)[:, np.newaxis]
    (work, doubling_ns, uncached_ns), _ = nnls(terms, np.ones(len(terms)))
    return MachineTimes(
        work_percent=round(100 * work),
        doubling_ps=round(1000 * doubling_ns),
        uncached_ps=round(1000 * uncached_ns),
    )


def _terms(predicted_ns: Sequence[float], windows: Sequence[float]) -> np.ndarray:
    bits = np.log2(np.maximum(windows, 1))
    beyond = [np.maximum(bits - least, 0) for least in (_LEAST_BITS, _CACHED_BITS)]
    return np.stack([predicted_ns, *beyond], axis=1)
