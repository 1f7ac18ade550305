"""``joinsim compare --engines`` and ``joinsim calibrate``, from a person's side."""

from __future__ import annotations

import json
import re
import time
from html import unescape
from multiprocessing import resource_tracker
from pathlib import Path

import psutil
import pytest

from scenarios.engines.comparison import ENGINES
from scenarios.engines.flink_engine import PYTHON_VARIABLE
from scenarios.subprocesses import run_alone
from spark_bridge.engines import EngineFailed, EngineResult, Totals
from tests.end_to_end.conftest import SELF_JOIN, WINDOW, Command

QUERY = SELF_JOIN.format(window=WINDOW)


class Broken:
    """An engine that is there, and fails or finds something else."""

    install = "not at all"

    def __init__(self, outcome: Totals | BaseException, name: str = "broken") -> None:
        self.outcome, self.name = outcome, name

    def version(self) -> str | None:
        return "1.0"

    def cannot(self, plan: object) -> str | None:
        return None

    def run(self, plan: object, directory: Path) -> EngineResult:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return EngineResult(totals=self.outcome, start_seconds=0.5, wall_seconds=1.0)


class Endless(Broken):
    """An engine whose process does not end."""

    def run(self, plan: object, directory: Path) -> EngineResult:
        run_alone(time.sleep, 1000)
        raise AssertionError("it ended")


def test_engines_find_the_same_pairs_and_refusals_are_named(
    joinsim: Command, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PYTHON_VARIABLE, "/nowhere/python")
    names = "inline,duckdb,polars,flink"
    said = joinsim("compare", QUERY, "--data", prepared, "--engines", names, "--out", "o", "--json")
    assert said.code == 0, said.err
    answer = said.json
    assert {one["engine"] for one in answer["engines"]} == {"inline", "duckdb", "polars"}
    for one in answer["engines"]:
        assert one["equal"]
        assert (one["pairs"], one["checksum"]) == tuple(answer["expected"].values())
        assert one["throughput_tps"] == pytest.approx(300 / one["wall_seconds"])
        assert one["start_seconds"] > 0
        assert one["memory_bytes"] > 10_000_000
    assert answer["expected"]["pairs"] > 0
    assert [one["engine"] for one in answer["refused"]] == ["flink"]
    assert json.loads((tmp_path / "o" / "compare.json").read_text()) == answer
    page = (tmp_path / "o" / "compare.html").read_text()
    assert all(name in page for name in names.split(","))
    assert answer["refused"][0]["reason"] in unescape(page)


def test_ray_and_spark_find_the_same_pairs(
    joinsim: Command, prepared: Path, ray_running: None, spark: object
) -> None:
    names = "ray,spark,native-spark"
    said = joinsim(
        "compare", QUERY, "--data", prepared, "--engines", names, "--out", "o", "--json",
        "--set", "pairs=true",
    )  # fmt: skip
    assert said.code == 0, said.err
    engines = {one["engine"]: one for one in said.json["engines"]}
    assert set(engines) == set(names.split(","))
    assert all(one["equal"] for one in engines.values())
    assert "without equality predicate is not supported" in engines["native-spark"]["note"]
    assert engines["ray"]["latency_ms"]["p50"] > 0


def test_batch_joins_of_spark_ship_tuples_as_wide_as_the_plan_says(
    joinsim: Command, spark: object
) -> None:
    names = "spark-full,spark-semijoin,spark-bloom"
    said = joinsim("compare", "semijoin-fig07", "--scale", "smoke", "--engines", names, "--json")
    assert said.code == 0, said.err
    assert said.json["expected"]["pairs"] > 0
    assert {one["engine"] for one in said.json["engines"]} == set(names.split(","))
    for one in said.json["engines"]:
        assert one["equal"]
        assert one["shuffled_bytes"] > said.json["tuples"] * 1_000, "each tuple meets one it joins"
        assert "tuples have 1,218 and 1,218 further bytes" in one["note"]


def test_a_query_that_partial_tuples_cannot_reduce_is_refused(
    joinsim: Command, prepared: Path
) -> None:
    said = joinsim("compare", QUERY, "--data", prepared, "--engines", "spark-bloom,inline")
    assert said.code == 0
    assert "spark-bloom  cannot: tuples of two streams reduce each other; here are 1" in said.out


def test_an_engine_that_finds_something_else_fails_the_comparison(
    joinsim: Command, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENGINES, "broken", Broken(Totals(1, 2)))
    said = joinsim("compare", QUERY, "--data", prepared, "--engines", "inline,broken")
    assert said.code == 1
    assert "DIFFERS" in said.out


def test_an_engine_that_fails_loses_no_other(
    joinsim: Command, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENGINES, "broken", Broken(EngineFailed("out of paper")))
    names = "broken,inline"
    said = joinsim("compare", QUERY, "--data", prepared, "--engines", names, "--out", "o")
    assert said.code == 3
    assert "failed: out of paper" in said.out
    assert "out of paper" in (tmp_path / "o" / "compare.html").read_text()
    assert "all pairs equal: PASS" in said.out


