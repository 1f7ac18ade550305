"""The kernel over links and actors with faults, each rule as a claim that could be false."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.protocol import FEEDBACK, START, TIMER, Actor, ActorSpec, Context, Message, Wiring
from joins.work import Work
from netsim import faulty_kernel
from netsim.connection import ACKNOWLEDGEMENT_BYTES, Acknowledgement, Receiving, Sending
from netsim.faults import ActorFault, ActorKind, Fault, LinkFault, LinkKind
from netsim.faulty_kernel import Transport
from netsim.kernel import Letter
from netsim.network import full_mesh
from netsim.recovering_kernel import Guarantee
from tests.netsim.simulate import MESSAGE_NS, Simulated, TooLongError, link, simulate
from tests.toys import Parcel, Recorder, Sender, Worker

MS = 1_000_000
ROUTES = {"a": ("w0", "w1"), "b": ("w0", "w1"), "w0": ("c",), "w1": ("c",)}
"""Two senders, two workers, one recorder: who sends to whom."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("faulty") / "trace.parquet"


def spec(actor: type, **arguments: object) -> ActorSpec:
    return ActorSpec(actor=actor, arguments=arguments)


def relay(path: Path, faults: Sequence[Fault] | None, **how: Any) -> Simulated:
    """Run two senders' parcels through workers to a recorder, all on sites of their own."""
    specs = {
        "a": spec(Sender, count=40, gap_ns=300),
        "b": spec(Sender, count=30, gap_ns=500),
        "w0": spec(Worker, comparisons=400, port="on"),
        "w1": spec(Worker, port="on"),
        "c": spec(Recorder),
    }
    wiring = {name: {"on" if name[0] == "w" else "out": to} for name, to in ROUTES.items()}
    how = {"inbox_messages": 3, "network": full_mesh(specs, link(1_000))} | how
    return simulate(specs, wiring | {"c": {}}, path=path, faults=faults, **how)


def lone(path: Path, *faults: Fault, count: int = 1, **how: Any) -> Simulated:
    """Send parcels of 500 bytes from a to b, whose receipt takes 10 ns, over 1 µs and 1 B/ns."""
    specs = {"a": spec(Sender, count=count, nbytes=500), "b": spec(Recorder)}
    return simulate(specs, {"a": {"out": ("b",)}, "b": {}}, path=path, faults=faults, **how)


def channels(trace: pa.Table) -> dict[tuple[str, str], list[int]]:
    """Return the numbers of the messages of each channel, in the order of their arrival."""
    found = defaultdict(list)
    rows = trace.select(["sender", "receiver", "seq", "arrived_ns"]).to_pylist()
    for row in sorted(rows, key=lambda row: row["arrived_ns"]):
        if row["sender"] != row["receiver"]:
            found[row["sender"], row["receiver"]].append(row["seq"])
    return found


@st.composite
def link_faults(draw: st.DrawFn) -> LinkFault:
    kind: LinkKind = draw(
        st.sampled_from(["loss", "duplicate", "reorder", "delay", "partition", "bandwidth"])
    )
    start = draw(st.integers(0, 20_000))
    end = start + draw(st.integers(1, 30_000))
    return LinkFault(
        kind=kind,
        sender=draw(st.sampled_from(["*", "a", "w*"])),
        receiver=draw(st.sampled_from(["*", "w0", "c"])),
        from_ns=start,
        to_ns=end,
        every_ns=draw(st.none() | st.just(end - start + 5_000)),
        rate=draw(st.floats(0, 0.6)) if kind in ("loss", "duplicate", "reorder") else 0.0,
        delay_ns=draw(st.integers(0, 20_000)) if kind in ("reorder", "delay") else 0,
        factor=draw(st.sampled_from([0.1, 3.0])) if kind == "bandwidth" else 1.0,
    )


