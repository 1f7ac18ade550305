"""Prepared streams, read in arrival order with memory bounded by a chunk.

Streams arrive merged by event time; tuples of equal time in the order of their streams in the
query, then of their positions. That order is a function of the data alone, so the expected result
is one too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from joins.arrivals import Arrivals, merged_places
from joins.batch import Batch, Schema

_READ_ROWS = 16_384


@dataclass(frozen=True, kw_only=True)
class StreamFile:
    """Where a prepared stream lies and what to read of it.

    Attributes
    ----------
    schema
        The join fields to read, and the stream's name.
    directory
        Folder of Parquet segments, in stream order by file name, with columns ``id`` and ``ts``.
    rows
        Read at most so many tuples from the start; None reads all.
    """

    schema: Schema
    directory: Path
    rows: int | None = None

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Read the stream from position *start*, some thousand tuples at a time."""
        stop = self.rows
        position = 0
        columns = ["ts", *self.schema.fields]
        segments = sorted(self.directory.glob("*.parquet"))
        if not segments:
            raise FileNotFoundError(
                f"stream {self.schema.stream!r}: no Parquet segment in {self.directory}; on a "
                "cluster the folder must be reachable from every node"
            )
        for path in segments:
            with pq.ParquetFile(path) as file:
                if position + file.metadata.num_rows <= start:
                    position += file.metadata.num_rows
                    continue
                for block in file.iter_batches(_READ_ROWS, columns=columns):
                    # An id is its tuple's position: counted faster than read.
                    ids = pa.array(np.arange(position, position + len(block)))
                    batch = Batch.from_arrow(block.add_column(0, "id", ids), self.schema)
                    first = max(0, start - position)
                    last = len(batch) if stop is None else min(len(batch), stop - position)
                    position += len(batch)
                    if first < last:
                        yield batch.slice(first, last)
                    if stop is not None and position >= stop:
                        return


class Feed:
    """Merges prepared streams into their order of arrival.

    Parameters
    ----------
    files
        One per stream, in the order of the query's streams.
    """

    def __init__(self, files: tuple[StreamFile, ...]) -> None:
        self._files = files
        self.seek([0] * len(files))

    @property
    def position(self) -> list[int]:
        """Tuples taken so far from each stream."""
        return list(self._taken)

    def seek(self, position: list[int]) -> None:
        """Go to where *position* tuples of each stream have been taken."""
        self._taken = list(position)
        self._readers = [
            file.batches(start) for file, start in zip(self._files, position, strict=True)
        ]
        self._held = [Batch.empty(file.schema) for file in self._files]
        self._ended = [False] * len(self._files)

    def snapshot(self) -> list[int]:
        """Return where to go on."""
        return self.position

    def restore(self, state: list[int]) -> None:
        """Go back to where a snapshot was taken."""
        self.seek(state)

    def take(self, rows: int) -> Arrivals | None:
        """Return the next *rows* arrivals (fewer at the very end), or None when all are taken."""
        for stream in range(len(self._files)):
            self._fill(stream, rows)
        places = merged_places([batch.ts[:rows] for batch in self._held])
        if not any(map(len, places)):
            return None
        number = sum(self._taken)
        parts, numbers = [], []
        for stream, (batch, place) in enumerate(zip(self._held, places, strict=True)):
            count = int(place.searchsorted(rows))
            parts.append(batch.slice(0, count))
            numbers.append(place[:count] + number)
            self._held[stream] = batch.slice(count, len(batch))
            self._taken[stream] += count
        return Arrivals(parts=tuple(parts), seq=tuple(numbers))

    def _fill(self, stream: int, rows: int) -> None:
        while len(self._held[stream]) < rows and not self._ended[stream]:
            batch = next(self._readers[stream], None)
            if batch is None:
                self._ended[stream] = True
            else:
                self._held[stream] = Batch.concat([self._held[stream], batch])
