"""Live runs of toy systems: nothing lost, nothing overtaken, and an end, whatever the graph."""

from __future__ import annotations

from collections import Counter
from itertools import count, pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.hosting.live.endings import components_of
from actors.hosting.live.live_run import LiveRun, LiveSystem
from actors.hosting.live.post import Clock, ComponentReport, Measured
from actors.protocol import FEEDBACK, TIMER, Actor, ActorError, ActorSpec, Context, Message
from tests.actors.meshes import Threads, labels
from tests.toys import Parcel, Recorder, Sender, Worker

PORTS = {
    port: code for code, port in enumerate(["out", "also", "on", "back", FEEDBACK, "start", TIMER])
}


class Bouncer(Actor):
    """Sends each parcel back as an answer, until it has bounced *bounces* times; then on."""

    state = ()

    def __init__(self, bounces: int) -> None:
        self.bounces = bounces

    def receive(self, message: Message, context: Context) -> None:
        parcel: Parcel = message.payload
        if parcel.rows <= self.bounces:
            context.send(FEEDBACK, Parcel(parcel.number, rows=parcel.rows + 1))
        else:
            context.send("on", parcel)


class Wall(Actor):
    """Passes on what a source sends, and sends back what comes back."""

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        context.send("out", message.payload)


def run_live(
    specs: dict[str, ActorSpec], wiring: Any, homes: dict[str, int], *, room: int = 16
) -> tuple[Measured, list[Any], np.ndarray]:
    """Run a system; return what was measured, what was emitted, and the trace."""
    with Threads(labels(max(homes.values()) + 1)) as processes:
        system = LiveSystem(specs=specs, wiring=wiring, seed=1, homes=homes, room=room, codes=PORTS)
        run = LiveRun(processes, system)
        measured = run.run(lambda count: None)
        emitted: list[Any] = []
        rows = [np.empty((0, 13), np.int64)]
        for entry in run.entries():
            if isinstance(entry, np.ndarray):
                rows.append(entry)
            elif isinstance(entry, list):
                emitted += entry
    return measured, emitted, np.concatenate(rows)