@st.composite
def actor_faults(draw: st.DrawFn) -> ActorFault:
    kind: ActorKind = draw(st.sampled_from(["pause", "slow", "skew", "stall"]))
    start = draw(st.integers(0, 20_000))
    return ActorFault(
        kind=kind,
        actor=draw(st.sampled_from(["*", "a", "w*", "c"])),
        from_ns=start,
        to_ns=start + draw(st.integers(1, 10_000)),
        every_ns=draw(st.none() | st.just(20_000)),
        random=False,
        factor=draw(st.floats(1, 9)) if kind == "slow" else 1.0,
        offset_ns=draw(st.integers(-5_000, 5_000)) if kind == "skew" else 0,
    )


@given(spread_ns=st.sampled_from([0, 900]), latency_ns=st.sampled_from([0, 1, 1_000]))
def test_where_nothing_goes_wrong_a_run_is_what_it_is_without_faults(
    path: Path, spread_ns: int, latency_ns: int
) -> None:
    kind = "uniform" if spread_ns else "constant"
    sites = ["a", "b", "w0", "w1", "c"]
    mesh = full_mesh(sites, link(latency_ns, kind=kind, spread_ns=spread_ns))
    plain = relay(path, None, network=mesh)
    digests = {
        relay(path, rows, transport="none", network=mesh).outcome.digest
        for rows in ([], [LinkFault(kind="loss")], [ActorFault(kind="slow")])
    }
    assert digests == {plain.outcome.digest}


@settings(max_examples=25)
@given(rows=st.lists(link_faults() | actor_faults(), max_size=4), seed=st.integers(0, 3))
def test_over_a_reliable_transport_every_message_arrives_once_in_order(
    path: Path, rows: list[Fault], seed: int
) -> None:
    run = relay(path, rows, seed=seed)
    assert run.outcome.in_flight == run.outcome.lost == run.outcome.doubled == 0
    sound = channels(relay(path, None, seed=seed).trace)
    found = channels(run.trace)
    for channel in [("a", "w0"), ("a", "w1"), ("b", "w0"), ("b", "w1")]:
        assert len(found[channel]) == len(sound[channel])
    for numbers in found.values():
        assert numbers == sorted(set(numbers))
    assert len(run.emitted) == len(relay(path, None, seed=seed).emitted)
    assert relay(path, rows, seed=seed).outcome.digest == run.outcome.digest


@settings(max_examples=25)
@given(rows=st.lists(link_faults(), min_size=1, max_size=3), inbox_messages=st.integers(1, 4))
def test_no_inbox_has_more_messages_than_room(
    path: Path, rows: list[Fault], inbox_messages: int
) -> None:
    for transport in ("reliable", "none"):
        run = relay(path, rows, inbox_messages=inbox_messages, transport=transport)
        for name in ("w0", "w1", "c"):
            of_name = run.trace.filter(
                pa.array([receiver == name for receiver in run.trace["receiver"].to_pylist()])
            )
            arrived, started = (of_name[key].to_numpy() for key in ("arrived_ns", "started_ns"))
            waiting = [np.sum((arrived <= now) & (started > now)) for now in arrived]
            assert max(waiting, default=0) <= inbox_messages


@settings(max_examples=25)
@given(rows=st.lists(link_faults(), min_size=1, max_size=3), seed=st.integers(0, 3))
def test_without_a_transport_messages_are_lost_and_doubled_and_all_are_accounted_for(
    path: Path, rows: list[Fault], seed: int
) -> None:
    run = relay(path, rows, transport="none", seed=seed)
    outcome = run.outcome
    arrived = sum(len(numbers) for numbers in channels(run.trace).values())
    # Nothing is stuck: room that a lost message had is free again.
    assert outcome.in_flight == 0
    assert arrived == outcome.messages - outcome.lost + outcome.doubled


