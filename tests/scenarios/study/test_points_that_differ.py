"""Points of systems that claim no exactness list their pairs at once, and come to the same."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from scenarios import run as running
from scenarios.measures import record
from scenarios.run import Simulated, execute, simulate
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

    def noted(*arguments: Any, pairs: bool, **settings: Any) -> Simulated:
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
