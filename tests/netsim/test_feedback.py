"""Two actors that answer each other do not wait for each other's room."""

from __future__ import annotations

from pathlib import Path

import pytest

from actors.protocol import FEEDBACK, Actor, ActorSpec, Context, Message
from tests.netsim.simulate import simulate
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


@pytest.mark.parametrize("inbox_messages", [1, 2, 16])
def test_every_command_is_answered_however_small_the_inboxes(
    tmp_path: Path, inbox_messages: int
) -> None:
    run = simulate(
        {
            "sender": ActorSpec(actor=Sender, arguments={"count": ROUNDS}),
            "commander": ActorSpec(actor=Commander),
            "slow": ActorSpec(actor=Worker, arguments={"comparisons": 9_000, "port": FEEDBACK}),
        },
        {
            "sender": {"out": ("commander",)},
            "commander": {"worker": ("slow",)},
            "slow": {FEEDBACK: ("commander",)},
        },
        path=tmp_path / "trace.parquet",
        inbox_messages=inbox_messages,
    )
    assert run.emitted == [number for number in range(ROUNDS) for _ in range(2)]
    assert run.outcome.in_flight == 0
