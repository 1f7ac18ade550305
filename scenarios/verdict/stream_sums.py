"""Sums of streams as they are on disk or in memory, to compare with what was read of them.

The run and the oracle read the streams by the same code: where that is wrong, both join the wrong
values. Here columns are read by pyarrow alone, and each value's bits count by its place, so that a
sum differs where a value differs, is another tuple's or another column's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.feed import StreamData, StreamFile
from joins.batch import Batch

_READ_ROWS = 65_536


class ColumnSums:
    """A sum per column of the tuples of a stream that have been added.

    Attributes
    ----------
    of
        Column to its sum, modulo 2^64.
    """

    def __init__(self) -> None:
        self.of: dict[str, int] = {}

    def add_batch(self, batch: Batch) -> None:
        """Add tuples that were read, each at the place that its id says."""
        self._add(batch.id, {"ts": batch.ts, **batch.fields})

    def _add(self, places: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        weights = places.astype(np.uint64) * np.uint64(2) + np.uint64(1)  # odd: no bit is lost
        for name, values in columns.items():
            total = int((np.ascontiguousarray(values).view(np.uint64) * weights).sum())
            self.of[name] = (self.of.get(name, 0) + total) % 2**64

    @classmethod
    def of_stream(cls, file: StreamData) -> ColumnSums:
        """Return the sums of the tuples that a run reads of a stream."""
        sums, first, left = cls(), 0, file.tuples
        dtypes = {"ts": "int64", **file.schema.fields}
        for block in _blocks(file, list(dtypes)):
            block = block.slice(0, left)
            columns = {
                name: np.asarray(block[name].to_numpy(zero_copy_only=False), dtype)
                for name, dtype in dtypes.items()
            }
            sums._add(np.arange(first, first + len(block)), columns)
            first, left = first + len(block), left - len(block)
            if not left:
                break
        return sums


def _blocks(file: StreamData, columns: list[str]) -> Iterator[pa.RecordBatch]:
    if not isinstance(file, StreamFile):
        yield from file.table.select(columns).to_batches(_READ_ROWS)
        return
    for path in sorted(file.directory.glob("*.parquet")):
        with pq.ParquetFile(path) as segment:
            yield from segment.iter_batches(_READ_ROWS, columns=columns, use_threads=False)
