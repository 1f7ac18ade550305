"""Points come to the same whether they list their pairs at once, or run side by side.

What is measured on this machine is measured again where others have disturbed it.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scenarios import machine
from scenarios import run as running
from scenarios.config import RunConfig
from scenarios.many_runs import RunResult
from scenarios.measures import record
from scenarios.plan import Plan
from scenarios.preparation import Preparation
from scenarios.run import RunFigures, execute, simulate
from scenarios.scenario_files import ConfigError
from scenarios.study import findings, point_runs
from scenarios.study.findings import Findings
from scenarios.study.point_runs import plan_points, run_points
from scenarios.study.study import Study, load_study
from tests.scenarios.study import smoke_claims

STUDY = """
query = \"""
SELECT s.id FROM s WHERE s.a1 > s.a2 AND s.b1 < s.b2
WINDOW AS (SLIDE INTERVAL '150' ON '150')
\"""
topology = "spo_join"
parameters = { po_join_pes = 1, logical_pes = 3 }
feeding = { batch_rows = 1, rate_tps = 5000 }
network = { latency = "3 ms", jitter = "5 ms", latency_kind = "pareto", inbox_messages = 4096 }
[[streams]]
name = "s"
[streams.synthetic]
rows = 150
seed = 3
fields = { a = "normal(10, 3)", b = "opposed(a, 0.2)" }
[study]
measure = "correctness"
label = "share of the tuples"
[study.axis]
label = "tables"
keys = ["parameters.hash_table"]
values = [true, false]
[study.variants]
"by hash" = {}
"in turns" = { set = { logical_partitioning = "round_robin" } }
"""
OF_VIRTUAL_TIME = (
    "digest", "verdict", "correctness", "result_ms", "busy_seconds", "state_bytes", "network",
)  # fmt: skip

MEASURED = """
query = "SELECT s.id FROM s WHERE s.a1 > s.a2 WINDOW AS (SLIDE INTERVAL '10' ON '20')"
[[streams]]
synthetic = { rows = 9, fields = { a = "uniform(0, 9)" } }
[study]
measure = "tuples_s.median"
label = "tuples/s (processor time)"
[study.axis]
label = "arrivals a message"
keys = ["survey.batch_rows"]
values = [1024, 2048, 4096]
[study.variants."window join"]
set = { survey = { of = "window join speed", window_bits = 6, passes = 1 } }
"""


def load(tmp_path: Path, text: str = STUDY, **settings: Any) -> Study:
    path = tmp_path / "mine.toml"
    path.write_text(text)
    study = load_study(str(path), settings=settings)
    assert study is not None
    return study


def run(study: Study, plans: Mapping[int, Plan], directory: Path, processes: int = 1) -> Findings:
    return run_points(
        study,
        plans,
        directory,
        on_point=lambda *_: None,
        replay=lambda _: "",
        processes=processes,
    )


def of_virtual_time(values: Mapping[str, Any] | None) -> dict[str, Any]:
    assert values is not None
    return {name: values[name] for name in OF_VIRTUAL_TIME}


def test_a_point_that_claims_nothing_is_not_run_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = load(tmp_path)
    plans = plan_points(study, smoke_claims.prepare)
    alone = {}
    for number, plan in plans.items():
        folder = tmp_path / f"{number}"
        folder.mkdir()
        alone[number] = of_virtual_time(record(execute(plan, folder)))
    listed: list[bool] = []

    def noted(*arguments: Any, pairs: bool, **settings: Any) -> RunFigures:
        listed.append(pairs)
        return simulate(*arguments, pairs=pairs, **settings)

    monkeypatch.setattr(running, "simulate", noted)
    found = run(study, plans, tmp_path / "study")
    claims = [plan.topology.claims_exact(plan.parameters) for plan in plans.values()]
    assert set(claims) == {True, False}
    assert listed == [not claim for claim in claims]
    assert any(alone[number]["correctness"] < 1 for number in alone)
    for number, result in found.results.items():
        assert of_virtual_time(result.record) == alone[number]


