"""The ScaleGate: merges streams that arrive side by side into one order, whatever their timing."""

from __future__ import annotations

import numpy as np

from actors.interval_join.source import BEGINNING, END, Rows, Share
from actors.protocol import Actor, Context, Message
from actors.source import Fed
from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.state import State, plain, revive


class ScaleGate(Actor):
    """Holds tuples until they are ready, and passes them on in the order of their event times.

    A tuple is ready when every stream has come past its event time: nothing that precedes it is
    then still on its way. Tuples of equal event time go by stream, as everywhere. So what leaves,
    and in which order, depends on the streams alone. (A source's message says how far all of event
    time has come, where the original waits for a tuple of each source; so a silent stream holds
    nobody up.)

    Port: ``out``.

    Parameters
    ----------
    schemas
        One per stream.
    sources
        Name of the actor that sends it, one per stream.
    """

    def __init__(self, *, schemas: tuple[Schema, ...], sources: tuple[str, ...]) -> None:
        nothing = np.empty(0, np.int64)
        self._held = [Rows(Batch.empty(schema), nothing, nothing) for schema in schemas]
        self._sources = sources
        self._watermarks = [BEGINNING] * len(sources)

    def receive(self, message: Message, context: Context) -> None:
        """Take one source's tuples and send what has become ready."""
        share: Share = message.payload
        stream = self._sources.index(message.sender)
        self._held[stream] = Rows.concat([self._held[stream], share.data])
        self._watermarks[stream] = share.watermark
        past = min(self._watermarks)
        ready = []
        for place, held in enumerate(self._held):
            count = len(held) if past == END else int(np.searchsorted(held.batch.ts, past))
            ready.append(held.slice(0, count))
            self._held[place] = held.slice(count, len(held))
        if any(len(part) for part in ready):
            arrivals = Arrivals(
                tuple(part.batch for part in ready), tuple(part.seq for part in ready)
            )
            context.send("out", Fed(arrivals, tuple(part.born_ns for part in ready)))

    def snapshot(self) -> State:
        """Return what is held, and how far event time has come."""
        return {"held": plain(self._held), "watermarks": list(self._watermarks)}

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._held = revive(state["held"])
        self._watermarks = list(state["watermarks"])
