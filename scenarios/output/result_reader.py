"""A run's output read back by ranges of probing tuples.

What joiners find reaches the sink nearly in the order of the probing tuples. So each row group of
the files covers a narrow range of them, and a reader that knows the smallest tuple still to come
can hand out complete ranges with memory bounded by the disorder, not by the stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq


@dataclass(frozen=True, kw_only=True)
class ProbeSummary:
    """What a run found for a range of probing tuples, one row per tuple from *first* on.

    Attributes
    ----------
    first
        The range's first tuple.
    count, fingerprint
        Sums over all that was reported of each tuple.
    latency_ns
        From a tuple's birth until the last report of it left the system; -1 without any report.
    """

    first: int
    count: np.ndarray
    fingerprint: np.ndarray
    latency_ns: np.ndarray


class RangeReader:
    """Reads rows by ascending, disjoint ranges of probing tuples from a nearly sorted file.

    The first of *columns* is the probing tuple's id.
    """

    def __init__(self, path: Path, columns: list[str], *, stream: int | None = None) -> None:
        self._file = pq.ParquetFile(path)
        self._columns = columns
        self._stream = stream
        self._least_to_come = _least_to_come(self._file, columns[0])
        self._next_group = 0
        self._held = self._file.schema_arrow.empty_table().select(columns)

    def take(self, stop: int | None) -> pa.Table:
        """Return the rows below *stop* that have not been returned yet; all the rest for None."""
        while self._next_group < len(self._least_to_come) and (
            stop is None or self._least_to_come[self._next_group] < stop
        ):
            group = self._file.read_row_group(self._next_group)
            self._next_group += 1
            if self._stream is not None:
                group = group.filter(pa.compute.equal(group["probe_stream"], self._stream))
            self._held = pa.concat_tables([self._held, group.select(self._columns)])
        if stop is None:
            taken, self._held = self._held, self._held.slice(0, 0)
            return taken
        below = pa.compute.less(self._held[self._columns[0]], stop)
        taken = self._held.filter(below)
        self._held = self._held.filter(pa.compute.invert(below)).combine_chunks()
        return taken


def _least_to_come(file: pq.ParquetFile, name: str) -> list[int]:
    """Return for each row group the smallest value of a column in it or any later one."""
    column = file.schema_arrow.get_field_index(name)
    least = [
        file.metadata.row_group(group).column(column).statistics.min
        for group in range(file.metadata.num_row_groups)
    ]
    for group in reversed(range(len(least) - 1)):
        least[group] = min(least[group], least[group + 1])
    return least


def read_summary(reader: RangeReader, first: int, stop: int) -> ProbeSummary:
    """Return what was reported of the tuples *first* to *stop* (exclusive)."""
    rows = reader.take(stop)
    place = rows["probe_id"].to_numpy() - first
    count = np.zeros(stop - first, np.int64)
    fingerprint = np.zeros(stop - first, np.uint64)
    latency_ns = np.full(stop - first, -1, np.int64)
    np.add.at(count, place, rows["count"].to_numpy())
    np.add.at(fingerprint, place, rows["fingerprint"].to_numpy())
    np.maximum.at(latency_ns, place, rows["latency_ns"].to_numpy())
    return ProbeSummary(first=first, count=count, fingerprint=fingerprint, latency_ns=latency_ns)