@pytest.mark.parametrize("late", [1, 2, 3])
def test_a_clock_is_right_though_its_thread_is_set_aside_while_it_is_made(
    late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread waits 5 ms before the second, third or fourth time that it reads a clock."""
    readings, began_ns = count(), 1_000_000

    def passed_ns() -> int:
        number = next(readings)
        return 10 * number + (5_000_000 if number >= late else 0)

    clocks = SimpleNamespace(
        monotonic_ns=lambda: 7_000 + passed_ns(), time_ns=lambda: began_ns + passed_ns()
    )
    monkeypatch.setattr("actors.hosting.live.post.time", clocks)
    clock = Clock(began_ns)
    assert abs(clock.now() - passed_ns()) < 100


@settings(max_examples=25)
@given(data=st.data())
def test_all_that_is_sent_arrives_once_and_in_order(data: st.DataObject) -> None:
    counts = data.draw(st.lists(st.integers(0, 30), min_size=1, max_size=3), "counts")
    workers = [f"w{i}" for i in range(data.draw(st.integers(1, 3), "workers"))]
    specs = {
        f"s{i}": ActorSpec(actor=Sender, arguments={"count": count})
        for i, count in enumerate(counts)
    }
    wiring: dict[str, Any] = {name: {"out": tuple(workers)} for name in specs}
    for worker in workers:
        specs[worker] = ActorSpec(actor=Worker, arguments={"port": "on"})
        wiring[worker] = {"on": ("r0", "r1")}
    for name in ("r0", "r1"):
        specs[name], wiring[name] = ActorSpec(actor=Recorder), {}
    homes = {name: data.draw(st.integers(0, 2), f"home of {name}") for name in specs}
    room = data.draw(st.integers(1, 4), "room")
    measured, emitted, rows = run_live(specs, wiring, homes, room=room)

    expected = Counter({n: sum(n < count for count in counts) * len(workers) for n in range(30)})
    assert Counter(number for _, number, _, _ in emitted) == +expected
    assert all(total == sum(range(number % 7)) for _, number, _, total in emitted)
    assert measured.messages == measured.received == 2 * sum(counts) * len(workers)
    assert measured.tuples == sum(counts)
    sender, receiver, _, seq, *_, sent_ns, left_ns, arrived_ns, started_ns, done_ns = rows.T
    for channel in set(zip(sender.tolist(), receiver.tolist(), strict=True)):
        mine = (sender == channel[0]) & (receiver == channel[1])
        assert (np.diff(seq[mine]) > 0).all()
        assert (np.diff(started_ns[mine]) >= 0).all()
    for before, after in ((sent_ns, left_ns), (left_ns, arrived_ns), (started_ns, done_ns)):
        assert (before <= after).all()


@settings(max_examples=25)
@given(
    count=st.integers(0, 20),
    bounces=st.integers(0, 5),
    homes=st.lists(st.integers(0, 2), min_size=4, max_size=4),
    room=st.integers(1, 3),
)
def test_actors_that_answer_each_other_end_when_the_last_answer_has_been_answered(
    count: int, bounces: int, homes: list[int], room: int
) -> None:
    specs = {
        "source": ActorSpec(actor=Sender, arguments={"count": count}),
        "wall": ActorSpec(actor=Wall),
        "bouncer": ActorSpec(actor=Bouncer, arguments={"bounces": bounces}),
        "recorder": ActorSpec(actor=Recorder),
    }
    wiring = {
        "source": {"out": ("wall",)},
        "wall": {"out": ("bouncer",)},
        "bouncer": {FEEDBACK: ("wall",), "on": ("recorder",)},
        "recorder": {},
    }
    measured, emitted, _ = run_live(specs, wiring, dict(zip(specs, homes, strict=True)), room=room)
    assert sorted(number for _, number, _, _ in emitted) == list(range(count))
    assert measured.received == count * (2 * bounces + 3)


def test_a_source_does_not_run_ahead_of_a_slow_receiver() -> None:
    specs = {
        "source": ActorSpec(actor=Sender, arguments={"count": 300}),
        "recorder": ActorSpec(actor=Recorder),
    }
    wiring = {"source": {"out": ("recorder",)}, "recorder": {}}
    for homes in ({"source": 0, "recorder": 1}, {"source": 0, "recorder": 0}):
        _, _, rows = run_live(specs, wiring, homes, room=3)
        crossed = rows[rows[:, 0] != rows[:, 1]]
        left_ns, started_ns = crossed[:, 9], crossed[:, 11]
        # Message n leaves only when message n - 3 is being served.
        assert (left_ns[3:] >= started_ns[:-3]).all()


def test_an_actor_that_waits_for_room_serves_nothing() -> None:
    """Also where a message came from its own process just as it began with the one before."""
    specs = {
        "source": ActorSpec(actor=Sender, arguments={"count": 100, "ports": ("out", "also")}),
        "worker": ActorSpec(actor=Worker, arguments={"port": "on"}),
        "recorder": ActorSpec(actor=Recorder),
    }
    wiring = {
        "source": {"out": ("worker",), "also": ("worker",)},
        "worker": {"on": ("recorder",)},
        "recorder": {},
    }
    _, _, rows = run_live(specs, wiring, {"source": 0, "worker": 0, "recorder": 1}, room=1)
    sent_ns, left_ns = rows[rows[:, 0] == 1, 8:10].T
    started_ns = rows[rows[:, 1] == 1, 11]
    waits = (sent_ns <= started_ns[:, None]) & (started_ns[:, None] < left_ns)
    assert not waits.any()


def test_no_timer_fires_before_its_time() -> None:
    gap_ns = 3_000_000
    specs = {
        "source": ActorSpec(actor=Sender, arguments={"count": 5, "gap_ns": gap_ns}),
        "recorder": ActorSpec(actor=Recorder),
    }
    wiring = {"source": {"out": ("recorder",)}, "recorder": {}}
    _, emitted, rows = run_live(specs, wiring, {"source": 0, "recorder": 1})
    assert [number for _, number, _, _ in emitted] == list(range(5))
    source = rows[rows[:, 1] == 0]
    arrived_ns, started_ns = source[:, 10], source[:, 11]
    # The start, and a timer set by each of the five services before the last.
    assert len(source) == 6
    assert (arrived_ns[1:] >= started_ns[:-1] + gap_ns).all()


def test_a_fault_of_an_actor_ends_the_run_and_names_it() -> None:
    specs = {
        "source": ActorSpec(actor=Sender, arguments={"count": 3}),
        "worker": ActorSpec(actor=Worker, arguments={"port": "nowhere"}),
        "recorder": ActorSpec(actor=Recorder),
    }
    wiring = {"source": {"out": ("worker",)}, "worker": {"on": ("recorder",)}, "recorder": {}}
    with pytest.raises(ActorError, match="worker failed on a message from source"):
        run_live(specs, wiring, {"source": 0, "worker": 1, "recorder": 0})


def test_a_chain_of_actors_that_nothing_reaches_ends_however_long_it_is() -> None:
    names = ["source", *(f"w{i}" for i in range(1_000))]
    specs = {name: ActorSpec(actor=Worker) for name in names}
    specs["source"] = ActorSpec(actor=Sender, arguments={"count": 0})
    wiring = {sender: {"out": (receiver,)} for sender, receiver in pairwise(names)}
    measured, _, _ = run_live(specs, wiring | {names[-1]: {}}, dict.fromkeys(names, 0))
    assert measured.messages == 0


def test_a_component_is_not_at_rest_while_a_report_misses_a_message_that_another_counts() -> None:
    wiring = {"a": {"out": ("b",)}, "b": {FEEDBACK: ("a",)}}
    (component,) = components_of(wiring, {"a": 0, "b": 1})
    to, back = ("a", "b"), ("b", "a")
    assert not component.at_rest(0, ComponentReport(0, {to: 1}, {back: 0}))
    # b answered once; as many were sent as received in all, but a's report is from before.
    assert not component.at_rest(1, ComponentReport(0, {back: 1}, {to: 2}))
    assert component.at_rest(0, ComponentReport(0, {to: 2}, {back: 1}))


def test_components_are_the_cycles_of_a_graph() -> None:
    wiring: dict[str, Any] = {"s": {"o": ("a",)}, "a": {"o": ("b",)}, "b": {"o": ("a", "t")}}
    wiring["t"] = {}
    found = components_of(wiring, {"s": 1, "a": 2, "b": 0, "t": 1})
    assert [part.members for part in found] == [["s"], ["a", "b"], ["t"]]
    assert found[1].homes == [0, 2]
    assert sorted(found[1].inside) == [("a", "b"), ("b", "a")]
