"""From the model's cost of a tuple to the processor time that it takes on one machine.

`joins.window_join.model.prediction` adds up work at the price of its units: it knows no caches. How
much longer a machine takes depends on which of its memories holds the windows and their index, and
on whether the join waits for it (a tree) or only reads it faster than it comes (nested loops). So
an index is timed at windows of several sizes, and what lies between two of them is interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import inf

import numpy as np

CALIBRATED_WINDOWS = tuple(1 << bits for bits in (12, 15, 18, 20, 22))
"""Windows, in tuples, that an index is timed at; others are predicted.

They lie closest where windows and their indexes outgrow the last cache.
"""


@dataclass(frozen=True, kw_only=True)
class MachineTimes:
    """What an index's work takes on a machine.

    Attributes
    ----------
    windows
        Lengths in tuples that it was timed at, ascending.
    ratios
        At each of them, processor time over the model's.

    Raise :exc:`ValueError` when they do not belong together.
    """

    windows: tuple[int, ...]
    ratios: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.windows or len(self.windows) != len(self.ratios):
            raise ValueError(f"{len(self.ratios)} ratios for {len(self.windows)} windows")
        if any(later <= earlier for earlier, later in pairwise((0, *self.windows))):
            raise ValueError(f"windows {self.windows} do not ascend from 1")
        if not all(0 < ratio < inf for ratio in self.ratios):
            raise ValueError(f"ratios {self.ratios} are not all above 0 and finite")

    def tuple_ns(self, predicted_ns: float, window: float) -> float:
        """Return the processor time of a tuple, given the model's, ns.

        Between two windows the ratio changes by the same factor with each doubling; beyond the
        smallest and the largest it stays.
        """
        known = np.log(self.windows), np.log(self.ratios)
        return predicted_ns * float(np.exp(np.interp(np.log(window), *known)))
