"""The single input of SplitJoin: streams that arrive side by side, put strictly in order."""

from __future__ import annotations

import numpy as np

from actors.interval_join.emitter import keyed
from actors.interval_join.payloads import BEGINNING, END, Rows, Share, Tuples
from actors.protocol import Actor, Context, Message
from actors.results import Late
from joins.batch import Batch, Schema
from joins.queries.query import JoinQuery
from joins.state import State, plain, revive
from joins.work import Work


class Sequencer(Actor):
    """Holds tuples back until a watermark has passed them, then sends them to all replicas.

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
        self._held = [Rows(Batch.empty(schema), nothing, nothing) for schema in schemas]
        self._watermarks = [BEGINNING] * len(sources)

    def receive(self, message: Message, context: Context) -> None:
        """Take one source's tuples and send what has come into order."""
        share: Share = message.payload
        stream = self._sources.index(message.sender)
        data = self._without_late(stream, share.data, context)
        rows = Rows.concat([self._held[stream], keyed(self._query, self._schemas, stream, data)])
        order = np.argsort(rows.batch.ts, kind="stable")
        self._held[stream] = rows.take(order)
        context.charge(Work(comparisons=len(data) * len(rows).bit_length(), moves=len(rows)))
        self._watermarks[stream] = share.watermark
        self._release(context)

    def snapshot(self) -> State:
        """Return what is held back, and the watermarks."""
        return {"held": plain(self._held), "watermarks": list(self._watermarks)}

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._held = revive(state["held"])
        self._watermarks = list(state["watermarks"])

    def _without_late(self, stream: int, data: Rows, context: Context) -> Rows:
        low = min(self._watermarks)
        late = data.batch.ts < low
        if not late.any():
            return data
        batch = data.batch.take(np.flatnonzero(late))
        context.send("sink", Late(stream, batch.id, batch.ts, low, data.span))
        return data.take(np.flatnonzero(~late))

    def _release(self, context: Context) -> None:
        low = min(self._watermarks)
        ready: list[tuple[int, Rows]] = []
        for stream, held in enumerate(self._held):
            count = len(held) if low == END else int(np.searchsorted(held.batch.ts, low))
            self._held[stream] = held.slice(count, len(held))
            ready += [
                (stream, held.slice(begin, min(begin + self._batch_rows, count)))
                for begin in range(0, count, self._batch_rows)
            ]
        for place, (stream, data) in enumerate(ready):
            # What a message promises, it promises for those after it: these are as old as it is.
            watermark = low if place == len(ready) - 1 else BEGINNING
            everyone = self._replicas
            context.charge(Work(bytes_copied=data.batch.nbytes))
            context.send(
                "replicas",
                Tuples(0, stream, data, everyone, len(everyone), everyone, watermark),
            )
