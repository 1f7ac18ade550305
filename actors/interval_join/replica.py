"""The OIJ replica: state buffers of its own, behind its collector and its watermarks."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Literal

import numpy as np

from actors.interval_join.emitter import Tuples
from actors.protocol import Actor, Context, Message
from actors.results import Collected, Found, report_late, send_answers
from actors.stream_source import END
from joins.batch import Schema
from joins.event_time import NO_WATERMARK
from joins.hashing import partition
from joins.interval_join import IntervalJoin
from joins.queries.query import JoinQuery
from joins.state import Stateful
from joins.work import Step

Order = Literal["ordered", "naive"]

_FORGET_FROM = 64
"""Keys from which on it is worth a search for some to drop."""


class Watermarks(Stateful):
    """How far a replica's channels are: over all keys, and key by key.

    A channel's watermark is valid for each of its keys, so a key is as far on a channel as the
    greater of the channel's and its own, and over all channels as far as the least. In the paper a
    replica's outgoing watermark is the least over the keys it has seen; a key that it has not seen
    yet may be behind those, so here it is the least over the channels, which is valid for every
    key.
    """

    state = ("_channels", "_keys", "_forget_at", "backward")

    def __init__(self, channels: int) -> None:
        self._channels = [NO_WATERMARK] * channels
        self._keys: dict[int, list[int]] = {}
        self._forget_at = _FORGET_FROM
        self.backward = 0
        """Watermarks of channels that were behind an earlier one. (An emitter in whose partial
        batches a tuple waits that is late already promises less than before.)"""

    @property
    def low(self) -> int:
        """The least over the channels: no tuple of any key that is yet to come is older."""
        return min(self._channels)

    def of(self, key: int) -> int:
        """Return the watermark of a key: no tuple of it that is yet to come is older."""
        own = self._keys.get(key)
        if own is None:
            return self.low
        return min(map(max, own, self._channels))

    def advance(self, channel: int, watermark: int) -> None:
        """Record a channel's watermark; an older one is counted, and changes nothing."""
        self.backward += watermark < self._channels[channel]
        self._channels[channel] = max(self._channels[channel], watermark)
        if len(self._keys) >= self._forget_at:
            self._forget()

    def advance_key(self, channel: int, key: int, watermark: int) -> None:
        """Record a channel's watermark of one key."""
        own = self._keys.setdefault(key, [NO_WATERMARK] * len(self._channels))
        own[channel] = max(own[channel], watermark)

    def _forget(self) -> None:
        """Drop keys that are no further than their channels: nothing depends on them."""
        self._keys = {
            key: own
            for key, own in self._keys.items()
            if any(one > all_ for one, all_ in zip(own, self._channels, strict=True))
        }
        self._forget_at = max(_FORGET_FROM, 2 * len(self._keys))


class Collector(Stateful):
    """The order in which a replica joins what its channels bring (PPOIJ, sections 4.2 and 4.3).

    *Ordered*, it goes round the channels and takes one turn of each: base and probe emitters
    alternate, and what comes out of turn waits. All replicas then join the tuples they have in
    common in one order, which is what makes each pair meet at exactly one of them.

    The paper's HP-OIJ goes round once per distinct key, with a queue per key and channel, since a
    channel may have nothing of a key for long (Example 4.3). Here emitters number nothing; instead
    they mark the end of each turn, at every replica, whether they had tuples for it or not. A turn
    may thus be empty, no key can delay another for longer than a turn, and a queue per channel is
    enough: the order of each key's tuples is the order of turns at all its replicas.

    *Naive*, it passes everything on as it arrives: right for KP-OIJ, and the cause of duplicate and
    missing pairs in the other two (Examples 4.1 to 4.3).

    Parameters
    ----------
    order
        ``ordered`` or ``naive``.
    replica, channels
        Whose collector it is, and how many emitters there are.

    Attributes
    ----------
    most_tuples
        Tuples that waited at once, at the most.
    tuples, waited_ns, longest_ns
        Tuples that passed through, how long they waited all together, and the longest of them.
    """

    state = ("_queues", "_next", "_waiting", "most_tuples", "tuples", "waited_ns", "longest_ns")

    def __init__(self, order: Order, replica: int, channels: int) -> None:
        self._ordered = order == "ordered"
        self._replica = replica
        self._queues: list[deque[tuple[int, Tuples]]] = [deque() for _ in range(channels)]
        self._next = 0
        self._waiting = 0
        self.most_tuples = self.tuples = self.waited_ns = self.longest_ns = 0

    def __len__(self) -> int:
        return self._waiting

    def take(self, tuples: Tuples, now: int) -> list[Tuples]:
        """Add one message at *now*, and return those whose turn has come, in order."""
        self.tuples += len(tuples.data)
        if not self._ordered:
            return [tuples]
        self._queues[tuples.channel].append((now, tuples))
        self._waiting += len(tuples.data)
        due = []
        while self._queues[self._next]:
            since, message = self._queues[self._next].popleft()
            due.append(message)
            rows = len(message.data)
            if rows:
                self._waiting -= rows
                self.waited_ns += rows * (now - since)
                self.longest_ns = max(self.longest_ns, now - since)
            if self._replica in message.ends:
                self._next = (self._next + 1) % len(self._queues)
        self.most_tuples = max(self.most_tuples, self._waiting)
        return due


