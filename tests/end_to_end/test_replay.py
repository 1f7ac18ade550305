"""The line that repeats a run, wherever it is printed or stored, repeats it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import joinsim as js
from joinsim._scenario import Scenario
from scenarios.run_directory import POINTS
from tests.end_to_end.conftest import SELF_JOIN, WINDOW, Command

QUERY = SELF_JOIN.format(window=WINDOW)
ONE = """
query = "{query}"
topology = "split_join"
rows = 200
[[streams]]
files = ["{data}"]
"""
STUDY = """
[study]
measure = "throughput_tps"
label = "tuples/s"
axis = {{ label = "PEs", keys = ["pes"], values = [1, 3] }}
[study.variants]
all = {{}}
slow = {{ set = {{ "network.preset" = "wan" }} }}
seeded = {{ set = {{ seed = 7 }} }}
"""
SETTINGS: dict[str, Any] = {
    "pes": 3,
    "rows": None,
    "seed": 4,
    "pairs": True,
    "title": "two words, 'quoted'",
    "feeding.rate_tps": 5_000,
    "feeding.linger": "2 ms",
    "network": {"preset": "rack", "latency": "3 ms", "cores": 2},
    "faults": [{"kind": "loss", "rate": 0.1, "end": "30 ms"}],
    "measured": [0, 250],
    "silence": "5 s",
}
"""Numbers, texts with spaces, a list, tables, and a value that is left out."""

LINGER = ("--set", "feeding.linger=2 ms")

pytestmark = pytest.mark.usefixtures("points_in_turn")

Repeat = Callable[[str], dict[str, Any]]


@pytest.fixture
def repeat(joinsim: Command, tmp_path: Path) -> Repeat:
    """Make the command, or the call, that a line is; return what its ``run.json`` says."""

    def make(line: str) -> dict[str, Any]:
        if line.startswith("joinsim "):
            said = joinsim(*shlex.split(line)[1:], "--out", tmp_path / "again")
            assert said.code == 0, said.err
            return written(tmp_path / "again")
        run = eval(line, {"joinsim": js})
        return written(run.directory)

    return make


@pytest.fixture
def one(prepared: Path, tmp_path: Path) -> str:
    file = tmp_path / "my scenario.toml"
    file.write_text(ONE.format(query=QUERY, data=prepared))
    return str(file)


@pytest.fixture
def study(prepared: Path, tmp_path: Path) -> str:
    file = tmp_path / "my study.toml"
    file.write_text((ONE + STUDY).format(query=QUERY, data=prepared))
    return str(file)


def written(run: Path) -> dict[str, Any]:
    """Return the digest, the configuration and the replay of a run's file."""
    found = json.loads((run / "run.json").read_text())
    # Numbers that are set on the command line are texts until the topology reads them.
    found["configuration"]["parameters"] = found["parameters"]
    return {key: found[key] for key in ("digest", "configuration", "replay")}


def test_a_named_scenario_with_settings(repeat: Repeat, one: str, tmp_path: Path) -> None:
    run = js.scenario(one, scale="smoke").with_settings(SETTINGS).run(out=tmp_path / "first")
    assert isinstance(run, js.Run)
    first, again = written(tmp_path / "first"), repeat(run.replay)
    assert first["replay"] == run.replay
    assert again["configuration"] == first["configuration"]
    assert again["digest"] == first["digest"]


@pytest.mark.parametrize("by", ["library", "command"])
def test_every_point_of_a_study_with_settings(
    by: str, repeat: Repeat, joinsim: Command, study: str, tmp_path: Path
) -> None:
    if by == "library":
        # The axis has other PEs, a variant another seed.
        js.scenario(study).run(
            out=tmp_path / "first", rows=100, repeat=2, faults=SETTINGS["faults"], pes=2
        )
    else:
        options = ("--rows", "100", "--repeat", "2", "--seed", "5", *LINGER)
        assert joinsim("run", study, *options, "--out", "first").code == 0
    points = sorted((tmp_path / "first" / POINTS).iterdir())
    assert len(points) == 12
    for point in points:
        first = written(point)
        again = repeat(first["replay"])
        assert again["configuration"] == first["configuration"], first["replay"]
        assert again["digest"] == first["digest"]


