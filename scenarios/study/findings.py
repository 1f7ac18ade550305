"""What came out of a study: its points run, values by panel, the paper's beside, claims judged."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, isfinite, isnan
from pathlib import Path
from typing import Any

from netsim.cost import load_profile
from scenarios.config import RunConfig
from scenarios.formatting import format_bytes, format_value
from scenarios.machine_record import describe_machine, free_memory_bytes
from scenarios.many_runs import Preparation, Result, run_one_of_many
from scenarios.measures import look_up
from scenarios.plan import Plan, make_plan
from scenarios.run_directory import POINTS, write_json
from scenarios.run_json import versions
from scenarios.scenario_files import ConfigError
from scenarios.study.inputs import digest_inputs
from scenarios.study.kinds import Kind
from scenarios.study.section import Claim, Paper
from scenarios.study.study import Chart, Point, Study
from topologies import TopologyError

Values = Sequence[float | None]
"""One per x; None where there is no number."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A claim judged in a panel.

    Attributes
    ----------
    claim, panel
        Which, and where.
    holds, detail
        None where numbers are missing; the numbers.
    kind
        Where the numbers come from.
    """

    claim: Claim
    panel: str
    holds: bool | None
    detail: str
    kind: Kind = "simulated"


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
    """

    study: Study
    results: Mapping[int, Result]
    inputs: str = ""

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
        if written.get("inputs") != inputs or any(one["failure"] for one in written["points"]):
            return None
        results = {}
        for point, record in zip(study.points, written["points"], strict=True):
            del record["number"], record["label"]
            judged = {key: record.pop(key) for key in ("claims_exact", "passed", "failure")}
            results[point.number] = Result(config=point.config, record=record, **judged)
        return cls(study=study, results=results, inputs=inputs)

    def curves(self, chart: Chart) -> dict[str, Values]:
        """Return variant to measured values, one per x; None where a run failed."""
        return {
            curve.variant: [
                look_up(record, measure)
                if number is not None and (record := self.results[number].record)
                else None
                for number, measure in zip(curve.points, curve.measures, strict=True)
            ]
            for curve in chart.curves
        }

    def paper(self, chart: Chart) -> list[tuple[Paper, list[float], list[float | None]]]:
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
            for chart in self.study.charts
            if self.study.section.is_about(claim, chart.panel)
        ]

    def _judge(self, claim: Claim, chart: Chart) -> Finding:
        """Judge a claim in a panel, at the positions that all of its variants are run at."""
        curves, run = self.curves(chart), chart.positions_run(claim.of)
        places = [chart.axis.places[i] for i in run]
        values = {name: [curves[name][i] for i in run] for name in claim.of}
        finding = judge_claim(claim, chart.panel.name, values, places)
        return replace(finding, kind=chart.curve(claim.of[0]).kind)

    def as_json(self, replay: str) -> dict[str, Any]:
        """Return it as one JSON object with stable keys."""
        base = self.study.base
        return {
            "study": base.name,
            "title": base.title,
            "figure": base.figure,
            "scale": self.study.scale,
            "seed": base.seed,
            "query": " ".join(base.query.split()),
            "note": self.study.section.note,
            "paper_parameters": self.study.section.parameters,
            "reduced": self.study.section.reduced or None,
            "charts": [self._chart(chart) for chart in self.study.charts],
            "claims": [
                {
                    "text": finding.claim.text,
                    "panel": finding.panel,
                    "of": finding.claim.of,
                    "kind": finding.kind,
                    "holds": finding.holds,
                    "values": finding.detail,
                    "why": finding.claim.why,
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
                    "values": curves[curve.variant],
                    "points": curve.points,
                }
                for curve in chart.curves
            ],
            "paper": [
                {"of": paper.of, "values": _finite(theirs), "ours": _finite(ours)}
                for paper, theirs, ours in self.paper(chart)
            ],
        }


def _finite(values: Values) -> list[float | None]:
    """Return *values* with None for what JSON has no number for."""
    return [value if value is not None and isfinite(value) else None for value in values]


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
    for point in study.points:
        on_point(point.number - 1, point.label)
        if point.number in plans:
            result = run_one_of_many(
                plans[point.number],
                directory / POINTS / f"{point.number:03}",
                replay=replay(point),
                parts=study.section.parts,
                keep=False,
            )
        else:
            result = _take_survey(point.config)
        results[point.number] = result
        if result.record:
            _check_measures(study, point, result.record)
    return Findings(study=study, results=results, inputs=inputs)


def _take_survey(config: RunConfig) -> Result:
    assert config.survey is not None  # what has no plan
    surveyed = config.survey.take(seed=config.seed, profile=load_profile(config.profile))
    record = surveyed.record | {"checked": surveyed.checked}
    return Result(config=config, record=record, passed=surveyed.passed, claims_exact=False)


def _check_measures(study: Study, point: Point, record: dict[str, object]) -> None:
    for chart in study.charts:
        for curve in chart.curves:
            for number, measure in zip(curve.points, curve.measures, strict=True):
                if number == point.number:
                    try:
                        look_up(record, measure)
                    except KeyError as error:
                        raise ConfigError(f"{study.base.name}: {error.args[0]}") from None


def judge_claim(
    claim: Claim, panel: str, curves: Mapping[str, Values], places: Sequence[int]
) -> Finding:
    """Return whether *claim* holds in a panel, with the numbers.

    *curves* have a value for each of the axis's positions *places*.
    """
    values = [
        value
        for place, value in zip(places, values_of(claim.of, curves), strict=True)
        if not claim.at or place in claim.at
    ]
    known = [value for value in values if value is not None and not isnan(value)]
    needed = 2 if claim.rises or claim.falls else 1
    holds = None if len(known) < max(needed, len(values)) else _holds(claim, known)
    detail = ", ".join(format_value(value) for value in values)
    return Finding(claim=claim, panel=panel, holds=holds, detail=detail)


def values_of(of: Sequence[str], curves: Mapping[str, Values]) -> list[float | None]:
    """Return the values of a variant, or of the ratio of two."""
    first = curves[of[0]]
    if len(of) == 1:
        return list(first)
    return [_ratio(a, b) for a, b in zip(first, curves[of[1]], strict=True)]


def _ratio(a: float | None, b: float | None) -> float | None:
    if a is None or b is None:
        return None
    if b == 0:
        return 1.0 if a == 0 else inf
    return a / b


def _holds(claim: Claim, values: Sequence[float]) -> bool:
    slack = claim.slack
    if claim.above:
        return min(values) > 1 - slack and max(values) > 1 + slack
    if claim.at_least is not None:
        return min(values) >= _below(claim.at_least, slack)
    if claim.at_most is not None:
        return max(values) <= _above(claim.at_most, slack)
    steps, first, last = list(pairwise(values)), values[0], values[-1]
    if claim.rises:
        return last > _above(first, slack) and all(b >= _below(a, slack) for a, b in steps)
    return last < _below(first, slack) and all(b <= _above(a, slack) for a, b in steps)


def _below(value: float, slack: float) -> float:
    return value - slack * abs(value)


def _above(value: float, slack: float) -> float:
    return value + slack * abs(value)
