"""Prepared streams, read in arrival order with memory bounded by a chunk.

Streams arrive merged by event time; tuples of equal time in the order of their streams in the
query, then of their positions. That order is a function of the data alone, so the expected result
is one too. Tuples may also arrive out of the order of their event times (`open_feed`): either each
has a seeded delay (`Disorder`), or the data have an order of arrival of their own (`Recorded`).

Tuples are checked as they are read: event times that run backwards, missing or infinite values,
integers beyond int64 and damaged files are refused by file and tuple, wherever they are read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from joins.arrivals import Arrivals, merged_places
from joins.batch import Batch, Schema
from joins.codes import GREATEST, LEAST
from joins.errors import DataError
from joins.hashing import mix
from joins.state import State, Stateful

_READ_ROWS = 65_536
_WHOLE = (pa.types.is_integer, pa.types.is_boolean, pa.types.is_decimal)
_TYPES = {"int64": _WHOLE, "float64": (pa.types.is_floating, pa.types.is_decimal)}
"""Columns that may be read as a dtype: narrower ones widen, the values of wider ones must fit."""


@dataclass(frozen=True, kw_only=True)
class StreamFile:
    """Where a prepared stream is and what to read of it."""

    schema: Schema
    """The join fields to read, and the stream's name."""
    directory: Path
    """Folder of Parquet segments, in stream order by file name, with ``ts`` and the join fields."""
    rows: int | None = None
    """Read at most so many tuples from the start; None reads all."""

    @property
    def tuples(self) -> int:
        """How many tuples are read, by the footers of the segments."""
        there = 0
        for path in self._segments():
            with _opened(path) as file:
                there += file.metadata.num_rows
        return there if self.rows is None else min(self.rows, there)

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Read the stream from position *start*, some thousand tuples at a time."""
        stop = self.rows
        checked = _Checked(self.schema)
        columns = ["ts", *self.schema.fields]
        segments = self._segments()
        if not segments:
            raise DataError(
                f"stream {self.schema.stream!r}: no Parquet segment in {self.directory}; if it "
                "was deleted, prepare it again; on a cluster every node must reach the folder"
            )
        for path in segments:
            with _opened(path) as file:
                if checked.position + file.metadata.num_rows <= start:
                    checked.skip(file.metadata.num_rows)
                    continue
                for block in _blocks(file, path, columns):
                    batch = checked.batch(block, str(path))
                    begin = checked.position - len(batch)
                    last = len(batch) if stop is None else min(len(batch), stop - begin)
                    first = max(0, start - begin)
                    if first < last:
                        yield batch.slice(first, last)
                    if stop is not None and checked.position >= stop:
                        return

    def _segments(self) -> list[Path]:
        return sorted(self.directory.glob("*.parquet"))


@dataclass(frozen=True, kw_only=True)
class StreamTable:
    """A prepared stream in memory."""

    schema: Schema
    """The join fields, and the stream's name."""
    table: pa.Table = field(repr=False)
    """Columns ``ts`` (int64 ns, ascending) and the join fields; row i is tuple i."""
    rows: int | None = None
    """Read at most so many tuples from the start; None reads all."""

    @property
    def tuples(self) -> int:
        """How many tuples are read."""
        return len(self.table) if self.rows is None else min(self.rows, len(self.table))

    def batches(self, start: int = 0) -> Iterator[Batch]:
        """Yield the stream from position *start*, some thousand tuples at a time."""
        stop = self.tuples
        checked = _Checked(self.schema)
        checked.skip(start)
        for first in range(start, stop, _READ_ROWS):
            block = self.table.slice(first, min(_READ_ROWS, stop - first))
            yield checked.batch(block, f"stream {self.schema.stream!r} in memory")


