"""What came out of a study: values by panel and variant, the paper's beside, and claims judged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from scenarios.many_runs import Result
from scenarios.measures import look_up
from scenarios.run_json import versions
from scenarios.study.claims import Finding, Values, judge_claim, subject
from scenarios.study.config import Chart, Study
from scenarios.study.section import Paper


@dataclass(frozen=True, kw_only=True)
class Findings:
    """A finished study.

    Attributes
    ----------
    study
        What was run.
    results
        Point number to what came out.
    """

    study: Study
    results: Mapping[int, Result]

    def curves(self, chart: Chart) -> dict[str, Values]:
        """Return variant to measured values, one per x; None where a run failed."""
        return {
            curve.variant: [
                look_up(record, measure) if (record := self.results[number].record) else None
                for number, measure in zip(curve.points, curve.measures, strict=True)
            ]
            for curve in chart.curves
        }

    def paper(self, chart: Chart) -> list[tuple[Paper, list[float], list[float | None]]]:
        """Return what the paper says of *chart*: its values, and ours of the same."""
        curves = self.curves(chart)
        said = [
            paper
            for paper in self.study.section.paper
            if self.study.section.speaks_of(paper, chart.panel)
        ]
        return [
            (
                paper,
                [paper.values[place] for place in chart.axis.places],
                subject(paper.of, curves),
            )
            for paper in said
        ]

    @property
    def claims(self) -> list[Finding]:
        """Every claim, judged in every panel that it is about."""
        found = []
        for claim in self.study.section.claims:
            for chart in self.study.charts:
                if self.study.section.speaks_of(claim, chart.panel):
                    curves = self.curves(chart)
                    found.append(judge_claim(claim, chart.panel.name, curves, chart.axis.places))
        return found

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
            "charts": [self._chart(chart) for chart in self.study.charts],
            "claims": [
                {
                    "text": finding.claim.text,
                    "panel": finding.panel,
                    "of": finding.claim.of,
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
            "versions": versions(),
            "replay": replay,
        }

    def write_json(self, directory: Path, replay: str) -> None:
        """Write ``study.json``."""
        text = json.dumps(self.as_json(replay), indent=2, ensure_ascii=False)
        (directory / "study.json").write_text(text + "\n", encoding="utf-8")

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
                    "measures": curve.measures,
                    "values": curves[curve.variant],
                    "points": curve.points,
                }
                for curve in chart.curves
            ],
            "paper": [
                {
                    "of": paper.of,
                    "values": _finite(theirs),
                    "ours": _finite(ours),
                }
                for paper, theirs, ours in self.paper(chart)
            ],
        }


def _finite(values: Values) -> list[float | None]:
    """Return *values* as JSON can hold them."""
    return [value if value is not None and isfinite(value) else None for value in values]
