"""Some actors of a graph in one process, which hand each other their messages at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from actors.hosting.inline import Cell
from actors.protocol import TIMER, ActorSpec, Wiring
from actors.source import TakesArrivals
from joins.state import State
from spark_bridge.hosted.parcels import Letter
from spark_bridge.hosted.stages import Home


@dataclass(slots=True)
class Outcome:
    """What a trigger led to.

    Attributes
    ----------
    letters
        Messages for other shards.
    emitted
        Results that left the system.
    """

    letters: dict[Home, list[Letter]] = field(default_factory=dict)
    emitted: list[Any] = field(default_factory=list)


class StageShard:
    """Runs the actors of one shard of one stage.

    There is no clock. Tuples are born at 0, and between two triggers more time passes than any
    actor waits for: timers run out at the end of the trigger that set them, in their order.

    Parameters
    ----------
    home
        Which shard this is.
    homes
        Actor name to shard, of all actors but sinks.
    rank
        Of this shard among those of all stages.
    specs, wiring, seed
        As for every host.
    """

    def __init__(
        self,
        home: Home,
        homes: Mapping[str, Home],
        rank: int,
        specs: Mapping[str, ActorSpec],
        wiring: Wiring,
        seed: int,
    ) -> None:
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
        self._homes, self._rank = homes, rank
        self._now = 0
        self._queue: deque[tuple[str, str, str, Any]] = deque()
        self._timers: list[tuple[int, int, str, str]] = []
        self._set = 0

    def deliver(self, letters: Sequence[Letter]) -> Outcome:
        """Let the actors receive *letters*, and all that follows from them in here."""
        outcome = Outcome()
        self._sent = 0
        for letter in letters:
            for receiver in letter.receivers or self._sources:
                self._queue.append((receiver, letter.sender, letter.port, letter.payload))
            self._empty_queue(outcome)
        while self._timers:
            at, _, actor, name = heappop(self._timers)
            self._now = max(self._now, at)
            self._queue.append((actor, actor, TIMER + name, None))
            self._empty_queue(outcome)
        return outcome

    def snapshot(self) -> State:
        """Return the state of all actors; between triggers no message and no timer is open."""
        return {
            "now": self._now,
            "actors": {name: cell.actor.snapshot() for name, cell in self._cells.items()},
            "rng": {
                name: cell.context.rng.bit_generator.state for name, cell in self._cells.items()
            },
        }

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._now = state["now"]
        for name, cell in self._cells.items():
            cell.actor.restore(state["actors"][name])
            cell.context.rng.bit_generator.state = state["rng"][name]

    def _empty_queue(self, outcome: Outcome) -> None:
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
                    letter = Letter(
                        self._sent, self._rank, receiver, sent.port, sent.handle, tuple(names)
                    )
                    outcome.letters.setdefault(home, []).append(letter)
                self._sent += 1
