"""One actor with its context: the piece every host is made of."""

from __future__ import annotations

from typing import Any

from actors.context import RecordingContext
from actors.protocol import ActorError, ActorSpec, Message, Reply, Wiring


class Cell:
    """An actor and the context that records for it."""

    __slots__ = ("actor", "context")

    def __init__(self, name: str, spec: ActorSpec, wiring: Wiring, seed: int) -> None:
        self.actor = spec.build()
        self.context = RecordingContext(name, wiring.get(name, {}), seed)

    def deliver(self, sender: str, port: str, payload: Any, now: int) -> Reply:
        """Let the actor receive a message at virtual time *now*; return what it asked for.

        Raise :exc:`ActorError` naming actor, port and time when the actor raises.
        """
        self.context.now = now
        try:
            self.actor.receive(Message(sender, port, payload), self.context)
        except Exception as error:
            raise ActorError(
                f"{self.context.name} failed on a message from {sender} on port {port!r} at "
                f"{now / 1e6:.3f} ms: {type(error).__name__}: {error}"
            ) from error
        return self.context.take()
