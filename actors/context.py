"""The context that a host passes to an actor: it records, and changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zlib import crc32

import numpy as np

from actors.protocol import Payload, Reply, Sent
from joins.work import Work


class RecordingContext:
    """Records what one actor asks for; `take` returns the record and starts a new one."""

    __slots__ = ("_ports", "_reply", "_seed", "name", "now", "rng")

    def __init__(self, name: str, ports: Mapping[str, tuple[str, ...]], seed: int) -> None:
        self.name = name
        self.now = 0
        # Seeded by name, so that an actor added elsewhere moves nobody else's stream.
        self.rng = np.random.default_rng([seed, crc32(name.encode())])
        self._ports = ports
        self._reply = Reply()

    def peers(self, port: str) -> tuple[str, ...]:
        """Return the receivers wired to *port*; raise :exc:`KeyError` naming an unknown port."""
        try:
            return self._ports[port]
        except KeyError:
            known = ", ".join(sorted(self._ports)) or "none"
            raise KeyError(f"{self.name} has no port {port!r}; it has: {known}") from None

    def send(self, port: str, payload: Payload, to: int | None = None) -> None:
        """Record a send to one peer of *port* or to all."""
        receivers = self.peers(port)
        if to is not None:
            receivers = (receivers[to],)
        self._reply.sends.append(
            Sent(port, receivers, payload, payload.nbytes, payload.rows, payload.span)
        )

    def set_timer(self, at: int, name: str) -> None:
        """Record a timer."""
        self._reply.timers.append((at, name))

    def charge(self, work: Work) -> None:
        """Add *work* to the record."""
        self._reply.work = self._reply.work + work

    def emit(self, results: Any) -> None:
        """Record results that leave the system."""
        self._reply.emitted.append(results)

    def take(self) -> Reply:
        """Return what was recorded since the last call."""
        reply = self._reply
        self._reply = Reply()
        return reply
