"""A host that loses its processes again and again, or its own, answers as one that never did."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil
import pytest

from actors.hosting import saved_run
from actors.hosting.inline import InlineHost
from actors.hosting.journal import JournalHost
from actors.hosting.mesh import MemberLostError
from actors.hosting.process_host import ProcessHost
from actors.hosting.saved_run import SavedRun, SavingHost
from actors.protocol import Actor, ActorSpec, Context, Message, Reply, RestartingHost, Wiring
from joins.errors import DataError
from tests.actors.meshes import Threads, labels
from tests.netsim.simulate import Simulated, simulate
from tests.toys import Parcel, Recorder, Sender, Worker

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


def run(host: JournalHost | SavingHost, path: Path) -> Simulated:
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


def test_hosts_that_are_lost_while_they_catch_up_are_replaced_as_long_as_they_get_farther(
    tmp_path: Path,
) -> None:
    lives = iter([200, 20, 15, 40, 60, 50, 80, math.inf])
    host = JournalHost(lambda: Mortal(next(lives)), SPECS, lost=LostError)
    assert run(host, tmp_path).outcome == undisturbed(tmp_path).outcome
    assert host.restarts == 7


@pytest.mark.parametrize("later", [0, 30])
def test_hosts_that_get_no_farther_than_others_before_are_not_replaced_for_ever(
    later: int, tmp_path: Path
) -> None:
    lives = iter([200, *[later] * 9])
    host = JournalHost(lambda: Mortal(next(lives)), SPECS, lost=LostError)
    with pytest.raises(LostError):
        run(host, tmp_path)
    assert host.restarts == 3


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


class KilledError(Exception):
    """Stands for the end of this very process."""


class Killed(SavingHost):
    """Is gone at its message number *at*."""

    at = math.inf

    def submit(
        self, ticket: int, actor: str, sender: str, port: str, handle: Any, now: int
    ) -> Reply | None:
        if ticket == self.at:
            raise KilledError
        return super().submit(ticket, actor, sender, port, handle, now)


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have a snapshot taken before every message."""
    monkeypatch.setattr(saved_run, "_PAUSE_FACTOR", 0)


def going_on(
    folder: Path, start: Callable[[], RestartingHost], at: float = math.inf
) -> tuple[Killed, SavedRun]:
    disk = SavedRun(folder / "saved", every_s=0)
    host = Killed(start(), SPECS, disk)
    host.at = at
    return host, disk


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("start", [lambda: InlineHost(SPECS, WIRING, 1), lambda: Mortal(math.inf)])
def test_another_process_goes_on_and_nothing_changes(
    start: Callable[[], RestartingHost], tmp_path: Path
) -> None:
    expected = undisturbed(tmp_path)
    for at in (1, 30, 31, 200, 270):
        host, disk = going_on(tmp_path, start, at)
        with disk, pytest.raises(KilledError):
            run(host, tmp_path)
        assert len(list((tmp_path / "saved").glob("*.snapshot"))) == 1
    host, disk = going_on(tmp_path, start)
    assert disk.answered == 269  # what came since is in no snapshot
    with disk:
        found = run(host, tmp_path)
    assert (found.outcome, found.emitted) == (expected.outcome, expected.emitted)


def test_before_the_first_snapshot_there_is_nothing_to_go_on_from(tmp_path: Path) -> None:
    expected = undisturbed(tmp_path)
    for at in (50, math.inf):
        disk = SavedRun(tmp_path / "saved", every_s=1_000)
        host = Killed(InlineHost(SPECS, WIRING, 1), SPECS, disk)
        host.at = at
        assert disk.answered == 0
        if at == 50:
            with disk, pytest.raises(KilledError):
                run(host, tmp_path)
    with disk:
        found = run(host, tmp_path)
    assert (found.outcome, found.emitted) == (expected.outcome, expected.emitted)


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("damage", ["snapshot", "answers", "cut", "another run"])
def test_what_is_damaged_or_of_another_run_is_refused(damage: str, tmp_path: Path) -> None:
    def start() -> InlineHost:
        return InlineHost(SPECS, WIRING, 1)

    host, disk = going_on(tmp_path, start, at=100)
    with disk, pytest.raises(KilledError):
        run(host, tmp_path)
    answers = tmp_path / "saved" / "answers"
    (snapshot,) = (tmp_path / "saved").glob("*.snapshot")
    path = snapshot if damage == "snapshot" else answers
    content = bytearray(path.read_bytes())
    if damage == "cut":
        del content[len(content) // 2 :]
    elif damage != "another run":
        content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"damaged|has changed since") as refused:
        _go_on(tmp_path, start, another=damage == "another run")
    # By itself, and not once nothing refers to what it was opened by, as the error does.
    assert str(answers) not in [file.path for file in psutil.Process().open_files()]
    assert refused.tb


class Choosy(Actor):
    """Passes on every third parcel, and the others to nobody."""

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        parcel: Parcel = message.payload
        context.send("out", parcel, to=() if parcel.number % 3 else (0,))


@pytest.mark.usefixtures("often")
def test_what_is_sent_to_nobody_is_under_way_to_nobody(tmp_path: Path) -> None:
    specs = SPECS | {"worker.0": ActorSpec(actor=Choosy)}
    path = tmp_path / "trace.parquet"
    expected = simulate(specs, WIRING, path=path)

    def start() -> InlineHost:
        return InlineHost(specs, WIRING, 1)

    with SavedRun(tmp_path / "saved", every_s=0) as disk:
        journal = JournalHost(start, specs, lost=LostError, every=1)
        for host in (journal, SavingHost(start(), specs, disk)):
            found = simulate(specs, WIRING, path=path, host=host)
            assert (found.outcome, found.emitted) == (expected.outcome, expected.emitted)


def test_a_snapshot_of_another_layout_is_not_called_damaged(tmp_path: Path) -> None:
    """As a development version of joinsim wrote one, under the same version number."""
    (tmp_path / "saved").mkdir()
    with (tmp_path / "saved" / "1.snapshot").open("wb") as file:
        saved_run._write({"answered": 0, "length": 0, "states": {}}, file)
    with pytest.raises(DataError, match=r"1.snapshot is of another version .* Start the run again"):
        SavedRun(tmp_path / "saved", every_s=1)


def _go_on(folder: Path, start: Callable[[], RestartingHost], *, another: bool) -> None:
    host, disk = going_on(folder, start)
    with disk:
        if another:
            disk.answer(0, now=7)
        run(host, folder)