def test_a_point_by_itself(repeat: Repeat, study: str) -> None:
    point = js.scenario(study).with_settings({"repeat": 2, "rows": 90}).point(4)
    run = point.run(feeding={"rate_tps": 9_000})
    assert isinstance(run, js.Run)
    assert run.finished.plan.config.seed == 2
    again = repeat(run.replay)
    assert again["digest"] == run.digest
    assert again["configuration"]["rows"] == 90
    assert again["configuration"]["feeding"]["rate_tps"] == 9_000


def test_a_point_by_itself_whose_seed_is_its_variants_own(
    repeat: Repeat, joinsim: Command, study: str, tmp_path: Path
) -> None:
    assert joinsim("run", study, "--point", 5, "--out", "first").code == 0
    first = written(tmp_path / "first")
    again = repeat(first["replay"])
    assert again["configuration"] == first["configuration"]
    assert again["configuration"]["seed"] == 7


def test_every_system_of_a_comparison(
    repeat: Repeat, joinsim: Command, one: str, prepared: Path, tmp_path: Path
) -> None:
    """Parameters of one system are not passed to another; a query has its files and settings."""
    systems = "split_join,nested_loop"
    js.scenario(one).with_settings({"pes": 2, "network.latency": "3 ms"}).compare(
        systems.split(","), out=tmp_path / "library"
    )
    settings = ("--set", "pes=2", "--set", "network.latency=3 ms", "--rows", "150")
    commands: dict[str, tuple[object, ...]] = {
        "scenario": (one, *settings),
        "file": (one, "--data", prepared, *settings),
        "query": (QUERY, "--data", prepared, *settings),
        "part": ("--query", QUERY, "--data", prepared, "--set", "streams.0.name=s", *settings),
    }
    for name, words in commands.items():
        said = joinsim("compare", *words, "--topologies", systems, "--out", name)
        assert said.code == 0, said.err
    for name in ("library", *commands):
        for system in systems.split(","):
            first = written(tmp_path / name / POINTS / system)
            again = repeat(first["replay"])
            assert again["configuration"] == first["configuration"], first["replay"]
            assert again["digest"] == first["digest"]


def test_what_the_runs_of_a_study_share_on_every_system(
    repeat: Repeat, study: str, tmp_path: Path
) -> None:
    js.scenario(study).with_settings({"rows": 70}).compare(["nested_loop"], out=tmp_path / "first")
    first = written(tmp_path / "first" / POINTS / "nested_loop")
    again = repeat(first["replay"])
    assert again["digest"] == first["digest"]
    assert again["configuration"] == first["configuration"]


