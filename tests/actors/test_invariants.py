"""A host that watches a run names what breaks an invariant, and lets all else be."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from actors.hosting.invariants import InvariantError, WatchingHost
from actors.protocol import FEEDBACK, START, TIMER, Actor, ActorSpec, Context, Message, Payload
from tests.netsim.simulate import simulate
from tests.toys import Recorder, Sender, Worker

WIRING: Any = {"a": {"out": ("b",)}, "b": {"out": ("c",)}, "c": {}}
SPECS = {
    "a": ActorSpec(actor=Sender, arguments={"count": 5, "gap_ns": 7}),
    "b": ActorSpec(actor=Worker, arguments={"port": "out"}),
    "c": ActorSpec(actor=Recorder),
}


@dataclass(frozen=True)
class Promise(Payload):
    """A watermark of a stream."""

    watermark: int
    stream: int = 0


class Promising(Actor):
    """Sends two promises at once."""

    state = ()

    def __init__(self, promises: tuple[Promise, Promise], ports: tuple[str, str]) -> None:
        self.promises, self.ports = promises, ports

    def receive(self, message: Message, context: Context) -> None:
        for port, promise in zip(self.ports, self.promises, strict=True):
            context.send(port, promise)


class Silent(Actor):
    """Does nothing."""

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        return


def promising(*promises: Promise, ports: tuple[str, str] = ("out", "out")) -> WatchingHost:
    arguments = {"promises": promises, "ports": ports}
    specs = {"a": ActorSpec(actor=Promising, arguments=arguments), "b": ActorSpec(actor=Silent)}
    wiring = {"a": {port: ("b",) for port in ports}, "b": {}}
    return WatchingHost(specs, wiring, 1)


def started(**how: bool) -> tuple[WatchingHost, list[Any]]:
    """Return a host whose sender has sent twice, and what is on its way."""
    host = WatchingHost(SPECS, WIRING, 1, **how)
    on_way = []
    for now, port in enumerate([START, f"{TIMER}next"]):
        on_way += host.submit(now, "a", "a", port, None, 10 * now).sends
    return host, [sent.handle for sent in on_way]


def test_a_run_of_the_kernel_breaks_nothing(tmp_path: Path) -> None:
    host = WatchingHost(SPECS, WIRING, 1)
    run = simulate(SPECS, WIRING, path=tmp_path / "trace.parquet", host=host)
    assert len(run.emitted) == 5
    host.finish()


def test_what_is_on_its_way_at_the_end_is_named() -> None:
    host, (first, second) = started()
    with pytest.raises(InvariantError, match="2 messages from a to b are out"):
        host.finish()
    for handle in (first, second):
        for sent in host.submit(2, "b", "a", "out", handle, 20).sends:
            host.submit(3, "c", "b", "out", sent.handle, 20)
    with pytest.raises(InvariantError, match="1 of a's timer:next have not run"):
        host.finish()


def test_a_message_that_overtakes_another_comes_twice_or_from_nowhere_is_named() -> None:
    host, (first, second) = started()
    with pytest.raises(InvariantError, match="from a out of order, at 20 ns"):
        host.submit(2, "b", "a", "out", second, 20)
    host, (first, second) = started()
    host.submit(2, "b", "a", "out", first, 20)
    host.submit(3, "b", "a", "out", second, 20)
    with pytest.raises(InvariantError, match="b receives from a, at 21 ns, what was not sent, or"):
        host.submit(4, "b", "a", "out", second, 21)


def test_time_that_runs_backwards_and_timers_that_were_not_set_are_named() -> None:
    host, _ = started()
    with pytest.raises(InvariantError, match="time runs backwards at b: from 10 to 9 ns"):
        host.submit(2, "b", "a", "out", None, 9)
    host, _ = started()
    with pytest.raises(InvariantError, match="timer:next of a runs at 16 ns, and was set for 17"):
        host.submit(2, "a", "a", f"{TIMER}next", None, 16)
    with pytest.raises(InvariantError, match="timer:other of a runs at 20 ns, and was not set"):
        host.submit(2, "a", "a", f"{TIMER}other", None, 20)


def test_watermarks_of_a_stream_do_not_go_back() -> None:
    host = promising(Promise(5), Promise(4))
    one, other = (sent.handle for sent in host.submit(0, "a", "a", START, None, 0).sends)
    host.submit(1, "b", "a", "out", one, 1)
    with pytest.raises(InvariantError, match="the watermark from a to b goes back from 5 to 4"):
        host.submit(2, "b", "a", "out", other, 1)
    host = promising(Promise(5), Promise(4, stream=1))
    for sent in host.submit(0, "a", "a", START, None, 0).sends:
        host.submit(1, "b", "a", "out", sent.handle, 1)
    host.finish()


def test_answers_may_overtake_messages() -> None:
    host = promising(Promise(5), Promise(6), ports=("out", FEEDBACK))
    one, answer = host.submit(0, "a", "a", START, None, 0).sends
    host.submit(1, "b", "a", FEEDBACK, answer.handle, 1)
    host.submit(2, "b", "a", "out", one.handle, 1)
    host.finish()


def test_where_messages_may_be_lost_those_that_arrive_must_have_been_sent() -> None:
    host, (first, second) = started(lossy=True)
    for handle in (second, first, first):
        host.submit(2, "b", "a", "out", handle, 20)
    host.finish()
    with pytest.raises(InvariantError, match="b receives, at 21 ns, what a never sent"):
        host.submit(3, "b", "a", "out", "else", 21)


def test_a_clock_of_its_own_does_not_run_backwards_either() -> None:
    host, (first, _) = started(skewed=True)
    host.submit(2, "b", "a", "out", first, 4)
    with pytest.raises(InvariantError, match="time runs backwards at a: from 10 to 9 ns"):
        host.submit(3, "a", "a", f"{TIMER}next", None, 9)


def test_after_a_crash_invariants_go_back_with_the_snapshot_and_its_messages() -> None:
    host, (first, second) = started()
    states = {name: host.snapshot(name) for name in SPECS}
    kept = host.keep("b", first)
    host.submit(2, "b", "a", "out", first, 20)
    for _ in range(2):
        host.forget()
        for name, state in states.items():
            host.restore(name, state)
        host.submit(3, "b", "a", "out", kept, 21)
        with pytest.raises(InvariantError, match="at 21 ns, what was not sent, or twice"):
            host.submit(4, "b", "a", "out", second, 21)
        host.submit(5, "a", "a", f"{TIMER}next", None, 21)
    host.forget()
    for name in SPECS:
        host.restore(name, None)
    host.finish()


def test_after_a_crash_a_watermark_may_be_said_again() -> None:
    host = promising(Promise(5), Promise(6))
    state = host.snapshot("b")
    for _ in range(2):
        for sent in host.submit(0, "a", "a", START, None, 1).sends:
            host.submit(1, "b", "a", "out", sent.handle, 1)
        host.forget()
        host.restore("b", state)


def test_what_is_on_its_way_to_an_actor_that_begins_anew_still_arrives() -> None:
    """Its timers do not: they are gone with it."""
    host, (first, _) = started(lossy=True)
    for name in ("a", "b"):
        host.restore(name, None)
    host.submit(2, "b", "a", "out", first, 20)
    with pytest.raises(InvariantError, match="timer:next of a runs at 20 ns, and was not set"):
        host.submit(2, "a", "a", f"{TIMER}next", None, 20)
