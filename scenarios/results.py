"""Reading a run's results back, by ranges of probing tuples.

What joiners find reaches the sink nearly in the order of the probing tuples. So each row group of
the files covers a narrow range of them, and a reader that knows the smallest tuple still to come
can hand out complete ranges with memory bounded by the disorder, not by the stream.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.result_files import part_files
from joins.tuple_sums import Sums, TupleSums


class RowGroups:
    """The row groups of a file, or of a folder of parts, read in any order of their parts.

    Parameters
    ----------
    path
        What a run wrote, see `actors.result_files`.
    columns
        What to read.
    ordered
        Columns of probing tuples' ids, nearly in order.

    Attributes
    ----------
    rows
        In all of them.
    """

    def __init__(self, path: Path, columns: Sequence[str], ordered: Sequence[str]) -> None:
        self._files = [pq.ParquetFile(part) for part in part_files(path)]
        self._columns = list(columns)
        self._least = [[_least_to_come(file, name) for name in ordered] for file in self._files]
        self._next = [0] * len(self._files)
        self.rows = sum(file.metadata.num_rows for file in self._files)

    def take(self, stop: int | None, place: int = 0) -> pa.Table | None:
        """Return the next row group that has, or has one behind it with, an id below *stop*.

        *place* says which of the ordered columns that is about. None: there is no such group; for
        a *stop* of None, there is none at all.
        """
        for number, (file, least) in enumerate(zip(self._files, self._least, strict=True)):
            group = self._next[number]
            if group < len(least[place]) and (stop is None or least[place][group] < stop):
                self._next[number] += 1
                return file.read_row_group(group, columns=self._columns, use_threads=False)
        return None

    def close(self) -> None:
        """Close the files."""
        for file in self._files:
            file.close()


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


class PairReader:
    """Reads the pairs of a probing stream by ascending, disjoint ranges of its tuples.

    The first of *columns* is the probing tuple's id.
    """

    def __init__(self, path: Path, columns: list[str], *, stream: int) -> None:
        self._columns, self._stream = columns, stream
        self._groups = RowGroups(path, ["probe_stream", *columns], columns[:1])
        self._waiting: list[pa.Table] = []

    def take(self, stop: int) -> list[np.ndarray]:
        """Return the columns of the rows below *stop* that have not been returned."""
        while (group := self._groups.take(stop)) is not None:
            group = group.filter(pa.compute.equal(group["probe_stream"], self._stream))
            self._waiting.append(group.select(self._columns))
        taken, left = [], []
        for group in self._waiting:
            ids = group[0].to_numpy()
            least, most = (int(ids.min()), int(ids.max())) if len(ids) else (0, -1)
            if most < stop:
                taken.append(group)
            elif least >= stop:
                left.append(group)
            else:
                below = ids < stop
                taken.append(group.filter(pa.array(below)))
                left.append(group.filter(pa.array(~below)))
        self._waiting = left
        return [
            np.concatenate([np.empty(0, np.int64)] * (not taken) + [t[i].to_numpy() for t in taken])
            for i in range(len(self._columns))
        ]


class Summaries:
    """What a run reported of the tuples of a probing stream, taken by ascending ranges.

    Parameters
    ----------
    path
        Of the reports (`actors.result_files.summary_path`).
    tuples
        How many tuples of the stream may have any, the first ones.

    Attributes
    ----------
    sums
        Has the rows read so far that belong to no such tuple (``stray_rows``), and the pairs that
        they claim (``stray_pairs``).
    """

    def __init__(self, path: Path, tuples: int) -> None:
        columns = ["probe_id", "count", "fingerprint", "latency_ns"]
        self._groups = RowGroups(path, columns, columns[:1])
        self.sums = TupleSums(tuples)

    def take(self, stop: int) -> Sums:
        """Return what was reported of the tuples from the last *stop* to this, latest latency."""
        self._read(stop)
        return self.sums.take(stop)

    def finish(self) -> None:
        """Read what is left: it should be of no tuple at all."""
        self._read(None)
        self._groups.close()

    def _read(self, stop: int | None) -> None:
        while (group := self._groups.take(stop)) is not None:
            self.sums.add(*(column.to_numpy() for column in group.columns))


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
