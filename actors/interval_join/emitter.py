"""The emitter: gathers one source's tuples in batches and distributes them to the replicas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from actors.interval_join.distribution import Distribution, Route
from actors.interval_join.payloads import BEGINNING, END, Rows, Share, Tuples
from actors.protocol import Actor, Context, Message
from joins.batch import Batch, Schema
from joins.interval_join import join_keys
from joins.queries.query import JoinQuery
from joins.state import State, plain, revive
from joins.work import Work


class _Batch(NamedTuple):
    """A batch that is ready to leave."""

    route: Route
    data: Rows
    key_watermark: int | None


class Emitter(Actor):
    """PPOIJ's emitter (section 4): one partial batch per group of the pattern's distribution.

    A batch leaves when it is full, or has waited long enough. A watermark is a promise about all
    that is yet to come, what waits in partial batches included: so it goes no further than the
    oldest tuple that waits; for a key, the oldest of that key. (A batch of one key that carried the
    watermark of the whole replica would make other keys' waiting tuples late.)

    Ports: ``replicas``.

    Parameters
    ----------
    query, schemas
        What is joined.
    stream, channel
        Position of its stream in the query, and its number among the emitters.
    distribution
        Where tuples go.
    batch_rows
        Tuples in a full batch, at least 1.
    linger_turns
        How many of its source's messages a tuple waits for at most, 0 or more.
    """

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        stream: int,
        channel: int,
        distribution: Distribution,
        batch_rows: int,
        linger_turns: int,
    ) -> None:
        self._query, self._schemas = query, schemas
        self._stream, self._channel = stream, channel
        self._distribution = distribution
        self._batch_rows, self._linger_turns = batch_rows, linger_turns
        self._turn = 0
        nothing = np.empty(0, np.int64)
        self._held = Rows(Batch.empty(schemas[stream]), nothing, nothing)
        self._held_since = nothing

    def receive(self, message: Message, context: Context) -> None:
        """Take the source's next turn."""
        self._take_turn(message.payload, context)

    def snapshot(self) -> State:
        """Return the partial batches and the turn."""
        return {
            "turn": self._turn,
            "held": plain(self._held),
            "held_since": self._held_since,
        }

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._turn = state["turn"]
        self._held = revive(state["held"])
        self._held_since = state["held_since"]

    def _take_turn(self, share: Share, context: Context, *, flush: bool = False) -> int:
        """Send what is ready, end the turn at every replica, and return the least watermark sent.

        With *flush* nothing is held back.
        """
        replicas = len(context.peers("replicas"))
        ready, oldest = self._batches(share, flush or share.last, replicas)
        context.charge(Work(bytes_copied=sum(batch.data.batch.nbytes for batch in ready)))
        last = {
            replica: place for place, batch in enumerate(ready) for replica in batch.route.targets
        }
        nothing = self._held.slice(0, 0)
        ready += [_Batch(Route((i,), 1), nothing, None) for i in range(replicas) if i not in last]
        for place, batch in enumerate(ready):
            targets, keepers = batch.route
            payload = Tuples(
                channel=self._channel,
                stream=self._stream,
                data=batch.data,
                targets=targets,
                keepers=keepers,
                ends=tuple(i for i in targets if last.get(i, place) == place),
                watermark=min(share.watermark, oldest[targets[0]]),
                key_watermark=batch.key_watermark,
            )
            for replica in targets:
                context.send("replicas", payload, to=replica)
        self._turn += 1
        return min(share.watermark, *oldest)

    def _batches(
        self, share: Share, flush: bool, replicas: int
    ) -> tuple[list[_Batch], Sequence[int]]:
        """Return what is ready to leave, and per replica the oldest tuple that it must wait for."""
        rows, since, groups = self._by_group(share.data)
        oldest = [END] * replicas
        ready: list[_Batch] = []
        waiting = [np.empty(0, np.int64)]
        begins = np.flatnonzero(np.concatenate([[True], groups[1:] != groups[:-1]])[: len(groups)])
        sizes = np.diff(np.append(begins, len(groups)))
        due = since[begins] + self._linger_turns <= self._turn
        routes = self._distribution.routes(groups[begins])
        for begin, size, is_due, route in zip(begins, sizes, due, routes, strict=True):
            end = begin + (size if is_due or flush else size - size % self._batch_rows)
            waiting.append(np.arange(end, begin + size))
            least = int(rows.batch.ts[end : begin + size].min(initial=END))
            for start in range(begin, end, self._batch_rows):
                stop = min(start + self._batch_rows, end)
                key_watermark = None
                if self._distribution.one_key:
                    key_watermark = BEGINNING if stop < end else min(share.watermark, least)
                ready.append(_Batch(route, rows.slice(start, stop), key_watermark))
            self._hold_back(oldest, route.targets, least)
        left = np.concatenate(waiting)
        self._held, self._held_since = rows.take(left), since[left]
        return ready, oldest

    def _hold_back(self, oldest: list[int], targets: tuple[int, ...], least: int) -> None:
        """Keep watermarks from passing *least*.

        Where keys are split, replicas must agree on what is late, so all hear the same watermark.
        """
        for replica in range(len(oldest)) if self._distribution.one_key else targets:
            oldest[replica] = min(oldest[replica], least)

    def _by_group(self, data: Rows) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Return all tuples in hand, since when each is, and its group; in the groups' order."""
        fresh = keyed(self._query, self._schemas, self._stream, data)
        rows = Rows.concat([self._held, fresh])
        since = np.concatenate([self._held_since, np.full(len(fresh), self._turn)])
        groups = self._distribution.groups(rows.batch)
        if (groups[1:] >= groups[:-1]).all():
            return rows, since, groups
        order = np.argsort(groups, kind="stable")
        return rows.take(order), since[order], groups[order]


def keyed(query: JoinQuery, schemas: tuple[Schema, ...], stream: int, data: Rows) -> Rows:
    """Return tuples of *stream* with their keys, without those that can have no partner."""
    batch = join_keys(query, schemas, stream, data.batch)
    if len(batch) < len(data):
        data = data.take(np.flatnonzero(np.isin(data.batch.id, batch.id)))
    return Rows(batch, data.born_ns, data.seq)
