"""The single input of SplitJoin: streams that arrive side by side, put strictly in order."""

from __future__ import annotations

import numpy as np

from actors.interval_join.emitter import Tuples, keyed
from actors.interval_join.replica import drop_late
from actors.interval_join.source import BEGINNING, END, Rows, Share
from actors.protocol import Actor, Context, Message
from joins.batch import Batch, Schema
from joins.queries.query import JoinQuery
from joins.work import Work


class Sequencer(Actor):
    """Delays tuples until a watermark has passed them, then sends them to all replicas.

    Tuples leave in the order of their event times; all replicas get the same messages in the same
    order, so which stream of a message comes first makes no difference. A tuple that a watermark
    has already passed cannot be put in order any more: it is late.

    Ports: ``replicas``, ``sink``.

    Parameters
    ----------
    query, schemas
        What is joined.
    sources
        Name of the actor that sends it, one per stream.
    replicas
        How many there are, whether the messages reach them at once or down a tree.
    batch_rows
        Tuples of one message at the most, at least 1.
    """

    state = ("_waiting", "_watermarks")

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        sources: tuple[str, ...],
        replicas: int,
        batch_rows: int,
    ) -> None:
        self._query, self._schemas = query, schemas
        self._sources = sources
        self._replicas = tuple(range(replicas))
        self._batch_rows = batch_rows
        nothing = np.empty(0, np.int64)
        self._waiting = [Rows(Batch.empty(schema), nothing, nothing) for schema in schemas]
        self._watermarks = [BEGINNING] * len(sources)

    def receive(self, message: Message, context: Context) -> None:
        """Add one source's tuples and send what is in order now."""
        share: Share = message.payload
        stream = self._sources.index(message.sender)
        data = drop_late(stream, share.data, min(self._watermarks), context)
        rows = Rows.concat([self._waiting[stream], keyed(self._query, self._schemas, stream, data)])
        order = np.argsort(rows.batch.ts, kind="stable")
        self._waiting[stream] = rows.take(order)
        context.charge(Work(comparisons=len(data) * len(rows).bit_length(), moves=len(rows)))
        self._watermarks[stream] = share.watermark
        self._release(context)

    def _release(self, context: Context) -> None:
        low = min(self._watermarks)
        ready: list[tuple[int, Rows]] = []
        for stream, waiting in enumerate(self._waiting):
            count = len(waiting) if low == END else int(np.searchsorted(waiting.batch.ts, low))
            self._waiting[stream] = waiting.slice(count, len(waiting))
            ready += [
                (stream, waiting.slice(begin, min(begin + self._batch_rows, count)))
                for begin in range(0, count, self._batch_rows)
            ]
        for place, (stream, data) in enumerate(ready):
            # A watermark is about later messages, and all but the last message are followed by
            # tuples as old as their own.
            watermark = low if place == len(ready) - 1 else BEGINNING
            everyone = self._replicas
            context.charge(Work(bytes_copied=data.batch.nbytes))
            context.send(
                "replicas",
                Tuples(0, stream, data, everyone, len(everyone), everyone, watermark),
            )