def test_an_answer_that_comes_twice_takes_no_room(path: Path) -> None:
    """As none takes any, and none gives any back: the room of its receiver would be used up."""
    specs = {
        "a": spec(Sender, count=40, ports=("out", "ask")),
        "b": spec(Worker, port=FEEDBACK),
        "c": spec(Recorder),
    }
    wiring = {"a": {"out": ("c",), "ask": ("b",)}, "b": {FEEDBACK: ("c",)}, "c": {}}
    row = LinkFault(kind="duplicate", rate=0.5, sender="b")
    run = simulate(specs, wiring, path=path, faults=[row], transport="none", inbox_messages=2)
    assert run.outcome.in_flight == 0
    assert [number for sender, number, *_ in run.emitted if sender == "a"] == list(range(40))
    assert len(run.emitted) == 40 + 40 + run.outcome.doubled
    assert run.outcome.injected is not None
    assert run.outcome.doubled == run.outcome.injected.counts["duplicate"] > 10


@pytest.mark.parametrize("kind", ["loss", "duplicate"])
def test_a_marker_of_a_snapshot_is_no_message_that_is_lost_or_doubled(
    path: Path, kind: LinkKind
) -> None:
    run = relay(path, [LinkFault(kind=kind, rate=0.3)], transport="none", guarantee="exactly_once")
    outcome = run.outcome
    assert outcome.in_flight == 0
    arrived = {channel: len(numbers) for channel, numbers in channels(run.trace).items()}
    assert {channel: due for channel, due in outcome.due.items() if due} == arrived
    assert sum(arrived.values()) == outcome.messages - outcome.lost + outcome.doubled


def test_loss_costs_what_is_sent_again_and_every_frame_an_acknowledgement(path: Path) -> None:
    run = lone(path, LinkFault(kind="loss", rate=0.3, sender="a"), count=100)
    injected = run.outcome.injected
    assert injected is not None
    assert injected.counts["loss"] > 10
    assert injected.retransmissions >= injected.counts["loss"]
    # All but the lost frames are answered: what was sent, and what was sent again.
    answered = 100 + injected.retransmissions - injected.counts["loss"]
    assert injected.acknowledgements == answered
    overhead = injected.retransmissions * 500 + answered * ACKNOWLEDGEMENT_BYTES
    assert injected.overhead_bytes == overhead
    assert run.outcome.nbytes == 100 * 500 + overhead


def test_acknowledgements_take_time_at_the_ports(path: Path) -> None:
    """The parcel that b answers with waits until the acknowledgement has left b's port."""
    specs = {
        "a": spec(Sender, count=1, nbytes=500),
        "b": spec(Worker, port="on"),
        "c": spec(Recorder),
    }
    wiring = {"a": {"out": ("b",)}, "b": {"on": ("c",)}, "c": {}}
    times = []
    for faults in (None, [LinkFault(kind="loss", sender="a", receiver="b")]):
        network = full_mesh(specs, link(1_000, bandwidth_bps=8_000_000))  # a byte takes 1 µs
        run = simulate(specs, wiring, path=path, network=network, faults=faults)
        times.append(run.emitted[0][2])
    assert times[1] - times[0] == ACKNOWLEDGEMENT_BYTES * 1_000 - MESSAGE_NS


def test_a_delay_and_a_bandwidth_change_what_a_message_takes(path: Path) -> None:
    arrived = [run.emitted[0][2] for run in (
        lone(path),
        lone(path, LinkFault(kind="delay", delay_ns=7_000)),
        lone(path, LinkFault(kind="bandwidth", factor=0.5)),
    )]  # fmt: skip
    assert arrived == [1_510, 8_510, 2_010]


def test_a_partition_that_heals_delays_and_loses_nothing(path: Path) -> None:
    run = lone(path, LinkFault(kind="partition", to_ns=40 * MS), count=20)
    assert [number for _, number, *_ in run.emitted] == list(range(20))
    assert 40 * MS < run.emitted[0][2] < 2 * 40 * MS
    assert run.outcome.injected is not None
    assert run.outcome.injected.timeouts <= 7


