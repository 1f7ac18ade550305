"""Worlds: drawn from a seed alone, run in memory, found to fail, made small, and replayed."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

import joinsim as js
from actors.results import ResultEpochs
from actors.window_join import RoundRobinRouting
from joins.queries.interval import Interval
from scenarios.verdict.expectation import expected_sums
from scenarios.worlds import Recording, World, WorldStream, fuzzing, read_recording
from scenarios.worlds.drawing import draw_worlds
from scenarios.worlds.fuzzing import fuzz, shrink, try_world
from tests.scenarios.verdict.broken import wrapped
from topologies import TOPOLOGIES

ONCE_FAILED = Path(__file__).parent / "once_failed"
STREAM = WorldStream([0, 1, 1, 4], [0.5, -0.0, 1e300, 0.1], [1, -2, 3, 4])
WORLD = World(
    topology="split_join",
    query="SELECT * FROM R, S WHERE R.y < S.y AND R.x != S.x WINDOW AS (SLIDE INTERVAL '2' ON '4')",
    streams=(STREAM, STREAM),
    parameters={"pes": 3},
    network={"preset": "wan", "latency": 70, "cores": 2},
    feeding={"batch_rows": 2},
    segment_rows=3,
    seed=7,
)


@pytest.fixture
def stored_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break what stores each tuple at one PE: pairs are found once at each."""

    def at_every_pe(original: Any, self: Any, *args: Any) -> Any:
        places = original(self, *args)
        return replace(places, group=places.group * 0, group_of=places.group_of * 0)

    wrapped(RoundRobinRouting, "stored_at", at_every_pe)(monkeypatch)


def test_a_seed_has_the_same_worlds_each_time_and_others_than_the_next() -> None:
    for topology in TOPOLOGIES.values():
        worlds = list(draw_worlds(topology, 3, seed=5))
        assert worlds == list(draw_worlds(topology, 3, seed=5))
        assert worlds != list(draw_worlds(topology, 3, seed=6))


def test_a_world_in_a_file_is_the_same_world_with_the_same_digest(tmp_path: Path) -> None:
    """In memory or in segments of any length, whose tuples are the same."""
    trial = try_world(WORLD)
    assert trial.failure is None
    assert trial.expected > 0
    file = tmp_path / "world.json"
    file.write_text(str(trial))
    written = {name: getattr(trial, name) for name in ("world", "digest", "failure")}
    assert read_recording(file) == Recording(**written)
    replayed = js.replay(file)
    assert replayed.same
    for rows in (None, 1):
        assert try_world(replace(WORLD, segment_rows=rows)).digest == trial.digest


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ("", "is not JSON: EOF while parsing a value at line 1 column 0"),
        ("[]", "should be"),
        ('{"world": {}, "digest": 3}', "world.topology: is missing"),
        ('{"world": {"topology": "x", "query": "", "stream": 1}}', "did you mean 'streams'"),
        ('{"world": {"topology": "nest", "query": "", "streams": []}}', "no topology is called"),
        (str(Recording(world=WORLD)).replace('"pes":3', '"pess":3'), "there is no such key"),
        (str(Recording(world=WORLD)).replace("wan", "van"), "network.preset = 'van'"),
        (str(Recording(world=WORLD)).replace("[0,1,1,4]", "[0,1,0,4]"), "must not run backwards"),
        (str(Recording(world=WORLD)).replace("[1,-2,3,4]", "[1]"), "one value for each tuple"),
        (str(Recording(world=WORLD)).replace("R.y", "R.z"), "z"),
    ],
)
def test_a_file_that_is_no_world_is_refused_by_what_is_wrong(
    values: str, says: str, tmp_path: Path
) -> None:
    (tmp_path / "world.json").write_text(values)
    with pytest.raises(js.JoinsimError, match=says):
        js.replay(tmp_path / "world.json")


@pytest.mark.parametrize("file", sorted(ONCE_FAILED.glob("*.json")), ids=lambda file: file.stem)
def test_a_world_that_once_failed_no_longer_does(file: Path) -> None:
    assert read_recording(file).failure
    assert js.replay(file).trial.failure is None


