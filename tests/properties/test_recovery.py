"""Actors crash at the worst moments, and every system recovers to the right answer."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import joinsim as js
from actors.hosting.inline import InlineHost
from actors.protocol import ActorError
from actors.results import ResultEpochs
from actors.source import Source
from joins.queries.parser import parse_query
from netsim.kernel import Letter, Node
from netsim.outcome import Outcome
from netsim.recovering_kernel import RecoveringKernel
from tests.actors.meshes import Mortal, use_threads
from topologies import TOPOLOGIES

ROWS = 300
NETWORK = {"preset": "rack", "jitter": "1 ms", "inbox_messages": 3}
"""Few messages fit into an inbox, and latencies differ: many are under way when a cut is made."""


def run(topology: str, seed: int, **settings: Any) -> js.Run:
    """Run a topology's example, its window shortened, over dense random tables."""
    query = re.sub("SELECT .* FROM", "SELECT * FROM", TOPOLOGIES[topology].example_query)
    for long, short in {"'1048576'": "'90'", "'16000'": "'90'", "'1000'": "'30'"}.items():
        query = query.replace(long, short)
    query = query.replace("60 min", "40 ns").replace("100 ms", "20 ns")
    rng = np.random.default_rng([seed, 22])
    parsed = parse_query(query)
    tables = {
        name: {"ts": np.cumsum(rng.integers(0, 3, ROWS))}
        | {field: rng.integers(0, 30, ROWS) for field in parsed.fields(place) if field != "ts"}
        for place, name in enumerate(parsed.streams)
    }
    if topology == "semijoin":
        settings["tau"] = "1 ms"
    feeding = {"batch_rows": 10, "rate_tps": 50_000}
    return js.run(
        query, tables, topology=topology, network=NETWORK, feeding=feeding, seed=seed, **settings
    )


def crashing(
    topology: str,
    seed: int,
    guarantee: str = "exactly_once",
    others: Sequence[dict[str, Any]] = (),
    **settings: Any,
) -> js.Run:
    """Do the same with random actors that crash at random moments, and *others* of the faults."""
    rng = np.random.default_rng([seed, 23])
    system = TOPOLOGIES[topology]
    actors = list(system.build(system.example(), system.parameters_type()))
    faults = list(others)
    for start in rng.integers(0, 15_000_000, 3).tolist():
        end = start + int(rng.integers(10_000, 3_000_000))
        actor = actors[int(rng.integers(len(actors)))]
        faults.append({"kind": "crash", "actor": actor, "start": start, "end": end})
    recovery = {"interval": int(rng.integers(1_000_000, 4_000_000)), "guarantee": guarantee}
    return run(topology, seed, faults=faults, recovery=recovery, **settings)


@pytest.mark.parametrize("topology", list(TOPOLOGIES))
def test_every_system_is_exact_after_crashes(topology: str) -> None:
    crashes = snapshots = dropped = 0
    for seed in range(2):
        crashed = crashing(topology, seed)
        assert crashed.verdict.exact, crashed.verdict
        assert crashed.verdict.passed, crashed.verdict.checks
        outcome = crashed.finished.outcome
        assert outcome.in_flight == 0
        assert outcome.tuples == ROWS * len(crashed.streams)
        assert outcome.recovered
        crashes += outcome.recovered.crashes
        snapshots += outcome.recovered.snapshots
        dropped += outcome.lost
    assert crashes > 3
    assert snapshots > 2
    assert dropped > 0


def test_a_run_with_crashes_repeats() -> None:
    assert crashing("spo_join", 1).digest == crashing("spo_join", 1).digest


