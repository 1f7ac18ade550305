"""An advice: who wins and why, what would change it, what it costs, and how to run it.

Statistics of data stand beside data whose rates, skew, disorder and selectivity are known.
"""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import joinsim as js
from joins.queries.parser import parse_query
from joinsim._calls import of_query
from scenarios.data_statistics import data_statistics, with_hot_key
from scenarios.preparation import prepare_tables
from scenarios.report.result_pages import picture_of, write_page
from scenarios.report.result_tables import left_out_table, measured_table
from scenarios.scenario_files import build, change
from scenarios.terminal.views import show_advice
from scenarios.topology_search import Spent, best_of_topologies
from topologies.interval_join import KpOijTopology

QUERY = (
    "SELECT * FROM A, B WHERE A.k = B.k AND B.ts "
    "BETWEEN A.ts - INTERVAL '50 ms' AND A.ts + INTERVAL '50 ms'"
)
MS = 1_000_000
PRICES = {"core_hour": 0.36, "machine_hour": 0.0}

TWO_STREAMS = (
    "SELECT * FROM A, B WHERE A.k = B.k AND A.x < B.x AND B.ts "
    "BETWEEN A.ts - INTERVAL '1 s' AND A.ts + INTERVAL '1 s'"
)


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    rng = np.random.default_rng(3)
    return {
        name: {"ts": np.arange(1_000) * MS, "k": rng.integers(0, 40, 1_000)} for name in ("A", "B")
    }


