"""Points come to the same whether they list their pairs at once, or run side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scenarios import run as running
from scenarios.measures import record
from scenarios.run import RunFigures, execute, simulate
from scenarios.study import point_runs
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


@pytest.fixture
def study(tmp_path: Path) -> Study:
    path = tmp_path / "mine.toml"
    path.write_text(STUDY)
    study = load_study(str(path))
    assert study is not None
    return study


def of_virtual_time(values: Mapping[str, Any] | None) -> dict[str, Any]:
    assert values is not None
    return {name: values[name] for name in OF_VIRTUAL_TIME}


def test_a_point_that_claims_nothing_is_not_run_a_second_time(
    study: Study, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    found = run_points(
        study, plans, tmp_path / "study", on_point=lambda *_: None, replay=lambda _: ""
    )
    claims = [plan.topology.claims_exact(plan.parameters) for plan in plans.values()]
    assert set(claims) == {True, False}
    assert listed == [not claim for claim in claims]
    assert any(alone[number]["correctness"] < 1 for number in alone)
    for number, result in found.results.items():
        assert of_virtual_time(result.record) == alone[number]


def test_what_is_simulated_runs_side_by_side_and_then_what_is_timed_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(STUDY + '"clocked" = { measure = "wall_seconds" }\n')
    study = load_study(str(path), settings={"repeat": 1})
    assert study is not None
    assert study.charts[0].curves[-1].kind == "measured"
    plans = plan_points(study, smoke_claims.prepare)
    ran: list[tuple[str, list[int]]] = []

    def noted(way: str) -> None:
        original = getattr(point_runs, way)

        def run(runs: Mapping[int, Any], *arguments: Any) -> Any:
            ran.append((way, list(runs)))
            return original(runs, *arguments)

        monkeypatch.setattr(point_runs, way, run)

    noted("_in_turn")
    noted("_side_by_side")
    alone, together = (
        run_points(
            study,
            plans,
            tmp_path / str(processes),
            on_point=lambda *_: None,
            replay=lambda _: "",
            processes=processes,
        )
        for processes in (1, 2)
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