def test_a_folder_that_cannot_be_made_is_refused_before_any_world_runs(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for out in ("file", "file/worlds"):
        with pytest.raises(js.OutputError, match=f"cannot write to .*{out}: Not a directory"):
            js.fuzz(10**9, out=tmp_path / out)


@pytest.mark.usefixtures("stored_everywhere")
def test_a_world_that_fails_is_found_made_small_and_replayed(tmp_path: Path) -> None:
    """One tuple of each stream is enough, and nothing else that a world may have."""
    fuzzed = fuzz(4, topologies=["split_join"], out=tmp_path)
    assert fuzzed.worlds == fuzzed.coverage.total() == 4
    assert len(fuzzed.failures) == len(fuzzed.files) > 1
    smallest = min((one.world for one in fuzzed.failures), key=lambda world: world.tuples)
    assert smallest.tuples == 2
    assert not smallest.network
    for file, trial in zip(fuzzed.files, fuzzed.failures, strict=True):
        replayed = js.replay(file)
        assert replayed.same
        assert replayed.trial.failure == trial.failure is not None


def test_worlds_do_not_depend_on_how_many_processes_run_them(tmp_path: Path) -> None:
    one, two = (js.fuzz(10, topologies=["nested_loop"], processes=n, out=tmp_path) for n in (1, 2))
    assert one.summary == two.summary
    assert one.failures == []
    assert not list(tmp_path.iterdir())


FAULTS: list[dict[str, Any]] = [
    {"kind": "loss", "rate": 0.3},
    {"kind": "duplicate", "rate": 0.3},
    {"kind": "reorder", "rate": 0.3, "delay": 9_000_000},
    {"kind": "pause", "start": 0, "end": 30_000_000},
    {"kind": "skew", "offset": 5_000},
]


def test_a_world_with_faults_is_exact_and_counts_them() -> None:
    """Over a transport that sends again; the digest is another one than without faults."""
    trial = try_world(replace(WORLD, faults=FAULTS))
    assert trial.failure is None
    assert trial.expected > 0
    assert set(trial.happened) == {fault["kind"] for fault in FAULTS}
    assert trial.digest not in (None, try_world(WORLD).digest)


def test_of_a_world_that_loses_messages_no_more_is_asked_than_it_promises(tmp_path: Path) -> None:
    """Pairs are missing, which is no failure; pairs that do not satisfy the query would be one."""
    network = WORLD.network | {"transport": "none"}
    lossy = replace(WORLD, faults=[{"kind": "loss", "rate": 0.9}], network=network)
    report = lossy.run(tmp_path)
    assert report.verdict.missing > 0
    assert fuzzing.failure_of(report) is not None
    assert fuzzing.failure_of(report, lossy=True) is None
    report.verdict.wrong = 1
    assert fuzzing.failure_of(report, lossy=True) == "spurious: 1 pair does not satisfy the query"
    assert try_world(lossy).failure is None


CRASHES: list[dict[str, Any]] = [
    {"kind": "crash", "actor": "joiner.1*", "start": 3_100_000, "end": 3_600_000},
    {"kind": "crash", "site": "source*", "start": 1_200_000, "end": 1_300_000},
]


def crashing(guarantee: str) -> World:
    recovery = {"guarantee": guarantee, "interval": 700_000}
    feeding = {"batch_rows": 1, "rate_tps": 1_000}
    query = WORLD.query.replace("R.y < S.y AND ", "")
    return replace(
        WORLD, faults=CRASHES, recovery=recovery, feeding=feeding, query=query, network={}
    )


def test_a_world_with_crashes_is_exact_and_replayed_to_the_same_digest(tmp_path: Path) -> None:
    trial = try_world(crashing("exactly_once"))
    assert trial.failure is None
    assert trial.expected > 0
    assert trial.happened["crash"] >= 2
    assert trial.happened["restart"] == 2
    assert trial.happened["snapshot"] > 0
    (tmp_path / "world.json").write_text(str(trial))
    assert js.replay(tmp_path / "world.json").same


def test_of_a_world_with_a_weaker_guarantee_no_more_is_asked_than_it_promises(
    tmp_path: Path,
) -> None:
    """At least once: no pair is missing, and some come twice; none: no pair is made up."""
    again = crashing("at_least_once").run(tmp_path)
    assert again.verdict.duplicate > 0
    assert fuzzing.failure_of(again) is None
    again.verdict.checks[-1] = replace(again.verdict.checks[-1], passed=False)
    assert (fuzzing.failure_of(again) or "").startswith("recovery: ")
    lossy = crashing("none")
    assert lossy.lossy
    assert lossy.run(tmp_path).verdict.missing > 0
    assert try_world(lossy).failure is None


def test_tuples_that_come_again_and_are_late_then_excuse_no_pair_outside_of_the_interval(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = read_recording(ONCE_FAILED / "joined-and-then-late.json").world

    def wider(original: Any, self: Any, *args: Any) -> Any:
        lower, upper = original(self, *args)
        return lower, upper + 1

    wrapped(Interval, "offsets", wider)(monkeypatch)
    failure = try_world(world).failure or ""
    assert failure.startswith("recovery: ")
    assert " 0 spurious" not in failure


def test_a_failing_world_keeps_the_crash_that_it_needs_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Results since the last snapshot are not taken back."""
    monkeypatch.setattr(ResultEpochs, "discard", lambda epochs, epoch: None)
    monkeypatch.setattr(fuzzing, "shrink", partial(shrink, tries=60))
    trial = try_world(crashing("exactly_once"))
    assert trial.failure is not None
    smallest = fuzzing.shrink_trial(trial)
    assert smallest.kind == trial.kind
    assert [fault["kind"] for fault in smallest.world.faults] == ["crash"]
    assert smallest.world.tuples < crashing("exactly_once").tuples
    assert try_world(smallest.world).digest == smallest.digest


def test_drawn_worlds_have_every_kind_of_fault_and_some_have_none() -> None:
    worlds = [fuzzing.world_number(number, 1, ["nested_loop"]) for number in range(100)]
    guarantees = {world.recovery.get("guarantee") for world in worlds}
    assert guarantees == {"exactly_once", "at_least_once", "none", None}
    kinds = {fault["kind"] for world in worlds for fault in world.faults}
    links = {"loss", "duplicate", "reorder", "delay", "partition", "bandwidth"}
    assert kinds == links | {"pause", "slow", "skew", "stall", "crash"}
    assert {world.lossy for world in worlds} == {True, False}
    assert any(not world.faults for world in worlds)


def test_drawn_worlds_set_what_a_person_may_set() -> None:
    """Plans of semijoins and what they keep, how messages fill, and values at the ends of int64."""
    semijoins = [fuzzing.world_number(number, 1, ["semijoin"]) for number in range(150)]
    plans = [world.parameters.get("plan", "") for world in semijoins]
    assert {plan[:1] for plan in plans} >= {"", "R", "("}
    assert any(plan.count("(") > 1 for plan in plans)
    assert any("BLOOM" in plan for plan in plans)
    assert any("kept" in world.parameters for world in semijoins)
    worlds = [fuzzing.world_number(number, 1, ["nested_loop"]) for number in range(150)]
    keys = {key for world in worlds for key in world.feeding}
    assert keys >= {"batch_rows", "linger", "rate_tps", "watermarks"}
    assert any("batch_rows" not in world.feeding for world in worlds)
    assert any(len(stream.ts) >= 150 for world in worlds for stream in world.streams)
    for values in ("ts", "y"):
        every = [x for world in worlds for one in world.streams for x in getattr(one, values)]
        assert min(every) <= -(2**62)
        assert max(every) >= 2**62


def test_few_drawn_worlds_expect_no_pair_and_a_few_do(tmp_path: Path) -> None:
    """Late tuples aside; streams are empty now and then."""
    worlds = [fuzzing.world_number(number, 1, list(TOPOLOGIES)) for number in range(420)]
    expected = []
    for world in worlds:
        plan = replace(world, segment_rows=None).plan(tmp_path)
        sums = expected_sums(plan.query, plan.files, threads=lambda: 1)
        expected.append(sum(int(matches.count.sum()) for matches in sums))
    assert 0.02 < expected.count(0) / len(worlds) < 0.12
    assert any(not stream.ts for world in worlds for stream in world.streams)


def test_a_run_that_does_not_end_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "_REPORTS_MAX", 0)
    assert try_world(WORLD).kind == "EndlessRunError"


def test_shrinking_ends_where_nothing_can_be_left_out_and_after_so_many_tries() -> None:
    fails = Mock(side_effect=lambda world: len(world.streams[0].ts) >= 2)
    smallest = shrink(WORLD, fails)
    assert smallest == World(
        topology="split_join",
        query=smallest.query,
        streams=(WorldStream([1, 4], [0.0, 0.0], [0, 0]), WorldStream([], [], [])),
        seed=7,
    )
    assert smallest.query.count("!=") + smallest.query.count("y <") == 1
    assert fails.call_count < 100
    never = Mock(return_value=False)
    assert shrink(WORLD, never, tries=5) == WORLD
    assert never.call_count == 5


@pytest.mark.parametrize("keys", [{"worlds": 0}, {"processes": 0}, {"seed": -1}, {"seed": 2**32}])
def test_what_cannot_be_run_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(js.ConfigError, match=rf"{next(iter(keys))} = .*(: pass|is allowed)"):
        js.fuzz(**keys)