class _Checked:
    """Turns blocks of a stream into batches, one after the other, and refuses what is no tuple."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._latest = LEAST
        self.position = 0
        """Of the tuple behind the last one seen."""

    def skip(self, tuples: int) -> None:
        """Pass so many tuples without a look."""
        self.position += tuples

    def batch(self, block: pa.Table | pa.RecordBatch, place: str) -> Batch:
        """Return the next block as a batch.

        Raise :exc:`DataError` naming *place*, and the column or the first tuple that is not valid.
        """
        first = self.position
        for name, dtype in {"ts": "int64", **self._schema.fields}.items():
            if name not in block.schema.names:
                raise DataError(f"{place}: there is no column {name!r}")
            if not any(is_such(block[name].type) for is_such in _TYPES[dtype]):
                raise DataError(
                    f"{place}: column {name!r} is {block[name].type}, and should be {dtype}"
                )
            if block[name].null_count:
                self._refuse(place, np.asarray(block[name].is_null()), f"{name} is null")
            if dtype == "int64" and block[name].type != pa.int64():
                self._require_int64(place, name, block[name])
        # An id is its tuple's position: counted faster than read.
        ids = pa.array(np.arange(first, first + len(block)))
        batch = Batch.from_arrow(block.add_column(0, "id", ids), self._schema)
        for name, values in batch.fields.items():
            if values.dtype.kind == "f" and not np.isfinite(values).all():
                self._refuse(place, ~np.isfinite(values), f"{name} is NaN or infinite")
        if len(batch):
            begins_earlier = batch.ts[0] < self._latest
            if begins_earlier or (batch.ts[1:] < batch.ts[:-1]).any():
                before = np.append(self._latest, batch.ts)
                at = int(np.flatnonzero(before[:-1] > batch.ts)[0])
                raise DataError(
                    f"{place}: event times run backwards at tuple {first + at}, from {before[at]} "
                    f"to {batch.ts[at]} ns; give the raw data, whose rows are then put in order"
                )
            self._latest = batch.ts[-1]
        self.position += len(batch)
        return batch

    def _require_int64(self, place: str, name: str, column: pa.Array | pa.ChunkedArray) -> None:
        try:
            column.cast(pa.int64())
        except pa.ArrowInvalid:
            values = column.to_pylist()
            beyond = [not LEAST <= value == int(value) <= GREATEST for value in values]
            if True in beyond:  # Arrow casts no short decimals, which fit
                what = f"{name} is {values[beyond.index(True)]}, which does not fit into int64"
                self._refuse(place, np.array(beyond), what)

    def _refuse(self, place: str, rows: np.ndarray, what: str) -> None:
        at = self.position + int(np.flatnonzero(rows)[0])
        raise DataError(
            f"{place}: tuple {at}: {what}; give the raw data, whose rows are then checked"
        )


def _blocks(file: pq.ParquetFile, path: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Read a segment block by block; raise :exc:`DataError` where it is damaged."""
    rows = 0
    # One thread: handing columns to others and back costs more than they save, and other actors
    # have use for other cores.
    blocks = file.iter_batches(_READ_ROWS, columns=columns, use_threads=False)
    while True:
        try:
            block = next(blocks, None)
        except (pa.ArrowException, OSError) as error:
            raise DataError(
                f"{path} is damaged, at or behind its row {rows}: {error}; prepare the stream again"
            ) from None
        if block is None:
            return
        rows += len(block)
        yield block


def _opened(path: Path) -> pq.ParquetFile:
    """Open a segment; raise :exc:`DataError` if it is none."""
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}; prepare the stream again") from None


StreamData = StreamFile | StreamTable
"""A prepared stream, on disk or in memory."""


def only_times_of_others(
    files: Sequence[StreamData], stream: int | None = None
) -> tuple[StreamData, ...]:
    """Return *files* such that only the event times are read of all streams but *stream*, if any.

    The arrival numbers of that one depend on them.
    """
    return tuple(
        file if place == stream else replace(file, schema=replace(file.schema, fields={}))
        for place, file in enumerate(files)
    )


