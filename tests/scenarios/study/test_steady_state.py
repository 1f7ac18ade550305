"""Figures that measure a steady state do: longer runs would have the same."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from scenarios import many_runs
from scenarios.measures import Parts, look_up, record
from scenarios.run import FinishedRun
from scenarios.study.findings import Findings
from scenarios.study.study import Study, load_study
from tests.scenarios.study.smoke_claims import (
    OF_LATENCY,
    STEADY,
    interval_joins,
    needs_spark,
)
from tests.scenarios.study.test_smoke_claims import check

SCALES = ("smoke", "laptop", "paper")
MEASURES = ("result_ms.total.mean", "result_ms.total.p50", "result_ms.total.p95")
TOLERANCE = 0.1
RATES = ("throughput_tps", "capacity_tps")
TOLERANCE_OF_RATES = 0.15


def study_of(name: str, scale: str) -> Study:
    study = load_study(name, scale=scale)
    assert study is not None
    return study


def halves(report: FinishedRun, parts: Parts | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the record of a run over each half of the arrivals that it measures."""
    assert report.plan.config.measured
    first, stop = report.plan.config.measured
    middle = (first + stop) // 2
    return _over(report, parts, first, middle), _over(report, parts, middle, stop)


def _over(report: FinishedRun, parts: Parts | None, first: int, stop: int) -> dict[str, Any]:
    config = report.plan.config.model_copy(update={"measured": (first, stop)})
    return record(replace(report, plan=replace(report.plan, config=config)), parts)


@pytest.fixture
def check_with_halves(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Findings]:
    """Return `check`, after which the record of a run has that of its halves, too.

    So the points run once for both.
    """

    def with_halves(report: FinishedRun, parts: Parts | None = None) -> dict[str, Any]:
        return record(report, parts) | {"halves": halves(report, parts)}

    monkeypatch.setattr(many_runs, "record", with_halves)
    return check


@pytest.mark.parametrize("name", interval_joins(OF_LATENCY))
def test_claims_are_those_of_the_record_and_results_as_late_in_both_halves_of_what_is_measured(
    name: str, check_with_halves: Callable[[str], Findings]
) -> None:
    findings = check_with_halves(name)
    assert len(findings.results) == len(study_of(name, "smoke").points)
    for result in findings.results.values():
        assert result.record
        earlier, later = result.record["halves"]
        for measure in MEASURES:
            late = look_up(later, measure)
            assert late == pytest.approx(look_up(earlier, measure), rel=TOLERANCE)


@pytest.mark.parametrize("name", STEADY)
def test_claims_are_those_of_the_record_and_rates_the_same_in_both_halves_of_what_is_measured(
    name: str,
    check_with_halves: Callable[[str], Findings],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> None:
    if needs_spark(name):
        request.getfixturevalue("spark")
        monkeypatch.setenv("JOINSIM_PREPARED", str(tmp_path))
    findings = check_with_halves(name)
    seen = 0
    for chart in findings.study.charts:
        for curve in chart.curves:
            for numbers, measure in zip(curve.points, curve.measures, strict=True):
                for number in numbers if measure.startswith(RATES) else ():
                    earlier, later = (findings.results[number].record or {})["halves"]
                    rate = look_up(later, measure)
                    before = look_up(earlier, measure)
                    assert rate == pytest.approx(before, rel=TOLERANCE_OF_RATES), curve.variant
                    seen += 1
    assert seen


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
