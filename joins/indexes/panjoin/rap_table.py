"""RaP-Table: the Range Partition Table (section III-B).

P partitions between splitters, their tuples unsorted in an `Llat`. The splitters come from what was
sampled in the subwindow before (`RapTable.sampled`), so that they adapt to the values but trail
behind values that drift.

The first subwindow of a stream has no predecessor. The paper then spreads the splitters over all
32-bit integers; values here have 64 bits or are floats, so they are spread between the least and
the greatest value of the first batch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.codes import GREATEST, LEAST, decode, encode
from joins.indexes.panjoin.llat import Llat, append, match_partitions, new_llat
from joins.indexes.panjoin.lookup import BLOCK, Lookup
from joins.indexes.sorted_array import rebound
from joins.machine.compiling import kernel
from joins.state import Stateful, storable
from joins.work import INSERTS, NO_WORK, Work, new_counters

_INT64_ENDS = (-(2.0**63), 2.0**63 - 1024)
"""The least and the greatest float that an int64 can be read from."""


@storable
class Histogram(NamedTuple):
    """What was sampled of each partition, int64: the paper's histogram."""

    tuples: np.ndarray
    """How many it has."""
    least: np.ndarray
    greatest: np.ndarray
    """Codes; of no meaning where there are no tuples."""


def adjust_splitters(histogram: Histogram, dtype: str = "int64") -> np.ndarray:
    """Return the splitters that would have cut the sampled tuples into equal parts (Algorithm 1).

    Line 7 of the algorithm reads (bal - sum) / count · (max - min): that is a distance from the
    least value of the partition, which it leaves out; it is added here. Line 2 sets j to 0 where
    bal_1 is the first in use; j counts from 1 here. bal_j = j·N/P is compared without dividing.
    The last splitter would be the greatest value of all; a partition without an upper end needs
    none, so there are P - 1.

    Parameters
    ----------
    histogram
        P partitions with at least one tuple in all.
    dtype
        The values', in which they are taken to be evenly spread.

    Returns
    -------
    splitters
        int64 codes, ascending: partition j has what is above splitter j - 1 and at most splitter j.
    """
    source = np.empty(max(0, len(histogram.tuples) - 1), np.int64)
    share = np.empty(len(source), np.float64)
    _scan_histogram(histogram.tuples, source, share)
    least, greatest = histogram.least[source], histogram.greatest[source]
    low, high = (decode(ends, dtype).astype(np.float64) for ends in (least, greatest))
    with np.errstate(invalid="ignore", over="ignore"):  # Between infinities any value will do.
        values = low + share * (high - low)
    if dtype == "int64":
        values = np.clip(values, *_INT64_ENDS).astype(np.int64)
    # Rounding may leave the partition's own values, and with it the order.
    return np.maximum.accumulate(np.clip(encode(values), least, greatest))


def even_splitters(least: int, greatest: int, partitions: int, dtype: str = "int64") -> np.ndarray:
    """Return splitters for values evenly spread between two codes."""
    histogram = Histogram(*np.zeros((3, partitions), np.int64))
    for column, value in zip(histogram, (partitions, least, greatest), strict=True):
        column[0] = value
    return adjust_splitters(histogram, dtype)


@kernel
def _scan_histogram(count: np.ndarray, source: np.ndarray, share: np.ndarray) -> None:
    """Find for each splitter the partition it falls into, and at which share of its tuples."""
    partitions = len(count)
    total = 0
    for i in range(partitions):
        total += count[i]
    before, j = 0, 1
    for i in range(partitions):
        until = before + count[i]
        while j < partitions and j * total <= until * partitions and count[i] > 0:
            source[j - 1] = i
            share[j - 1] = (j * total / partitions - before) / count[i]
            j += 1
        before = until


class RapTable(Stateful):
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

    state = ("_dtype", "_splitters", "histogram", "llat")

    def __init__(
        self,
        capacity: int,
        partitions: int,
        sigma: float,
        dtype: str,
        splitters: np.ndarray | None = None,
    ) -> None:
        self._dtype = dtype
        self._splitters = None if splitters is None else splitters.reshape(1, -1).copy()
        self.llat = new_llat(capacity, partitions, sigma)
        self.llat.used[0] = partitions
        self.llat.follow[: partitions - 1] = np.arange(1, partitions)
        self.histogram = Histogram(
            np.zeros(partitions, np.int64),
            np.full(partitions, GREATEST),
            np.full(partitions, LEAST),
        )

    def __len__(self) -> int:
        return int(self.histogram.tuples.sum())

    @property
    def sampled(self) -> np.ndarray | None:
        """Splitters for the next subwindow; None before the first tuple of all."""
        if not len(self):
            return None if self._splitters is None else self._splitters[0].copy()
        return adjust_splitters(self.histogram, self._dtype)

    def insert(self, codes: np.ndarray, places: np.ndarray) -> Work:
        """Insert a batch in ascending order of *codes*."""
        if not len(codes):
            return NO_WORK
        if self._splitters is None:
            ends = int(codes[0]), int(codes[-1])
            partitions = len(self.histogram.tuples)
            self._splitters = even_splitters(*ends, partitions, self._dtype).reshape(1, -1)
        counters = new_counters()
        _insert(self.llat, self._splitters, self.histogram, codes, places, counters)
        return Work.from_counters(counters)

    def answer(self, lookup: Lookup, begin: int, end: int) -> None:
        """Answer probes *begin* to *end*."""
        if self._splitters is not None:
            _answer(self.llat, self._splitters, lookup, begin, end)


@kernel
def _insert(
    llat: Llat,
    splitters: np.ndarray,
    histogram: Histogram,
    codes: np.ndarray,
    places: np.ndarray,
    counters: np.ndarray,
) -> None:
    partition = 0
    for i in range(len(codes)):
        code = codes[i]
        partition = rebound(splitters, splitters.shape[1], partition, code, counters)
        append(llat, partition, code, places[i])
        histogram.tuples[partition] += 1
        histogram.least[partition] = min(histogram.least[partition], code)
        histogram.greatest[partition] = max(histogram.greatest[partition], code)
    counters[INSERTS] += len(codes)


@kernel
def _answer(llat: Llat, splitters: np.ndarray, lookup: Lookup, begin: int, end: int) -> None:
    size, ranges, counters = splitters.shape[1], lookup.ranges, lookup.counters
    first = last = 0
    for row in range(begin, end):
        if row % BLOCK == 0:
            first = last = 0
        first = rebound(splitters, size, first, ranges.low[0, row], counters)
        last = rebound(splitters, size, max(first, last), ranges.high[0, row], counters)
        match_partitions(llat, lookup, row, first, last)
