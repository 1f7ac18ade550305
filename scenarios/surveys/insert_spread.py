"""How inserts are spread over a PIM-Tree's subindexes while values drift (PIM-Tree, Figure 13a)."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from joins.hashing import mix
from joins.indexes.pim_tree.pim_tree import SHARED_MERGE_RATIO, PimTree
from netsim.cost import CostProfile
from scenarios.surveys.survey import Survey, Surveyed
from scenarios.synthetic import drifting

_BEFORE, _DRIFTING = 4, 10
"""Lengths of the first two phases, in windows."""
_IDLE = 0.1


class InsertSpreadSurvey(Survey):
    """How the inserts of the second phase are spread, on average over its windows.

    ``fullest_percent`` of them go to the subindex that gets the most; ``idle_percent`` of the
    subindexes get a tenth of the mean or less. ``share.10`` ... ``share.100`` tell how many percent
    of the inserts the first 10 to 100 % of the subindexes get, those with the fewest first.

    Attributes
    ----------
    shift
        How far the mean moves over the phase, in standard deviations.
    window_bits
        The window holds 2^*window_bits* tuples; so many are inserted from one merge to the next.
    """

    of: Literal["insert spread"] = "insert spread"
    shift: Annotated[float, Field(ge=0)] = 0.0
    window_bits: Annotated[int, Field(ge=6, le=26)] = 14

    def take(self, *, seed: int, profile: CostProfile) -> Surveyed:
        """Insert the first two phases, a window at a time; none may be lost."""
        window, whole = 1 << self.window_bits, True
        index = PimTree(dtype="float64", merge_ratio=SHARED_MERGE_RATIO)
        shares = []
        for begin in range(0, (_BEFORE + _DRIFTING) * window, window):
            positions = np.arange(begin, begin + window)
            keys = self._keys(positions, seed)
            if begin >= _BEFORE * window:
                shares.append(np.sort(index.spread(keys)) / window)
            index.insert(keys, positions)
            index.expire(begin)
            index.maintain(0)
            whole &= index.entries(0) == window
        return Surveyed(
            record=_spread(shares), checked="a window of entries after every merge", passed=whole
        )

    def _keys(self, positions: np.ndarray, seed: int) -> np.ndarray:
        window = 1 << self.window_bits
        return drifting(
            positions,
            mix((seed << 48) ^ positions),
            mean=0,
            deviation=1,
            shift=self.shift,
            first=_BEFORE * window,
            tuples=_DRIFTING * window,
        )


def _spread(shares: list[np.ndarray]) -> dict[str, object]:
    """Return the record of ascending *shares* of the subindexes, an array a window."""
    reached = [np.append(0, np.cumsum(share)) for share in shares]
    tenths = {
        str(percent): np.mean([100 * r[len(r[1:]) * percent // 100] for r in reached]).item()
        for percent in range(10, 101, 10)
    }
    idle = [100 * np.mean(share <= _IDLE * share.mean()) for share in shares]
    return {
        "fullest_percent": np.mean([100 * share[-1] for share in shares]).item(),
        "idle_percent": np.mean(idle).item(),
        "share": tenths,
    }
