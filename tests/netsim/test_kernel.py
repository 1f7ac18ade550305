"""The kernel's rules, each as a claim that could be false."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.hosting.inline import InlineHost
from actors.protocol import FEEDBACK, Actor, ActorError, ActorSpec, Context, Message, Reply, Wiring
from netsim import kernel
from netsim.network import NetworkError, full_mesh, sites_without_links
from scenarios.verdict.trace_checks import ReadTrace, check_conservation
from tests.netsim.simulate import MESSAGE_NS, Simulated, TooLongError, link, simulate
from tests.toys import Recorder, Sender, Worker

RECOVERING = [{"faults": (), "guarantee": guarantee} for guarantee in ("exactly_once", "none")]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kernel") / "trace.parquet"


def spec(actor: type, **arguments: object) -> ActorSpec:
    return ActorSpec(actor=actor, arguments=arguments)


def column(trace: pa.Table, name: str) -> np.ndarray:
    return trace[name].to_numpy()


def to(trace: pa.Table, receiver: str) -> pa.Table:
    return trace.filter(pa.array([r == receiver for r in trace["receiver"].to_pylist()]))


def test_a_lone_message_takes_service_plus_latency_plus_transmission(path: Path) -> None:
    run = simulate(
        {"a": spec(Sender, count=1, nbytes=500), "b": spec(Recorder)},
        {"a": {"out": ("b",)}, "b": {}},
        path=path,
    )
    # The start message costs 10 ns, the link 1,000 ns, 500 bytes 500 ns.
    assert run.emitted == [("a", 0, MESSAGE_NS + 1_000 + 500, 0)]


def test_what_an_inline_host_has_emitted_is_collected_before_the_next_message(path: Path) -> None:
    """So that it is written while the run goes on, and takes no memory until its end."""
    log = []

    class Logging(InlineHost):
        def submit(self, ticket: int, actor: str, *message: Any) -> Reply:
            log.append(actor)
            return super().submit(ticket, actor, *message)

    specs, wiring = (
        {"a": spec(Sender, count=5), "b": spec(Recorder)},
        {"a": {"out": ("b",)}, "b": {}},
    )
    simulate(
        specs,
        wiring,
        path=path,
        host=Logging(specs, wiring, 1),
        only_emit=("b",),
        collect=lambda emitted: log.extend(["collected"] * len(emitted)),
    )
    assert [one for one in log if one != "a"] == ["b", "collected"] * 5


def test_two_senders_share_the_receivers_port(path: Path) -> None:
    specs = {name: spec(Sender, count=1, nbytes=500) for name in ("a", "b")}
    run = simulate(
        specs | {"c": spec(Recorder)},
        {"a": {"out": ("c",)}, "b": {"out": ("c",)}, "c": {}},
        path=path,
    )
    assert [time for *_, time, _ in run.emitted] == [1_510, 2_010]


def test_one_sender_to_two_receivers_shares_its_own_port(path: Path) -> None:
    specs = {"a": spec(Sender, count=1, nbytes=500), "b": spec(Recorder), "c": spec(Recorder)}
    run = simulate(specs, {"a": {"out": ("b", "c")}, "b": {}, "c": {}}, path=path)
    assert sorted(time for *_, time, _ in run.emitted) == [1_510, 2_010]


def test_within_a_site_a_message_takes_no_time(path: Path) -> None:
    specs = {"a": spec(Sender, count=1), "b": spec(Recorder)}
    run = simulate(
        specs, {"a": {"out": ("b",)}, "b": {}}, path=path, placement={"a": "x", "b": "x"}
    )
    assert run.emitted[0][2] == MESSAGE_NS


@pytest.mark.parametrize(("cores", "last_done_ns"), [(1, 4 * 2_000), (2, 2 * 2_000), (4, 2_000)])
def test_actors_of_one_site_compete_for_its_cores(
    path: Path, cores: int, last_done_ns: int
) -> None:
    workers = [f"w{i}" for i in range(4)]
    specs = {"a": spec(Sender, count=1, nbytes=0)}
    specs |= {name: spec(Worker, comparisons=2_000 - MESSAGE_NS) for name in workers}
    network = full_mesh(["x", "y"], link(1_000), cores=cores)
    run = simulate(
        specs,
        {"a": {"out": tuple(workers)}} | {name: {} for name in workers},
        path=path,
        network=network,
        placement={"a": "x"} | dict.fromkeys(workers, "y"),
    )
    arrived_ns = MESSAGE_NS + 1_000
    assert run.outcome.virtual_ns - arrived_ns == last_done_ns


def test_service_delays_what_is_sent_but_not_the_order_of_what_is_known(path: Path) -> None:
    """Two senders' messages change state in the order of arrival, though service is far behind."""
    specs = {
        "a": spec(Sender, count=3, gap_ns=100, nbytes=1),
        "b": spec(Sender, count=3, gap_ns=130, nbytes=1),
        "w": spec(Worker, comparisons=50_000),
    }
    run = simulate(specs, {"a": {"out": ("w",)}, "b": {"out": ("w",)}, "w": {}}, path=path)
    rows = to(run.trace, "w")
    arrived = column(rows, "arrived_ns")
    assert np.all(np.diff(arrived) >= 0)
    assert column(rows, "started_ns")[-1] > arrived[-1] + 100_000