def test_an_engine_that_takes_too_long_is_stopped_and_the_others_go_on(
    joinsim: Command, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENGINES, "endless", Endless(Totals(), "endless"))
    resource_tracker.ensure_running()  # multiprocessing's own process stays
    before = psutil.Process().children()
    monkeypatch.setitem(ENGINES, "quick", Broken(Totals(1, 2), "quick"))
    said = joinsim(
        "compare", QUERY, "--data", prepared, "--engines", "endless,quick", "--limit", 1,
        "--out", "o",
    )  # fmt: skip
    assert said.code == 3
    assert "failed: stopped: it had not ended after 1 s" in said.out
    left = [child for child in psutil.Process().children() if child not in before]
    assert not left, "its process is stopped"
    answer = json.loads((tmp_path / "o" / "compare.json").read_text())
    assert [one["engine"] for one in answer["engines"]] == ["quick"]
    assert [one["engine"] for one in answer["failed"]] == ["endless"]


def test_ctrl_c_loses_no_engine_that_has_run(
    joinsim: Command, prepared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(ENGINES, "quick", Broken(Totals(1, 2), "quick"))
    monkeypatch.setitem(ENGINES, "broken", Broken(KeyboardInterrupt()))
    names = "quick,broken,duckdb"
    said = joinsim("compare", QUERY, "--data", prepared, "--engines", names, "--out", "o")
    assert said.code == 3
    assert said.err.rstrip().endswith("joinsim: stopped")
    assert "all pairs equal: FAIL" in said.out
    answer = json.loads((tmp_path / "o" / "compare.json").read_text())
    assert [one["engine"] for one in answer["engines"]] == ["quick"]
    assert answer["not_run"] == ["broken", "duckdb"]
    assert "not run" in (tmp_path / "o" / "compare.html").read_text()
    assert not (tmp_path / "o" / "points").exists()


def test_an_engine_that_is_missing_says_how_to_get_it(
    joinsim: Command, prepared: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ENGINES["duckdb"], "version", lambda: None)
    said = joinsim("compare", QUERY, "--data", prepared, "--engines", "duckdb,inline")
    assert said.code == 0
    assert "duckdb  cannot: it is not installed: pip install 'joinsim[engines]'" in said.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--engines", "duckbd"], "no engine is called 'duckbd': did you mean 'duckdb'?"),
        (["--engines", " ,"], "name some of inline, ray"),
        (["--engines", "inline", "--topologies", "spo_join,bchj"], "run one topology"),
        (["--limit", 60], "--limit 60: it is for --engines"),
        (["--engines", "duckdb", "--backend", "ray"], "--backend ray: with --engines"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    joinsim: Command, prepared: Path, arguments: list[str], message: str
) -> None:
    said = joinsim("compare", QUERY, "--data", prepared, *arguments)
    assert said.code == 3
    assert message in said.err


def test_tuples_that_may_be_late_are_not_compared(joinsim: Command) -> None:
    said = joinsim(
        "compare", "oij-w1", "--scale", "smoke", "--rows", 500, "--engines", "inline",
        "--set", "feeding.disorder=20 ms",
    )  # fmt: skip
    assert said.code == 3
    assert "engines are compared on ordered streams" in said.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--topologies", "split_jion"], "did you mean 'split_join'?"),
        (["--profile", "nothing.toml"], "profile: no cost profile 'nothing.toml'"),
        (["--out", "nowhere/c.toml"], "there is no folder nowhere"),
        (["--out", "calibrated"], "out = calibrated: a profile is a TOML file"),
    ],
)
def test_what_cannot_be_calibrated_is_refused(
    joinsim: Command, arguments: list[object], message: str
) -> None:
    said = joinsim("calibrate", *arguments)
    assert said.code == 3
    assert message in said.err


def test_large_costs_of_a_profile_have_no_exponent(joinsim: Command) -> None:
    said = joinsim("calibrate", "--no-live", "--passes", 0)
    assert said.code == 0, said.err
    assert re.search(r"message +20,000 +20,000", said.out)


def test_a_profile_is_measured_and_held_against_live_runs(
    joinsim: Command, ray_running: None, spark: object
) -> None:
    options = ("--topologies", "hash_join", "--rows", 1000, "--passes", 0, "--validate", "--json")
    said = joinsim("calibrate", *options)
    assert said.code == 0, said.err
    answer = said.json
    assert answer["profile"]["comparison_ps"] >= 0
    # The first of the three loads thrice, for one run may have met a neighbour.
    assert re.match("# Measured .*, with 5 live runs", Path(answer["path"]).read_text())
    (one,) = answer["predictions"]
    assert (one["topology"], one["query"], one["exact"]) == ("hash_join", "equality", True)
    error = one["predicted_tps"] / one["measured_tps"] - 1
    assert one["throughput_error"] == pytest.approx(error)
    assert answer["median_throughput_error"] == pytest.approx(abs(error))
