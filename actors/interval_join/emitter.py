"""The emitter: gathers one source's tuples in batches and distributes them to the replicas.

Where they go is the pattern's (`actors.interval_join.distribution`). In SplitJoin a `Sequencer`
takes the place of all emitters: the streams come in as one, in order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from actors.interval_join.distribution import Distribution, Route
from actors.protocol import HEADER_BYTES, Actor, Context, Message
from actors.stream_source import END, Rows, RowsPayload, ScaleGate, SourceShare, drop_late
from joins.batch import Batch, Schema
from joins.event_time import NO_WATERMARK
from joins.interval_join import with_key
from joins.queries.query import JoinQuery
from joins.state import storable
from joins.work import Work

REPLICA_BYTES = 2
"""A replica's number on the wire."""


@dataclass(frozen=True, slots=True)
class Tuples(RowsPayload):
    """A batch of tuples, or a punctuation: a batch of none (emitter to replica).

    An emitter takes a turn for each message of its source, and sends to every replica in each.
    """

    channel: int
    """The emitter's number."""
    stream: int
    """Position in the query of the stream the tuples are of."""
    data: Rows
    """The tuples."""
    targets: tuple[int, ...]
    """The replicas that they are sent to; the first is the home of their keys."""
    storing: int
    """How many of these, from the first on, may store them; the others only probe."""
    ends: tuple[int, ...]
    """The replicas for which this is the emitter's last message of its turn."""
    watermark: int
    """No tuple in a later turn of this emitter is older, unless it is late; those in its partial
    batches included."""
    key_watermark: int | None = None
    """The same of tuples of this batch's only key, where each batch has one; it is valid from this
    batch on, within the turn too."""

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        replicas = len(self.targets) + len(self.ends)
        return HEADER_BYTES + REPLICA_BYTES * replicas + self.data.nbytes


@storable
class _Batch(NamedTuple):
    """A batch that is ready to leave."""

    route: Route
    data: Rows
    key_watermark: int | None


@dataclass(kw_only=True, eq=False)
class Emitter(Actor):
    """PPOIJ's emitter (section 4): one partial batch per group of the pattern's distribution.

    A batch leaves when it is full, or has waited long enough. A watermark is a promise about all
    later tuples, those in partial batches included: so it goes no further than the oldest waiting
    tuple; for a key, the oldest of that key. (A batch of one key that carried the watermark of the
    whole replica would make other keys' waiting tuples late.)

    Ports: ``replicas``.
    """

    query: JoinQuery
    schemas: tuple[Schema, ...]
    """What is joined."""
    stream: int
    channel: int
    """Position of its stream in the query, and its number among the emitters."""
    distribution: Distribution
    """Where tuples go."""
    batch_rows: int
    """Tuples in a full batch, at least 1."""
    linger_turns: int
    """How many of its source's messages a tuple waits for at most, 0 or more."""

    state: ClassVar[tuple[str, ...]] = ("_turn", "_waiting", "_waiting_since")
    payload: ClassVar[type[Tuples]] = Tuples
    """What it sends."""

    def __post_init__(self) -> None:
        self._turn = 0
        nothing = np.empty(0, np.int64)
        self._waiting = Rows(Batch.empty(self.schemas[self.stream]), nothing, nothing)
        self._waiting_since = nothing

    def receive(self, message: Message, context: Context) -> None:
        """Handle the source's next turn."""
        self._take_turn(message.payload, context)

    def _take_turn(self, share: SourceShare, context: Context, *, flush: bool = False) -> int:
        """Send what is ready, end the turn at every replica, and return the least watermark sent.

        With *flush* no partial batch waits.
        """
        replicas = len(context.peers("replicas"))
        ready, oldest = self._batches(share, replicas, flush=flush or share.last)
        context.charge(Work(bytes_copied=sum(batch.data.batch.nbytes for batch in ready)))
        last = {
            replica: place for place, batch in enumerate(ready) for replica in batch.route.targets
        }
        nothing = self._waiting.slice(0, 0)
        ready += [_Batch(Route((i,), 1), nothing, None) for i in range(replicas) if i not in last]
        for place, batch in enumerate(ready):
            targets, storing = batch.route
            payload = self.payload(
                channel=self.channel,
                stream=self.stream,
                data=batch.data,
                targets=targets,
                storing=storing,
                ends=tuple(i for i in targets if last.get(i, place) == place),
                watermark=min(share.watermark, oldest[targets[0]]),
                key_watermark=batch.key_watermark,
            )
            context.send("replicas", payload, to=targets)
        self._turn += 1
        return min(share.watermark, *oldest)

    def _batches(
        self, share: SourceShare, replicas: int, *, flush: bool
    ) -> tuple[list[_Batch], list[int]]:
        """Return what is ready to leave, and per replica the oldest tuple that still waits."""
        rows, since, groups = self._by_group(share.data)
        begins = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]])[: len(groups)])
        sizes = np.diff(begins, append=len(groups))
        full = sizes - sizes % self.batch_rows
        due = since[begins] + self.linger_turns <= self._turn
        ends = begins + (sizes if flush else np.where(due, sizes, full))
        waits = np.arange(len(groups)) >= np.repeat(ends, sizes)
        least = np.minimum.reduceat(np.where(waits, rows.batch.ts, END), begins).tolist()
        routes = self.distribution.routes(groups[begins])
        ready: list[_Batch] = []
        for begin, end, oldest, route in zip(
            begins.tolist(), ends.tolist(), least, routes, strict=True
        ):
            for start in range(begin, end, self.batch_rows):
                stop = min(start + self.batch_rows, end)
                key_watermark = None
                if self.distribution.one_key:
                    key_watermark = NO_WATERMARK if stop < end else min(share.watermark, oldest)
                ready.append(_Batch(route, rows.slice(start, stop), key_watermark))
        rest = np.flatnonzero(waits)
        self._waiting, self._waiting_since = rows.take(rest), since[rest]
        return ready, self._oldest(replicas, routes, least)

    def _oldest(self, replicas: int, routes: Sequence[Route], least: list[int]) -> list[int]:
        """Return per replica the oldest tuple that waits for it, of the *least* of every route.

        Where keys are split, replicas must agree on what is late, so all get the same watermark.
        """
        if self.distribution.one_key:
            return [min(least, default=END)] * replicas
        oldest = [END] * replicas
        for route, time in zip(routes, least, strict=True):
            for replica in route.targets:
                oldest[replica] = min(oldest[replica], time)
        return oldest

    def _by_group(self, data: Rows) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Return all tuples here, since which turn each is, and its group; in the groups' order."""
        fresh = self._keyed(data)
        rows = Rows.concat([self._waiting, fresh])
        since = np.concatenate([self._waiting_since, np.full(len(fresh), self._turn)])
        groups = self.distribution.groups(rows.batch)
        if (groups[1:] >= groups[:-1]).all():
            return rows, since, groups
        order = np.argsort(groups, kind="stable")
        return rows.take(order), since[order], groups[order]

    def _keyed(self, data: Rows) -> Rows:
        """Return tuples that have come, as `keyed` does."""
        return keyed(self.query, self.schemas, self.stream, data)


