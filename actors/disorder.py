"""Streams whose tuples arrive out of the order of their event times.

Either each has a seeded delay, or the data have an order of arrival of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from actors.feed import Feed, StreamData
from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.hashing import mix
from joins.state import Stateful

ARRIVAL, PLACE = "_arrival", "_place"
"""Columns of prepared streams whose order of arrival is recorded: when a tuple arrives, int64 ns,
and its place among those that arrive at once."""

_UNIT = 2.0**-64


@dataclass(frozen=True, kw_only=True)
class Disorder:
    """How far tuples arrive out of order.

    Each tuple is delayed in event time, and tuples arrive by event time plus delay.

    Attributes
    ----------
    delay_ns
        The longest delay when *bounded*, their mean otherwise.
    bounded
        Whether delays are uniform from 0 to *delay_ns*; otherwise they are exponential, so that
        there is no longest one.
    seed
        The delays are a function of it and of each tuple's stream and position.
    """

    delay_ns: int
    bounded: bool = True
    seed: int = 0

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
        room = np.uint64(2**63 - 1) - batch.ts.astype(np.uint64)
        room = np.where(batch.ts < 0, np.uint64(2**63 - 1), room)
        due: np.ndarray = batch.ts + np.minimum(delay.astype(np.uint64), room).astype(np.int64)
        return due


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """The order of arrival that prepared streams have in their columns `ARRIVAL` and `PLACE`.

    Attributes
    ----------
    streams
        Which streams have them; the tuples of any other arrive at their event times.
    least_ns, most_ns
        How much later than its event time a tuple arrives, at the least and at the most. The least
        is negative where clocks differ, or where some arrive before they happen.
    """

    streams: tuple[bool, ...]
    least_ns: int = 0
    most_ns: int = 0

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

    state = ("_feed", "_delayed", "_due", "_read_to", "_ended", "_number")

    def __init__(self, files: tuple[StreamData, ...], disorder: Disorder | Recorded) -> None:
        self._fields = [list(file.schema.fields) for file in files]
        files = disorder.opened(files)
        self._feed = Feed(files)
        self._disorder = disorder
        self._delayed = [Batch.empty(file.schema) for file in files]
        self._due = [np.empty(0, np.int64) for _ in files]
        self._read_to: int | None = None
        self._ended = False
        self._number = 0

    def take(self, rows: int) -> Arrivals | None:
        """Return the next *rows* arrivals (fewer at the very end), or None when all are taken."""
        while not self._ended and self._ready() < rows:
            self._read(rows)
        due = np.concatenate(self._due)
        stream_of = np.repeat(np.arange(len(self._due)), [len(times) for times in self._due])
        places = [self._disorder.place(*each) for each in enumerate(self._delayed)]
        order = np.lexsort((np.concatenate(places), stream_of, due))[:rows]
        if not len(order):
            return None
        parts, numbers = [], []
        begin = 0
        for stream, batch in enumerate(self._delayed):
            mine = stream_of[order] == stream
            taken = order[mine] - begin
            begin += len(batch)
            part = batch.project(self._fields[stream], width_bytes=batch.width_bytes)
            parts.append(part.take(taken))
            numbers.append(np.flatnonzero(mine) + self._number)
            left = np.setdiff1d(np.arange(len(batch)), taken)
            self._delayed[stream], self._due[stream] = batch.take(left), self._due[stream][left]
        self._number += len(order)
        return Arrivals(parts=tuple(parts), seq=tuple(numbers))

    def _ready(self) -> int:
        """Return how many tuples are due before any that has not been read."""
        if self._read_to is None:
            return 0
        before = self._read_to + self._disorder.least_ns
        return sum(int((times < before).sum()) for times in self._due)

    def _read(self, rows: int) -> None:
        arrivals = self._feed.take(rows)
        if arrivals is None:
            self._ended = True
            return
        for stream, part in enumerate(arrivals.parts):
            self._delayed[stream] = Batch.concat([self._delayed[stream], part])
            due = self._disorder.due(stream, part)
            self._due[stream] = np.concatenate([self._due[stream], due])
        self._read_to = max(int(part.ts[-1]) for part in arrivals.parts if len(part))


def open_feed(
    files: tuple[StreamData, ...], disorder: Disorder | Recorded | None
) -> Feed | DisorderedFeed:
    """Return the feed of *files*, out of order if there is *disorder*."""
    return DisorderedFeed(files, disorder) if disorder else Feed(files)
