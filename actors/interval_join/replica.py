"""The OIJ replica: state buffers that only it touches, behind its collector."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from actors.interval_join.collector import Collector, Order
from actors.interval_join.payloads import END, Tuples
from actors.interval_join.watermarks import Watermarks
from actors.protocol import Actor, Context, Message
from actors.results import Answers, Collected, Late
from joins.batch import Schema
from joins.hashing import partition
from joins.interval_join import IntervalJoin
from joins.matches import Matches
from joins.queries.query import JoinQuery
from joins.state import State


class _Answer(NamedTuple):
    """What one batch found: a row per base tuple, with the birth of the tuple that found it."""

    matches: Matches
    born_ns: np.ndarray
    span: tuple[int, int]


class Replica(Actor):
    """Probes every tuple it is sent, and stores those that are its own (PPOIJ, section 3).

    A tuple that goes to several replicas probes at all of them and is stored at one, which a hash
    of its position chooses. A tuple older than the watermark when its turn comes is late: it
    neither probes nor is stored, and the replica that would have stored it reports it.

    Ports: ``sink``.

    Parameters
    ----------
    query, schemas
        What is joined.
    replica, channels
        Its number, and how many emitters there are.
    collector
        In which order it takes messages of different channels.
    pairs
        Whether to report match ids.
    """

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        replica: int,
        channels: int,
        collector: Order = "ordered",
        pairs: bool = False,
    ) -> None:
        self._replica = replica
        self._pairs = pairs
        self._join = IntervalJoin(query, schemas)
        self._collector = Collector(collector, replica, channels)
        self._watermarks = Watermarks(channels)

    def receive(self, message: Message, context: Context) -> None:
        """Take one message in, and join those whose turn has come."""
        answers: list[_Answer] = []
        for tuples in self._collector.take(message.payload, context.now):
            if len(tuples.data):
                answers.append(self._take(tuples, context))
            if self._replica in tuples.ends:
                self._watermarks.advance(tuples.channel, tuples.watermark)
                if self._watermarks.low == END:
                    self._report_collector(context)
        answers = [answer for answer in answers if len(answer.matches)]
        if answers:
            span = (
                min(answer.span[0] for answer in answers),
                max(answer.span[1] for answer in answers),
            )
            matches = tuple(answer.matches for answer in answers)
            context.send("sink", Answers(matches, tuple(a.born_ns for a in answers), span))

    def _take(self, tuples: Tuples, context: Context) -> _Answer:
        """Join one batch: drop what is late, probe with the rest, and store what is its own."""
        stream, data = tuples.stream, tuples.data
        watermark = self._watermarks.low
        if tuples.key_watermark is not None:
            watermark = self._watermarks.of(int(data.batch.key[0]))
        own = self._own(tuples)
        late = data.batch.ts < watermark
        if late.any():
            self._report_late(tuples, np.flatnonzero(late & own), watermark, context)
            own = own[~late]
            data = data.take(np.flatnonzero(~late))
        joined = self._join.join(
            stream,
            data.batch,
            own,
            watermark=watermark,
            low_watermark=self._watermarks.low,
            enumerate=self._pairs,
        )
        context.charge(joined.work)
        if tuples.key_watermark is not None:
            key = int(tuples.data.batch.key[0])
            self._watermarks.advance_key(tuples.channel, key, tuples.key_watermark)
        return _Answer(joined.matches, data.born_ns[joined.row], tuples.span)

    def _own(self, tuples: Tuples) -> np.ndarray:
        """Return which tuples this replica is to store: of each, one of its keepers is."""
        among = tuples.targets[: tuples.keepers]
        if self._replica not in among:
            return np.zeros(len(tuples.data), np.bool_)
        if len(among) == 1:
            return np.ones(len(tuples.data), np.bool_)
        homes = partition(tuples.data.batch.id, len(among))
        return homes == among.index(self._replica)

    def _report_late(
        self, tuples: Tuples, rows: np.ndarray, watermark: int, context: Context
    ) -> None:
        if len(rows):
            batch = tuples.data.batch.take(rows)
            late = Late(tuples.stream, batch.id, batch.ts, watermark, tuples.span)
            context.send("sink", late)

    def _report_collector(self, context: Context) -> None:
        collector = self._collector
        collected = Collected(
            self._replica,
            collector.most_tuples,
            collector.tuples,
            collector.waited_ns,
            collector.longest_ns,
            self._watermarks.backward,
        )
        context.send("sink", collected)

    def snapshot(self) -> State:
        """Return the buffers, what waits for its turn, and the watermarks."""
        return {
            "join": self._join.snapshot(),
            "collector": self._collector.snapshot(),
            "watermarks": self._watermarks.snapshot(),
        }

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._join.restore(state["join"])
        self._collector.restore(state["collector"])
        self._watermarks.restore(state["watermarks"])
