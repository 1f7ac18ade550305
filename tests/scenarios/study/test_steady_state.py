"""The interval joins' figures are of a steady state: longer runs would have the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scenarios import scenario_files
from scenarios.measures import look_up, record
from scenarios.plan import Plan, make_plan
from scenarios.run import Report, execute
from scenarios.study.study import Study, load_study
from tests.scenarios.study import smoke_claims

SCALES = ("smoke", "laptop", "paper")
OF_LATENCY = "result_ms."
MEASURES = ("result_ms.total.mean", "result_ms.total.p50", "result_ms.total.p95")
TOLERANCE = 0.1


def study_of(name: str, scale: str) -> Study:
    study = load_study(name, scale=scale)
    assert study is not None
    return study


def of_measures(*measures: str) -> Iterator[str]:
    """Yield the names of the interval joins' figures whose curves are of one of *measures*."""
    for name in scenario_files.catalog():
        written = scenario_files.read(name).get("study", {})
        if name.startswith("oij-fig") and written.get("measure", "").startswith(measures):
            yield name


def points() -> Iterator[Any]:
    for name in of_measures(OF_LATENCY):
        for point in study_of(name, "smoke").points:
            yield pytest.param(name, point.number, id=f"{name}-{point.number}")


def halves(report: Report) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the record of a run over each half of the arrivals that it measures."""
    assert report.plan.config.measured
    first, stop = report.plan.config.measured
    middle = (first + stop) // 2
    return _over(report, first, middle), _over(report, middle, stop)


def _over(report: Report, first: int, stop: int) -> dict[str, Any]:
    config = report.plan.config.model_copy(update={"measured": (first, stop)})
    return record(replace(report, plan=replace(report.plan, config=config)))


def run(plan: Plan, directory: Path) -> Report:
    directory.mkdir()
    return execute(plan, directory)


@pytest.mark.parametrize(("name", "number"), list(points()))
def test_results_are_as_late_in_both_halves_of_what_is_measured(
    name: str, number: int, tmp_path: Path
) -> None:
    point = study_of(name, "smoke").points[number - 1]
    plan = make_plan(point.config, prepare=smoke_claims.prepare)
    earlier, later = halves(run(plan, tmp_path / "run"))
    for measure in MEASURES:
        assert look_up(later, measure) == pytest.approx(look_up(earlier, measure), rel=TOLERANCE)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", list(of_measures("throughput_tps", OF_LATENCY)))
def test_neither_start_nor_end_is_measured(name: str, scale: str) -> None:
    """At the end partial batches leave at once, which waited before."""
    for point in study_of(name, scale).points:
        config = point.config
        assert config.measured
        assert config.rows
        first, stop = config.measured
        turns = config.parameters.get("linger_turns", 0)
        waiting = turns * (config.feeding.batch_rows or 0)
        assert first >= 0.2 * stop
        assert stop + waiting <= config.rows * len(config.streams), point.label