@pytest.mark.parametrize("guarantee", ["exactly_once", "none"])
@pytest.mark.parametrize("topology", ["spo_join", "kp_oij"])
def test_a_run_with_crashes_is_the_same_in_other_processes(
    topology: str, guarantee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a crash interrupts a service, whose core another actor of its site waits for.

    Without snapshots some actors fail for want of what was lost: SPO-Join's predicate PEs with
    seeds 2 and 3.
    """
    use_threads(monkeypatch)
    for seed in range(2 if guarantee == "exactly_once" else 4):
        inline = crashing(topology, seed, guarantee).finished
        elsewhere = crashing(topology, seed, guarantee, backend="ray", processes=3).finished
        assert elsewhere.outcome == inline.outcome
        assert elsewhere.verdict == inline.verdict


@pytest.mark.parametrize("guarantee", ["exactly_once", "none"])
@pytest.mark.parametrize("topology", ["spo_join", "kp_oij"])
def test_a_run_with_crashes_is_the_same_when_processes_are_lost(
    topology: str, guarantee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    inline = crashing(topology, 1, guarantee).finished
    kills = [(200, 1), (300, 0), (20, 2)]
    use_threads(monkeypatch, kills)
    restarts = count_restarts(monkeypatch)
    elsewhere = crashing(topology, 1, guarantee, backend="ray", processes=3).finished
    assert elsewhere.outcome == inline.outcome
    assert elsewhere.verdict == inline.verdict
    assert restarts == [1, 2, 3]


def count_restarts(patch: pytest.MonkeyPatch) -> list[int]:
    """Return the list to which each host that replaces a lost one is added by its number."""
    restarts: list[int] = []
    restart = Mortal.restart

    def counted(processes: Mortal) -> None:
        restarts.append(len(restarts) + 1)
        restart(processes)

    patch.setattr(Mortal, "restart", counted)
    return restarts


@pytest.mark.parametrize("topology", ["kp_oij", "low_latency_handshake_join"])
def test_crashes_amid_all_other_faults_are_recovered_from(topology: str) -> None:
    spans = {"end": "1 ms", "every": "4 ms"}
    rate = {"rate": 0.2}
    others: list[dict[str, Any]] = [
        {"kind": "loss", **rate, **spans},
        {"kind": "duplicate", **rate, **spans},
        {"kind": "reorder", **rate, **spans, "delay": "300 us"},
        {"kind": "partition", **spans},
        {"kind": "pause", **spans},
        {"kind": "stall", **spans},
    ]
    crashed = crashing(topology, 1, others=others)
    assert crashed.verdict.passed, crashed.verdict.checks
    assert crashed.finished.outcome.in_flight == 0
    assert crashed.digest == crashing(topology, 1, others=others).digest


def test_a_site_crashes_with_all_actors_on_it() -> None:
    fault = {"kind": "crash", "site": "joiner.*", "start": "5 ms", "end": "6 ms"}
    crashed = run("split_join", 1, faults=[fault], recovery={"interval": "2 ms"}, pes=3)
    recovered = crashed.finished.outcome.recovered
    assert recovered
    assert recovered.crashes == 6, "three joiners, each with a sink of its own"
    assert recovered.restarts == 1
    assert crashed.verdict.exact


def test_at_least_once_repeats_results_and_loses_none() -> None:
    verdicts = [crashing("split_join", seed, "at_least_once").verdict for seed in range(4)]
    assert sum(verdict.duplicate for verdict in verdicts) > 0
    assert not any(verdict.missing or verdict.spurious for verdict in verdicts)
    assert all(verdict.passed for verdict in verdicts), "that is what it promises"


def test_without_snapshots_results_are_missing() -> None:
    verdicts = [crashing("split_join", seed, "none").verdict for seed in range(4)]
    assert sum(verdict.missing for verdict in verdicts) > 0
    assert not any(verdict.passed is False for verdict in verdicts), "it promises nothing"


def test_results_wait_for_their_commit() -> None:
    """Exactly once has its price: latency of up to an interval, and that of a snapshot."""
    recovery = {"interval": "4 ms"}
    at_once = run("split_join", 1, recovery=recovery | {"guarantee": "at_least_once"})
    committed = run("split_join", 1, recovery=recovery)
    assert committed.digest == at_once.digest
    waited = committed.summary["latency_ms"]["p50"] - at_once.summary["latency_ms"]["p50"]
    assert 1 < waited < 8


def test_snapshots_cost_service_time_and_bytes() -> None:
    def outcome(storage: str) -> Outcome:
        recovery = {"interval": "4 ms", "storage": storage}
        return run("split_join", 1, recovery=recovery).finished.outcome

    plain = run("split_join", 1).finished.outcome
    fast, slow = outcome("8 Gbps"), outcome("8 Mbps")
    assert fast.recovered
    assert fast.recovered.snapshots > 1
    assert plain.nbytes < fast.nbytes
    assert plain.messages == fast.messages
    assert fast.virtual_ns < slow.virtual_ns


def test_a_run_ends_although_markers_wake_the_transport() -> None:
    """Its timeouts outlast an interval, and are no reason for another snapshot."""
    fault = {"kind": "duplicate", "rate": 0.1, "end": "1 ms"}
    ended = run("split_join", 1, faults=[fault], recovery={"interval": "100 us"})
    assert ended.verdict.exact
    assert ended.finished.outcome.virtual_ns < 100_000_000


def test_actors_that_crash_too_often_end_the_run_with_a_message() -> None:
    fault = {"kind": "crash", "actor": "source", "start": "1 ms", "end": "3 ms", "every": "2200 us"}
    with pytest.raises(js.NetworkError, match="take snapshots more often"):
        run("split_join", 1, faults=[fault], recovery={"interval": "4 ms"})


# Recovery with a fault of its own: each must show in a verdict.


def results_left_at_the_end_are_lost(patch: pytest.MonkeyPatch) -> None:
    commit = ResultEpochs.commit

    def flawed(epochs: ResultEpochs, epoch: int | None, now: int) -> None:
        if epoch is not None:
            commit(epochs, epoch, now)

    patch.setattr(ResultEpochs, "commit", flawed)


def results_behind_the_snapshot_are_committed_too(patch: pytest.MonkeyPatch) -> None:
    commit = ResultEpochs.commit

    def flawed(epochs: ResultEpochs, epoch: int | None, now: int) -> None:
        commit(epochs, None if epoch is None else epoch + 1, now)

    patch.setattr(ResultEpochs, "commit", flawed)


def results_come_twice_and_the_sink_does_not_know_them(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ResultEpochs, "discard", lambda epochs, epoch: None)


def results_have_the_epoch_of_the_latest_snapshot(patch: pytest.MonkeyPatch) -> None:
    def flawed(kernel: RecoveringKernel, results: list[Any]) -> None:
        epoch = kernel._last.epoch + (kernel._taking is not None)
        kernel.results.add(epoch, results, kernel._gathering[1])

    patch.setattr(RecoveringKernel, "_gather", flawed)


def messages_under_way_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(RecoveringKernel, "_log", lambda kernel, letter: None)


def messages_under_way_are_stored_twice(patch: pytest.MonkeyPatch) -> None:
    log = RecoveringKernel._log

    def flawed(kernel: RecoveringKernel, letter: Letter) -> None:
        log(kernel, letter)
        log(kernel, letter)

    patch.setattr(RecoveringKernel, "_log", flawed)


def markers_overtake(patch: pytest.MonkeyPatch) -> None:
    """Send them at the cut, before what the messages ahead of it lead to."""
    store, send_markers = RecoveringKernel._store, RecoveringKernel._send_markers

    def flawed(kernel: RecoveringKernel, node: Node, now: int) -> None:
        store(kernel, node, now)
        send_markers(kernel, node, now)

    patch.setattr(RecoveringKernel, "_store", flawed)
    patch.setattr(RecoveringKernel, "_send_markers", lambda kernel, node, now: None)


def messages_have_the_epoch_of_the_state_when_they_leave(patch: pytest.MonkeyPatch) -> None:
    post = RecoveringKernel._post

    def flawed(kernel: RecoveringKernel, letter: Letter, now: int) -> None:
        part = kernel._parts[letter.sender.rank]
        part.sends = part.epoch
        post(kernel, letter, now)

    patch.setattr(RecoveringKernel, "_post", flawed)


def states_are_stored_when_the_service_is_done(patch: pytest.MonkeyPatch) -> None:
    send_markers = RecoveringKernel._send_markers

    def flawed(kernel: RecoveringKernel, node: Node, now: int) -> None:
        kernel._snapshot.states[node.name] = kernel.host.snapshot(node.name)
        send_markers(kernel, node, now)

    patch.setattr(RecoveringKernel, "_send_markers", flawed)


def timers_are_forgotten(patch: pytest.MonkeyPatch) -> None:
    roll_back = RecoveringKernel._roll_back

    def flawed(kernel: RecoveringKernel, now: int) -> None:
        kernel._last.timers.clear()
        roll_back(kernel, now)

    patch.setattr(RecoveringKernel, "_roll_back", flawed)


def messages_from_before_the_crash_survive_it(patch: pytest.MonkeyPatch) -> None:
    roll_back = RecoveringKernel._roll_back

    def flawed(kernel: RecoveringKernel, now: int) -> None:
        old = [letter for node in kernel._nodes.values() for letter in node.waiting]
        roll_back(kernel, now)
        for letter in old:
            letter.epoch = kernel._last.epoch
            kernel._at(now, kernel._arrive, letter)

    patch.setattr(RecoveringKernel, "_roll_back", flawed)


def sources_replay_from_one_message_too_late(patch: pytest.MonkeyPatch) -> None:
    restore = InlineHost.restore

    def flawed(host: InlineHost, actor: str, state: np.ndarray | None) -> None:
        restore(host, actor, state)
        source = host.cells[actor].actor
        if isinstance(source, Source) and source._next is not None:
            source._next = source._take(host.cells[actor].now)

    patch.setattr(InlineHost, "restore", flawed)


def sources_alone_are_restored(patch: pytest.MonkeyPatch) -> None:
    restore = InlineHost.restore

    def flawed(host: InlineHost, actor: str, state: np.ndarray | None) -> None:
        if isinstance(host.cells[actor].actor, Source):
            restore(host, actor, state)

    patch.setattr(InlineHost, "restore", flawed)


MUTANTS: list[Callable[[pytest.MonkeyPatch], None]] = [
    results_left_at_the_end_are_lost,
    results_behind_the_snapshot_are_committed_too,
    results_come_twice_and_the_sink_does_not_know_them,
    results_have_the_epoch_of_the_latest_snapshot,
    messages_under_way_are_forgotten,
    messages_under_way_are_stored_twice,
    markers_overtake,
    messages_have_the_epoch_of_the_state_when_they_leave,
    states_are_stored_when_the_service_is_done,
    timers_are_forgotten,
    messages_from_before_the_crash_survive_it,
    sources_replay_from_one_message_too_late,
    sources_alone_are_restored,
]


def passes(topology: str, seed: int) -> bool:
    """Whether a run with crashes has the right results, and no actor gets what cannot be."""
    try:
        return bool(crashing(topology, seed).verdict.passed)
    except ActorError:
        return False


WORLDS = [(topology, seed) for seed in range(3) for topology in ("kp_oij", "handshake_join")]
"""Of systems in which actors receive from several others, or send to each other."""


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_fault_in_recovery_shows(
    mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutant(monkeypatch)
    assert not all(passes(*world) for world in WORLDS)


def test_recovery_passes_where_mutants_fail() -> None:
    assert all(passes(*world) for world in WORLDS)