def test_a_query_with_times_and_orders_of_arrival(
    joinsim: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of raw files, which Spark would prepare: the configuration alone."""
    ran: list[Scenario] = []
    monkeypatch.setattr(Scenario, "run", lambda scenario, **_: ran.append(scenario))
    query = (
        "SELECT * FROM a, b WHERE a.x = b.x "
        "AND b.t BETWEEN a.t - INTERVAL '1 s' AND a.t + INTERVAL '1 s'"
    )
    words = ["run", "--query", query, "--data", "one file.csv", "--data", "b.csv"]
    joinsim(*words, "--time", "a=epoch(t, 'ms')", "--arrival", "rows", "--set", "bind={ W = 3 }")
    (first,) = ran
    joinsim(*shlex.split(Scenario(first.source, settings=first.settings)._replay())[1:])
    assert ran[1].config == first.config
    assert [stream.time for stream in first.config.streams] == ["epoch(t, 'ms')", None]


def test_a_comparison_whose_query_begins_with_a_comment(joinsim: Command, prepared: Path) -> None:
    options = ("--data", prepared, "--topologies", "split_join", "--set", "seed=3", "--json")
    first = joinsim("compare", *options, "--", f"-- two dashes\n{QUERY}")
    command = shlex.split(first.json["replay"])[1:]
    assert command[-4:-1] == ["--seed", "3", "--"]
    digests = [said.json["systems"][0]["digest"] for said in (first, joinsim(*command))]
    assert digests[0] == digests[1]


def test_a_comparison_of_engines(joinsim: Command, one: str) -> None:
    scenario = js.scenario(one).with_settings({"rows": 80})
    compared = scenario.compare_engines("duckdb", limit_s=60)
    said = joinsim(*shlex.split(compared.replay)[1:], "--json")
    assert said.code == 0, said.err
    assert said.json["tuples"] == compared.summary["tuples"] == 80
    assert [one["engine"] for one in said.json["engines"]] == ["duckdb"]
    assert "--limit 60" in compared.replay


def test_comparisons_of_one_point_of_a_study(study: str) -> None:
    """By a call: the commands that compare have no option for a point."""
    point = js.scenario(study).point(1)
    systems = point.compare(["nested_loop"])
    again = eval(systems.replay, {"joinsim": js})
    assert again.table["digest"] == systems.table["digest"]
    engines = point.compare_engines("duckdb", limit_s=60)
    again = eval(engines.replay, {"joinsim": js})
    assert again.summary["tuples"] == engines.summary["tuples"]
    assert "limit_s=60" in engines.replay


@pytest.mark.parametrize("settings", [{}, {"rows": 120, "feeding.rate_tps": 4_000}])
def test_a_sweep_of_the_library(settings: dict[str, Any], one: str) -> None:
    how: dict[str, Any] = {"over": ["pes=1..4:log:2"], "measures": ["latency_ms.p95"], "seeds": 2}
    first = js.sweep(one, scale="smoke", processes=1, **how, **settings)
    again = eval(first.replay, {"joinsim": js})
    assert again.result.study.base == first.result.study.base
    assert again.result.study.section == first.result.study.section
    assert [p["digest"] for p in again.summary["points"]] == [
        p["digest"] for p in first.summary["points"]
    ]


def test_a_sweep_of_tables() -> None:
    table = {"a": [7 * i % 50 for i in range(90)], "b": [11 * i % 30 for i in range(90)]}
    over = {"topology": ["split_join", "nested_loop"], "network.latency": ["1 ms", "2 ms"]}
    first = js.sweep(QUERY, {"s": table}, over=over, processes=1, pes=2, network={"cores": 2})
    call = first.replay.replace("{'s': ...}", "streams")
    again = eval(call, {"joinsim": js, "streams": {"s": table}})
    assert again.result.study.section == first.result.study.section
    assert [p["digest"] for p in again.summary["points"]] == [
        p["digest"] for p in first.summary["points"]
    ]


def test_an_advice_of_the_library(one: str) -> None:
    how: dict[str, Any] = {
        "goal": ["throughput", "bytes"], "machines": 3, "topologies": ["split_join"], "seeds": 1,
        "engines": "", "prices": {"core_hour": 0.1}, "budget_s": 600.0,
    }  # fmt: skip
    first = js.advise(one, rate_tps=4_000, rows=120, **how)
    table = {"a": [7 * i % 50 for i in range(90)], "b": [11 * i % 30 for i in range(90)]}
    of_tables = js.advise(QUERY, {"s": table}, network="wan", **how)
    for advice in (first, of_tables):
        call = advice.replay.replace("{'s': ...}", "streams")
        again = eval(call, {"joinsim": js, "streams": {"s": table}})
        assert again.best == advice.best
        for key in ("goals", "rate_tps", "rows", "prices", "candidates"):
            assert again.summary[key] == advice.summary[key]
