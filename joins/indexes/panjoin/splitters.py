"""The splitter adjustment of RaP-Table (section III-B1, Algorithm 1)."""

from __future__ import annotations

import numpy as np

from joins.indexes.columns import decode, encode
from joins.machine.compiling import kernel

_INT64_ENDS = (-(2.0**63), 2.0**63 - 1024)
"""The least and the greatest float that an int64 can be read from."""


def adjust(
    count: np.ndarray, least: np.ndarray, greatest: np.ndarray, dtype: str = "int64"
) -> np.ndarray:
    """Return the splitters that would have cut the sampled tuples into equal parts.

    Line 7 of the algorithm reads (bal - sum) / count · (max - min): that is a distance from the
    least value of the partition, which it leaves out; it is added here. Line 2 sets j to 0 where
    bal_1 is the first in use; j counts from 1 here. bal_j = j·N/P is compared without dividing.
    The last splitter would be the greatest value of all; a partition without an upper end needs
    none, so there are P - 1.

    Parameters
    ----------
    count
        int64, tuples in each of P partitions; at least one tuple in all.
    least, greatest
        int64 codes of each partition's least and greatest value; of no meaning where it is empty.
    dtype
        The values', in which they are taken to be evenly spread.

    Returns
    -------
    splitters
        int64 codes, ascending: partition j holds what is above splitter j - 1 and at most
        splitter j.
    """
    source = np.empty(max(0, len(count) - 1), np.int64)
    share = np.empty(len(source), np.float64)
    _scan_histogram(count, source, share)
    low, high = (decode(ends[source], dtype).astype(np.float64) for ends in (least, greatest))
    with np.errstate(invalid="ignore", over="ignore"):  # between infinities any value will do
        values = low + share * (high - low)
    if dtype == "int64":
        values = np.clip(values, *_INT64_ENDS).astype(np.int64)
    # Rounding may leave the partition's own values, and with it the order.
    return np.maximum.accumulate(np.clip(encode(values), least[source], greatest[source]))


def even_splitters(least: int, greatest: int, partitions: int, dtype: str = "int64") -> np.ndarray:
    """Return splitters for values evenly spread between two codes."""
    count, ends = np.zeros(partitions, np.int64), np.zeros((2, partitions), np.int64)
    count[0], ends[0, 0], ends[1, 0] = partitions, least, greatest
    return adjust(count, ends[0], ends[1], dtype)


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
