"""RaP-Table: the Range Partition Table (section III-B).

P partitions between splitters, their tuples unsorted in an LLAT. The splitters come from what was
sampled in the subwindow before (`RapTable.sampled`), so that they adapt to the values but trail
behind values that drift.

The first subwindow of a stream has no predecessor. The paper then spreads the splitters over all
32-bit integers; values here have 64 bits or are floats, so they are spread between the least and
the greatest value of the first batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.indexes.panjoin.answering import Output, Probes, Stored, new_counters, work_of
from joins.indexes.panjoin.llat import PTR_G, Llat, append, make_llat, scan_partitions
from joins.indexes.panjoin.rebound import rebound
from joins.indexes.panjoin.splitters import adjust, even_splitters
from joins.indexes.panjoin.threads import BLOCK
from joins.machine.compiling import kernel
from joins.work import INSERTS, NO_WORK, Work

COUNT, LEAST, GREATEST = range(3)
"""Rows of the histograms."""


class RapTable:
    """The tuples of a subwindow by ranges of values.

    Parameters
    ----------
    capacity
        N_Sub, the most tuples.
    partitions
        P.
    sigma
        σ, above 1: room of an LLAT entry over that of an even share.
    dtype
        The values' dtype, in which splitters are interpolated.
    splitters
        P - 1 ascending codes; None takes them from the first batch.
    """

    def __init__(
        self,
        capacity: int,
        partitions: int,
        sigma: float,
        dtype: str,
        splitters: np.ndarray | None = None,
    ) -> None:
        self._made_of = (capacity, partitions, sigma, dtype)
        self._dtype = dtype
        self._splitters = None if splitters is None else splitters.reshape(1, -1).copy()
        self.llat = make_llat(capacity, partitions, sigma)
        self.llat.state[PTR_G] = partitions
        self.llat.follow[: partitions - 1] = np.arange(1, partitions)
        bounds = np.iinfo(np.int64)
        self._histograms = np.empty((3, partitions), np.int64)
        self._histograms[:] = np.array([[0], [bounds.max], [bounds.min]])

    def __len__(self) -> int:
        return int(self._histograms[COUNT].sum())

    @property
    def nbytes(self) -> int:
        """Bytes that its arrays occupy."""
        splitters = 0 if self._splitters is None else self._splitters.nbytes
        return splitters + self._histograms.nbytes + sum(array.nbytes for array in self.llat)

    @property
    def counts(self) -> np.ndarray:
        """Tuples in each partition, int64."""
        return self._histograms[COUNT].copy()

    @property
    def sampled(self) -> np.ndarray | None:
        """Splitters for the next subwindow; None while nothing is known."""
        if not len(self):
            return None if self._splitters is None else self._splitters[0].copy()
        return adjust(
            self._histograms[COUNT],
            self._histograms[LEAST],
            self._histograms[GREATEST],
            self._dtype,
        )

    def insert(self, codes: np.ndarray, places: np.ndarray) -> Work:
        """Take a batch in ascending order of *codes*."""
        if not len(codes):
            return NO_WORK
        if self._splitters is None:
            partitions = self._histograms.shape[1]
            ends = int(codes[0]), int(codes[-1])
            self._splitters = even_splitters(*ends, partitions, self._dtype).reshape(1, -1)
        counters = new_counters()
        _insert(self.llat, self._splitters, self._histograms, codes, places, counters)
        return work_of(counters)

    def seal(self) -> Work:
        """Do nothing: partitions stay unsorted."""
        return NO_WORK

    def answer(
        self, probes: Probes, stored: Stored, begin: int, end: int, output: Output
    ) -> np.ndarray:
        """Answer probes *begin* to *end*; return the counters."""
        counters = new_counters()
        if self._splitters is not None:
            _answer(self.llat, self._splitters, probes, stored, begin, end, output, counters)
        return counters

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain arrays and numbers."""
        return {
            "made_of": list(self._made_of),
            "splitters": None if self._splitters is None else self._splitters[0].copy(),
            "histograms": self._histograms.copy(),
            "llat": self.llat.snapshot(),
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> RapTable:
        """Return the structure that `snapshot` described."""
        capacity, partitions, sigma, dtype = snapshot["made_of"]
        held = cls(capacity, partitions, sigma, dtype, snapshot["splitters"])
        held._histograms[:] = snapshot["histograms"]
        held.llat.take_over(snapshot["llat"])
        return held


@kernel
def _insert(
    llat: Llat,
    splitters: np.ndarray,
    histograms: np.ndarray,
    codes: np.ndarray,
    places: np.ndarray,
    counters: np.ndarray,
) -> None:
    partition = 0
    for i in range(len(codes)):
        code = codes[i]
        partition = rebound(splitters, 0, splitters.shape[1], partition, code, counters)
        append(llat, partition, code, places[i])
        histograms[COUNT, partition] += 1
        histograms[LEAST, partition] = min(histograms[LEAST, partition], code)
        histograms[GREATEST, partition] = max(histograms[GREATEST, partition], code)
    counters[INSERTS] += len(codes)


@kernel
def _answer(
    llat: Llat,
    splitters: np.ndarray,
    probes: Probes,
    stored: Stored,
    begin: int,
    end: int,
    output: Output,
    counters: np.ndarray,
) -> None:
    size = splitters.shape[1]
    first = last = 0
    for row in range(begin, end):
        if row % BLOCK == 0:
            first = last = 0
        first = rebound(splitters, 0, size, first, probes.low[row], counters)
        last = rebound(splitters, 0, size, max(first, last), probes.high[row], counters)
        scan_partitions(llat, 0, first, last, probes, stored, row, output, counters)
