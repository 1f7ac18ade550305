"""The host that runs actors as Ray actors, packed into a given number of processes.

Calls are few, because one costs as much as the work of thousands of tuples: what has arrived for a
process goes out in one call when the process is idle, or when the kernel must wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from ray.exceptions import RayActorError, RayTaskError

from actors.hosting.ray_cluster import ray
from actors.hosting.shard import Letter, Parcel, Shard
from actors.protocol import ActorError, ActorSpec, Reply, Wiring


class _RayShard:
    """A `Shard` as a Ray actor: bundles go to and come from the object store."""

    def __init__(self, *arguments: Any) -> None:
        self._shard = Shard(*arguments, ray.get)

    def receive(self, letters: list[Letter]) -> tuple[list[tuple[int, Reply]], Any]:
        replies, bundle = self._shard.receive(letters)
        return replies, ray.put(bundle) if bundle else None

    def peak_bytes(self) -> int:
        return self._shard.peak_bytes()


@dataclass(slots=True)
class _Process:
    """One Ray actor: what it is to receive next, and the call it is busy with."""

    shard: Any
    pending: list[Letter] = field(default_factory=list)
    call: Any = None


class RayHost:
    """Runs actors in Ray processes; a context manager that ends the processes it started.

    Ray must be up (`actors.hosting.ray_cluster`).

    Parameters
    ----------
    specs, wiring, seed
        As for every host.
    homes
        Actor name to the number of its process, counted from 0.
    """

    def __init__(
        self,
        specs: Mapping[str, ActorSpec],
        wiring: Wiring,
        seed: int,
        *,
        homes: Mapping[str, int],
    ) -> None:
        self._homes = homes
        self._replies: dict[int, Reply] = {}
        self._home_of_ticket: dict[int, _Process] = {}
        shard = ray.remote(num_cpus=1)(_RayShard)
        self._processes = [
            _Process(shard.remote(index, dict(homes), dict(specs), dict(wiring), seed))
            for index in range(max(homes.values()) + 1)
        ]
        self.calls = 0

    def __enter__(self) -> RayHost:
        """Wait until every process is up."""
        self._get([process.shard.peak_bytes.remote() for process in self._processes])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the processes."""
        for process in self._processes:
            ray.kill(process.shard)

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> None:
        """Queue the message for its actor's process, and send the queue if the process is idle."""
        process = self._processes[self._homes[actor]]
        self._home_of_ticket[ticket] = process
        process.pending.append((ticket, actor, sender, port, handle, now))
        if process.call is None:
            self._call(process)

    def reply(self, ticket: int) -> Reply:
        """Return the reply, waiting for it; whichever process is done meanwhile gets more to do.

        Raise :exc:`ActorError` when the actor raised or its process died.
        """
        process = self._home_of_ticket.pop(ticket)
        while ticket not in self._replies:
            if process.call is None:
                self._call(process)
            busy = [p for p in self._processes if p.call is not None]
            done, _ = ray.wait([p.call for p in busy], num_returns=1)
            for p in busy:
                if p.call == done[0]:
                    self._collect(p)
                    if p.pending:
                        self._call(p)
        return self._replies.pop(ticket)

    def peak_bytes(self) -> list[int]:
        """Return the most memory each process has held, in bytes."""
        return self._get([process.shard.peak_bytes.remote() for process in self._processes])

    def _call(self, process: _Process) -> None:
        process.call = process.shard.receive.remote(process.pending)
        process.pending = []
        self.calls += 1

    def _collect(self, process: _Process) -> None:
        replies, bundle = self._get(process.call)
        process.call = None
        for ticket, reply in replies:
            for sent in reply.sends:
                parcel: Parcel = sent.handle
                if parcel.place >= 0:
                    parcel.bundle = bundle
            self._replies[ticket] = reply

    @staticmethod
    def _get(references: Any) -> Any:
        try:
            return ray.get(references)
        except RayTaskError as error:
            raise ActorError(str(error.cause)) from None
        except RayActorError as error:
            raise ActorError(f"a process of the Ray backend died: {error}") from None


def pack(actors: list[str], processes: int) -> dict[str, int]:
    """Return which process each actor lives in: dealt out in turns, in the order of rank.

    PEs of one operator are neighbours in rank, so turns spread them over the processes.
    """
    return {actor: place % processes for place, actor in enumerate(actors)}