def keyed(query: JoinQuery, schemas: tuple[Schema, ...], stream: int, data: Rows) -> Rows:
    """Return tuples of *stream* with their keys, without those that can have no partner."""
    batch = with_key(query, schemas, stream, data.batch)
    if len(batch) < len(data):
        data = data.take(np.flatnonzero(np.isin(data.batch.id, batch.id)))
    return Rows(batch, data.born_ns, data.seq)


@dataclass(kw_only=True, eq=False)
class Sequencer(ScaleGate):
    """Delays tuples until a watermark has passed them, then sends them to all replicas.

    It is a `ScaleGate` whose sources need not send in order. Tuples leave in the order of their
    event times; all replicas get the same messages in the same order, so which stream of a message
    comes first makes no difference. A tuple that a watermark has already passed cannot be put in
    order any more: it is late.

    Ports: ``replicas``, ``sink``.
    """

    query: JoinQuery
    """What is joined."""
    replicas: int
    """How many there are, whether the messages reach them at once or down a tree."""
    batch_rows: int
    """Tuples of one message at the most, at least 1."""

    state = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        self._replicas = tuple(range(self.replicas))

    def _add(self, stream: int, data: Rows, context: Context) -> None:
        data = drop_late(stream, data, min(self._watermarks), data.span, context)
        fresh = keyed(self.query, self.schemas, stream, data)
        rows = Rows.concat([*self._waiting[stream], fresh])
        self._waiting[stream] = deque([rows.take(np.argsort(rows.batch.ts, kind="stable"))])
        context.charge(Work(comparisons=len(data) * len(rows).bit_length(), moves=len(rows)))

    def _send(self, ready: list[Rows], past: int, context: Context) -> None:
        batches = [
            (stream, rows.slice(begin, begin + self.batch_rows))
            for stream, rows in enumerate(ready)
            for begin in range(0, len(rows), self.batch_rows)
        ]
        everyone = self._replicas
        for place, (stream, data) in enumerate(batches, start=1):
            # A watermark is about later messages, and all but the last message are followed by
            # tuples as old as their own.
            watermark = past if place == len(batches) else NO_WATERMARK
            context.charge(Work(bytes_copied=data.nbytes))
            tuples = Tuples(0, stream, data, everyone, len(everyone), everyone, watermark)
            context.send("replicas", tuples)