@dataclass(kw_only=True, eq=False)
class Replica(Actor):
    """Probes with every tuple it is sent, and stores those that are its own (PPOIJ, section 3).

    A tuple that goes to several replicas probes at all of them and is stored at one, which a hash
    of its position chooses. A tuple older than the watermark when its turn comes is late: it
    neither probes nor is stored, and the replica that would have stored it reports it.

    Ports: ``sink``.
    """

    query: JoinQuery
    schemas: tuple[Schema, ...]
    """What is joined."""
    replica: int
    channels: int
    """Its number, and how many emitters there are."""
    collector: Order = "ordered"
    """In which order it joins messages of different channels."""
    pairs: bool = False
    """Whether to report match ids."""

    state = ("_join", "_collector", "_watermarks")

    def __post_init__(self) -> None:
        self._join = IntervalJoin(self.query, self.schemas)
        self._collector = Collector(self.collector, self.replica, self.channels)
        self._watermarks = Watermarks(self.channels)

    def receive(self, message: Message, context: Context) -> None:
        """Add one message, and join those whose turn has come."""
        found: list[Found] = []
        for tuples in self._collector.take(message.payload, context.now):
            if len(tuples.data):
                found.append(self._join_batch(tuples, context))
            if self.replica in tuples.ends:
                before = self._watermarks.low
                self._watermarks.advance(tuples.channel, tuples.watermark)
                if before < self._watermarks.low == END:
                    self._report_collector(context)
        send_answers(found, context)

    def _join_batch(self, tuples: Tuples, context: Context) -> Found:
        """Join one batch: drop what is late, probe with the rest, and store what is its own."""
        stream, data = tuples.stream, tuples.data
        key = None if tuples.key_watermark is None else int(data.batch.key[0])
        low = self._watermarks.low
        watermark = low if key is None else self._watermarks.of(key)
        own = self._own(tuples)
        late = data.batch.ts < watermark
        if late.any():
            report_late(stream, data.batch, late & own, watermark, data.span, context)
            own, data = own[~late], data.take(~late)
        joined = self._join.join(
            stream, data.batch, own, watermark=watermark, low_watermark=low, enumerate=self.pairs
        )
        step = Step("interval_join.join", len(data), len(self._join))
        context.charge(joined.work, step)
        if key is not None and tuples.key_watermark is not None:
            self._watermarks.advance_key(tuples.channel, key, tuples.key_watermark)
        return Found(joined.matches, data.born_ns[joined.row], tuples.span)

    def _own(self, tuples: Tuples) -> np.ndarray:
        """Return which tuples this replica is to store: each is stored at one of its targets."""
        among = tuples.targets[: tuples.storing]
        if self.replica not in among:
            return np.zeros(len(tuples.data), np.bool_)
        if len(among) == 1:
            return np.ones(len(tuples.data), np.bool_)
        own: np.ndarray = partition(tuples.data.batch.id, len(among)) == among.index(self.replica)
        return own

    def _report_collector(self, context: Context) -> None:
        collector = self._collector
        collected = Collected(
            self.replica,
            collector.most_tuples,
            collector.tuples,
            collector.waited_ns,
            collector.longest_ns,
            self._watermarks.backward,
        )
        context.send("sink", collected)
