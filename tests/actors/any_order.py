"""Actors whose messages arrive in any order that their channels allow."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from actors.hosting.inline import RecordingContext
from actors.protocol import Actor, Message
from topologies.actor_graph import ActorGraph

_SYSTEM_FASTER = 64
"""Than what feeds it: else all was fed in before anything came of it."""


class AnyOrder:
    """Delivers the messages of a graph's actors: per channel in order, between channels at random.

    Some channels are slower than others, so that what they carry falls far behind.

    Parameters
    ----------
    graph
        The actors and their wiring; those of *outside* are left out, and what is sent to them kept.
    outside
        Roles that feed or end the system.
    rng
        Chooses which channel is next.
    restored
        How often an actor is replaced by one restored from its snapshot, 0 to 1.
    """

    def __init__(
        self,
        graph: ActorGraph,
        outside: Iterable[str],
        rng: np.random.Generator,
        *,
        restored: float,
    ) -> None:
        roles = dict(graph.nodes(data="role"))
        self._specs = {
            name: spec for name, spec in graph.specs.items() if roles[name] not in outside
        }
        self._actors: dict[str, Actor] = {name: spec.build() for name, spec in self._specs.items()}
        wiring = graph.wiring
        self._contexts = {name: RecordingContext(name, wiring[name], 0) for name in self._specs}
        self._channels: dict[tuple[str, str], deque[tuple[str, Any]]] = {}
        self._speeds: dict[tuple[str, str], float] = {}
        self._rng, self._restored = rng, restored
        self.left: list[Any] = []

    def post(self, sender: str, port: str, receiver: str, payload: Any) -> None:
        """Put a message on its channel."""
        if receiver not in self._specs:
            self.left.append(payload)
            return
        channel = sender, receiver
        if channel not in self._channels:
            self._channels[channel] = deque()
            self._speeds[channel] = 4.0 ** -self._rng.integers(0, 3)
            if sender not in self._specs:
                self._speeds[channel] /= _SYSTEM_FASTER
        self._channels[channel].append((port, payload))

    def run(self) -> None:
        """Deliver until nothing is under way."""
        while waiting := [channel for channel, queue in self._channels.items() if queue]:
            speeds = np.cumsum([self._speeds[channel] for channel in waiting])
            place = int(np.searchsorted(speeds, self._rng.random() * speeds[-1], side="right"))
            sender, receiver = waiting[place]
            port, payload = self._channels[sender, receiver].popleft()
            self._receive(receiver, Message(sender, port, payload))

    def _receive(self, name: str, message: Message) -> None:
        if self._rng.random() < self._restored:
            state = self._actors[name].snapshot()
            self._actors[name] = self._specs[name].build()
            self._actors[name].restore(state)
        context = self._contexts[name]
        self._actors[name].receive(message, context)
        for sent in context.take().sends:
            for receiver in sent.receivers:
                self.post(name, sent.port, receiver, sent.handle)
