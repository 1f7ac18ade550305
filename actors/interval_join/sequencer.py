"""The single input of SplitJoin: streams that arrive side by side, put strictly in order."""

from __future__ import annotations

import numpy as np

from actors.interval_join.emitter import Tuples, keyed
from actors.interval_join.replica import drop_late
from actors.interval_join.source import Rows
from actors.protocol import Context
from actors.scale_gate import ScaleGate
from joins.batch import Schema
from joins.event_time import NO_WATERMARK
from joins.queries.query import JoinQuery
from joins.work import Work


class Sequencer(ScaleGate):
    """Delays tuples until a watermark has passed them, then sends them to all replicas.

    It is a `ScaleGate` whose sources need not send in order. Tuples leave in the order of their
    event times; all replicas get the same messages in the same order, so which stream of a message
    comes first makes no difference. A tuple that a watermark has already passed cannot be put in
    order any more: it is late.

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

    state = ()

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        sources: tuple[str, ...],
        replicas: int,
        batch_rows: int,
    ) -> None:
        super().__init__(schemas=schemas, sources=sources)
        self._query, self._schemas = query, schemas
        self._replicas = tuple(range(replicas))
        self._batch_rows = batch_rows

    def _add(self, stream: int, data: Rows, context: Context) -> None:
        data = drop_late(stream, data, min(self._watermarks), context)
        rows = Rows.concat([self._waiting[stream], keyed(self._query, self._schemas, stream, data)])
        self._waiting[stream] = rows.take(np.argsort(rows.batch.ts, kind="stable"))
        context.charge(Work(comparisons=len(data) * len(rows).bit_length(), moves=len(rows)))

    def _send(self, ready: list[Rows], past: int, context: Context) -> None:
        batches = [
            (stream, rows.slice(begin, begin + self._batch_rows))
            for stream, rows in enumerate(ready)
            for begin in range(0, len(rows), self._batch_rows)
        ]
        everyone = self._replicas
        for place, (stream, data) in enumerate(batches, start=1):
            # A watermark is about later messages, and all but the last message are followed by
            # tuples as old as their own.
            watermark = past if place == len(batches) else NO_WATERMARK
            context.charge(Work(bytes_copied=data.nbytes))
            tuples = Tuples(0, stream, data, everyone, len(everyone), everyone, watermark)
            context.send("replicas", tuples)