def test_a_timer_set_during_a_service_fires_no_earlier_than_its_end(path: Path) -> None:
    run = simulate(
        {"a": spec(Sender, count=5, gap_ns=1), "b": spec(Recorder)},
        {"a": {"out": ("b",)}, "b": {}},
        path=path,
    )
    own = to(run.trace, "a")
    assert np.all(column(own, "arrived_ns")[1:] >= column(own, "done_ns")[:-1])


@given(
    latencies_ns=st.lists(st.integers(1, 4_000), min_size=4, max_size=4),
    sizes=st.lists(st.integers(0, 3_000), min_size=4, max_size=4),
    gaps_ns=st.lists(st.integers(0, 1_500), min_size=4, max_size=4),
)
def test_a_port_receives_messages_one_after_the_other_in_the_order_of_their_first_bits(
    path: Path, latencies_ns: list[int], sizes: list[int], gaps_ns: list[int]
) -> None:
    """Whatever is sent later over a shorter way, and so overtakes what is under way already."""
    senders = [f"s{i}" for i in range(4)]
    specs = {
        name: spec(Sender, count=12, gap_ns=gap_ns, nbytes=nbytes)
        for name, gap_ns, nbytes in zip(senders, gaps_ns, sizes, strict=True)
    }
    network = sites_without_links([*senders, "c"])
    for name, latency_ns in zip(senders, latencies_ns, strict=True):
        network.add_edge(name, "c", link=link(latency_ns))
    run = simulate(
        specs | {"c": spec(Recorder)},
        {name: {"out": ("c",)} for name in senders} | {"c": {}},
        path=path,
        network=network,
        inbox_messages=3,
    )
    delay_ns = dict(zip(senders, latencies_ns, strict=True))
    messages = sorted(
        (row["left_ns"] + delay_ns[row["sender"]], row["sender"], row["seq"], row)
        for row in to(run.trace, "c").to_pylist()
    )
    free_ns = 0
    for first_bit_ns, *_, row in messages:
        free_ns = max(free_ns, first_bit_ns) + row["nbytes"]
        assert row["arrived_ns"] == free_ns
    assert len(messages) == 4 * 12


def slow_consumer(path: Path, inbox_messages: int, latency_ns: int) -> Simulated:
    return simulate(
        {"a": spec(Sender, count=50, nbytes=10), "w": spec(Worker, comparisons=9_990)},
        {"a": {"out": ("w",)}, "w": {}},
        path=path,
        network=full_mesh(["a", "w"], link(latency_ns)),
        inbox_messages=inbox_messages,
    )


