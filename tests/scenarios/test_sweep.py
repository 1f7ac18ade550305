"""Ranges as people write them, the studies that they make, and points that are not run twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import joinsim as js
from scenarios.plan import topology_of
from scenarios.run import execute
from scenarios.scenario_files import ConfigError, build
from scenarios.study import point_runs
from scenarios.study.study import FIGURES, SEARCHED, WORDS
from scenarios.sweep import Range, read_ranges, settings_of, sweep_study

QUERY = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
DATA = {"T": {"x": np.arange(200) * 7919 % 200}}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("pes=1,2,8", (1, 2, 8)),
        ("pes=2,1,2,2", (2, 1)),
        ("pes=1..3", (1, 2, 3)),
        ("network.preset=wan,data-centre", ("wan", "data-centre")),
        ("rate_tps=1000..100000:log:5", (1000, 3162, 10000, 31623, 100000)),
        ("latency=1 ms..25 ms:4", ("1 ms", "9 ms", "17 ms", "25 ms")),
        ("latency=1..25ms:4", ("1 ms", "9 ms", "17 ms", "25 ms")),
        ("skew=0..1:3", (0.0, 0.5, 1.0)),
        ("pes=1..10:log:10", (1, 2, 3, 4, 5, 6, 8, 10)),
        ("latency=1 ns..1234567 ns:2", ("1 ns", "1234567 ns")),
    ],
)
def test_a_range_is_read_as_it_is_written(text: str, values: tuple[Any, ...]) -> None:
    read = Range.read(text)
    assert (read.key, read.values) == (text.partition("=")[0], values)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("rate_tps", "write it as KEY=FIRST..LAST"),
        ("rate_tps=fast..slow", "a range is FIRST..LAST"),
        ("rate_tps=0..10:log:3", "ends above 0"),
        ("rate_tps=1..10:1", "2 to 10,000 values"),
        ("latency=1 ms..25 s", "both ends need one unit"),
    ],
)
def test_a_range_that_is_none_is_named(text: str, mistake: str) -> None:
    with pytest.raises(ConfigError, match=mistake):
        Range.read(text)


def config(**more: Any) -> Any:
    streams = [{"name": "T", "synthetic": {"rows": 10, "fields": {"x": "zipf(0.5, 100)"}}}]
    return build({"query": QUERY, "streams": streams, "topology": "kp_oij"} | more, where="test")


@pytest.mark.parametrize(
    ("key", "value", "settings"),
    [
        ("pes", 3, {"replicas": 3}),
        ("rate_tps", 9, {"feeding.rate_tps": 9}),
        ("latency", "2 ms", {"network.latency": "2 ms"}),
        ("skew", 1.5, {"streams.0.synthetic.fields.x": "zipf(1.5, 100)"}),
        ("window", 40, {"bind.W": 40}),
        ("seed", 4, {"seed": 4}),
    ],
)
def test_a_key_sets_what_it_names(key: str, value: Any, settings: dict[str, Any]) -> None:
    assert settings_of(config(bind={"W": 20}), key, value) == settings


@pytest.mark.parametrize("topology", ["split_join", "auto"])
def test_a_window_needs_no_value_beside_its_range(topology: str) -> None:
    query = QUERY.replace("'20'", "'W'")
    over = {"window": [10, 20]}
    swept = js.sweep(query, DATA, over=over, topology=topology, processes=1)
    alone = js.run(query, DATA, topology=topology, bind={"W": 20}, pairs=False)
    assert swept.summary["points"][1]["digest"] == alone.digest
    with pytest.raises(ConfigError, match="write it as W, as in SLIDE INTERVAL '10' ON 'W'"):
        js.sweep(QUERY, DATA, over=over, topology=topology)


def test_a_point_that_fails_does_not_end_a_search_for_rates(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def failing(plan: Any, *more: Any, **how: Any) -> Any:
        if plan.parameters.pes == 1:
            raise RuntimeError("broken")
        return execute(plan, *more, **how)

    monkeypatch.setattr(point_runs, "execute", failing)
    swept = js.sweep(
        QUERY,
        DATA,
        over={"pes": [1, 2]},
        topology="split_join",
        find="sustainable",
        processes=1,
        out=tmp_path / "swept",
    )
    assert swept.points["failure"].to_pylist() == ["RuntimeError: broken", None]
    (traceback,) = (tmp_path / "swept").rglob("failure.txt")
    assert "RuntimeError: broken" in traceback.read_text()


def test_ranges_are_x_lines_and_panels() -> None:
    ranges = [Range.read(one) for one in ("pes=1,2", "topology=kp_oij,panjoin", "rate_tps=5,6")]
    study = sweep_study(config(), ranges, seeds=2, measures=["throughput_tps", "latency_ms.p50"])
    assert len(study.points) == 2 * 2 * 2 * 2
    assert [chart.panel.name for chart in study.charts] == ["rate_tps 5"] * 2 + ["rate_tps 6"] * 2
    kept = study.charts[0].curve("panjoin")
    last = study.points[kept.points[1][0] - 1].config
    assert (last.topology, last.parameters, last.feeding.rate_tps) == ("panjoin", {"workers": 2}, 5)


@pytest.mark.parametrize(
    "over",
    [
        ("pes=1,2", "rate_tps=5,6", "topology=kp_oij,panjoin"),
        ("topology=kp_oij,panjoin", "pes=1,2", "rate_tps=5,6"),
        ("rate_tps=5,6", "topology=panjoin,kp_oij", "pes=1,2"),
        ("rate_tps=5,6", "window=1,2", "topology=panjoin,kp_oij", "pes=1,2"),
    ],
)
def test_each_topology_is_given_pes_by_its_own_name(over: tuple[str, ...]) -> None:
    base = config().model_copy(update={"bind": {"W": 1}})
    study = sweep_study(base, [Range.read(one) for one in over])
    given = {(p.config.topology, *p.config.parameters.items()) for p in study.points}
    assert given == {
        ("kp_oij", ("replicas", 1)),
        ("kp_oij", ("replicas", 2)),
        ("panjoin", ("workers", 1)),
        ("panjoin", ("workers", 2)),
    }


@pytest.mark.parametrize("more", [{}, {"pes": [1]}], ids=["along x", "from line to line"])
def test_a_range_may_be_of_lists(more: dict[str, Any]) -> None:
    loss = {"kind": "loss", "rate": 0.3}
    faults = [[], [loss], [loss, {"kind": "duplicate", "rate": 0.1}]]
    swept = sweep_study(config(), read_ranges(more | {"faults": faults}))
    kinds = [[fault.kind for fault in point.config.faults] for point in swept.points]
    assert kinds == [[], ["loss"], ["loss", "duplicate"]]


@pytest.mark.parametrize(
    ("over", "find", "mistake"),
    [
        (["window=1,2"], None, "needs a placeholder"),
        (["colour=red"], None, "there is no such key"),
        (["pes=1", "pes=2"], None, "given twice"),
        (["rate_tps=1,2"], "sustainable", "leave it out"),
        (["pes=1"], "fastest", "it can be sustainable"),
    ],
)
def test_what_cannot_be_swept_is_refused(over: list[str], find: str | None, mistake: str) -> None:
    with pytest.raises(ConfigError, match=mistake):
        js.sweep(QUERY, DATA, over=over, find=find, topology="split_join", processes=1)


@pytest.mark.parametrize(
    ("how", "mistake"),
    [
        ({"over": {"pes": []}}, "over pes: it has no values"),
        ({"over": {"pes": [1], "topology": []}}, "over topology: it has no values"),
        ({"over": {"pes": [1]}, "seeds": 101}, "seeds = 101: 1 to 100 are allowed"),
    ],
)
def test_a_sweep_over_nothing_is_refused(how: dict[str, Any], mistake: str) -> None:
    with pytest.raises(ConfigError, match=mistake):
        js.sweep(QUERY, DATA, topology="split_join", processes=1, **how)


def points(folder: Path) -> dict[str, int]:
    return {p.parent.name: p.stat().st_mtime_ns for p in folder.glob("points/*/point.json")}


@pytest.mark.parametrize("measure", ["streams", "query", "streams.rows"])
def test_what_is_no_number_is_refused_before_anything_runs(measure: str) -> None:
    with pytest.raises(ConfigError, match=f"measure {measure}: it is no number"):
        sweep_study(config(), [], measures=[measure])


def test_a_point_that_ran_is_not_run_again(tmp_path: Path) -> None:
    how: dict[str, Any] = {"topology": "split_join", "processes": 1, "out": tmp_path}
    first = js.sweep(QUERY, DATA, over={"pes": [1, 2]}, **how)
    before = points(tmp_path)
    again = js.sweep(QUERY, DATA, over={"pes": [2, 1, 3]}, **how)
    after = points(tmp_path)
    assert len(before) == 2
    assert len(after) == 3
    assert before.items() <= after.items()
    digests = {one["label"]: one["digest"] for one in again.summary["points"]}
    assert {
        one["label"]: one["digest"] for one in first.summary["points"]
    }.items() <= digests.items()
    other = {"T": {"x": DATA["T"]["x"][::-1].copy()}}
    js.sweep(QUERY, other, over={"pes": [1]}, **how)
    assert len(points(tmp_path)) == 4  # other data are another point
    js.sweep(QUERY, DATA, over={"pes": [1]}, fresh=True, **how)
    assert sum(after[name] != points(tmp_path)[name] for name in after) == 1


@pytest.mark.parametrize("damage", ["", "[]", "null", "{}", '{"record": {"tuples": 1}, "x": 1}'])
def test_a_stored_point_that_is_damaged_is_run_again(damage: str, tmp_path: Path) -> None:
    how: dict[str, Any] = {"over": {"pes": [1]}, "topology": "split_join", "out": tmp_path}
    whole = js.sweep(QUERY, DATA, processes=1, **how)
    (stored,) = tmp_path.glob("points/*/point.json")
    stored.write_text(damage)
    again = js.sweep(QUERY, DATA, processes=1, **how)
    assert again.points.equals(whole.points)


def test_a_measure_that_a_stored_point_lacks_is_refused(tmp_path: Path) -> None:
    how: dict[str, Any] = {"over": {"pes": [1]}, "topology": "split_join", "out": tmp_path}
    js.sweep(QUERY, DATA, processes=1, **how)
    with pytest.raises(ConfigError, match=r"measure copies\.such: there is no 'such'"):
        js.sweep(QUERY, DATA, processes=1, measures=["copies.such"], **how)


def test_a_measure_that_no_run_has_is_refused_before_anything_runs(tmp_path: Path) -> None:
    how: dict[str, Any] = {"over": {"pes": [1]}, "topology": "split_join", "out": tmp_path}
    with pytest.raises(ConfigError, match=r"measure no\.such: there is no 'no'; choose from seed"):
        js.sweep(QUERY, DATA, processes=1, measures=["tuples", "no.such"], **how)
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize("find", [None, "sustainable"])
def test_the_measures_that_can_be_chosen_are_those_of_a_record(find: str | None) -> None:
    swept = js.sweep(QUERY, DATA, over={"pes": [1]}, topology="split_join", processes=1, find=find)
    (result,) = swept.result.results.values()
    known = (*WORDS, *FIGURES, *(SEARCHED if find else ()))
    assert sorted(result.record) == sorted(known)


def test_processes_change_nothing(tmp_path: Path) -> None:
    over = {"pes": [1, 2]}
    alone, beside = (
        js.sweep(
            QUERY, DATA, over=over, topology="split_join", processes=n, out=tmp_path / str(n)
        ).summary
        for n in (1, 2)
    )
    assert [one["digest"] for one in alone["points"]] == [one["digest"] for one in beside["points"]]
    written = json.loads((tmp_path / "2" / "study.json").read_text())
    assert written["charts"] == json.loads(json.dumps(alone["charts"]))


def test_processes_that_die_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def dying(processes: int) -> Iterator[Any]:
        raise BrokenProcessPool
        yield

    monkeypatch.setattr(point_runs, "process_pool", dying)
    with pytest.raises(ConfigError, match="a process with a point has died"):
        js.sweep(
            QUERY, DATA, over={"pes": [1, 2]}, topology="split_join", processes=2, out=tmp_path
        )


def test_a_sweep_is_of_the_order_of_arrival_the_rows_and_the_bound_query() -> None:
    rng = np.random.default_rng(4)
    data = {name: {"ts": rng.permutation(200), "k": rng.integers(0, 9, 200)} for name in ("A", "B")}
    query = "SELECT * FROM A, B WHERE A.k = B.k AND B.ts BETWEEN A.ts AND A.ts + INTERVAL 'W'"
    how: dict[str, Any] = {"topology": "kp_oij", "feeding": {"batch_rows": 10}, "network": "wan"}
    how |= {"rows": 120, "bind": {"W": "20 ns"}}
    swept = js.sweep(query, data, over={"pes": [2]}, arrival="rows", processes=1, **how)
    run = js.run(query, data, arrival="rows", replicas=2, pairs=False, **how)
    assert [one["digest"] for one in swept.summary["points"]] == [run.digest]
    assert run.digest != js.run(query, data, replicas=2, pairs=False, **how).digest
    assert "arrival={'A': 'rows', 'B': 'rows'}" in swept.replay
    assert swept.summary["query"] == run.summary["query"].replace("\n", " ")


def test_a_sweep_shows_the_query_bound_but_for_what_it_varies(tmp_path: Path) -> None:
    query = QUERY.replace("'5'", "'D'").replace("'20'", "'W'")
    how: dict[str, Any] = {"topology": "split_join", "processes": 1, "bind": {"D": 5, "W": 20}}
    swept = js.sweep(query, DATA, over={"window": [10, 20]}, out=tmp_path, **how)
    shown = query.replace("'D'", "'5'")
    assert swept.summary["query"] == shown
    assert shown in unescape((tmp_path / "study.html").read_text())


def test_a_comparison_is_written_with_its_query_bound(tmp_path: Path) -> None:
    query = QUERY.replace("'20'", "'W'")
    js.compare(query, DATA, topologies=["split_join"], bind={"W": 20}, out=tmp_path)
    assert json.loads((tmp_path / "compare.json").read_text())["query"] == QUERY


def test_the_system_that_a_sweep_chooses_is_that_of_a_run() -> None:
    stream = {"table": "200 tuples"}
    query = "SELECT * FROM A, B WHERE A.k = B.k WINDOW AS (SLIDE INTERVAL '1 ns' ON '20 ns')"
    config = build(
        {"query": query, "streams": [stream] * 2, "feeding": {"disorder": "5 ns"}}, where="test"
    )
    study = sweep_study(config, [Range(key="seed", values=(1, 2))])
    assert study.base.topology == topology_of(config).name == "panjoin"
    in_order = build({"query": query, "streams": [stream] * 2}, where="test")
    assert sweep_study(in_order, []).base.topology == topology_of(in_order).name == "hash_join"


SURVEY = {"of": "window join speed", "index": "b_plus_tree", "window_bits": 7}


def test_a_survey_is_swept_as_a_query_is(tmp_path: Path) -> None:
    how: dict[str, Any] = {"scale": "smoke", "survey": SURVEY, "out": tmp_path}
    over: dict[str, Any] = {
        "survey.lookup_rows": [1, 16],
        "survey.index": ["b_plus_tree", "pim_tree"],
    }
    swept = js.sweep("pim-band", over=over, measures=["tuples_s.median", "match_rate"], **how)
    rates, matches = swept.summary["charts"]
    assert [one["kind"] for one in rates["variants"]] == ["measured"] * 2
    assert [one["kind"] for one in matches["variants"]] == ["simulated"] * 2
    assert len({value for one in matches["variants"] for value in one["values"]}) == 1
    assert all(value > 0 for one in rates["variants"] for value in one["values"])
    assert swept.summary["query"] == ""
    before = points(tmp_path)
    assert len(before) == 4
    js.sweep("pim-band", over=over, measures=["tuples_s.median"], **how)
    assert points(tmp_path) == before


@pytest.mark.parametrize(
    ("how", "mistake"),
    [
        ({"over": {"survey.lookup_rows": [17]}}, "lookup_rows = 17: .*less than or equal to 16"),
        ({"over": {"survey.lookup": [1]}}, "lookup: there is no such key; did you mean 'lookup_"),
        ({"over": {"index": ["im_tree"]}}, "over index: .* did you mean 'survey.index'"),
        ({"over": {"survey.passes": [1]}, "measures": []}, "a measure is missing"),
        ({"over": {"survey.passes": [1]}, "find": "sustainable"}, "a survey has no rate"),
        ({"over": {"survey.window_bits": [26]}}, "memory and 1 B are free"),
    ],
)
def test_a_survey_that_cannot_be_swept_is_refused(
    how: dict[str, Any], mistake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(point_runs, "free_memory_bytes", lambda: 1)
    how = {"measures": ["tuples_s.median"]} | how
    with pytest.raises(ConfigError, match=mistake):
        js.sweep("pim-band", scale="smoke", survey=SURVEY, **how)