def test_what_comes_later_overtakes_a_frame_that_was_reordered(path: Path) -> None:
    row = LinkFault(kind="reorder", rate=0.3, delay_ns=20_000)
    numbers = [number for _, number, *_ in lone(path, row, count=30, transport="none").emitted]
    assert sorted(numbers) == list(range(30))
    assert numbers != sorted(numbers)
    assert [n for _, n, *_ in lone(path, row, count=30).emitted] == list(range(30))


def test_a_fifth_of_all_frames_lost_on_every_link_ends_within_ten_seconds(path: Path) -> None:
    for seed in range(20):
        run = relay(path, [LinkFault(kind="loss", rate=0.2)], seed=seed)
        assert run.outcome.in_flight == 0
        assert run.outcome.virtual_ns < 10_000 * MS


def test_a_pause_interrupts_a_service_and_puts_off_the_next(path: Path) -> None:
    specs = {"a": spec(Sender, count=2, nbytes=0), "w": spec(Worker, comparisons=990)}
    wiring = {"a": {"out": ("w",)}, "w": {}}
    rows = [ActorFault(kind="pause", actor="w", from_ns=1_500, to_ns=5_000)]
    run = simulate(specs, wiring, path=path, faults=rows)
    of_w = [row for row in run.trace.to_pylist() if row["receiver"] == "w"]
    # Both arrive at once, and take 1,000 ns: 490 before the pause, and 510 after it.
    assert [row["arrived_ns"] for row in of_w] == [1_010, 1_020]
    assert [row["done_ns"] for row in of_w] == [5_510, 6_510]


def test_a_core_serves_another_while_the_first_in_line_pauses(path: Path) -> None:
    workers = ("w0", "w1", "w2")
    specs = {"a": spec(Sender, count=1, nbytes=0)}
    specs |= {name: spec(Worker, comparisons=990) for name in workers}
    wiring = {"a": {"out": workers}} | {name: {} for name in workers}
    run = simulate(
        specs, wiring, path=path, placement={"a": "x"} | dict.fromkeys(workers, "y"),
        faults=[ActorFault(kind="pause", actor="w1", from_ns=1_500, to_ns=9_000)],
    )  # fmt: skip
    done = {row["receiver"]: row["done_ns"] for row in run.trace.to_pylist()}
    assert [done[name] for name in workers] == [2_010, 10_000, 3_010]


def test_any_number_of_actors_may_pause_in_the_line_for_a_core(path: Path) -> None:
    workers = [f"w{i}" for i in range(1_100)]
    specs = {"a": spec(Sender, count=1, nbytes=0), "first": spec(Worker, comparisons=990)}
    specs |= {name: spec(Worker) for name in workers}
    wiring: Wiring = {name: {} for name in specs} | {"a": {"out": ("first", *workers)}}
    run = simulate(
        specs, wiring, path=path, placement={"a": "x"} | dict.fromkeys(("first", *workers), "y"),
        faults=[ActorFault(kind="pause", actor="w*", from_ns=1_500, to_ns=9_000)],
    )  # fmt: skip
    assert run.outcome.virtual_ns == 9_000 + 1_100 * MESSAGE_NS


def test_a_slow_actor_takes_so_many_times_as_long(path: Path) -> None:
    specs = {"a": spec(Sender, count=1, nbytes=0), "w": spec(Worker, comparisons=990)}
    rows = [ActorFault(kind="slow", actor="w", factor=2.5)]
    run = simulate(specs, {"a": {"out": ("w",)}, "w": {}}, path=path, faults=rows)
    assert run.outcome.virtual_ns == 1_010 + 2_500


def test_a_source_that_stalls_sends_its_next_parcel_at_the_end(path: Path) -> None:
    rows = [ActorFault(kind="stall", from_ns=2_000, to_ns=50_000)]
    specs = {"a": spec(Sender, count=5, gap_ns=1_000, nbytes=0), "b": spec(Recorder)}
    run = simulate(specs, {"a": {"out": ("b",)}, "b": {}}, path=path, faults=rows)
    times = [time for *_, time, _ in run.emitted]
    assert times[1] < 3_010
    assert times[2] == 50_000 + MESSAGE_NS + 1_000


