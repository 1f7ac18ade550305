"""Prefilters ahead of the manager: they keep of each tuple what the join reads (section III-A)."""

from __future__ import annotations

from collections.abc import Sequence

from actors.protocol import Actor, Context, Message
from actors.source import Fed
from joins.arrivals import Arrivals
from joins.queries.query import JoinQuery
from joins.state import State
from joins.work import Work


def keep_join_fields(fed: Fed, fields: Sequence[Sequence[str]]) -> Fed:
    """Return arrivals with the join fields alone, per stream; their declared width is dropped."""
    parts = tuple(
        part.project(names) for part, names in zip(fed.arrivals.parts, fields, strict=True)
    )
    return Fed(Arrivals(parts, fed.arrivals.seq), fed.born_ns)


class Spreader(Actor):
    """Deals messages out to prefilters in turns; port ``prefilter``."""

    def __init__(self) -> None:
        self._next = 0

    def receive(self, message: Message, context: Context) -> None:
        """Pass one message on."""
        context.send("prefilter", message.payload, to=self._next)
        self._next = (self._next + 1) % len(context.peers("prefilter"))

    def snapshot(self) -> State:
        """Return whose turn it is."""
        return {"next": self._next}

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._next = state["next"]


class Prefilter(Actor):
    """Retrieves the join fields of arrivals, so that the manager need not; port ``manager``."""

    def __init__(self, *, query: JoinQuery) -> None:
        self._fields = [query.fields(stream) for stream in range(len(query.streams))]

    def receive(self, message: Message, context: Context) -> None:
        """Filter one message."""
        filtered = keep_join_fields(message.payload, self._fields)
        context.charge(Work(bytes_copied=filtered.nbytes))
        context.send("manager", filtered)

    def snapshot(self) -> State:
        """Return nothing: a prefilter keeps nothing."""
        return {}

    def restore(self, state: State) -> None:
        """Take over nothing."""