def test_what_is_simulated_runs_side_by_side_and_then_what_is_timed_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = load(tmp_path, STUDY + '"clocked" = { measure = "wall_seconds" }\n', repeat=1)
    assert study.charts[0].curves[-1].kind == "measured"
    plans = plan_points(study, smoke_claims.prepare)
    ran: list[tuple[str, list[int]]] = []

    def noted(way: str) -> None:
        original = getattr(point_runs, way)

        def ran_so(runs: Mapping[int, Any], *arguments: Any) -> Any:
            ran.append((way, list(runs)))
            return original(runs, *arguments)

        monkeypatch.setattr(point_runs, way, ran_so)

    noted("_in_turn")
    noted("_side_by_side")
    alone, together = (
        run(study, plans, tmp_path / str(processes), processes) for processes in (1, 2)
    )
    timed = [point.number for point in study.points if study.is_timed(point)]
    others = [point.number for point in study.points if not study.is_timed(point)]
    assert ran == [
        ("_in_turn", [*timed, *others]),
        ("_side_by_side", others),
        ("_in_turn", timed),
    ]
    for number, result in together.results.items():
        assert of_virtual_time(result.record) == of_virtual_time(alone.results[number].record)


def take_points(
    folder: Path, monkeypatch: pytest.MonkeyPatch, take: Callable[[], bool]
) -> tuple[RunResult, list[RunResult]]:
    """Return what counts of a measured point, and all that was taken; *take* says what passes."""
    study = load(folder, MEASURED)
    taken: list[RunResult] = []

    def result(config: RunConfig) -> RunResult:
        measured = {"tuples_s": {"median": 100.0 - len(taken)}}
        taken.append(RunResult(config=config, record=measured, passed=take()))
        return taken[-1]

    monkeypatch.setattr(point_runs, "_take_survey", result)
    (counts,) = run(replace(study, points=study.points[:1]), {}, folder).results.values()
    return counts, taken


@pytest.mark.parametrize(
    ("paces_s", "counts", "times"),
    [
        # The first reading is of the start, the second from before the point.
        ([1.0, 1.0, 1.0], 0, 1),
        ([1.0, 1.0, 1.1], 0, 1),
        ([1.4, 1.0, 1.0], 0, 1),
        ([1.0, 1.4, 1.0, 1.0], 1, 2),
        ([1.0, 1.0, 1.4, 1.0, 1.0], 2, 3),  # of two that began or ended slowly, none counts
        ([1.0, 1.0, 1.4, 1.0, 1.3], 2, 3),  # never undisturbed: the best pace counts
    ],
)
def test_what_others_have_disturbed_is_measured_again(
    paces_s: list[float], counts: int, times: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings = iter(paces_s)
    monkeypatch.setattr(machine, "interpret_s", lambda: next(readings))
    counted, taken = take_points(tmp_path, monkeypatch, lambda: True)
    assert counted == taken[counts]
    assert len(taken) == times


def test_no_garbage_is_collected_while_a_point_is_timed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, taken = take_points(tmp_path, monkeypatch, lambda: not gc.isenabled())
    assert {one.passed for one in (counted, *taken)} == {True}
    assert gc.isenabled()


def test_a_measured_run_that_is_wrong_is_not_measured_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings, verdicts = iter([1.0, 1.0, 1.4]), iter([True, False, True])
    monkeypatch.setattr(machine, "interpret_s", lambda: next(readings))
    counted, _ = take_points(tmp_path, monkeypatch, lambda: next(verdicts))
    assert counted.passed is False


def test_results_of_another_machine_are_not_reused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Short windows are merged again and again.
    study = load(tmp_path, MEASURED.replace("window_bits = 6", "window_bits = 12"))
    run(study, {}, tmp_path).write_json(tmp_path, "")
    assert Findings.read(study, tmp_path) is not None
    other = {"processor": "another one", "cores": 2, "system": "Linux x86_64"}
    monkeypatch.setattr(findings, "describe_machine", lambda: other)
    assert Findings.read(study, tmp_path) is None


def test_a_survey_that_needs_more_memory_than_is_free_is_refused_before_any_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = load(tmp_path, MEASURED.replace("window_bits = 6", "window_bits = 25"))
    monkeypatch.setattr(point_runs, "free_memory_bytes", lambda: 1 << 30)
    with pytest.raises(ConfigError, match=r"point 1 .*: it needs about 12.* GB of memory and 1"):
        plan_points(study, Preparation())
    assert any("takes about 12" in remark for remark in study.remarks)
