"""The interval joins' figures are of a steady state: longer runs would have the same."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from scenarios import many_runs
from scenarios.measures import Parts, look_up, record
from scenarios.run import FinishedRun
from scenarios.study.study import Study, load_study
from tests.scenarios.study.smoke_claims import OF_LATENCY, interval_joins
from tests.scenarios.study.test_smoke_claims import check

SCALES = ("smoke", "laptop", "paper")
MEASURES = ("result_ms.total.mean", "result_ms.total.p50", "result_ms.total.p95")
TOLERANCE = 0.1


def study_of(name: str, scale: str) -> Study:
    study = load_study(name, scale=scale)
    assert study is not None
    return study


def halves(report: FinishedRun) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the record of a run over each half of the arrivals that it measures."""
    assert report.plan.config.measured
    first, stop = report.plan.config.measured
    middle = (first + stop) // 2
    return _over(report, first, middle), _over(report, middle, stop)


def _over(report: FinishedRun, first: int, stop: int) -> dict[str, Any]:
    config = report.plan.config.model_copy(update={"measured": (first, stop)})
    return record(replace(report, plan=replace(report.plan, config=config)))


@pytest.mark.parametrize("name", interval_joins(OF_LATENCY))
def test_claims_are_those_of_the_record_and_results_as_late_in_both_halves_of_what_is_measured(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The points run once for both: here the record of a run has that of its halves, too."""

    def with_halves(report: FinishedRun, parts: Parts | None = None) -> dict[str, Any]:
        return record(report, parts) | {"halves": halves(report)}

    monkeypatch.setattr(many_runs, "record", with_halves)
    findings = check(name)
    assert len(findings.results) == len(study_of(name, "smoke").points)
    for result in findings.results.values():
        assert result.record
        earlier, later = result.record["halves"]
        for measure in MEASURES:
            late = look_up(later, measure)
            assert late == pytest.approx(look_up(earlier, measure), rel=TOLERANCE)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", interval_joins("throughput_tps", OF_LATENCY))
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
