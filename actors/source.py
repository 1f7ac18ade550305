"""The source: feeds prepared streams into a system at a chosen rate, or as fast as it is taken.

Its first receiver finds the window that each tuple sees: from there on they are `Probes`.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from actors.feed import Disorder, Recorded, StreamData, open_feed
from actors.protocol import NS_PER_S, START, Actor, Context, Message, Payload
from joins.arrivals import Arrivals
from joins.batch import Batch, RowSelection
from joins.event_time import EventTimeBounds
from joins.queries.windows import WindowBounds
from joins.state import storable

ARRIVALS = "arrivals"
"""The port on which a source gets `Arriving` from an engine, instead of reading files."""

_AHEAD = 8
"""Batches ready at the port of a source without a rate, so that the port never runs dry."""

LINGER_NS = 5_000_000
"""How long Kafka's producers let a batch gather by default, since version 4.0. A message costs
some ten microseconds wherever it goes: at one in 5 ms that is a few thousandths of a core."""

_FIRST_ROWS = 4_096
"""Tuples of the first batch where all are there at once."""
_MOST_ROWS = 65_536
"""Tuples of any batch at most: what a message costs is then a thousandth of what its tuples do, and
it has some megabytes."""
_LEAST_MESSAGES = 8
"""No batch that grew has more than this part of the streams: the stages of a system work side by
side only as long as there are several messages under way."""


@dataclass(frozen=True, kw_only=True)
class Feeding:
    """How a source feeds its streams in.

    Unless it is set how many tuples a message has, they gather. At a rate a message leaves when its
    first tuple has waited for *linger_ns*, or when it is full; while a source is behind, because
    its receiver has no room, all that has come into being when one leaves goes into the next.
    Without a rate every tuple is there at once, and the receiver is always behind: each message has
    twice as many tuples as the one before, until they are full.
    """

    batch_rows: int | None = None
    """Tuples per message, at least 1; None: as they gather."""
    linger_ns: int = LINGER_NS
    """For how long, virtual nanoseconds, a tuple may wait for others, 0 or more."""
    rate_tps: int | None = None
    """Tuples per virtual second over all streams; None feeds as fast as back-pressure allows."""
    disorder: Disorder | Recorded | None = None
    """How far tuples arrive out of the order of their event times, or that their own order is
    taken; None: they do not."""
    watermark_lag_ns: int | None = None
    """How far watermarks stay behind the latest event time that has arrived; None takes the
    disorder's delay. With less than the longest delay some tuples are late."""
    watermarks: bool = True
    """Whether there are any before the end; without them no stored tuple ever expires."""

    def __post_init__(self) -> None:
        if self.batch_rows is not None and self.batch_rows < 1:
            raise ValueError(f"batch_rows is {self.batch_rows}: must be at least 1")
        if self.rate_tps is not None and self.rate_tps < 1:
            raise ValueError(f"rate_tps is {self.rate_tps}: must be at least 1 tuple a second")

    def rows_of(self, message: int, most: int) -> int:
        """Return how many tuples message number *message* has, where its source is not behind.

        *most* make a message full; it is a function of nothing else, so that several sources agree.
        """
        if self.batch_rows is not None:
            return self.batch_rows
        if self.rate_tps is None:
            return min(most, _FIRST_ROWS << min(message, 16))
        return max(1, min(most, self.rate_tps * self.linger_ns // NS_PER_S))

    @property
    def lag_ns(self) -> int:
        """How far watermarks stay behind the latest event time that has arrived."""
        if self.watermark_lag_ns is not None:
            return self.watermark_lag_ns
        return self.disorder.delay_ns if self.disorder else 0


@storable
@dataclass(frozen=True, slots=True)
class Arriving:
    """Arrivals that an engine feeds in, which reads the streams itself."""

    arrivals: Arrivals
    """At least one; they follow on those fed in before."""
    last: bool
    """Whether nothing comes after them."""


@dataclass(frozen=True, slots=True)
class Fed(Payload):
    """Arrivals on their way, with the virtual time at which each tuple came into being."""

    arrivals: Arrivals
    """The tuples."""
    born_ns: tuple[np.ndarray, ...]
    """Per stream an int64 array beside its tuples, virtual nanoseconds."""
    last: bool = False
    """Whether nothing comes after them."""

    bytes_of = ("arrivals",)
    rows_of = ("arrivals",)

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival number."""
        return self.arrivals.span

    def slice(self, starts: Sequence[int], stops: Sequence[int]) -> Fed:
        """Return per stream the rows from a start to a stop (exclusive), as views."""
        ends = zip(self.born_ns, starts, stops, strict=True)
        born_ns = tuple(born[start:stop] for born, start, stop in ends)
        return Fed(self.arrivals.slice(starts, stops), born_ns)


def birth_ns(seq: np.ndarray, rate_tps: int | None, now: int) -> np.ndarray:
    """Return when each arrival comes into being, virtual nanoseconds: without a rate *now*."""
    if rate_tps is None:
        return np.full(len(seq), now, np.int64)
    whole, rest = np.divmod(seq, rate_tps)  # seq * NS_PER_S would overflow in long streams
    born_ns: np.ndarray = whole * NS_PER_S + rest * NS_PER_S // rate_tps
    return born_ns


def full_rows(files: Sequence[StreamData]) -> int:
    """Return how many tuples of *files* make a message full, where they gather."""
    part = sum(file.tuples for file in files) // _LEAST_MESSAGES
    return max(_FIRST_ROWS, min(_MOST_ROWS, part))


class TakesArrivals(Actor, ABC):
    """An actor that reads streams, or takes them from an engine: `Arriving` on port `ARRIVALS`."""


@dataclass(kw_only=True, eq=False)
class Source(TakesArrivals):
    """Sends its streams' tuples in arrival order on port ``out``, a batch at a time.

    A batch leaves when its last tuple has come into being; a source whose receiver has no room
    falls behind, which its tuples' latency shows. Fed by an engine, it reads nothing itself.
    """

    files: tuple[StreamData, ...]
    feeding: Feeding

    state: ClassVar[tuple[str, ...]] = ("_feed", "_next", "_messages", "_taken")

    catches_up: ClassVar[bool] = True
    """Whether all that has come into being goes into the next message, as `Feeding` says."""

    def __post_init__(self) -> None:
        self._feed = open_feed(self.files, self.feeding.disorder)
        self._next: Arrivals | None = None
        self._messages = self._taken = 0
        self._most = self.feeding.batch_rows or full_rows(self.files)

    def receive(self, message: Message, context: Context) -> None:
        """Send what is due and set the timer for the next batch."""
        if message.port == ARRIVALS:
            self._pass_on(message.payload, context)
            return
        if message.port == START:
            self._next = self._take(context.now)
        else:
            for _ in range(_AHEAD if self.feeding.rate_tps is None else 1):
                if (arrivals := self._next) is not None:
                    self._next = self._take(context.now)
                    last = self._next is None
                    context.send("out", self._payload(arrivals, context.now, last=last))
        if self._next is not None:
            context.set_timer(self._due_ns(self._next, context.now), "next")

    def _take(self, now: int) -> Arrivals | None:
        """Return the tuples of the next message; None when all have been taken."""
        feeding = self.feeding
        rows = feeding.rows_of(self._messages, self._most)
        if self.catches_up and feeding.batch_rows is None and feeding.rate_tps is not None:
            born = now * feeding.rate_tps // NS_PER_S + 1 - self._taken
            rows = max(rows, min(self._most, born))
        arrivals = self._feed.take(rows)
        self._messages += 1
        self._taken += len(arrivals) if arrivals is not None else 0
        return arrivals

    def _pass_on(self, arriving: Arriving, context: Context) -> None:
        """Send what an engine has fed in, in messages of the configured size if there is one."""
        begin, stop = arriving.arrivals.span[0], arriving.arrivals.span[1] + 1
        rows = self.feeding.batch_rows or stop - begin
        for first in range(begin, stop, rows):
            end = min(first + rows, stop)
            last = arriving.last and end == stop
            arrivals = arriving.arrivals.between(first, end)
            context.send("out", self._payload(arrivals, context.now, last=last))

    def _payload(self, arrivals: Arrivals, now: int, *, last: bool) -> Payload:
        rate = self.feeding.rate_tps
        return Fed(arrivals, tuple([birth_ns(seq, rate, now) for seq in arrivals.seq]), last=last)

    def _due_ns(self, arrivals: Arrivals, now: int) -> int:
        rate = self.feeding.rate_tps
        return now if rate is None else arrivals.span[1] * NS_PER_S // rate


@storable
@dataclass(frozen=True, slots=True)
class Probes:
    """Tuples of one stream, each with the window it sees in the stream it probes."""

    batch: Batch
    """The tuples; they are stored too."""
    start: np.ndarray
    stop: np.ndarray
    """int64, positions in the probed stream that each tuple sees, *stop* exclusive; out of order
    the first and the last event time that it pairs with."""
    born_ns: np.ndarray
    """int64, when each tuple came into being, virtual nanoseconds."""

    def __len__(self) -> int:
        return len(self.start)

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes: the tuples and their bounds."""
        return self.batch.nbytes + self.start.nbytes + self.stop.nbytes

    def slice(self, start: int, stop: int) -> Probes:
        """Return rows *start* to *stop* (exclusive) as views."""
        return self.take(slice(start, stop))

    def take(self, rows: RowSelection) -> Probes:
        """Return some *rows*."""
        return Probes(self.batch.take(rows), self.start[rows], self.stop[rows], self.born_ns[rows])

    @classmethod
    def concat(cls, parts: Sequence[Probes]) -> Probes:
        """Join *parts* of one stream (at least one) end to end."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            Batch.concat([part.batch for part in parts]),
            np.concatenate([part.start for part in parts]),
            np.concatenate([part.stop for part in parts]),
            np.concatenate([part.born_ns for part in parts]),
        )


def as_probes(fed: Fed, bounds: WindowBounds | EventTimeBounds) -> tuple[Probes, ...]:
    """Return the tuples of *fed*, one `Probes` per stream, and move *bounds* past them."""
    seen = bounds.advance(fed.arrivals)
    parts = []
    for batch, (start, stop), born_ns in zip(fed.arrivals.parts, seen, fed.born_ns, strict=True):
        parts.append(Probes(batch, start, stop, born_ns))
    return tuple(parts)
