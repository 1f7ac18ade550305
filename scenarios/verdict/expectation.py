"""What the oracle expects of every tuple, worked out beside the run where there is a core for it.

What is expected depends on the streams alone, as long as no tuple was dropped as late: so the
oracle need not wait for the run, and on a second core takes none of its time. Its sums wait in a
file: memory does not grow with the streams.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.feed import StreamData, StreamFile, open_feed
from joins import oracle
from joins.arrivals import Arrivals
from joins.codes import LEAST
from joins.errors import DataError
from joins.matches import Matches
from joins.queries.query import JoinQuery
from joins.threads import usable_cores

WORTH_A_THREAD = 32_768
"""With so many tuples in all streams or more, it pays to work beside the run."""
CHUNK_ROWS = 65_536
"""Arrivals that the oracle takes at once, and rows of a stream that are read at once."""


def expected_sums(
    query: JoinQuery,
    files: Sequence[StreamData],
    late: Sequence[np.ndarray] = (),
    **options: Any,
) -> Iterator[Matches]:
    """Yield what the oracle expects of *files*; *options* are `joins.oracle.expected`'s."""
    schemas = [file.schema for file in files]
    return oracle.expected(query, schemas, _chunks(files), late=late, **options)


def _chunks(files: Sequence[StreamData]) -> Iterator[Arrivals]:
    """Yield all arrivals, which must be those of the streams, by event time.

    Raise :exc:`DataError` where fewer tuples can be read than a stream has, in another order, or
    with other values.
    """
    feed = open_feed(tuple(files), None)
    read = [0] * len(files)
    sums = [ColumnSums() for _ in files]
    latest = (LEAST, 0)
    while (arrivals := feed.take(CHUNK_ROWS)) is not None:
        latest = _latest(arrivals, latest)
        for place, part in enumerate(arrivals.parts):
            read[place] += len(part)
            # Each tuple is at the place that its id says.
            sums[place].add(part.id, {"ts": part.ts, **part.fields})
        yield arrivals
    for file, rows, summed in zip(files, read, sums, strict=True):
        if rows != file.tuples:
            raise DataError(
                f"stream {file.schema.stream!r} has {file.tuples:,} tuples, of which {rows:,} "
                "could be read: the answer cannot be judged; prepare the stream again, and run "
                "again"
            )
        there = ColumnSums.of_stream(file)
        for name, total in summed.items():
            if total != there[name]:
                raise DataError(
                    f"stream {file.schema.stream!r}: what was read of column {name} is not what it "
                    "has: the answer cannot be judged"
                )


def _latest(arrivals: Arrivals, before: tuple[int, int]) -> tuple[int, int]:
    """Return the event time and the stream of the last of *arrivals*.

    *before* has those of the last arrival before them. Raise :exc:`DataError` where arrivals are
    not in the order of event times and, of one time, of streams.
    """
    rows, (begin, end) = len(arrivals), arrivals.span
    # Their numbers are consecutive, so they need no sorting; a place that is left is of no stream.
    ts, stream = np.empty(end - begin + 2, np.int64), np.full(end - begin + 2, -1)
    ts[0], stream[0] = before
    for place, (part, seq) in enumerate(zip(arrivals.parts, arrivals.seq, strict=True)):
        at = seq - (begin - 1)
        ts[at], stream[at] = part.ts, place
    tied = (ts[:-1] == ts[1:]) & (stream[:-1] <= stream[1:])
    if end - begin + 1 != rows or (stream < 0).any() or not np.all((ts[:-1] < ts[1:]) | tied):
        raise DataError(
            "tuples were merged in another order than that of their event times and streams: the "
            "answer cannot be judged"
        )
    return int(ts[-1]), int(stream[-1])


class ColumnSums(Counter[str]):
    """Column to a sum, modulo 2^64, of those tuples of a stream that have been added.

    The run and the oracle read the streams by the same code: where that is wrong, both join the
    wrong values. So those on disk or in memory are read here by pyarrow alone. Each value's bits
    count by its place, so that a sum differs where a value differs, is another tuple's or another
    column's.
    """

    def add(self, places: np.ndarray, columns: Mapping[str, np.ndarray]) -> None:
        """Add the tuples at these places of the stream."""
        weights = places.astype(np.uint64) * np.uint64(2) + np.uint64(1)  # odd: no bit is lost
        for name, values in columns.items():
            total = int((np.ascontiguousarray(values).view(np.uint64) * weights).sum())
            self[name] = (self[name] + total) % 2**64

    @classmethod
    def of_stream(cls, file: StreamData) -> ColumnSums:
        """Return the sums of the tuples that a run reads of a stream."""
        sums, first = cls(), 0
        dtypes = {"ts": "int64", **file.schema.fields}
        for block in _blocks(file, list(dtypes)):
            block = block if file.rows is None else block.slice(0, file.rows - first)
            columns = {
                name: np.asarray(block[name].to_numpy(zero_copy_only=False), dtype)
                for name, dtype in dtypes.items()
            }
            sums.add(np.arange(first, first + len(block)), columns)
            first += len(block)
            if first == file.rows:
                break
        return sums


def _blocks(file: StreamData, columns: list[str]) -> Iterator[pa.RecordBatch]:
    if not isinstance(file, StreamFile):
        yield from file.table.select(columns).to_batches(CHUNK_ROWS)
        return
    for path in sorted(file.directory.glob("*.parquet")):
        with pq.ParquetFile(path) as segment:
            yield from segment.iter_batches(CHUNK_ROWS, columns=columns, use_threads=False)


class Expectation:
    """Works out what a run should find, from now on; a context manager that ends the work.

    Only where no tuple is dropped as late: `sums` are those of all tuples.
    """

    def __init__(self, query: JoinQuery, files: Sequence[StreamData]) -> None:
        self._query, self._files = query, files
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._stored: SimpleQueue[tuple[int, int, int] | BaseException | None] = SimpleQueue()
        """Of consecutive tuples that the file has the sums of: stream, first, and how many; at the
        end None, or what went wrong."""
        self._stopped = self._awaited = False
        self._thread = threading.Thread(target=self._work, name="oracle", daemon=True)
        self._thread.start()

    def __enter__(self) -> Expectation:
        """Return the expectation itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop working."""
        self._stopped = True
        self._thread.join()
        self._file.close()

    def sums(self) -> Iterator[Matches]:
        """Yield counts and fingerprints once, as `expected_sums` does; wait for those to come."""
        at, self._awaited = 0, True
        while (stored := self._stored.get()) is not None:
            if isinstance(stored, BaseException):
                raise stored
            stream, first, rows = stored
            data = os.pread(self._file.fileno(), 16 * rows, at)
            at += len(data)
            yield Matches(
                stream=stream,
                probe_id=np.arange(first, first + rows),
                count=np.frombuffer(data, np.int64, rows),
                fingerprint=np.frombuffer(data, np.uint64, offset=8 * rows),
            )

    def _threads(self) -> int:
        return usable_cores() if self._awaited else 1  # another core is the run's

    def _work(self) -> None:
        try:
            for expected in expected_sums(self._query, self._files, threads=self._threads):
                if self._stopped:
                    return
                if len(expected):
                    self._file.write(expected.count.tobytes() + expected.fingerprint.tobytes())
                    self._file.flush()
                    self._stored.put((expected.stream, int(expected.probe_id[0]), len(expected)))
            self._stored.put(None)
        except BaseException as error:  # it is raised where the sums are read
            self._stored.put(error)
