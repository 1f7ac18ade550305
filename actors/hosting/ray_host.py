"""The host that runs actors as Ray actors, packed into a given number of processes.

Calls are few, because one costs as much as the work of thousands of tuples: nothing is called until
the kernel must wait for a reply. Then everything that has arrived goes out, and the processes work
side by side.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from ray.exceptions import RayActorError, RayTaskError

from actors.hosting.ray_cluster import ray
from actors.hosting.shard import KEPT, Letter, Place, Shard
from actors.protocol import ActorError, ActorSpec, Reply, Wiring


class _RayShard:
    """A `Shard` as a Ray actor: bundles are arguments and results, so they travel by reference."""

    def __init__(self, *arguments: Any) -> None:
        self._shard = Shard(*arguments)

    def receive(self, letters: list[Letter], *bundles: list[Any]) -> tuple[Any, Any]:
        return self._shard.receive(letters, bundles)

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    def peak_bytes(self) -> int:
        return self._shard.peak_bytes()


@dataclass(slots=True)
class _Parcel:
    """A payload as the driver knows it: which process made it, its serial, and its bundle."""

    home: int
    serial: int
    place: int
    bundle: Any


@dataclass(slots=True)
class _Process:
    """One Ray actor: what it is to receive next, and the calls it is busy with, oldest first."""

    index: int
    shard: Any
    pending: list[tuple[int, str, str, str, _Parcel | None, int]] = field(default_factory=list)
    calls: deque[tuple[Any, Any]] = field(default_factory=deque)


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
        self._process_of_ticket: dict[int, _Process] = {}
        shard = ray.remote(num_cpus=1)(_RayShard)
        self._processes = [
            _Process(index, shard.remote(index, dict(homes), dict(specs), dict(wiring), seed))
            for index in range(max(homes.values()) + 1)
        ]
        self.calls = 0

    def __enter__(self) -> RayHost:
        """Wait until every process is up."""
        self.peak_bytes()
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
        """Keep the message for its actor's process until somebody waits."""
        process = self._processes[self._homes[actor]]
        self._process_of_ticket[ticket] = process
        process.pending.append((ticket, actor, sender, port, handle, now))

    def reply(self, ticket: int) -> Reply:
        """Return the reply, waiting for it; meanwhile every process gets what has arrived for it.

        What is waited for goes in a call of its own, so that the wait is no longer than it must be.

        Raise :exc:`ActorError` when the actor raised or its process died.
        """
        process = self._process_of_ticket.pop(ticket)
        if ticket not in self._replies:
            for place, letter in enumerate(process.pending):
                if letter[0] == ticket:
                    self._call(process, place + 1)
                    break
            for other in self._processes:
                if other.pending:
                    self._call(other, len(other.pending))
        while ticket not in self._replies:
            self._collect(process)
        return self._replies.pop(ticket)

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Call an importable *function* in every process, side by side; return what they return."""
        return self._get([p.shard.call.remote(function, *arguments) for p in self._processes])

    def peak_bytes(self) -> list[int]:
        """Return the most memory each process has held, in bytes."""
        return self._get([process.shard.peak_bytes.remote() for process in self._processes])

    def _call(self, process: _Process, letters_taken: int) -> None:
        taken, process.pending = process.pending[:letters_taken], process.pending[letters_taken:]
        bundles: dict[Any, int] = {}
        letters: list[Letter] = []
        for ticket, actor, sender, port, parcel, now in taken:
            place: Place | None = None
            if parcel is not None and parcel.home == process.index:
                place = (KEPT, parcel.serial)
            elif parcel is not None:
                place = (bundles.setdefault(parcel.bundle, len(bundles)), parcel.place)
            letters.append((ticket, actor, sender, port, place, now))
        receive = process.shard.receive.options(num_returns=2)
        process.calls.append(tuple(receive.remote(letters, *bundles)))
        self.calls += 1

    def _collect(self, process: _Process) -> None:
        call, bundle = process.calls.popleft()
        replies = self._get(call)
        for ticket, reply in replies:
            for sent in reply.sends:
                serial, place = sent.handle
                sent.handle = _Parcel(process.index, serial, place, bundle)
            self._replies[ticket] = reply

    @staticmethod
    def _get(references: Any) -> Any:
        try:
            return ray.get(references)
        except RayTaskError as error:
            raise ActorError(str(error.cause)) from None
        except RayActorError as error:
            raise ActorError(f"a process of the Ray backend died: {error}") from None


def pack(roles: Mapping[str, str], processes: int) -> dict[str, int]:
    """Return which process each actor lives in: every operator's PEs are dealt out evenly.

    Parameters
    ----------
    roles
        Actor name to operator, in the order of rank. PEs of one operator that are neighbours in
        rank stay together.
    processes
        How many processes to use at the most; an operator of a single PE lives in the first.
    """
    operators: dict[str, list[str]] = {}
    for actor, role in roles.items():
        operators.setdefault(role, []).append(actor)
    return {
        actor: place * processes // len(operator)
        for operator in operators.values()
        for place, actor in enumerate(operator)
    }