class Feed(Stateful):
    """Merges prepared streams, one for each stream of the query, into their order of arrival."""

    state = ("_taken",)

    def __init__(self, files: tuple[StreamData, ...]) -> None:
        self._files = files
        self._taken = [0] * len(files)
        self._open()

    def _open(self) -> None:
        """Read on from where so many tuples of each stream have been taken."""
        self._readers = [
            _Reader(file, start) for file, start in zip(self._files, self._taken, strict=True)
        ]

    def restore(self, state: State) -> None:
        """Go back to where a snapshot was taken."""
        super().restore(state)
        self._open()

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
    """What was read of a stream, and not taken yet: blocks, in order."""

    def __init__(self, file: StreamData, start: int) -> None:
        self._blocks = file.batches(start)
        self._read = [Batch.empty(file.schema)]
        self._taken = 0
        """Tuples of the first of these blocks."""

    def times(self, rows: int) -> np.ndarray:
        """Return the event times of the next *rows* tuples, fewer at the very end."""
        missing = self._taken + rows - sum(map(len, self._read))
        while missing > 0 and (block := next(self._blocks, None)) is not None:
            self._read.append(block)
            missing -= len(block)
        begin, stop, times = self._taken, self._taken + rows, []
        for block in self._read:
            times.append(block.ts[begin:stop])
            begin, stop = 0, max(0, stop - len(block.ts))
        # A view where they are of one block.
        return times[0] if len(times) == 1 else np.concatenate(times)

    def take(self, rows: int) -> Batch:
        """Take the next *rows* tuples, of those whose times have been looked at.

        Most are in one block; to join blocks whenever one is read would copy them all.
        """
        parts = []
        while self._taken + rows > len(self._read[0]):
            block = self._read.pop(0)
            parts.append(block.take(slice(self._taken, None)))
            rows -= len(block) - self._taken
            self._taken = 0
        parts.append(self._read[0].take(slice(self._taken, self._taken + rows)))
        self._taken += rows
        return parts[0] if len(parts) == 1 else Batch.concat(parts)


ARRIVAL, PLACE = "_arrival", "_place"
"""Columns of prepared streams whose order of arrival is recorded: when a tuple arrives, int64 ns,
and its place among those that arrive at once."""

_UNIT = 2.0**-64


@dataclass(frozen=True, kw_only=True)
class Disorder:
    """How far tuples arrive out of order.

    Each tuple is delayed in event time, and tuples arrive by event time plus delay.
    """

    delay_ns: int
    """The longest delay when *bounded*, their mean otherwise."""
    bounded: bool = True
    """Whether delays are uniform from 0 to *delay_ns*; otherwise they are exponential, so that
    there is no longest one."""
    seed: int = 0
    """The delays are a function of it and of each tuple's stream and position."""

    @property
    def least_ns(self) -> int:
        """The shortest delay."""
        return 0

    def opened(self, files: tuple[StreamData, ...]) -> tuple[StreamData, ...]:
        """Return *files* with the columns that `due` and `place` read."""
        return files

    def place(self, stream: int, batch: Batch) -> np.ndarray:
        """Return the order of a stream's tuples that are due at once."""
        return batch.id

    def due(self, stream: int, batch: Batch) -> np.ndarray:
        """Return the event time plus delay of each tuple of a stream, in nanoseconds."""
        salt = mix(np.array([self.seed * 2 + stream]))
        drawn = mix(batch.id.astype(np.uint64) ^ salt)
        if self.bounded:
            delay = drawn % np.uint64(self.delay_ns + 1)
        else:
            delay = -self.delay_ns * np.log1p(-np.minimum(drawn * _UNIT, 1 - 2.0**-53))
        # Delays end at the end of time rather than wrap round it.
        room = np.uint64(GREATEST) - batch.ts.astype(np.uint64)
        room = np.where(batch.ts < 0, np.uint64(GREATEST), room)
        arrives: np.ndarray = batch.ts + np.minimum(delay.astype(np.uint64), room).astype(np.int64)
        return arrives


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """The order of arrival that prepared streams have in their columns `ARRIVAL` and `PLACE`."""

    streams: tuple[bool, ...]
    """Which streams have them; the tuples of any other arrive at their event times."""
    least_ns: int = 0
    most_ns: int = 0
    """How much later than its event time a tuple arrives, at the least and at the most. The least
    is negative where clocks differ, or where some arrive before they happen."""

    @property
    def delay_ns(self) -> int:
        """How far behind the latest event time a tuple can be: so far watermarks stay behind."""
        return self.most_ns - self.least_ns

    def opened(self, files: tuple[StreamData, ...]) -> tuple[StreamData, ...]:
        """Return *files* with the columns that `due` and `place` read."""
        return tuple(
            replace(file, schema=_with_arrival(file.schema)) if recorded else file
            for file, recorded in zip(files, self.streams, strict=True)
        )

    def place(self, stream: int, batch: Batch) -> np.ndarray:
        """Return the order of a stream's tuples that are due at once."""
        return batch.fields[PLACE] if self.streams[stream] else batch.id

    def due(self, stream: int, batch: Batch) -> np.ndarray:
        """Return when each tuple of a stream arrives, in nanoseconds."""
        return batch.fields[ARRIVAL] if self.streams[stream] else batch.ts


