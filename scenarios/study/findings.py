"""What came out of a study: its points run, values by panel, the paper's beside, claims judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import isfinite
from pathlib import Path
from typing import Any

from netsim.cost import load_profile
from scenarios.config import RunConfig
from scenarios.formatting import format_bytes
from scenarios.machine_record import describe_machine, free_memory_bytes
from scenarios.many_runs import Preparation, RunResult, one_ray_for, run_one_of_many
from scenarios.measures import look_up
from scenarios.plan import Plan, make_plan
from scenarios.run_directory import POINTS, write_json
from scenarios.run_json import versions
from scenarios.scenario_files import ConfigError
from scenarios.study.estimates import Estimate
from scenarios.study.inputs import digest_inputs
from scenarios.study.judging import Estimates, Finding, judge_claim, values_of
from scenarios.study.kinds import kernel_clock
from scenarios.study.section import Claim, Paper
from scenarios.study.study import Chart, Point, Study
from topologies import TopologyError

COUNTED = {"correctness": "tuples", "approximation.recall": "verdict.expected"}
"""Measures that are shares, to how many things they are a share of."""


@dataclass(frozen=True, kw_only=True)
class Findings:
    """A finished study.

    Attributes
    ----------
    study
        What was run.
    results
        Point number to what came out.
    inputs
        Digest of what it was run with, see `scenarios.study.inputs`.
    date
        Day of its last run, of UTC.
    """

    study: Study
    results: Mapping[int, RunResult]
    inputs: str = ""
    date: str = ""

    @classmethod
    def read(cls, study: Study, directory: Path) -> Findings | None:
        """Return the findings of ``study.json``, judged by the claims of *study*.

        None where there are none, where a run failed, or where anything differs that results
        depend on.
        """
        try:
            written = json.loads((directory / "study.json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        inputs = digest_inputs(study)
        if written.get("inputs") != inputs or "date" not in written:
            return None
        if any(one["failure"] for one in written["points"]):
            return None
        results = {}
        for point, record in zip(study.points, written["points"], strict=True):
            del record["number"], record["label"]
            judged = {key: record.pop(key) for key in ("claims_exact", "passed", "failure")}
            results[point.number] = RunResult(config=point.config, record=record, **judged)
        return cls(study=study, results=results, inputs=inputs, date=written["date"])

    def curves(self, chart: Chart) -> dict[str, Estimates]:
        """Return variant to what was measured, one per x; None where a run failed."""
        return {
            curve.variant: [
                self._estimate(numbers, measure, curve.per)
                for numbers, measure in zip(curve.points, curve.measures, strict=True)
            ]
            for curve in chart.curves
        }

    def _estimate(self, numbers: Sequence[int], measure: str, per: float) -> Estimate | None:
        records = [self.results[number].record for number in numbers]
        if not all(records) or not records:
            return None
        values = [look_up(record, measure) for record in records]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        trials = COUNTED.get(measure) if len(numbers) > 1 else None
        counted = sum(int(look_up(record, trials) or 0) for record in records) if trials else 0
        return Estimate(tuple(value / per for value in known), counted=counted)

    @property
    def remarks(self) -> list[str]:
        """What a reader should know of its values, a sentence each."""
        return [*self.study.remarks, *([self.seeds_remark] if self.seeds_remark else [])]

    @property
    def seeds_remark(self) -> str:
        """How figures of several seeds are to be read; nothing where there is one."""
        repeat = self.study.section.repeat
        if repeat == 1:
            return self._turns_remark
        estimates = [
            one
            for chart in self.study.charts
            for curve in self.curves(chart).values()
            for one in curve
            if one is not None
        ]
        same = [one.interval[0] == one.interval[1] for one in estimates]
        if same and all(same):
            return (
                f"All {repeat} seeds came to the same figures: nothing random enters them, so that "
                "there is no interval to give."
            )
        remark = f"Means of {repeat} seeds, with 95 % intervals (Student's t"
        remark += "; of shares Wilson's where that is wider)." if self._has_shares else ")."
        return remark + (" = marks what all seeds came to alike." if any(same) else "")

    @property
    def _turns_remark(self) -> str:
        turns = self.study.turns
        if turns == 1 or not self.study.is_measured:
            return ""
        return (
            f"Measured values are means of {turns} turns, each of all of them, with 95 % intervals "
            "(Student's t)."
        )

    @property
    def _has_shares(self) -> bool:
        return any(
            measure in COUNTED
            for chart in self.study.charts
            for curve in chart.curves
            for measure in curve.measures
        )

    def paper(self, chart: Chart) -> list[tuple[Paper, list[float], list[Estimate | None]]]:
        """Return what the paper reports for *chart*: its values, and ours of the same."""
        curves, section = self.curves(chart), self.study.section
        return [
            (
                paper,
                [paper.values[place] for place in chart.axis.places],
                values_of(paper.of, curves),
            )
            for paper in section.paper
            if section.is_about(paper, chart.panel)
        ]

    @property
    def claims(self) -> list[Finding]:
        """Every claim, judged in every panel that it is about."""
        return [
            self._judge(claim, chart)
            for claim in self.study.section.claims
            if not claim.scales or self.study.scale in claim.scales
            for chart in self.study.charts
            if self.study.section.is_about(claim, chart.panel)
        ]

    def _judge(self, claim: Claim, chart: Chart) -> Finding:
        """Judge a claim in a panel, at the positions that all of its variants are run at."""
        curves, run = self.curves(chart), chart.positions_run(claim.of)
        places = [chart.axis.places[i] for i in run]
        values = {name: [curves[name][i] for i in run] for name in claim.of}
        scale = "" if self.study.changed else self.study.scale
        numbers = self.study.section.numbers(claim, chart.panel)
        finding = judge_claim(claim, chart.panel.name, values, places, scale, numbers)
        return replace(finding, kind=chart.curve(claim.of[0]).kind)

    def as_json(self, replay: str) -> dict[str, Any]:
        """Return it as one JSON object with stable keys."""
        base, ran = self.study.base, self.study.section.ran
        return {
            "study": base.name,
            "title": base.title,
            "figure": base.figure,
            "scale": self.study.scale,
            "seed": base.seed,
            "repeat": self.study.section.repeat,
            "query": " ".join(base.query.split()),
            "note": self.study.section.note,
            "paper_ran": ran.model_dump(exclude_none=True) if ran else None,
            "reduced": self.study.section.reduced or None,
            "assumptions": [str(one) for one in self.study.assumptions],
            "charts": [self._chart(chart) for chart in self.study.charts],
            "claims": [
                {
                    "text": finding.claim.text,
                    "panel": finding.panel,
                    "of": finding.claim.of,
                    "kind": finding.kind,
                    "stated": finding.claim.stated,
                    "paper": finding.claim.paper,
                    "holds": finding.holds,
                    "undecided": finding.undecided,
                    "values": finding.detail,
                    "why": finding.why,
                }
                for finding in self.claims
            ],
            "points": [
                {
                    "number": point.number,
                    "label": point.label,
                    "claims_exact": self.results[point.number].claims_exact,
                    "passed": self.results[point.number].passed,
                    "failure": self.results[point.number].failure,
                    **self.results[point.number].record,
                }
                for point in self.study.points
            ],
            "inputs": self.inputs,
            "date": self.date,
            "machine": describe_machine() if self.study.is_measured else None,
            "versions": versions(),
            "replay": replay,
        }

    def write_json(self, directory: Path, replay: str) -> None:
        """Write ``study.json``."""
        write_json(directory / "study.json", self.as_json(replay))

    def _chart(self, chart: Chart) -> dict[str, Any]:
        curves = self.curves(chart)
        return {
            "panel": chart.panel.name,
            "axis": chart.axis.label,
            "x": [chart.axis.name(place) for place in chart.axis.places],
            "measure": chart.label,
            "variants": [
                {
                    "name": curve.variant,
                    "kind": curve.kind,
                    "unit": curve.label,
                    "measures": curve.measures,
                    "values": _means(curves[curve.variant]),
                    "intervals": _intervals(curves[curve.variant]) if curve.is_repeated else None,
                    "points": curve.points
                    if curve.is_repeated
                    else [one[0] if one else None for one in curve.points],
                }
                for curve in chart.curves
            ],
            "paper": [
                {"of": paper.of, "values": list(map(_finite, theirs)), "ours": _means(ours)}
                for paper, theirs, ours in self.paper(chart)
            ],
        }


def _finite(value: float) -> float | None:
    """Return *value*, or None where JSON has no number for it."""
    return value if isfinite(value) else None


def _means(curve: Estimates) -> list[float | None]:
    return [None if one is None else _finite(one.mean) for one in curve]


def _intervals(curve: Estimates) -> list[list[float | None] | None]:
    """Return the 95 % intervals; None where there is no value, or all seeds came to one."""
    return [
        None
        if one is None or one.interval[0] == one.interval[1]
        else [_finite(end) for end in one.interval]
        for one in curve
    ]


def plan_points(study: Study, preparation: Preparation) -> dict[int, Plan]:
    """Return a plan for each point, so that what is wrong with any is known before the first runs.

    A survey needs none, but memory. Raise :exc:`ConfigError` naming the point.
    """
    plans = {}
    for point in study.points:
        if point.config.survey:
            check_memory(study, point)
            continue
        try:
            plans[point.number] = make_plan(point.config, prepare=preparation)
        except (ConfigError, TopologyError) as error:
            raise ConfigError(
                f"{study.base.name}, point {point.number} ({point.label}): {error}"
            ) from None
    return plans


def check_memory(study: Study, point: Point) -> None:
    """Raise :exc:`ConfigError` where the survey of a point needs more memory than there is."""
    assert point.config.survey is not None
    needed, free = point.config.survey.memory_bytes, free_memory_bytes()
    if needed > free:
        raise ConfigError(
            f"{study.base.name}, point {point.number} ({point.label}): it needs about "
            f"{format_bytes(needed)} of memory and {format_bytes(free)} are free; take a smaller "
            "scale, or a file of your own that extends the scenario and runs fewer points (only)"
        )


def run_points(
    study: Study,
    plans: dict[int, Plan],
    directory: Path,
    *,
    on_point: Callable[[int, str], None],
    replay: Callable[[Point], str],
) -> Findings:
    """Run every point into a folder of its own below *directory*.

    Raise :exc:`ConfigError` when a point has no number of the name that is to be measured.
    """
    results, inputs = {}, digest_inputs(study)
    with one_ray_for(plans.values()):
        for done, point in enumerate(study.in_turns):
            on_point(done, point.label)
            if point.number in plans:
                result = run_one_of_many(
                    plans[point.number],
                    directory / POINTS / f"{point.number:03}",
                    replay=replay(point),
                    parts=study.section.parts,
                    keep=False,
                    kernel_clock=kernel_clock(study.measures_of(point)),
                )
            else:
                result = survey_result(point.config)
            results[point.number] = result
            if result.record:
                check_measures(study, point, result.record)
    date = f"{datetime.now(UTC):%Y-%m-%d}"
    return Findings(study=study, results=results, inputs=inputs, date=date)


def survey_result(config: RunConfig) -> RunResult:
    """Take the survey of a point that is one."""
    from scenarios.surveys.survey import take_survey  # loads all indexes, which runs need not

    assert config.survey is not None  # what has no plan
    surveyed = take_survey(config.survey, seed=config.seed, profile=load_profile(config.profile))
    record = surveyed.record | {"checked": surveyed.checked}
    return RunResult(config=config, record=record, passed=surveyed.passed, claims_exact=False)


def check_measures(study: Study, point: Point, record: dict[str, object]) -> None:
    """Raise :exc:`ConfigError` where the *record* of a point lacks what the study looks up."""
    for measure in study.measures_of(point):
        try:
            look_up(record, measure)
        except KeyError as error:
            raise ConfigError(f"{study.base.name}: {error.args[0]}") from None
