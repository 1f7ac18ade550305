"""Two actors that answer each other: answers need no room, other messages do."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.protocol import FEEDBACK, Actor, ActorSpec, Context, Message, Wiring
from netsim.network import full_mesh
from scenarios.verdict.trace_checks import ReadTrace, check_conservation
from tests.netsim.simulate import Simulated, link, simulate
from tests.toys import Sender, Worker

ROUNDS = 20


class Commander(Actor):
    """Commands twice for each thing it is sent, and hands out the answers."""

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        if message.port == FEEDBACK:
            context.emit(message.payload.number)
        else:
            for _ in range(2):
                context.send("worker", message.payload)


def wiring(port: str) -> Wiring:
    return {
        "sender": {"out": ("commander",)},
        "commander": {"worker": ("slow",)},
        "slow": {port: ("commander",)},
    }


class Fussy(Worker):
    """A worker that raises on parcel 1."""

    def receive(self, message: Message, context: Context) -> None:
        if message.payload.number == 1:
            raise ValueError("not this one")
        super().receive(message, context)


def command(path: Path, port: str, inbox_messages: int, worker: type[Worker] = Worker) -> Simulated:
    """Run a commander whose *worker* answers on *port*."""
    return simulate(
        {
            "sender": ActorSpec(actor=Sender, arguments={"count": ROUNDS}),
            "commander": ActorSpec(actor=Commander),
            "slow": ActorSpec(actor=worker, arguments={"comparisons": 9_000, "port": port}),
        },
        wiring(port),
        path=path,
        inbox_messages=inbox_messages,
    )


@pytest.mark.parametrize("inbox_messages", [1, 2, 16])
def test_every_command_is_answered_however_small_the_inboxes(
    tmp_path: Path, inbox_messages: int
) -> None:
    run = command(tmp_path / "trace.parquet", FEEDBACK, inbox_messages)
    assert run.emitted == [number for number in range(ROUNDS) for _ in range(2)]
    assert run.outcome.in_flight == 0
    assert not run.outcome.standstill


def test_actors_that_wait_for_each_other_s_room_are_named(tmp_path: Path) -> None:
    """What they have not received fails the run, which says what one of them raised, too."""
    trace = tmp_path / "trace.parquet"
    outcome = command(trace, "out", 2, Fussy).outcome
    assert outcome.standstill == ("commander", "slow")
    assert outcome.in_flight > 0
    placement = {name: name for name in wiring("out")}
    links = full_mesh(placement, link(1_000))
    read = ReadTrace(trace, wiring=wiring("out"), placement=placement, network=links)
    check = check_conservation(outcome, read)
    assert check.passed is False
    assert "commander waits for room at slow waits for room at commander" in check.detail
    assert "; slow failed on a message from commander" in check.detail
    assert "not this one" in check.detail
