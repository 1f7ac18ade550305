"""The joiner PE: its share of every stream's window in an index each, probed as tuples come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actors.probes import Probes
from actors.protocol import Actor, Context, Message
from actors.results import Answers
from actors.window_join.router import Share
from actors.window_join.routing import Routing
from joins.batch import Schema
from joins.indexes.index import Index, ranges_for, stored_columns
from joins.indexes.windows.window_indexes import WINDOW_INDEXES
from joins.matches import Matches
from joins.queries.query import JoinQuery


class Joiner(Actor):
    """Stores the tuples that are to be stored at it, and probes with those that probe here.

    Within a message all tuples are stored before any probes; a probe carries the positions it may
    see, so it finds its predecessors and nothing else. What no later probe can see, expires.

    Port: ``sink``.

    Parameters
    ----------
    routing, pe
        Where tuples are stored and probe, and which of the PEs this is.
    index, options
        Structure of the local windows (`WINDOW_INDEXES`), and what is set of it.
    """

    state = ("_indexes",)

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        routing: Routing,
        pe: int,
        index: str,
        options: Mapping[str, Any],
        pairs: bool,
    ) -> None:
        streams = range(len(query.streams))
        self._routing = routing
        self._pe = pe
        self._pairs = pairs
        self._stored_stream = [query.stored_stream(stream) for stream in streams]
        self._probing = [query.conditions(stream, schemas) for stream in streams]
        self._storing = [self._probing[other] for other in self._stored_stream]
        self._indexes: list[Index] = [
            WINDOW_INDEXES[index](conditions, **options) for conditions in self._storing
        ]

    def receive(self, message: Message, context: Context) -> None:
        """Store, probe, answer and expire."""
        share: Share = message.payload
        for stream, part in enumerate(share.parts):
            stored = part.batch.take(self._routing.stored_at(stream, part.batch).at(self._pe))
            columns = stored_columns(self._storing[stream], stored)
            context.charge(self._indexes[stream].insert(columns, stored.id))
        probing = [
            part.take(self._routing.probes_at(stream, part.batch).at(self._pe))
            for stream, part in enumerate(share.parts)
        ]
        if any(len(part) for part in probing):
            matches = tuple(
                self._probe(stream, part, context) for stream, part in enumerate(probing)
            )
            born_ns = tuple(part.born_ns for part in probing)
            context.send("sink", Answers(matches, born_ns, share.span))
        for index, horizon in zip(self._indexes, share.horizon, strict=True):
            context.charge(index.expire(horizon))

    def _probe(self, stream: int, part: Probes, context: Context) -> Matches:
        conditions = self._probing[stream]
        columns = [part.batch.fields[condition.probe_field] for condition in conditions]
        ranges = ranges_for(conditions, columns, part.start, part.stop)
        result = self._indexes[self._stored_stream[stream]].probe(ranges, enumerate=self._pairs)
        context.charge(result.work)
        return result.of(stream, part.batch.id)
