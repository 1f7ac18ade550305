"""The source of one site: feeds the site's stream, an execution interval's tuples at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from actors.feed import Feed, StreamData, only_times_of_others
from actors.protocol import NO_SPAN, START, Context, Message, Payload
from actors.source import ARRIVALS, Feeding, TakesArrivals, birth_ns
from joins.arrivals import Arrivals
from joins.batch import Batch
from joins.errors import DataError
from joins.semijoins.combinations import Combinations
from joins.state import State

_READ_ROWS = 1_024
"""Of all streams at a time. What is read is part of the state, and of snapshots."""
_LATEST_NS = 2**63 - 2**60
"""The latest that a tuple may come into being, 255 years: what it leads to fits int64, too."""


@dataclass(frozen=True, slots=True)
class NewTuples(Payload):
    """B_i: the tuples that came to a site in one execution interval, none or more.

    A source is at its site, so that they cross no wire.
    """

    tick: int
    """End of the interval, virtual nanoseconds."""
    tuples: Combinations
    """The tuples, of one stream."""

    frame_bytes = 0
    bytes_of = ("tuples",)
    rows_of = ("tuples",)

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival number."""
        seq = self.tuples.seq
        return (int(seq[0]), int(seq[-1])) if len(seq) else NO_SPAN


class SiteSource(TakesArrivals):
    """Sends the tuples of each execution interval at its end, on port ``out``.

    Tuples come into being at the rate of the feeding, over all streams and in their common order;
    without a rate at their event times, the first tuple of all at 0. All sources send for the same
    intervals: those in which any stream has a tuple. Nothing could follow from the others.

    Parameters
    ----------
    files, stream
        The prepared streams, and which of them arrives here. Of the others only the event times are
        read, which arrival numbers depend on.
    interval_ns
        τ.
    """

    state = ("_feed", "_origin_ns", "_ended", "_ticks", "_unsent")

    def __init__(
        self, *, files: Sequence[StreamData], stream: int, feeding: Feeding, interval_ns: int
    ) -> None:
        self._feed = Feed(only_times_of_others(files, stream))
        self._names = [file.schema.stream for file in files]
        self._stream = stream
        self._fed = False
        """By an engine: nothing is read here."""
        self._rate = feeding.rate_tps
        self._interval_ns = interval_ns
        self._origin_ns: int | None = None
        self._ended = False
        self._waits = False
        """For the end of an interval: a timer is set."""
        self._ticks = np.empty(0, np.int64)
        nothing = np.empty(0, np.int64)
        self._unsent = Combinations(
            streams=(stream,),
            parts=(Batch.empty(files[stream].schema),),
            seq=nothing,
            born_ns=nothing,
        )

    def receive(self, message: Message, context: Context) -> None:
        """Send the tuples of the interval that ends, and wait for the end of the next."""
        if message.port == ARRIVALS:
            self._fed = True
            self._add(message.payload.arrivals)
            self._ended = message.payload.last
        elif message.port != START:
            context.send("out", self._take(int(self._ticks[0])))
            self._ticks = self._ticks[1:]
            self._waits = False
        # An interval is complete when a tuple of a later one is known.
        while len(self._ticks) < 2 and not (self._ended or self._fed):
            self._read()
        if not self._waits and len(self._ticks) >= (1 if self._ended else 2):
            context.set_timer(int(self._ticks[0]), "interval")
            self._waits = True

    def _take(self, tick: int) -> NewTuples:
        """Return and remove the tuples that came before *tick*."""
        unsent = self._unsent
        rows = int(np.searchsorted(unsent.born_ns, tick))
        self._unsent = unsent.slice(rows, len(unsent))
        return NewTuples(tick, unsent.slice(0, rows))

    def _read(self) -> None:
        # As many as wait, at the least: so all that wait are copied a few times at the most.
        arrivals = self._feed.take(max(_READ_ROWS, len(self._unsent)))
        if arrivals is None:
            self._ended = True
        else:
            self._add(arrivals)

    def _add(self, arrivals: Arrivals) -> None:
        if self._origin_ns is None:
            self._origin_ns = min(int(part.ts[0]) for part in arrivals.parts if len(part))
        born = [
            self._born_ns(name, part.ts, seq)
            for name, part, seq in zip(self._names, arrivals.parts, arrivals.seq, strict=True)
        ]
        ticks = (np.concatenate(born) // self._interval_ns + 1) * self._interval_ns
        self._ticks = np.union1d(self._ticks, ticks)
        unsent, mine = self._unsent, self._stream
        part = replace(arrivals.parts[mine], width_bytes=unsent.newest.width_bytes)
        new = replace(unsent, parts=(part,), seq=arrivals.seq[mine], born_ns=born[mine])
        self._unsent = Combinations.concat([unsent, new])

    def _born_ns(self, name: str, ts: np.ndarray, seq: np.ndarray) -> np.ndarray:
        if self._rate is not None:
            return birth_ns(seq, self._rate, 0)
        assert self._origin_ns is not None  # `_add` found it
        if len(ts) and int(ts[-1]) - self._origin_ns > _LATEST_NS:
            raise DataError(
                f"stream {name!r}: the event time {ts[-1]} ns is more than 255 years after the "
                f"first of all streams, {self._origin_ns} ns; tuples come into being at their "
                "event times here, so set feeding.rate_tps, or leave such times out"
            )
        return ts - self._origin_ns

    def restore(self, state: State) -> None:
        """Go back to where a snapshot was taken; a timer set since then is set again."""
        super().restore(state)
        self._waits = False
