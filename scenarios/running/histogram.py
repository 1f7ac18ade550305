"""Percentiles of any number of values in constant memory."""

from __future__ import annotations

import numpy as np

_STEPS_PER_DOUBLING = 256
_EDGES = np.concatenate([[0], 2 ** (np.arange(1, 63 * _STEPS_PER_DOUBLING) / _STEPS_PER_DOUBLING)])
"""Each bin is 0.27 % wider than the one before: no percentile is further off than that."""


class Histogram:
    """Counts non-negative integers (nanoseconds, say) in bins that widen with the value."""

    def __init__(self) -> None:
        self._counts = np.zeros(len(_EDGES) - 1, np.int64)
        self.max = 0

    def add(self, values: np.ndarray) -> None:
        """Count *values*."""
        if len(values):
            self._counts += np.histogram(values, _EDGES)[0]
            self.max = max(self.max, int(values.max()))

    def percentile(self, percent: float) -> int | None:
        """Return the upper edge of the bin in which *percent* of the values have been passed.

        None when nothing was counted.
        """
        total = int(self._counts.sum())
        if not total:
            return None
        place = int(np.searchsorted(np.cumsum(self._counts), total * percent / 100))
        return min(self.max, int(_EDGES[place + 1]))
