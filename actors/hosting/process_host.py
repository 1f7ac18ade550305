"""The host that runs actors in other processes, in virtual time.

A process gets what has arrived for it as soon as it has nothing else to do; the rest goes out in
one frame when the kernel must wait for a reply. Then the processes work side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from actors.hosting import shard
from actors.hosting.processes import Processes
from actors.protocol import ActorSpec, Reply, Wiring


@dataclass(slots=True)
class _Process:
    """What one process is to receive next, and how many replies it owes."""

    pending: list[shard.Letter] = field(default_factory=list)
    owed: int = 0
    peak_bytes: int = 0


class ProcessHost:
    """Runs actors in *processes*, which serve this host and no other.

    Parameters
    ----------
    processes
        Where they run.
    specs, wiring, seed
        As for every host.
    homes
        Actor name to the number of its process, counted from 0.
    """

    def __init__(
        self,
        processes: Processes,
        specs: Mapping[str, ActorSpec],
        wiring: Wiring,
        seed: int,
        *,
        homes: Mapping[str, int],
    ) -> None:
        self._processes = processes
        self._homes = homes
        self._replies: dict[int, Reply] = {}
        self._states = [_Process() for _ in range(processes.count)]
        processes.serve(shard.serve, dict(homes), dict(specs), dict(wiring), seed)

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> None:
        """Send the message to its actor's process if that is idle, or keep it for later."""
        home = self._homes[actor]
        state = self._states[home]
        state.pending.append((ticket, actor, sender, port, handle, now))
        if not state.owed:
            self._flush(home)

    def reply(self, ticket: int) -> Reply:
        """Return the reply, waiting for it; meanwhile every process gets what has arrived for it.

        Raise :exc:`ActorError` when an actor raised, and what the processes raise when one of them
        is gone.
        """
        if ticket not in self._replies:
            for home, state in enumerate(self._states):
                if state.pending:
                    self._flush(home)
        while ticket not in self._replies:
            self._collect()
        return self._replies.pop(ticket)

    def peak_bytes(self) -> list[int]:
        """Return the most memory each process has held, in bytes, as of its last reply."""
        return [state.peak_bytes for state in self._states]

    def _flush(self, home: int) -> None:
        state = self._states[home]
        self._processes.send(home, state.pending)
        state.owed += len(state.pending)
        state.pending = []

    def _collect(self) -> None:
        received = self._processes.receive()
        assert received is not None
        home, (ticket, reply, peak_bytes) = received
        state = self._states[home]
        state.owed -= 1
        state.peak_bytes = peak_bytes
        self._replies[ticket] = reply
