"""The ScaleGate: merges streams that arrive side by side into one order, whatever their timing."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from actors.interval_join.source import END, Rows, SourceShare
from actors.protocol import Actor, Context, Message
from actors.source import Fed
from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.event_time import NO_WATERMARK


class ScaleGate(Actor):
    """Passes tuples on in the order of their event times, as soon as they are ready.

    A tuple is ready when every stream has come past its event time: nothing that precedes it is
    then still on its way. Tuples of equal event time go by stream, as everywhere. So what leaves,
    and in which order, depends on the streams alone. (A source's message says how far all of event
    time has come, where the original waits for a tuple of each source; so a silent stream delays
    nobody.)

    Port: ``out``.

    Parameters
    ----------
    schemas
        One per stream.
    sources
        Name of the actor that sends it, one per stream.
    """

    state: ClassVar[tuple[str, ...]] = ("_waiting", "_watermarks")

    def __init__(self, *, schemas: tuple[Schema, ...], sources: tuple[str, ...]) -> None:
        nothing = np.empty(0, np.int64)
        self._waiting = [Rows(Batch.empty(schema), nothing, nothing) for schema in schemas]
        self._sources = sources
        self._watermarks = [NO_WATERMARK] * len(sources)

    def receive(self, message: Message, context: Context) -> None:
        """Take one source's tuples and send what has become ready."""
        share: SourceShare = message.payload
        stream = self._sources.index(message.sender)
        self._add(stream, share.data, context)
        self._watermarks[stream] = share.watermark
        past = min(self._watermarks)
        ready = []
        for place, rows in enumerate(self._waiting):
            count = len(rows) if past == END else int(np.searchsorted(rows.batch.ts, past))
            ready.append(rows.slice(0, count))
            self._waiting[place] = rows.slice(count, len(rows))
        self._send(ready, past, context)

    def _add(self, stream: int, data: Rows, context: Context) -> None:
        """Add tuples of *stream* to those that wait, in the order of their event times."""
        self._waiting[stream] = Rows.concat([self._waiting[stream], data])

    def _send(self, ready: list[Rows], past: int, context: Context) -> None:
        """Send what is *ready*, per stream; no tuple that is yet to come is older than *past*."""
        if any(len(part) for part in ready):
            arrivals = Arrivals(
                tuple(part.batch for part in ready), tuple(part.seq for part in ready)
            )
            context.send("out", Fed(arrivals, tuple(part.born_ns for part in ready)))
