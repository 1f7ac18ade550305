"""The spans of virtual time that a report's curves are drawn over."""

from __future__ import annotations

from dataclasses import dataclass
from math import isqrt

import numpy as np

BINS_MAX = 60
"""Time bins over a run: as many as can be told apart across the width of a page."""
_BINS_MIN = 12


@dataclass(frozen=True, kw_only=True)
class TimeBins:
    """Equal spans of virtual time from 0 on: *count* of them, each *width_ns* long."""

    width_ns: int
    count: int

    @classmethod
    def over(cls, virtual_ns: int, messages: int) -> TimeBins:
        """Return bins that cover 0 to *virtual_ns*, fewer of them the fewer *messages* there were.

        There is at least one, of at least 1 ns.
        """
        at_most = min(BINS_MAX, max(_BINS_MIN, isqrt(messages)))
        width_ns = max(1, -(-virtual_ns // at_most))
        return cls(width_ns=width_ns, count=max(1, -(-virtual_ns // width_ns)))

    @property
    def edges_ns(self) -> np.ndarray:
        """Where bins begin and, last, where the last one ends: *count* + 1 times."""
        return np.arange(self.count + 1) * self.width_ns

    def of(self, at_ns: np.ndarray) -> np.ndarray:
        """Return the bin of each time; the end of the last bin belongs to it."""
        return np.minimum(at_ns // self.width_ns, self.count - 1)
