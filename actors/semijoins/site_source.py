"""The source of one site: feeds the site's stream, an execution interval's tuples at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from actors.feed import Feed, StreamFile
from actors.protocol import START, Context, Message
from actors.semijoins.payloads import NewTuples
from actors.source import ARRIVALS, NS_PER_S, Feeding, TakesArrivals
from joins.arrivals import Arrivals
from joins.batch import Batch
from joins.state import State, plain, revive

_READ_ROWS = 4_096


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

    def __init__(
        self, *, files: Sequence[StreamFile], stream: int, feeding: Feeding, interval_ns: int
    ) -> None:
        self._feed = Feed(
            tuple(
                file if place == stream else replace(file, schema=replace(file.schema, fields={}))
                for place, file in enumerate(files)
            )
        )
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
        self._held = NewTuples(0, Batch.empty(files[stream].schema), nothing, nothing)

    def receive(self, message: Message, context: Context) -> None:
        """Send the tuples of the interval that ends, and wait for the end of the next."""
        if message.port == ARRIVALS:
            self._fed = True
            self._hold(message.payload.arrivals)
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
        held = self._held
        rows = int(np.searchsorted(held.born_ns, tick))
        stop = len(held.batch)
        self._held = NewTuples(
            0, held.batch.slice(rows, stop), held.seq[rows:], held.born_ns[rows:]
        )
        return NewTuples(tick, held.batch.slice(0, rows), held.seq[:rows], held.born_ns[:rows])

    def _read(self) -> None:
        arrivals = self._feed.take(_READ_ROWS)
        if arrivals is None:
            self._ended = True
        else:
            self._hold(arrivals)

    def _hold(self, arrivals: Arrivals) -> None:
        if self._origin_ns is None:
            self._origin_ns = min(int(part.ts[0]) for part in arrivals.parts if len(part))
        born = [
            self._born_ns(part.ts, seq)
            for part, seq in zip(arrivals.parts, arrivals.seq, strict=True)
        ]
        ticks = (np.concatenate(born) // self._interval_ns + 1) * self._interval_ns
        self._ticks = np.union1d(self._ticks, ticks)
        held, mine = self._held, self._stream
        part = replace(arrivals.parts[mine], width_bytes=held.batch.width_bytes)
        self._held = NewTuples(
            0,
            Batch.concat([held.batch, part]),
            np.concatenate([held.seq, arrivals.seq[mine]]),
            np.concatenate([held.born_ns, born[mine]]),
        )

    def _born_ns(self, ts: np.ndarray, seq: np.ndarray) -> np.ndarray:
        if self._rate is None:
            return ts - self._origin_ns
        whole, rest = np.divmod(seq, self._rate)
        return whole * NS_PER_S + rest * NS_PER_S // self._rate

    def snapshot(self) -> State:
        """Return where the feed is, and what was read but not sent."""
        return plain(
            {
                "feed": self._feed.snapshot(),
                "origin": self._origin_ns,
                "ended": self._ended,
                "ticks": self._ticks,
                "held": self._held,
            }
        )

    def restore(self, state: State) -> None:
        """Go back to where a snapshot was taken."""
        state = revive(state)
        self._feed.restore(state["feed"])
        self._origin_ns, self._ended = state["origin"], state["ended"]
        self._waits = False
        self._ticks, self._held = state["ticks"], state["held"]