@pytest.fixture(scope="module")
def advice(data: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> js.Advice:
    return js.advise(
        QUERY,
        data,
        goal=["throughput", "latency"],
        topologies=[KpOijTopology, "split_oij"],
        engines="duckdb",
        machines=3,
        budget_s=6_000,
        seeds=2,
        prices=PRICES,
        out=tmp_path_factory.mktemp("advice") / "out",
    )


def test_the_winner_runs_as_its_row_says(advice: js.Advice, data: dict[str, Any]) -> None:
    best, row = advice.best, advice.table.to_pylist()[0]
    assert best.feeding.rate_tps == 2_002  # what the event times come to
    assert row["keeps_up"]
    run = js.run(QUERY, data, topology=best.topology, pairs=False, **best.parameters)
    assert run.summary["throughput_tps"] == pytest.approx(row["throughput"])
    feeding = {"rate_tps": best.feeding.rate_tps}
    fed = js.run(
        QUERY, data, topology=best.topology, pairs=False, feeding=feeding, **best.parameters
    )
    assert fed.summary["latency_ms"]["p95"] == pytest.approx(row["latency"])


def test_what_it_would_take_for_another_to_win_is_simulated(advice: js.Advice) -> None:
    changes = {one["what"]: one for one in advice.summary["changes"]}
    assert set(changes) == {
        "links of 25 ms", "rate x 3, 6,006 tuples/s", "half of the tuples with one key"
    }  # fmt: skip
    for one in changes.values():
        assert len(one["values"]) == 2
        better = min if one["goal"] == "latency" else max
        assert one["winner"] == better(one["values"], key=lambda label: one["values"][label])
    plain = advice.table.to_pylist()[0]
    hot = changes["half of the tuples with one key"]["values"]
    assert hot[plain["label"]] < plain["throughput"]  # one replica has more than half of the work


def test_a_price_is_that_of_the_cores_for_as_long_as_the_tuples_take(advice: js.Advice) -> None:
    row = advice.table.to_pylist()[0]
    seconds = 1e9 / advice.best.feeding.rate_tps  # type: ignore[operator]
    assert row["price"] == pytest.approx(row["cores"] * 0.36 / 3_600 * seconds)


def test_real_engines_find_the_same_pairs(advice: js.Advice) -> None:
    (duckdb,) = advice.summary["engines"]
    assert (duckdb["engine"], duckdb["equal"]) == ("duckdb", True)
    assert duckdb["pairs"] > 0
    table = measured_table(advice.result)
    (row,) = table.rows
    cells = {
        name: getattr(cell, "text", cell) for name, cell in zip(table.columns, row, strict=True)
    }
    assert (cells["engine"], cells["equal"]) == ("duckdb", "equal")


def test_the_files_reproduce_it(advice: js.Advice) -> None:
    written = json.loads((advice.directory / "advice.json").read_text())
    assert "topologies=['kp_oij', 'split_oij']" in written["replay"]
    assert written["advice"] == advice.table.to_pylist()[0]["label"]
    assert "times as good as" in advice.why or "about as good as" in advice.why
    values = tomllib.loads((advice.directory / "advice.toml").read_text())
    assert build(values, where="advice.toml") == advice.best.model_copy(update={"title": ""})
    with pytest.raises(js.ConfigError, match="its data was a table in memory, of"):
        js.scenario(advice.directory / "advice.toml").run()
    page = (advice.directory / "advice.html").read_text()
    assert advice.best.topology in page
    assert "What would change it" in page
    assert "throughput, tuples/s" in page  # the unit of what would change it


def test_the_lines_that_run_it_name_any_folder(advice: js.Advice) -> None:
    files = [{"name": name, "files": ["orders.csv"]} for name in ("A", "B")]
    config = change(advice.result.config, {"streams": files})
    lines = replace(advice.result, config=config).reproduce(Path("my 'best' runs"))
    assert shlex.split(lines["command"]) == ["joinsim", "run", "my 'best' runs/advice.toml"]
    calls = [ast.parse(lines[way], mode="eval") for way in ("Python", "Spark")]
    nodes = [node for call in calls for node in ast.walk(call) if isinstance(node, ast.Constant)]
    assert [node.value for node in nodes].count("my 'best' runs/advice.toml") == 2


def test_its_file_runs_from_any_folder(
    advice: js.Advice, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "orders.csv").touch()
    monkeypatch.chdir(tmp_path)
    files = [{"name": name, "files": ["orders.csv", "of_a_data_folder.parquet"]} for name in "AB"]
    toml = replace(advice.result, config=change(advice.result.config, {"streams": files})).toml
    for stream in tomllib.loads(toml)["streams"]:
        assert stream["files"] == [str(tmp_path / "orders.csv"), "of_a_data_folder.parquet"]


def test_its_picture_has_the_systems_of_its_page(advice: js.Advice, tmp_path: Path) -> None:
    drawn = picture_of(advice.result).data["system"]
    assert drawn[0] == advice.result.winner.label
    assert set(drawn) <= {row["label"] for row in advice.table.to_pylist()}
    page = (advice.directory / "advice.html").read_text()
    assert all(label in page for label in drawn)
    data, rows = picture_of(advice.result).data, advice.table.to_pylist()
    figures = [next(row for row in rows if row["label"] == label) for label in drawn]
    for goal, column in (("throughput", "tuplesps"), ("memory", "bytes_of_state")):
        assert data[column] == [row[goal] for row in figures]
    assert advice.figure(tmp_path / "advice.svg").stat().st_size > 0


def test_a_winner_that_was_not_judged_is_said_to_be_so(advice: js.Advice, tmp_path: Path) -> None:
    ranked = tuple(replace(one, last=False) for one in advice.result.ranked)
    hurried = replace(advice.result, ranked=ranked)
    words = "No time was left to run it over all tuples and to judge its answer."
    assert hurried.why.endswith(words)
    assert words not in advice.why
    page = write_page(hurried, tmp_path / "advice.html", "").read_text()
    assert words in page
    assert "<figure" not in page


def test_a_candidate_that_failed_is_listed_with_the_reason(advice: js.Advice) -> None:
    spent = Spent(left_out=["round 3 of 3: 1 of 4 candidates"], failed=["kp_oij: out of memory"])
    rows = left_out_table(replace(advice.result, spent=spent)).rows
    assert list(rows)[:2] == [
        ("no time", "round 3 of 3: 1 of 4 candidates"),
        ("failed", "kp_oij: out of memory"),
    ]


def test_an_engine_for_which_there_was_no_time_is_listed_once(advice: js.Advice) -> None:
    assert advice.result.engines is not None
    engines = replace(advice.result.engines, measured={}, waiting=["duckdb"])
    spent = Spent(left_out=["engine duckdb"])
    rows = left_out_table(replace(advice.result, spent=spent, engines=engines)).rows
    assert [row for row in rows if "duckdb" in str(row)] == [("no time", "engine duckdb")]


def test_latencies_of_runs_of_unequal_length_have_no_ratio(advice: js.Advice) -> None:
    ranked = advice.result.ranked
    shorter = replace(best_of_topologies(ranked)["split_oij"], rows=125, last=False)
    for goal, compared in (
        ("latency", rf"p95, ahead of {shorter.label} \(.* over 125 tuples of each stream\)\. "),
        (
            "throughput",
            rf"tuples/s, [\d.]+ times as good as {shorter.label} "
            r"\(.* over 125 tuples of each stream\)\. ",
        ),
    ):
        one = replace(advice.result, goals=(goal,), ranked=(ranked[0], shorter))
        assert re.search(compared, one.why), one.why


@pytest.mark.parametrize(
    ("faster", "words"), [(0.5, "ahead of"), (1.0, "about as good as"), (2.0, "2 times as good as")]
)
def test_a_slower_winner_is_not_called_as_good(
    advice: js.Advice, faster: float, words: str
) -> None:
    one = advice.result.winner
    (first, *_) = one.saturated
    slower = first | {"throughput_tps": first["throughput_tps"] / faster}
    other = replace(one, topology="split_oij", saturated=(slower,))
    assert f", {words} split_oij" in replace(advice.result, ranked=(one, other)).why


def test_times_in_the_reason_have_a_unit_of_their_size(advice: js.Advice) -> None:
    assert re.search(r"work is in \w+: [\d.]+ [nµm]?s a tuple", advice.why)
    assert re.search(r"at a latency of [\d.]+ [nµm]?s \(p95\)", advice.why)


@pytest.mark.parametrize(
    ("how", "mistake"),
    [
        ({"goal": "speed"}, "goal speed: there are throughput, latency, bytes, memory"),
        ({"goal": "thruput"}, "goal thruput: did you mean 'throughput'"),
        ({"prices": {"hour": 1}}, "price hour: did you mean 'core_hour'"),
        ({"engines": "oracle"}, "no engine is called 'oracle'"),
        ({"engines": ["duckdb", "polar"]}, "'polar': did you mean 'polars'"),
        ({"goal": []}, "goal: name at least one of throughput, latency, bytes, memory"),
        ({"seeds": 0}, "seeds = 0: pass a whole number above 0"),
        ({"topologies": ["kp_ojj"]}, "'kp_ojj': did you mean 'kp_oij'"),
        ({"foo": 3, "pes": 2}, "foo: no system compared here has such a parameter"),
        ({"topologies": ["kp_oij"], "replica": 2}, "replica: .* did you mean 'replicas'"),
        ({"arrival": "came"}, "no column 'came'"),
        ({"topologies": ["spo_join"]}, "nothing can evaluate the query on 8 machines"),
        ({"topologies": ["kp_oij"], "machines": 1}, "query on 1 machine: kp_oij: it needs 3"),
    ],
)
def test_what_cannot_be_advised_is_refused(
    data: dict[str, Any], how: dict[str, Any], mistake: str
) -> None:
    with pytest.raises(js.JoinsimError, match=mistake):
        js.advise(QUERY, data, **how)


QUICK: dict[str, Any] = {
    "topologies": "kp_oij", "engines": [], "seeds": 1, "machines": 6, "budget_s": 1
}  # fmt: skip


def test_advice_is_of_the_order_of_arrival_the_rows_and_the_bound_query() -> None:
    rng = np.random.default_rng(4)
    data = {
        name: {"ts": rng.permutation(200) * MS, "k": rng.integers(0, 9, 200)} for name in ("A", "B")
    }
    query = QUERY.replace("50 ms", "W")
    advised = js.advise(query, data, arrival="rows", rows=120, bind={"W": "20 ms"}, **QUICK)
    best = advised.best
    assert [stream.arrival for stream in best.streams] == ["rows", "rows"]
    assert (best.rows, best.bind) == (120, {"W": "20 ms"})
    for said in ("arrival={'A': 'rows', 'B': 'rows'}", "rows=120", "bind={'W': '20 ms'}"):
        assert said in advised.replay
    assert "- INTERVAL '20 ms' AND" in advised.summary["query"]


def test_parameters_go_to_the_systems_that_have_them(data: dict[str, Any]) -> None:
    how = QUICK | {"topologies": ["kp_oij", "split_oij"]}
    advised = js.advise(QUERY, data, replicas=2, rows=50, **how)
    assert {one["parameters"].get("replicas") for one in advised.summary["candidates"]} == {2}


@pytest.mark.parametrize("key", ["time", "arrival"])
def test_what_a_scenario_says_itself_is_refused(key: str) -> None:
    how: dict[str, Any] = {key: "ts"}
    with pytest.raises(js.ConfigError, match=f"{key}: it is for a query over data"):
        js.advise("oij-w1", scale="smoke", **how)


def test_a_network_is_of_a_scenario_too(spark: Any) -> None:
    advised = js.advise("oij-w1", scale="smoke", network="wan", rows=200, **QUICK)
    assert advised.best.network.preset == "wan"


def streams(**columns: Any) -> Any:
    n = len(columns["k"])
    table = {"ts": np.arange(n) * 10 * MS, "x": np.zeros(n, int)} | columns
    scenario = of_query(TWO_STREAMS, {"A": table, "B": table}, None)
    assert scenario.streams is not None
    return scenario.streams


def test_a_rate_is_that_of_event_times() -> None:
    found = data_statistics(parse_query(TWO_STREAMS), streams(k=np.arange(1_000)), None)
    assert found.streams[0].rate_tps == pytest.approx(100, rel=0.01)
    assert found.rate_tps == pytest.approx(200, rel=0.01)


def test_row_numbers_are_no_clock() -> None:
    found = data_statistics(
        parse_query(TWO_STREAMS), streams(k=np.arange(100), ts=np.arange(100)), None
    )
    assert found.rate_tps is None


def test_skew_is_the_share_of_the_commonest_key() -> None:
    (one, _) = data_statistics(
        parse_query(TWO_STREAMS), streams(k=np.array([7] * 30 + list(range(100, 170)))), None
    ).streams
    assert (one.key, one.keys, one.top_share) == ("k", 71, 0.3)


def test_duplicates_are_equal_in_time_and_in_all_fields() -> None:
    n = np.arange(100)
    found = data_statistics(parse_query(TWO_STREAMS), streams(k=n // 4, ts=n // 4 * 10 * MS), None)
    assert found.streams[0].duplicates == 0.75


def test_disorder_is_the_share_that_came_late() -> None:
    ts = np.arange(100) * 10 * MS
    ts[[3, 50]] -= 25 * MS
    assert data_statistics(
        parse_query(TWO_STREAMS), streams(k=np.arange(100), ts=ts), None
    ).streams[0].disorder == pytest.approx(0.02)


def test_a_join_field_called_row_says_nothing_of_disorder() -> None:
    query = parse_query(TWO_STREAMS.replace(".k", ".row"))
    columns = {name: np.arange(100)[::-1].copy() for name in ("row", "x")}
    tables = [{"ts": np.arange(100)} | columns] * 2
    found = data_statistics(query, prepare_tables(query, tables, [None, None]), None)
    assert found.streams[0].disorder is None


def test_selectivity_is_that_of_random_pairs() -> None:
    rng = np.random.default_rng(5)
    found = data_statistics(
        parse_query(TWO_STREAMS),
        streams(k=rng.integers(0, 10, 5_000), x=rng.integers(0, 10**6, 5_000)),
        None,
    )
    assert found.selectivity == pytest.approx(0.1 / 2, rel=0.1)


def test_a_hot_key_has_half_of_the_tuples_and_the_rest_stays() -> None:
    query, (first, _) = parse_query(TWO_STREAMS), streams(k=np.arange(1, 1_001))
    hot = with_hot_key(query, first, 0)
    keys = np.asarray(hot.table["k"])  # type: ignore[attr-defined]
    assert (keys == 0).mean() == pytest.approx(0.5, abs=0.05)
    kept = keys != 0
    assert (keys[kept] == np.arange(1, 1_001)[kept]).all()


def test_an_engine_that_failed_is_printed_as_a_sentence(
    advice: js.Advice, capsys: pytest.CaptureFixture[str]
) -> None:
    assert advice.result.engines is not None
    engines = replace(advice.result.engines, failed={"polars": "stopped: it took too long"})
    ranked = replace(advice.result, engines=engines)
    show_advice(Console(width=100), ranked, advice.directory, "joinsim advise")
    assert "\npolars: failed: stopped: it took too long\n" in capsys.readouterr().out