def test_an_actor_reads_its_own_clock_which_never_runs_backwards(path: Path) -> None:
    rows = [ActorFault(kind="skew", actor="b", offset_ns=5_000, from_ns=0, to_ns=4_000)]
    specs = {"a": spec(Sender, count=6, gap_ns=1_000, nbytes=0), "b": spec(Recorder)}
    run = simulate(specs, {"a": {"out": ("b",)}, "b": {}}, path=path, faults=rows)
    read = [time for *_, time, _ in run.emitted]
    arrived = [row["arrived_ns"] for row in run.trace.to_pylist() if row["receiver"] == "b"]
    assert [b - a for a, b in zip(arrived, read, strict=True)][:2] == [5_000, 5_000]
    assert read == sorted(read)
    assert read[3] == read[2]


def test_a_timer_fires_by_the_clock_of_the_actor_that_set_it(path: Path) -> None:
    def gaps(*rows: Fault) -> list[int]:
        specs = {"a": spec(Sender, count=4, gap_ns=1_000, nbytes=0), "b": spec(Recorder)}
        run = simulate(specs, {"a": {"out": ("b",)}, "b": {}}, path=path, faults=rows)
        return np.diff([time for *_, time, _ in run.emitted]).tolist()

    assert gaps(ActorFault(kind="skew", actor="a", offset_ns=700)) == gaps()


class Orderly(Actor):
    """Fails on a parcel that is not the next one."""

    state = ("next",)

    def __init__(self) -> None:
        self.next = 0

    def receive(self, message: Message, context: Context) -> None:
        parcel: Parcel = message.payload
        if parcel.number != self.next:
            raise ValueError(f"parcel {parcel.number}, not {self.next}")
        self.next += 1
        context.emit(parcel.number)


@pytest.mark.parametrize("only_emit", [(), ("b",)])
def test_without_a_transport_an_actor_that_fails_on_what_comes_is_named(
    path: Path, only_emit: tuple[str, ...]
) -> None:
    specs = {"a": spec(Sender, count=50, gap_ns=10), "b": spec(Orderly)}
    wiring = {"a": {"out": ("b",)}, "b": {}}
    row = LinkFault(kind="loss", rate=0.1)
    run = simulate(
        specs, wiring, path=path, faults=[row], transport="none", only_emit=only_emit
    )  # fmt: skip
    assert run.emitted == list(range(len(run.emitted)))
    assert 0 < len(run.emitted) < 50
    assert run.outcome.injected is not None
    assert "parcel" in run.outcome.injected.failed["b"]
    assert simulate(specs, wiring, path=path, faults=[row]).emitted == list(range(50))


class Timed(Actor):
    """Passes parcels on, and emits of each whether it is known when a timer set for it fires."""

    state = ("known",)

    def __init__(self) -> None:
        self.known: set[int] = set()

    def receive(self, message: Message, context: Context) -> None:
        if message.port.startswith(TIMER):
            context.emit(int(message.port.removeprefix(TIMER)) in self.known)
        else:
            self.known.add(message.payload.number)
            context.send("on", message.payload)
            context.set_timer(context.now, str(message.payload.number))


def test_an_actor_that_starts_anew_gets_no_timer_from_before_its_crash(path: Path) -> None:
    """Nor one that waited with the actor for room at a receiver."""
    specs = {
        "a": spec(Sender, count=8),
        "b": spec(Timed),
        "c": spec(Worker, comparisons=10_000),
    }
    wiring = {"a": {"out": ("b",)}, "b": {"on": ("c",)}, "c": {}}
    row = ActorFault(kind="crash", actor="b", from_ns=5_000, to_ns=6_000)
    run = simulate(
        specs, wiring, path=path, faults=[row], guarantee="none", inbox_messages=1
    )  # fmt: skip
    assert run.outcome.recovered is not None
    assert run.outcome.recovered.crashes == run.outcome.recovered.restarts == 1
    assert len(run.emitted) > 3
    assert all(run.emitted)


