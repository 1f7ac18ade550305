"""The manager: collects, preprocesses and sends (steps 1 to 3), and takes feedback (step 5)."""

from __future__ import annotations

import numpy as np

from actors.panjoin.chain import Chain, ChainRule
from actors.panjoin.collecting import Collected, Collector
from actors.panjoin.mirror import Mirror
from actors.panjoin.payloads import Commands, Create, Expire, Feedback, Insert
from actors.panjoin.prefilter import keep_join_fields
from actors.panjoin.sides import Sides
from actors.panjoin.worker import ResultsTo
from actors.probes import Probes
from actors.protocol import FEEDBACK, TIMER, Actor, Context, Message
from joins.batch import Batch, Schema
from joins.event_time import EventTimeBounds
from joins.indexes.columns import encode
from joins.indexes.panjoin.sorting import sort_codes
from joins.indexes.panjoin.subwindow import SubwindowShape
from joins.queries.query import JoinQuery
from joins.queries.windows import WindowBounds
from joins.state import State


class Manager(Actor):
    """Knows where every subwindow is, and tells the workers what to do about each batch.

    Every tuple leaves with the positions it may see, so the answer is exact to the tuple though
    subwindows expire as a whole. A batch goes out as soon as it is packed: the next one is
    collected and packed while the workers process it.

    Ports: ``worker`` (by index), and ``sink`` when results come back here.

    Parameters
    ----------
    shapes, rules
        Per stream what its subwindows have in common, and how it is cut into them.
    batch_count, collecting_ns
        A batch goes out when one stream has so many tuples waiting, or its first tuple has waited
        so long.
    results
        Where workers send results.
    bounds
        What every tuple sees; None takes the query's windows in the order of arrival.
    """

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        shapes: tuple[SubwindowShape, ...],
        rules: tuple[ChainRule, ...],
        batch_count: int,
        collecting_ns: int,
        results: ResultsTo,
        pairs: bool,
        bounds: WindowBounds | EventTimeBounds | None = None,
    ) -> None:
        self._sides = Sides(query, schemas)
        self._fields = [query.fields(stream) for stream in range(self._sides.streams)]
        bounds = bounds or WindowBounds(query.windows, self_join=query.is_self_join)
        self._collector = Collector(bounds, self._sides.streams, batch_count)
        self._collecting_ns = collecting_ns
        self._chains = [Chain(stream, rule) for stream, rule in enumerate(rules)]
        self._workers = rules[0].workers
        self._mirror = (
            Mirror(self._sides, shapes, self._workers, pairs) if results == "manager" else None
        )
        self._number = 0

    def receive(self, message: Message, context: Context) -> None:
        """Take arrivals, the end of a batch's time, or a worker's feedback."""
        if message.port == FEEDBACK:
            self._hear(message.payload, context)
        elif message.port.startswith(TIMER):
            # A batch that was full before its time has left this timer behind.
            if message.port == TIMER + self._timer and not self._collector.is_empty:
                self._process(self._collector.empty(), context)
        else:
            fed = keep_join_fields(message.payload, self._fields)
            was_empty = self._collector.is_empty
            number = self._number
            for collected in self._collector.take(fed):
                self._process(collected, context)
            if not self._collector.is_empty and (was_empty or self._number > number):
                context.set_timer(context.now + self._collecting_ns, self._timer)

    @property
    def _timer(self) -> str:
        return f"batch{self._number}"

    def _process(self, collected: Collected, context: Context) -> None:
        """Turn a batch into commands, and send each worker its own."""
        create: list[list[Create]] = [[] for _ in range(self._workers)]
        insert: list[list[Insert]] = [[] for _ in range(self._workers)]
        expire: list[list[Expire]] = [[] for _ in range(self._workers)]
        probes = list(collected.parts)
        for stream, part in enumerate(collected.parts):
            if not len(part):
                continue
            batch, codes, probes[stream] = self._sort(stream, part, context)
            for worker, created, inserted in self._chains[stream].store(batch, codes):
                if created is not None:
                    create[worker].append(created)
                insert[worker].append(inserted)
        nothing = [part.slice(0, 0) for part in probes]
        probed = [self._chains[stored].workers for stored in self._sides.stored_stream]
        for stream, horizon in enumerate(collected.horizon):
            for worker, gone in self._expire(stream, horizon):
                expire[worker].append(gone)
        for worker in range(self._workers):
            commands = Commands(
                self._number,
                tuple(create[worker]),
                tuple(insert[worker]),
                tuple(
                    part if worker in workers else none
                    for part, none, workers in zip(probes, nothing, probed, strict=True)
                ),
                tuple(expire[worker]),
                collected.span,
            )
            if commands.rows or commands.expire:
                context.send("worker", commands, to=worker)
                if self._mirror is not None:
                    self._mirror.expect(worker, commands)
        self._number += 1

    def _expire(self, stream: int, horizon: int) -> list[tuple[int, Expire]]:
        return self._chains[stream].expire(horizon)

    def _hear(self, feedback: Feedback, context: Context) -> None:
        """Take a worker's status, and its results if they come here."""
        for stream, status in enumerate(feedback.status):
            stored = self._chains[self._sides.stored_stream[stream]]
            stored.choice.hear(status.probed, status.matches)
            if status.splitters is not None:
                self._chains[stream].sampled(status.splitters)
        if self._mirror is not None:
            answers = self._mirror.translate(feedback, context)
            if answers is not None:
                context.send("sink", answers)

    def _sort(
        self, stream: int, part: Probes, context: Context
    ) -> tuple[Batch, np.ndarray, Probes]:
        """Return a stream's tuples in the order of their indexed field, its codes, and probes.

        Probes are in the order of the field that they probe with. Mostly it is the indexed one;
        the tuples are then sorted once, which is charged for either use.
        """
        codes, order, work = sort_codes(encode(self._sides.columns(stream, part.batch)[0]))
        context.charge(work)
        if self._sides.probes_as_stored(stream):
            context.charge(work)
            probes = part.take(order)
            return probes.batch, codes, probes
        stored = part.batch.take(order)
        _, order, work = sort_codes(encode(self._sides.probing_values(stream, part.batch)))
        context.charge(work)
        return stored, codes, part.take(order)

    def snapshot(self) -> State:
        """Return the buffers, the chains, and the mirror if there is one."""
        return {
            "collector": self._collector.snapshot(),
            "chains": [chain.snapshot() for chain in self._chains],
            "mirror": None if self._mirror is None else self._mirror.snapshot(),
            "number": self._number,
        }

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._collector.restore(state["collector"])
        for chain, snapshot in zip(self._chains, state["chains"], strict=True):
            chain.restore(snapshot)
        if self._mirror is not None:
            self._mirror.restore(state["mirror"])
        self._number = state["number"]
