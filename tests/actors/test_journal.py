"""A host that loses its processes again and again answers as one that never did."""

from __future__ import annotations

import math
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from actors.hosting.inline import InlineHost
from actors.hosting.journal import JournalHost
from actors.hosting.mesh import MemberLostError
from actors.hosting.process_host import ProcessHost
from actors.protocol import ActorSpec, Reply, Wiring
from tests.actors.meshes import Threads, labels
from tests.netsim.simulate import Simulated, simulate
from tests.toys import Recorder, Sender, Worker

SPECS = {
    "sender": ActorSpec(actor=Sender, arguments={"count": 40, "gap_ns": 700}),
    **{
        f"worker.{i}": ActorSpec(actor=Worker, arguments={"comparisons": 50, "port": "out"})
        for i in range(3)
    },
    "recorder": ActorSpec(actor=Recorder),
}
WORKERS = ("worker.0", "worker.1", "worker.2")
WIRING: Wiring = {
    "sender": {"out": WORKERS},
    **{worker: {"out": ("recorder",)} for worker in WORKERS},
    "recorder": {},
}


class LostError(Exception):
    pass


class Mortal(InlineHost):
    """Answers when asked to, as processes do; is lost at its message number *dies*."""

    def __init__(self, dies: float) -> None:
        super().__init__(SPECS, WIRING, 1)
        self._left = dies
        self._replies: dict[int, Reply] = {}

    def submit(self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int) -> Any:
        self._count()
        self._replies[ticket] = super().submit(ticket, actor, sender, port, handle, now)

    def reply(self, ticket: int) -> Reply:
        self._count()
        return self._replies.pop(ticket)

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise LostError


def run(host: JournalHost, path: Path) -> Simulated:
    return simulate(SPECS, WIRING, path=path / "trace.parquet", host=host)


def undisturbed(path: Path) -> Simulated:
    return simulate(SPECS, WIRING, path=path / "trace.parquet", host=InlineHost(SPECS, WIRING, 1))


@pytest.mark.parametrize("every", [1, 7, 1_000])
def test_hosts_that_are_lost_are_replaced_and_nothing_changes(every: int, tmp_path: Path) -> None:
    expected = undisturbed(tmp_path)
    lives = iter([90, 150, 60, 350, math.inf])  # the third may be lost while it catches up
    host = JournalHost(lambda: Mortal(next(lives)), SPECS, lost=LostError, every=every)
    found = run(host, tmp_path)
    assert host.restarts > 1
    assert (found.outcome, found.emitted) == (expected.outcome, expected.emitted)


def test_a_host_that_is_lost_at_once_is_not_replaced_for_ever(tmp_path: Path) -> None:
    with pytest.raises(LostError):
        run(JournalHost(lambda: Mortal(3), SPECS, lost=LostError), tmp_path)


class Losable(Threads):
    """Threads for processes, one of which can be lost."""

    def lose_one(self) -> None:
        self._meshes[0].__exit__()

    def send(self, process: int, value: Any) -> None:
        try:
            self.mesh.send(process, value)
        except MemberLostError:
            raise LostError from None

    def receive(self, timeout_s: float | None = None) -> tuple[int, Any] | None:
        try:
            return self.mesh.receive(timeout_s)
        except MemberLostError:
            raise LostError from None


class Losing(JournalHost):
    """Loses a process at some of its messages."""

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> Reply | None:
        if ticket in (30, 75, 76):
            started[-1].lose_one()
        return super().submit(ticket, actor, sender, port, handle, now)


started: list[Losable] = []


@pytest.mark.parametrize("every", [1, 7, 1_000])
def test_processes_that_are_lost_are_replaced_and_nothing_changes(
    every: int, tmp_path: Path
) -> None:
    expected = undisturbed(tmp_path)
    homes = {name: place % 2 for place, name in enumerate(SPECS)}
    with ExitStack() as opened:

        def start() -> ProcessHost:
            processes = Losable(labels(2))
            opened.enter_context(processes)
            started.append(processes)
            return ProcessHost(processes, SPECS, WIRING, 1, homes=homes)

        host = Losing(start, SPECS, lost=LostError, every=every)
        found = run(host, tmp_path)
    assert host.restarts >= 2
    assert (found.outcome, found.emitted) == (expected.outcome, expected.emitted)
