"""The host that runs every actor in this process, at the moment its message arrives."""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from actors.context import RecordingContext
from actors.protocol import ActorError, ActorSpec, Message, Reply, Wiring


class Cell:
    """An actor and the context that records for it: what every host is made of."""

    __slots__ = ("actor", "context")

    def __init__(self, name: str, spec: ActorSpec, wiring: Wiring, seed: int) -> None:
        self.actor = spec.build()
        self.context = RecordingContext(name, wiring.get(name, {}), seed)

    def deliver(self, sender: str, port: str, payload: Any, now: int) -> Reply:
        """Have the actor receive a message at virtual time *now*; return what it asked for.

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


class InlineHost:
    """Runs actors in this process.

    Parameters
    ----------
    specs
        Actor name to how it is built.
    wiring
        Who is wired to whom.
    seed
        The run's seed.
    serialise
        Pass every payload through the serialisation that another process would force on it, and
        freeze its arrays, so that nothing works here that would fail elsewhere.
    """

    def __init__(
        self, specs: Mapping[str, ActorSpec], wiring: Wiring, seed: int, *, serialise: bool = False
    ) -> None:
        self.cells = {name: Cell(name, spec, wiring, seed) for name, spec in specs.items()}
        self._replies: dict[int, Reply] = {}
        self._serialise = serialise

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> None:
        """Run the actor at once; its state has then changed in the order of arrival."""
        if self._serialise and handle is not None:
            handle = _as_if_shipped(handle)
        self._replies[ticket] = self.cells[actor].deliver(sender, port, handle, now)

    def reply(self, ticket: int) -> Reply:
        """Return the reply to a submitted message."""
        return self._replies.pop(ticket)


def _as_if_shipped(payload: Any) -> Any:
    """Return a copy made by pickling out of band, whose arrays are read-only as Ray's are."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(payload, protocol=5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=[buffer.raw().tobytes() for buffer in buffers])