class _LetsDuplicatesThrough(Receiving[Letter]):
    def receive(
        self, number: int, item: Letter, left_ns: int
    ) -> tuple[list[Letter], Acknowledgement]:
        self.whole: dict[int, Letter] = getattr(self, "whole", {})
        # As it was before its first delivery, when the kernel passed its payload on.
        whole = self.whole.setdefault(number, copy(item))
        double = number < self._missing
        ready, answer = super().receive(number, item, left_ns)
        return ([copy(whole)] if double else ready), answer


class _DeliversAsItComes(Receiving[Letter]):
    def receive(
        self, number: int, item: Letter, left_ns: int
    ) -> tuple[list[Letter], Acknowledgement]:
        new = number >= self._missing and number not in self._early
        _, answer = super().receive(number, item, left_ns)
        return ([item] if new else []), answer


class _AcknowledgesOneTooMany(Receiving[Letter]):
    def receive(
        self, number: int, item: Letter, left_ns: int
    ) -> tuple[list[Letter], Acknowledgement]:
        ready, answer = super().receive(number, item, left_ns)
        return ready, answer._replace(missing=max(answer.missing, number + 1))


class _ForgetsToSendAgain(Sending[Letter]):
    def acknowledge(self, acknowledgement: Acknowledgement, now: int) -> int | None:
        super().acknowledge(acknowledgement, now)
        return None

    def expire(self, now: int) -> int | None:
        self.deadline_ns = None
        return None


class _BacksOffTooLittle(Sending[Letter]):
    def expire(self, now: int) -> int | None:
        before_ns = self._timeout_ns
        number = super().expire(now)
        self._timeout_ns = before_ns
        return number


LOSS = LinkFault(kind="loss", rate=0.3)
DOUBLE = LinkFault(kind="duplicate", rate=0.3)
REORDER = LinkFault(kind="reorder", rate=0.3, delay_ns=20_000)
CUT = LinkFault(kind="partition", to_ns=1_000 * MS)


@pytest.mark.parametrize(
    ("end", "broken", "row", "noticed"),
    [
        ("Receiving", _LetsDuplicatesThrough, DOUBLE, "double"),
        ("Receiving", _DeliversAsItComes, REORDER, "overtaken"),
        ("Receiving", _AcknowledgesOneTooMany, LOSS, "stuck"),
        ("Sending", _ForgetsToSendAgain, LOSS, "stuck"),
        ("Sending", _BacksOffTooLittle, CUT, "flood"),
    ],
)
def test_a_broken_transport_is_noticed_for_what_it_does(
    path: Path, monkeypatch: pytest.MonkeyPatch, end: str, broken: type, row: Fault, noticed: str
) -> None:
    """Parcels twice, out of order, not at all, or too many frames: and by nothing else."""

    def findings() -> set[str]:
        try:
            run = lone(path, row, count=40, until_ns=100_000 * MS)
        except TooLongError:
            return {"stuck"}
        numbers = [number for _, number, *_ in run.emitted]
        assert run.outcome.injected is not None
        found = {
            "double": len(set(numbers)) < len(numbers),
            "overtaken": list(dict.fromkeys(numbers)) != sorted(set(numbers)),
            "stuck": run.outcome.in_flight > 0,
            "flood": run.outcome.injected.retransmissions > 200,
        }
        return {name for name, is_so in found.items() if is_so}

    assert not findings()
    monkeypatch.setattr(faulty_kernel, end, broken)
    assert noticed in findings()


class Breaking(Sender):
    """Sends at once, sets two timers, and raises at the first of them."""

    def receive(self, message: Message, context: Context) -> None:
        if message.port != START:
            raise ValueError("broken")
        context.send("out", Parcel(0))
        context.set_timer(8_000, "first")
        context.set_timer(9_000, "second")


