"""What the oracle expects of every tuple, worked out beside the run where there is a core for it.

What is expected depends on the streams alone, as long as no tuple was dropped as late: so the
oracle need not wait for the run, and on a second core takes none of its time. Its sums wait in a
file: memory does not grow with the streams.
"""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.feed import StreamData, StreamFile, open_feed
from joins import oracle
from joins.arrivals import Arrivals
from joins.batch import Batch
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
    latest = (int(np.iinfo(np.int64).min), 0)
    while (arrivals := feed.take(CHUNK_ROWS)) is not None:
        latest = _latest(arrivals, latest)
        read = [rows + len(part) for rows, part in zip(read, arrivals.parts, strict=True)]
        for summed, part in zip(sums, arrivals.parts, strict=True):
            summed.add_batch(part)
        yield arrivals
    for file, rows, summed in zip(files, read, sums, strict=True):
        if rows != file.tuples:
            raise DataError(
                f"stream {file.schema.stream!r} has {file.tuples:,} tuples, of which {rows:,} "
                "could be read: the answer cannot be judged; prepare the stream again, and run "
                "again"
            )
        there = ColumnSums.of_stream(file)
        for name, total in summed.of.items():
            if total != there.of.get(name, 0):
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


class ColumnSums:
    """A sum per column of the tuples of a stream that have been added.

    The run and the oracle read the streams by the same code: where that is wrong, both join the
    wrong values. So those on disk or in memory are read here by pyarrow alone. Each value's bits
    count by its place, so that a sum differs where a value differs, is another tuple's or another
    column's.

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
        yield from file.table.select(columns).to_batches(CHUNK_ROWS)
        return
    for path in sorted(file.directory.glob("*.parquet")):
        with pq.ParquetFile(path) as segment:
            yield from segment.iter_batches(CHUNK_ROWS, columns=columns, use_threads=False)


class _Stored(NamedTuple):
    """Sums of consecutive tuples of a stream, at a place in the file."""

    stream: int
    first: int
    rows: int
    at: int


class Expectation:
    """Works out what a run should find, from now on; a context manager that ends the work.

    Only where no tuple is dropped as late: `sums` are those of all tuples.
    """

    def __init__(self, query: JoinQuery, files: Sequence[StreamData]) -> None:
        self._query, self._files = query, files
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._stored: list[_Stored] = []
        self._more = threading.Condition()
        self._ended = self._stopped = self._awaited = False
        self._failure: BaseException | None = None
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
        """Yield counts and fingerprints, as `expected_sums` does; wait for those to come."""
        place, self._awaited = 0, True
        while True:
            with self._more:
                while place == len(self._stored) and not self._ended:
                    self._more.wait()
                if place == len(self._stored):
                    if self._failure is not None:
                        raise self._failure
                    return
                stored = self._stored[place]
                self._file.seek(stored.at)
                data = self._file.read(16 * stored.rows)
            place += 1
            yield Matches(
                stream=stored.stream,
                probe_id=np.arange(stored.first, stored.first + stored.rows),
                count=np.frombuffer(data, np.int64, stored.rows),
                fingerprint=np.frombuffer(data, np.uint64, offset=8 * stored.rows),
            )

    def _threads(self) -> int:
        return usable_cores() if self._awaited else 1  # another core is the run's

    def _work(self) -> None:
        try:
            self._store_all()
        except BaseException as error:  # it is raised where the sums are read
            self._failure = error
        finally:
            with self._more:
                self._ended = True
                self._more.notify()

    def _store_all(self) -> None:
        at = 0
        for expected in expected_sums(self._query, self._files, threads=self._threads):
            if self._stopped:
                return
            if not len(expected):
                continue
            first, rows = int(expected.probe_id[0]), len(expected)
            with self._more:
                self._file.seek(at)
                self._file.write(expected.count.tobytes())
                self._file.write(expected.fingerprint.tobytes())
                self._stored.append(_Stored(expected.stream, first, rows, at))
                self._more.notify()
            at += 16 * rows