def _with_arrival(schema: Schema) -> Schema:
    return replace(schema, fields={**schema.fields, ARRIVAL: "int64", PLACE: "int64"})


class DisorderedFeed(Stateful):
    """Prepared streams merged in the order in which their tuples are due, however many are taken.

    Memory is bounded by the delays that are under way. Parameters and methods are those of
    `actors.feed.Feed`.
    """

    state = ("_feed", "_delayed", "_ready", "_ended", "_taken")

    def __init__(self, files: tuple[StreamData, ...], disorder: Disorder | Recorded) -> None:
        self._schemas = [file.schema for file in files]
        files = disorder.opened(files)
        self._feed = Feed(files)
        self._disorder = disorder
        self._delayed = [Batch.empty(file.schema) for file in files]
        nothing = [np.empty(0, np.int64) for _ in files]
        self._ready = Arrivals(tuple(map(Batch.empty, self._schemas)), tuple(nothing))
        self._ended = False
        self._taken = 0

    def take(self, rows: int) -> Arrivals | None:
        """Return the next *rows* arrivals (fewer at the very end), or None when all are taken."""
        while not self._ended and len(self._ready) < rows:
            # As many as are delayed, at the least: so each is looked at a few times at the most.
            self._read(max(rows, sum(map(len, self._delayed))))
        if not len(self._ready):
            return None
        stop, end = self._taken + min(rows, len(self._ready)), self._taken + len(self._ready)
        arrivals = self._ready.between(self._taken, stop)
        self._ready = self._ready.between(stop, end)
        self._taken = stop
        return arrivals

    def _read(self, rows: int) -> None:
        """Read on, and number what is due before any tuple that has not been read."""
        arrivals = self._feed.take(rows)
        before = None
        if arrivals is None:
            self._ended = True
        else:
            both = zip(self._delayed, arrivals.parts, strict=True)
            self._delayed = [Batch.concat(list(parts)) for parts in both]
            read_to = max(int(part.ts[-1]) for part in arrivals.parts if len(part))
            before = read_to + self._disorder.least_ns
        parts, due = [], []
        for stream, batch in enumerate(self._delayed):
            times = self._disorder.due(stream, batch)
            ready = np.ones(len(batch), np.bool_) if before is None else times < before
            parts.append(batch.take(ready))
            due.append(times[ready])
            self._delayed[stream] = batch.take(~ready)
        self._number(parts, due)

    def _number(self, parts: Sequence[Batch], due: Sequence[np.ndarray]) -> None:
        """Put *parts*, one per stream, behind those that are ready, in the order they are *due*."""
        place = [self._disorder.place(*each) for each in enumerate(parts)]
        stream_of = np.repeat(np.arange(len(parts)), list(map(len, parts)))
        order = np.lexsort((np.concatenate(place), stream_of, np.concatenate(due)))
        number, begin = self._taken + len(self._ready), 0
        ready, seq = list(self._ready.parts), list(self._ready.seq)
        for stream, part in enumerate(parts):
            mine = np.flatnonzero(stream_of[order] == stream)
            taken = part.take(order[mine] - begin)
            fields = list(self._schemas[stream].fields)
            own = taken.project(fields, width_bytes=part.width_bytes)
            ready[stream] = Batch.concat([ready[stream], own])
            seq[stream] = np.concatenate([seq[stream], mine + number])
            begin += len(part)
        self._ready = Arrivals(tuple(ready), tuple(seq))


def open_feed(
    files: tuple[StreamData, ...], disorder: Disorder | Recorded | None
) -> Feed | DisorderedFeed:
    """Return the feed of *files*, out of order if there is *disorder*."""
    return DisorderedFeed(files, disorder) if disorder else Feed(files)