def test_a_source_that_fails_after_a_crash_sends_no_more(path: Path) -> None:
    """Its second timer is neither served nor waits until the end of virtual time."""
    specs = {"a": spec(Breaking, count=1), "b": spec(Recorder)}
    row = ActorFault(kind="crash", actor="b", from_ns=5_000, to_ns=6_000)
    wiring = {"a": {"out": ("b",)}, "b": {}}
    run = simulate(specs, wiring, path=path, faults=[row], guarantee="none")
    assert len(run.emitted) == 1
    assert run.outcome.virtual_ns < 10_000
    assert run.outcome.injected is not None
    assert "broken" in run.outcome.injected.failed["a"]


class Forgetful(Actor):
    """Emits what comes, and raises on parcel 1."""

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        context.charge(Work(comparisons=3_000))
        if message.payload.number == 1:
            raise ValueError("parcel 1")
        context.emit(message.payload.number)


@pytest.mark.parametrize("transport", ["reliable", "none"])
def test_an_actor_that_crashed_as_it_failed_begins_anew_and_goes_on(
    path: Path, transport: Transport
) -> None:
    specs = {"a": spec(Sender, count=6, gap_ns=4_000), "b": spec(Forgetful)}
    # Parcel 1 comes and fails at once; until the crash nobody has seen it.
    row = ActorFault(kind="crash", actor="b", from_ns=5_115, to_ns=6_000)
    wiring = {"a": {"out": ("b",)}, "b": {}}
    run = simulate(
        specs, wiring, path=path, faults=[row], guarantee="none", transport=transport
    )  # fmt: skip
    assert run.emitted == [0, 2, 3, 4, 5]
    assert run.outcome.injected is not None
    assert not run.outcome.injected.failed


class _NamedLikeTheKernels(Sender):
    """A sender whose port and timer are called as what a kernel that recovers has of its own."""

    def receive(self, message: Message, context: Context) -> None:
        if self.sent < self.count:
            context.send("marker", Parcel(self.sent, self.size))
            self.sent += 1
            context.set_timer(context.now + self.gap_ns, "snapshot")


@pytest.mark.parametrize("guarantee", ["exactly_once", "at_least_once", "none"])
def test_ports_and_timers_may_have_any_name(path: Path, guarantee: Guarantee) -> None:
    specs = {"a": spec(_NamedLikeTheKernels, count=60, gap_ns=300), "b": spec(Recorder)}
    run = simulate(
        specs, {"a": {"marker": ("b",)}, "b": {}}, path=path, faults=[], guarantee=guarantee
    )
    assert [number for _, number, *_ in run.emitted] == list(range(60))
    assert run.outcome.recovered is not None
    assert run.outcome.recovered.snapshots > 1 or guarantee == "none"


def test_what_was_on_its_way_before_a_restart_holds_nothing_up(path: Path) -> None:
    rows: list[Fault] = [
        LinkFault(kind="delay", delay_ns=10 * MS, from_ns=5_000, to_ns=5_400),
        ActorFault(kind="crash", actor="b", from_ns=6_000, to_ns=6_100),
    ]
    specs = {"a": spec(Sender, count=40, gap_ns=300), "b": spec(Recorder)}
    for transport in ("reliable", "none"):
        run = simulate(
            specs, {"a": {"out": ("b",)}, "b": {}}, path=path, faults=rows,
            guarantee="exactly_once", transport=transport,
        )  # fmt: skip
        assert sorted({number for _, number, *_ in run.emitted}) == list(range(40))
        assert run.outcome.virtual_ns < MS


def test_both_copies_of_a_message_left_when_it_did(path: Path) -> None:
    run = lone(path, LinkFault(kind="duplicate", rate=1.0), count=5, transport="none")
    left = defaultdict(list)
    for row in run.trace.filter(pa.compute.field("sender") == "a").to_pylist():
        if row["receiver"] == "b":
            left[row["seq"]].append(row["left_ns"])
    assert len(left) == 5
    assert all(len(times) == 2 and len(set(times)) == 1 for times in left.values())
