"""Sources of one stream each, what they send, and the gate that merges it into one order.

Interval joins have several sources, and so has ScaleJoin, whose `ScaleGate` puts the streams in the
order of their event times, whatever their timing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeVar

import numpy as np

from actors.feed import only_times_of_others
from actors.protocol import NO_SPAN, Actor, Context, Message, Payload
from actors.results import report_late
from actors.source import Fed, Probes, Source, birth_ns
from joins.arrivals import Arrivals
from joins.batch import Batch, RowSelection, Schema
from joins.codes import GREATEST
from joins.event_time import NO_WATERMARK, latest_time, watermark_at
from joins.state import storable

END = GREATEST
"""The watermark after the last tuple."""


@storable
@dataclass(frozen=True, slots=True)
class Rows:
    """Tuples of one stream, with the birth and the arrival number of each."""

    batch: Batch
    """The tuples."""
    born_ns: np.ndarray
    """int64, when each was created, in virtual nanoseconds."""
    seq: np.ndarray
    """int64, its arrival number."""

    def __len__(self) -> int:
        return len(self.seq)

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes: the tuples alone.

        Their births and arrival numbers are left out: no interval join goes by them, only latencies
        and the trace do.
        """
        return self.batch.nbytes

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival number."""
        seq = self.seq
        if len(seq) == 1:  # as of most messages where tuples do not gather
            return (int(seq[0]), int(seq[0]))
        return (int(seq.min()), int(seq.max())) if len(seq) else NO_SPAN

    def slice(self, start: int, stop: int) -> Rows:
        """Return rows *start* to *stop* (exclusive) as views."""
        return self.take(slice(start, stop))

    def take(self, rows: RowSelection) -> Rows:
        """Return some *rows*: copies, or views where they are a slice."""
        return Rows(self.batch.take(rows), self.born_ns[rows], self.seq[rows])

    @classmethod
    def concat(cls, parts: Sequence[Rows]) -> Rows:
        """Join *parts* (at least one) end to end."""
        first = parts[0]
        parts = [part for part in parts if len(part)]
        if len(parts) <= 1:
            return parts[0] if parts else first
        return cls(
            Batch.concat([part.batch for part in parts]),
            np.concatenate([part.born_ns for part in parts]),
            np.concatenate([part.seq for part in parts]),
        )


_Tuples = TypeVar("_Tuples", Rows, Probes)


def drop_late(
    stream: int, tuples: _Tuples, watermark: int, span: tuple[int, int], context: Context
) -> _Tuples:
    """Return the *tuples* that *watermark* has not passed; report the others."""
    late = tuples.batch.ts < watermark
    report_late(stream, tuples.batch, late, watermark, span, context)
    return tuples.take(~late) if late.any() else tuples


class RowsPayload(Payload):
    """A payload that is about the tuples *data*."""

    __slots__ = ()
    data: Rows

    bytes_of = ("data",)
    rows_of: ClassVar[tuple[str, ...]] = ("data",)

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival number."""
        return self.data.span


@dataclass(frozen=True, slots=True)
class SourceShare(RowsPayload):
    """One source's share of a run of arrivals (source to emitter); it may be empty."""

    data: Rows
    """The tuples."""
    watermark: int
    """No tuple of any source that comes after these arrivals is older, unless it is late."""
    last: bool
    """Whether nothing comes after them."""


@dataclass(kw_only=True, eq=False)
class StreamSource(Source):
    """Feeds its share of one stream in, in step with the other sources.

    All sources read the same runs of arrivals, and each sends its own tuples of a run: so their
    clocks, which are event time, agree, and a source without tuples in a run sends only its
    watermark (a punctuation).
    """

    stream: int
    """Position in the query of the stream to send."""
    replica: int
    replicas: int
    """It sends the tuples whose position leaves *replica* when divided by *replicas*."""

    state = ("_latest",)

    # All sources are to take the same runs: how far behind this one is must not matter.
    catches_up = False

    def __post_init__(self) -> None:
        self.files = only_times_of_others(self.files, self.stream)
        super().__post_init__()
        self._latest = NO_WATERMARK

    def _payload(self, arrivals: Arrivals, now: int, *, last: bool) -> SourceShare:
        batch, seq = arrivals.parts[self.stream], arrivals.seq[self.stream]
        if self.replicas > 1:
            mine = np.flatnonzero(batch.id % self.replicas == self.replica)
            batch, seq = batch.take(mine), seq[mine]
        self._latest = latest_time(arrivals, self._latest)
        lag_ns = self.feeding.lag_ns if self.feeding.watermarks else None
        watermark = END if last else watermark_at(self._latest, lag_ns)
        born_ns = birth_ns(seq, self.feeding.rate_tps, now)
        return SourceShare(Rows(batch, born_ns, seq), watermark, last)


@dataclass(kw_only=True, eq=False)
class ScaleGate(Actor):
    """Passes tuples on in the order of their event times, as soon as they are ready.

    A tuple is ready when every stream has come past its event time: nothing that precedes it is
    then still on its way. Tuples of equal event time go by stream, as everywhere. So what leaves,
    and in which order, depends on the streams alone. (A source's message says how far all of event
    time has come, where the original waits for a tuple of each source; so a silent stream delays
    nobody.)

    Port: ``out``.
    """

    schemas: tuple[Schema, ...]
    """One per stream."""
    sources: tuple[str, ...]
    """Name of the actor that sends it, one per stream."""

    state: ClassVar[tuple[str, ...]] = ("_waiting", "_watermarks", "_ended")

    def __post_init__(self) -> None:
        self._waiting: list[deque[Rows]] = [deque() for _ in self.schemas]
        self._watermarks = [NO_WATERMARK] * len(self.sources)
        # A watermark at the end of int64 may come before the end: tuples may be as old.
        self._ended = [False] * len(self.sources)

    def receive(self, message: Message, context: Context) -> None:
        """Take one source's tuples and send what has become ready."""
        share: SourceShare = message.payload
        stream = self.sources.index(message.sender)
        self._add(stream, share.data, context)
        self._watermarks[stream], self._ended[stream] = share.watermark, share.last
        past, ended = min(self._watermarks), all(self._ended)
        ready = [self._take(place, None if ended else past) for place in range(len(self._waiting))]
        self._send(ready, past, context)

    def _add(self, stream: int, data: Rows, context: Context) -> None:
        """Add tuples of *stream* to those that wait, in the order of their event times."""
        self._waiting[stream].append(data)

    def _take(self, stream: int, past: int | None) -> Rows:
        """Take the tuples of *stream* that wait and are older than *past*; None: all."""
        nothing, waiting = np.empty(0, np.int64), self._waiting[stream]
        ready = [Rows(Batch.empty(self.schemas[stream]), nothing, nothing)]
        while waiting:
            rows = waiting.popleft()
            count = len(rows) if past is None else int(np.searchsorted(rows.batch.ts, past))
            ready.append(rows.slice(0, count))
            if count < len(rows):
                waiting.appendleft(rows.slice(count, len(rows)))
                break
        return Rows.concat(ready)

    def _send(self, ready: list[Rows], past: int, context: Context) -> None:
        """Send what is *ready*, per stream; no tuple that is yet to come is older than *past*."""
        if any(len(part) for part in ready):
            arrivals = Arrivals(
                tuple(part.batch for part in ready), tuple(part.seq for part in ready)
            )
            context.send("out", Fed(arrivals, tuple(part.born_ns for part in ready)))
