"""Processes for tests of live runs and shards: threads of this one, over real connections."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Self

import pytest

from actors.hosting import ray_cluster, ray_processes
from actors.hosting.links import Secrets
from actors.hosting.mesh import Door, MemberLostError, Mesh, join_last
from actors.hosting.processes import Label
from actors.protocol import ActorError

SECRETS = Secrets(b"only for tests ..")


def meshes(count: int) -> list[Mesh]:
    """Return the meshes of *count* members and of the driver, which comes last."""
    doors = [Door("127.0.0.1") for _ in range(count)]
    addresses = [door.address for door in doors]
    joined: dict[int, Mesh] = {}

    def join(member: int) -> None:
        joined[member] = doors[member].join(member, addresses, count + 1, SECRETS)

    threads = [threading.Thread(target=join, args=(member,)) for member in range(count)]
    for thread in threads:
        thread.start()
    driver = join_last(addresses, SECRETS)
    for thread in threads:
        thread.join(30)
    return [joined[member] for member in range(count)] + [driver]


def use_threads(patch: pytest.MonkeyPatch, kills: Sequence[tuple[int, int]] | None = None) -> None:
    """Have runs take threads for Ray's processes: they start in no time, and talk as those do.

    With *kills* they are killed as `Mortal` says.
    """

    @contextmanager
    def no_cluster(address: str | None, *, processes: int) -> Iterator[None]:
        yield

    patch.setattr(ray_cluster, "ray_cluster", no_cluster)
    patch.setattr(
        ray_processes, "RayProcesses", Threads if kills is None else partial(Mortal, kills=kills)
    )
    patch.setattr(ray_processes, "ProcessLostError", LostError)


def labels(count: int) -> list[Label]:
    """Return labels for so many processes."""
    return [Label(kind="Process", name=f"test/process.{i}") for i in range(count)]


class LostError(Exception):
    """A thread in the place of a process was killed."""


class Threads:
    """Has the interface of `actors.hosting.ray_processes.RayProcesses`; starts in no time."""

    def __init__(self, labels: Sequence[Label], **options: Any) -> None:
        self.count = len(labels)
        *self._meshes, self.mesh = meshes(self.count)
        self._faults: list[str] = []
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.mesh.__exit__()
        for thread in self._threads:
            thread.join(10)
            assert not thread.is_alive()

    def everywhere(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        return []  # what is to be warm in a process is warm in this one

    def serve(self, server: Callable[..., None], *arguments: Any) -> None:
        def run(mesh: Mesh) -> None:
            try:
                with mesh:
                    server(mesh, *arguments)
            except MemberLostError:
                pass
            except ActorError as error:
                self._faults.append(str(error))

        self._threads = [threading.Thread(target=run, args=(mesh,)) for mesh in self._meshes]
        for thread in self._threads:
            thread.start()

    def receive(self, timeout_s: float | None = None) -> tuple[int, Any] | None:
        try:
            return self.mesh.receive(timeout_s)
        except MemberLostError as lost:
            for thread in self._threads:
                thread.join(10)
            raise ActorError(self._faults[0] if self._faults else str(lost)) from None

    def send(self, process: int, value: Any) -> None:
        self.mesh.send(process, value)


class Mortal(Threads):
    """Threads that are killed one by one, and can be replaced.

    Parameters
    ----------
    kills
        So many frames the driver receives before the next one is killed, and which it is. Of a
        killed one all connections end at that moment, whatever it is doing.
    """

    def __init__(
        self, labels: Sequence[Label], kills: Sequence[tuple[int, int]], **options: Any
    ) -> None:
        super().__init__(labels)
        self._kills, self._left = list(kills), kills[0][0] if kills else -1

    def restart(self) -> None:
        with self.mesh:
            for thread in self._threads:
                thread.join(10)
        *self._meshes, self.mesh = meshes(self.count)
        self._threads = []

    def receive(self, timeout_s: float | None = None) -> tuple[int, Any] | None:
        if self._left == 0:
            self._meshes[self._kills.pop(0)[1] % self.count].__exit__()
            self._left = self._kills[0][0] if self._kills else -1
        self._left -= 1
        try:
            return self.mesh.receive(timeout_s)
        except MemberLostError as lost:
            raise LostError(str(lost)) from None

    def send(self, process: int, value: Any) -> None:
        try:
            self.mesh.send(process, value)
        except MemberLostError as lost:
            raise LostError(str(lost)) from None
