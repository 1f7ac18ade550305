"""Which structure suits a stream's next subwindow: the strategy of section V-A4."""

from __future__ import annotations

import numpy as np

from joins.indexes.panjoin.structure import StructureName
from joins.state import State

LARGE_BATCH = 65_536
LARGE_SELECTIVITY = 1_024
"""Tuples a batch, and matches of a probe in a subwindow, from which on BI-Sort is chosen: where it
overtakes the others in Figure 13."""

PARTS = 16
SHARE_MOST = 0.25
"""Values drift when of `PARTS` ranges that held equal shares one subwindow ago a single one now
holds this much: a RaP-Table would put a quarter of the tuples into a sixteenth of its partitions.
"""


class Choice:
    """Measures one stream, and chooses by what was measured since the choice before.

    "If N_Bat is large or S is large, choose BI-Sort; otherwise, if values do not vary too often and
    do not gradually increase, RaP-Table; and if not, WiB+-Tree" is how the paper puts it. Where
    nothing is known of the values yet, they are taken to vary.
    """

    def __init__(self) -> None:
        self._batches = self._tuples = self._probed = self._matches = 0
        self._quantiles = np.empty(0, np.int64)
        self._in_part = np.zeros(PARTS, np.int64)
        self._sample = np.empty(0, np.int64)

    def store(self, codes: np.ndarray) -> None:
        """Take note of a batch to be stored, as ascending codes."""
        if not len(codes):
            return
        self._batches += 1
        self._tuples += len(codes)
        if len(self._quantiles):
            cuts = np.searchsorted(codes, self._quantiles, "right")
            self._in_part += np.diff(np.concatenate([[0], cuts, [len(codes)]]))
        sample = codes[:: max(1, len(codes) // PARTS)]
        self._sample = np.concatenate([self._sample, sample])

    def hear(self, probed: int, matches: int) -> None:
        """Take note of how many probes of how many subwindows found how much."""
        self._probed += probed
        self._matches += matches

    def choose(self) -> StructureName:
        """Return the structure for the subwindow that begins now, and start measuring anew."""
        chosen: StructureName = "wib_tree"
        stored = int(self._in_part.sum())
        if self._tuples >= LARGE_BATCH * max(
            1, self._batches
        ) or self._matches >= LARGE_SELECTIVITY * max(1, self._probed):
            chosen = "bi_sort"
        elif stored and self._in_part.max() <= SHARE_MOST * stored:
            chosen = "rap_table"
        ranks = np.arange(1, PARTS) * len(self._sample) // PARTS
        quantiles = np.sort(self._sample)[ranks] if len(self._sample) else self._quantiles
        self.__init__()  # type: ignore[misc]
        self._quantiles = quantiles
        return chosen

    def snapshot(self) -> State:
        """Return what was measured."""
        return {
            "counts": [self._batches, self._tuples, self._probed, self._matches],
            "quantiles": self._quantiles.copy(),
            "in_part": self._in_part.copy(),
            "sample": self._sample.copy(),
        }

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._batches, self._tuples, self._probed, self._matches = state["counts"]
        self._quantiles = state["quantiles"]
        self._in_part = state["in_part"].copy()
        self._sample = state["sample"]
