"""A graph of actors as stages and shards, one shard at work, and the messages between them.

A stage is one stateful operator of Spark; its shards are what the topology itself partitions its
work into. Actors that only pass messages on to each other are chained into one shard, as engines
do: a source with the router or emitter that has no other sender. A sink, which only emits, runs
beside each of the actors that send to it.

Data flows one way through Spark's plan. A graph with a cycle (a manager that hears from its
workers) is therefore folded: all of it runs as one shard of one stage, and the messages on the
cycle are exchanged in there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, NamedTuple

import numpy as np

from actors.hosting.inline import Cell
from actors.protocol import TIMER, ActorSpec, Wiring
from actors.serialisation import from_bytes, to_bytes
from actors.source import TakesArrivals
from joins.state import State

Home = tuple[int, int]
"""Number of a stage, and of a shard in it."""


@dataclass(frozen=True, kw_only=True)
class Stages:
    """Where each actor of a graph runs."""

    actors: tuple[tuple[tuple[str, ...], ...], ...]
    """Per stage and shard the names of its actors, in the order of the graph."""
    folded: str | None = None
    """Why there is one stage with one shard; None when the graph was cut."""

    @classmethod
    def one(cls, specs: Mapping[str, ActorSpec], why: str) -> Stages:
        """Return one stage with one shard for all actors; *why* says what for."""
        return cls(actors=((tuple(actors_with_a_place(specs)),),), folded=why)

    @property
    def homes(self) -> dict[str, Home]:
        """Actor name to where it runs; sinks have no place of their own."""
        return {
            name: (stage, shard)
            for stage, shards in enumerate(self.actors)
            for shard, names in enumerate(shards)
            for name in names
        }

    @property
    def partitions(self) -> int:
        """Most shards of a stage."""
        return max(len(shards) for shards in self.actors)


def actors_with_a_place(specs: Mapping[str, ActorSpec]) -> list[str]:
    """Return the names of all actors but the sinks."""
    return [name for name, spec in specs.items() if not spec.only_emits]


ROW = "via int, stage int, shard int, parcel binary"
"""Columns of what travels: the key of the group that it goes to next, the stage and shard that it
is for, and the parcel."""


class ShardLetter(NamedTuple):
    """A message on its way to actors of one shard."""

    order: int
    """Number of the message among those of its sending shard in this trigger. Messages of several
    shards are delivered by it, in turns."""
    rank: int
    """Of the sending shard among those of all stages."""
    sender: str
    port: str
    payload: Any
    """The message."""
    receivers: tuple[str, ...]
    """Actors of the shard that it is for; an empty tuple stands for all its sources."""


def pack_letters(letters: Iterable[tuple[ShardLetter, bytes]]) -> bytes:
    """Return a parcel of *letters*, each with its payload as bytes."""
    return to_bytes(
        [
            [*letter[:4], np.frombuffer(payload, np.uint8), list(letter.receivers)]
            for letter, payload in letters
        ]
    )


def unpack_letters(parcels: Sequence[bytes]) -> list[ShardLetter]:
    """Return the letters of all *parcels* of a trigger, in their order of delivery.

    The parcels may be in any order: Spark guarantees none within a group.
    """
    letters = [
        ShardLetter(order, rank, sender, port, from_bytes(payload.data), tuple(receivers))
        for parcel in parcels
        for order, rank, sender, port, payload, receivers in from_bytes(parcel)
    ]
    return sorted(letters, key=lambda letter: (letter.order, letter.rank))


@dataclass(slots=True)
class ShardOutcome:
    """What a shard produced in a trigger."""

    letters: dict[Home, list[ShardLetter]] = field(default_factory=dict)
    """Messages for other shards."""
    emitted: list[Any] = field(default_factory=list)
    """Results that left the system."""


class StageShard:
    """Runs the actors of one shard of one stage.

    There is no clock. Tuples are born at 0, and between two triggers more time passes than any
    actor waits for: timers run out at the end of the trigger that set them, in their order.

    It is the shard *home* of the *stages*; *specs*, *wiring* and *seed* are as for every host.
    """

    def __init__(
        self,
        home: Home,
        stages: Stages,
        specs: Mapping[str, ActorSpec],
        wiring: Wiring,
        seed: int,
    ) -> None:
        homes = stages.homes
        mine = [name for name, place in homes.items() if place == home]
        sinks = [
            receiver
            for name in mine
            for receivers in wiring[name].values()
            for receiver in receivers
            if receiver not in homes
        ]
        self._cells = {
            name: Cell(name, specs[name], wiring, seed) for name in dict.fromkeys([*mine, *sinks])
        }
        self._sources = tuple(name for name in mine if issubclass(specs[name].actor, TakesArrivals))
        self.home = home
        self._homes = homes
        self._rank = 1 + list(dict.fromkeys(homes.values())).index(home)  # 0 is the log's
        self._now = 0
        self._queue: deque[tuple[str, str, str, Any]] = deque()
        self._timers: list[tuple[int, int, str, str]] = []
        self._set = 0

    def deliver(self, letters: Sequence[ShardLetter]) -> ShardOutcome:
        """Deliver *letters* to the actors, and all messages that follow from them in this shard."""
        outcome = ShardOutcome()
        self._sent = 0
        for letter in letters:
            for receiver in letter.receivers or self._sources:
                self._queue.append((receiver, letter.sender, letter.port, letter.payload))
            self._deliver_queued(outcome)
        while self._timers:
            at, _, actor, name = heappop(self._timers)
            self._now = max(self._now, at)
            self._queue.append((actor, actor, TIMER + name, None))
            self._deliver_queued(outcome)
        return outcome

    def snapshot(self) -> State:
        """Return the state of all actors; between triggers, no message or timer is pending."""
        return {
            "now": self._now,
            "actors": {name: cell.actor.snapshot() for name, cell in self._cells.items()},
            "rng": {name: cell.rng.bit_generator.state for name, cell in self._cells.items()},
        }

    def restore(self, state: State) -> None:
        """Replace the state of all actors by a snapshot."""
        self._now = state["now"]
        for name, cell in self._cells.items():
            cell.actor.restore(state["actors"][name])
            cell.rng.bit_generator.state = state["rng"][name]

    def _deliver_queued(self, outcome: ShardOutcome) -> None:
        while self._queue:
            receiver, sender, port, payload = self._queue.popleft()
            reply = self._cells[receiver].deliver(sender, port, payload, self._now)
            outcome.emitted += reply.emitted
            for at, name in reply.timers:
                self._set += 1
                heappush(self._timers, (at, self._set, receiver, name))
            for sent in reply.sends:
                elsewhere: dict[Home, list[str]] = {}
                for name in sent.receivers:
                    if name in self._cells:
                        self._queue.append((name, receiver, sent.port, sent.handle))
                    else:
                        elsewhere.setdefault(self._homes[name], []).append(name)
                for home, names in elsewhere.items():
                    letter = ShardLetter(
                        self._sent, self._rank, receiver, sent.port, sent.handle, tuple(names)
                    )
                    outcome.letters.setdefault(home, []).append(letter)
                self._sent += 1