@given(inbox_messages=st.integers(1, 20))
def test_a_full_inbox_holds_the_sender_back(path: Path, inbox_messages: int) -> None:
    rows = to(slow_consumer(path, inbox_messages, 1_000).trace, "w")
    arrived, started = column(rows, "arrived_ns"), column(rows, "started_ns")
    waiting = [np.sum((arrived <= now) & (started > now)) for now in arrived]
    assert max(waiting) <= inbox_messages
    left = column(rows, "left_ns")
    # Everything beyond the room of the inbox and the one in service left only as room was made.
    assert np.all(left[inbox_messages + 1 :] >= started[1 : len(started) - inbox_messages])


@pytest.mark.parametrize("latency_ns", [0, 1_000, 50_000])
def test_sustained_throughput_is_the_consumers_whatever_the_latency(
    path: Path, latency_ns: int
) -> None:
    run = slow_consumer(path, 16, latency_ns)
    first = column(to(run.trace, "w"), "started_ns")[0]
    assert run.outcome.virtual_ns - first == 50 * 10_000


def relay(path: Path, seed: int, latency_ns: int, spread_ns: int, kind: str) -> Simulated:
    workers = ("w0", "w1", "w2")
    specs = {
        "a": spec(Sender, count=40, gap_ns=300),
        "b": spec(Sender, count=30, gap_ns=500),
        **{name: spec(Worker, comparisons=i * 400, port="on") for i, name in enumerate(workers)},
        "c": spec(Recorder),
        "d": spec(Recorder),
    }
    wiring: Wiring = {
        "a": {"out": workers},
        "b": {"out": workers},
        **{name: {"on": ("c", "d")} for name in workers},
        "c": {},
        "d": {},
    }
    mesh = full_mesh(specs, link(latency_ns, kind=kind, spread_ns=spread_ns))
    return simulate(specs, wiring, path=path, network=mesh, seed=seed, inbox_messages=3)


latencies = st.fixed_dictionaries(
    {
        "latency_ns": st.integers(0, 5_000),
        "spread_ns": st.integers(0, 3_000),
        "kind": st.sampled_from(["constant", "uniform", "normal", "pareto"]),
    }
)


@given(seed=st.integers(0, 2**32 - 1), latency=latencies)
def test_every_message_is_served_in_the_order_of_its_channel_and_of_time(
    path: Path, seed: int, latency: dict[str, Any]
) -> None:
    run = relay(path, seed, **latency)
    trace = run.trace
    assert run.outcome.in_flight == 0
    assert len(run.emitted) == 3 * (40 + 30)

    last: dict[tuple[str, str], int] = defaultdict(lambda: -1)
    names = zip(trace["sender"].to_pylist(), trace["receiver"].to_pylist(), strict=True)
    for channel, seq in zip(names, trace["seq"].to_pylist(), strict=True):
        assert seq > last[channel]
        last[channel] = seq

    stages = ("sent_ns", "left_ns", "arrived_ns", "started_ns", "done_ns")
    for earlier, later in pairwise(column(trace, name) for name in stages):
        assert np.all(earlier <= later)


def test_a_run_repeats_to_the_digest_and_another_seed_differs(path: Path) -> None:
    runs = [relay(path, seed, 1_000, 900, "uniform") for seed in (7, 7, 8)]
    assert runs[0].outcome.digest == runs[1].outcome.digest != runs[2].outcome.digest
    assert runs[0].emitted == runs[1].emitted


def test_the_digest_notices_a_change_of_one_byte(path: Path) -> None:
    def digest(nbytes: int) -> str | None:
        specs = {"a": spec(Sender, count=3, nbytes=nbytes), "b": spec(Recorder)}
        # Within a site the size changes no time: only the recorded bytes tell.
        run = simulate(
            specs, {"a": {"out": ("b",)}, "b": {}}, path=path, placement={"a": "x", "b": "x"}
        )
        return run.outcome.digest

    assert digest(100) != digest(101)


