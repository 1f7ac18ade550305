"""Prepared streams, read in arrival order with memory bounded by a chunk.

Streams arrive merged by event time; tuples of equal time in the order of their streams in the
query, then of their positions. That order is a function of the data alone, so the expected result
is one too.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from joins.arrivals import Arrivals, merged_places
from joins.batch import Batch, Schema
from joins.state import State, Stateful

_READ_ROWS = 65_536


@dataclass(frozen=True, kw_only=True)
class StreamFile:
    """Where a prepared stream is and what to read of it.

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

    @property
    def tuples(self) -> int:
        """How many tuples are read, by the footers of the segments."""
        there: int = sum(
            pq.read_metadata(path).num_rows for path in sorted(self.directory.glob("*.parquet"))
        )
        return there if self.rows is None else min(self.rows, there)

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
                # One thread: handing columns to others and back costs more than they save, and
                # other actors have use for other cores.
                for block in file.iter_batches(_READ_ROWS, columns=columns, use_threads=False):
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


@dataclass(frozen=True, kw_only=True)
class StreamTable:
    """A prepared stream in memory.

    Attributes
    ----------
    schema
        The join fields, and the stream's name.
    table
        Columns ``ts`` (int64 ns, ascending) and the join fields; row i is tuple i.
    rows
        Read at most so many tuples from the start; None reads all.
    """

    schema: Schema
    table: pa.Table = field(repr=False)
    rows: int | None = None

    @property
    def tuples(self) -> int:
        """How many tuples are read."""
        return len(self.table) if self.rows is None else min(self.rows, len(self.table))

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Yield the stream from position *start*, some thousand tuples at a time."""
        stop = self.tuples
        for first in range(start, stop, _READ_ROWS):
            block = self.table.slice(first, min(_READ_ROWS, stop - first))
            ids = pa.array(np.arange(first, first + len(block)))
            yield Batch.from_arrow(block.add_column(0, "id", ids), self.schema)


StreamData = StreamFile | StreamTable
"""A prepared stream, wherever it lies."""


class Feed(Stateful):
    """Merges prepared streams into their order of arrival.

    Parameters
    ----------
    files
        One per stream, in the order of the query's streams.
    """

    state = ("_taken",)

    def __init__(self, files: tuple[StreamData, ...]) -> None:
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
            _Reader(file, start) for file, start in zip(self._files, position, strict=True)
        ]

    def restore(self, state: State) -> None:
        """Go back to where a snapshot was taken."""
        super().restore(state)
        self.seek(self._taken)

    def take(self, rows: int) -> Arrivals | None:
        """Return the next *rows* arrivals (fewer at the very end), or None when all are taken."""
        places = merged_places([reader.times(rows) for reader in self._readers], rows)
        if not any(map(len, places)):
            return None
        number = sum(self._taken)
        parts, seq = [], []
        for stream, (reader, place) in enumerate(zip(self._readers, places, strict=True)):
            parts.append(reader.take(len(place)))
            seq.append(place + number)
            self._taken[stream] += len(place)
        return Arrivals(parts=tuple(parts), seq=tuple(seq))


class _Reader:
    """The blocks of a stream that were read but not taken yet, the first of them in part."""

    def __init__(self, file: StreamData, start: int) -> None:
        self._blocks = file.batches(start)
        self._unread = deque([Batch.empty(file.schema)])

    def times(self, rows: int) -> np.ndarray:
        """Return the event times of the next *rows* tuples, fewer at the very end."""
        unread = sum(map(len, self._unread))
        while unread < rows and (block := next(self._blocks, None)) is not None:
            self._unread.append(block)
            unread += len(block)
        first = self._unread[0].ts
        times = (
            first if len(first) >= rows else np.concatenate([block.ts for block in self._unread])
        )
        return times[:rows]

    def take(self, rows: int) -> Batch:
        """Take the next *rows* tuples, of those whose times have been looked at."""
        parts = []
        while rows > (unread := len(self._unread[0])):
            parts.append(self._unread.popleft())
            rows -= unread
        block = self._unread[0]
        self._unread[0] = block.slice(rows, unread)
        taken = block.slice(0, rows)
        return Batch.concat([*parts, taken]) if parts else taken