def test_an_actor_added_elsewhere_moves_nobody_elses_random_numbers(path: Path) -> None:
    def choices(extra: bool) -> list[tuple[Any, ...]]:
        specs = {
            "a": spec(Sender, count=20, gap_ns=10_000),
            "w": spec(Worker, port="on"),
            "c": spec(Recorder),
            "d": spec(Recorder),
        }
        wiring: Wiring = {"a": {"out": ("w",)}, "w": {"on": ("c", "d")}, "c": {}, "d": {}}
        if extra:
            specs = {"z": spec(Sender, count=2), "y": spec(Recorder)} | specs
            wiring = {"z": {"out": ("y",)}, "y": {}, **wiring}
        mesh = full_mesh(specs, link(1_000, kind="normal", spread_ns=500))
        emitted = simulate(specs, wiring, path=path, network=mesh).emitted
        return [result for result in emitted if result[0] == "w"]

    assert choices(extra=False) == choices(extra=True)


def test_a_run_that_does_not_end_is_stopped_by_what_watches_it(path: Path) -> None:
    specs = {"a": spec(Sender, count=10**6, gap_ns=1_000), "b": spec(Recorder)}
    with pytest.raises(TooLongError):
        simulate(specs, {"a": {"out": ("b",)}, "b": {}}, path=path, until_ns=1_000_000)


class Ticking(Actor):
    """Sets a timer again and again, so many times, from the first message on."""

    state = ("ticks",)

    def __init__(self, ticks: int) -> None:
        self.ticks = ticks

    def receive(self, message: Message, context: Context) -> None:
        if self.ticks:
            self.ticks -= 1
            context.set_timer(context.now + 1_000, "tick")


@pytest.mark.parametrize("system", [{}, {"faults": ()}, *RECOVERING])
def test_an_actor_that_sets_timers_for_ever_is_stopped_and_named(
    path: Path, system: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "_IDLE_REPORTS", 3)
    specs = {"a": spec(Sender, count=2, gap_ns=10), "b": spec(Recorder)}
    specs["w"] = spec(Ticking, ticks=2**40)
    wiring = {"a": {"out": ("b", "w")}, "b": {}, "w": {}}
    with pytest.raises(
        ActorError, match=r"^w sets one timer after another for ever: the sources have ended"
    ):
        simulate(specs, wiring, path=path, until_ns=10**9, **system)


@pytest.mark.parametrize("system", [{}, {"faults": ()}, *RECOVERING])
def test_many_timers_before_the_last_message_or_of_a_number_are_not_stopped(
    path: Path, system: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a source waits to go on, or for less than the limit after it has ended."""
    monkeypatch.setattr(kernel, "_IDLE_REPORTS", 3)
    for sends, ticks in ((2, 20_000), (1, 2_000)):
        specs = {"a": spec(Sender, count=sends, gap_ns=30_000_000), "b": spec(Recorder)}
        specs["w"] = spec(Ticking, ticks=ticks)
        wiring = {"a": {"out": ("b", "w")}, "b": {}, "w": {}}
        assert len(simulate(specs, wiring, path=path, **system).emitted) == sends


def test_an_actor_wired_to_itself_is_refused(path: Path) -> None:
    with pytest.raises(NetworkError, match="a is wired to itself: use a timer"):
        simulate({"a": spec(Sender, count=1)}, {"a": {"out": ("a",)}}, path=path)


def test_an_actors_fault_names_the_actor_the_port_and_the_time(path: Path) -> None:
    specs = {"a": spec(Sender, count=1), "w": spec(Worker, port="nowhere")}
    with pytest.raises(
        ActorError, match=r"w failed on a message from a on port 'out' at 0\.001 ms"
    ):
        simulate(specs, {"a": {"out": ("w",)}, "w": {}}, path=path)


def test_a_run_past_the_end_of_virtual_time_is_refused(path: Path) -> None:
    """Its times would not fit into the trace; the sender's timer is for the last moment."""
    specs = {"a": spec(Sender, count=1, gap_ns=2**63 - 1), "b": spec(Recorder)}
    with pytest.raises(NetworkError, match="past the 292 years of virtual time"):
        simulate(specs, {"a": {"out": ("b",)}, "b": {}}, path=path)


# Two actors that answer each other: answers need no room, other messages do.


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
