"""What came out of a study: values by panel, the paper's beside, claims judged.

Findings are read again from where they were written as long as nothing has changed that results
depend on: `digest_inputs` is equal.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any

import pyarrow as pa

from netsim.cost import profile_files
from scenarios.config import RunConfig
from scenarios.machine import describe_machine, versions
from scenarios.many_runs import RunResult
from scenarios.measures import look_up
from scenarios.plan import topology_of
from scenarios.run_directory import WrittenResult, read_json
from scenarios.streams import REPOSITORY, find_file
from scenarios.study.judging import Estimate, Estimates, Finding, judge_claim, values_of
from scenarios.study.section import Claim, Paper
from scenarios.study.study import Chart, Study
from scenarios.tables import add_to_digest

COUNTED = {"correctness": "tuples", "approximation.recall": "verdict.expected"}
"""Measures that are shares, to how many things they are a share of."""

_JUDGED = ("claims_exact", "passed", "failure")
_PACKAGES = ("actors", "joins", "netsim", "scenarios", "spark_bridge", "topologies")


@dataclass(frozen=True, kw_only=True)
class Findings(WrittenResult):
    """A finished study."""

    file = "study.json"

    study: Study
    """What was run."""
    results: Mapping[int, RunResult]
    """Point number to what came out."""
    inputs: str = ""
    """Digest of what it was run with, see `digest_inputs`."""
    date: str = ""
    """Day of its last run, of UTC."""

    @classmethod
    def read(cls, study: Study, directory: Path) -> Findings | None:
        """Return the findings of ``study.json``, judged by the claims of *study*.

        None where there are none, where a run failed, where anything differs that results
        depend on, or where the file is damaged.
        """
        try:
            written = read_json(directory / cls.file)
        except (OSError, ValueError):
            return None
        inputs = digest_inputs(study)
        with suppress(KeyError, TypeError, AttributeError, ValueError):
            return cls._of(study, written, inputs)
        return None

    @classmethod
    def _of(cls, study: Study, written: Any, inputs: str) -> Findings | None:
        if written.get("inputs") != inputs:
            return None
        if any(one["failure"] for one in written["points"]):
            return None
        results = {}
        for point, record in zip(study.points, written["points"], strict=True):
            del record["number"], record["label"]
            judged = {key: record.pop(key) for key in _JUDGED}
            results[point.number] = RunResult(config=point.config, record=record, **judged)
        return cls(study=study, results=results, inputs=inputs, date=written["date"])

    def curves(self, chart: Chart) -> dict[str, Estimates]:
        """Return variant to what was measured, one per x; None where a run failed, or was wrong."""
        return {
            curve.variant: [
                self._estimate(numbers, measure, curve.per)
                for numbers, measure in zip(curve.points, curve.measures, strict=True)
            ]
            for curve in chart.curves
        }

    def _estimate(self, numbers: Sequence[int], measure: str, per: float) -> Estimate | None:
        results = [self.results[number] for number in numbers]
        records = [result.record for result in results]
        if not all(records) or not records or any(result.passed is False for result in results):
            return None
        values = [look_up(record, measure) for record in records]
        known = [value for value in values if value is not None]
        if len(known) < len(values):
            return None
        trials = COUNTED.get(measure) if len(numbers) > 1 else None
        counted = sum(int(look_up(record, trials) or 0) for record in records) if trials else 0
        return Estimate(tuple(value / per for value in known), counted=counted, whole=1 / per)

    @property
    def remarks(self) -> list[str]:
        """What a reader should know of its values, a sentence each."""
        return list(filter(None, [*self.study.remarks, self.seeds_remark]))

    @property
    def seeds_remark(self) -> str:
        """How figures of several seeds are to be read; nothing where there is one."""
        repeat = self.study.section.repeat
        if repeat == 1:
            if self.study.turns == 1 or not self.study.is_measured:
                return ""
            return (
                f"Measured values are means of {self.study.turns} turns, each of all of them, with "
                "95 % intervals (Student's t)."
            )
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
        shares = any(
            measure in COUNTED for curve in self.study.curves for measure in curve.measures
        )
        remark = f"Means of {repeat} seeds, with 95 % intervals (Student's t"
        remark += "; of shares Wilson's where that is wider)." if shares else ")."
        return remark + (" = marks what all seeds came to alike." if any(same) else "")

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
        """Every claim that is judged at the study's scale, in every panel that it is about."""
        return [
            self._judge(claim, chart)
            for claim in self.study.section.claims
            for chart in self.study.charts
            if self.study.judges(claim, chart)
        ]

    def _judge(self, claim: Claim, chart: Chart) -> Finding:
        """Judge a claim in a panel, at the positions that all of its variants are run at."""
        curves, run = self.curves(chart), chart.positions_run(claim.of)
        places = [chart.axis.places[i] for i in run]
        values = {name: [curves[name][i] for i in run] for name in claim.of}
        scale = "" if self.study.changed else self.study.scale
        numbers = self.study.section.numbers(claim, chart.panel)
        finding = judge_claim(claim, chart.panel.name, values, places, scale, numbers)
        reported = tuple(numbers[place] for place in chart.axis.places if place in numbers)
        return replace(finding, kind=chart.curve(claim.of[0]).kind, reported=reported)

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
            "query": self.study.query_line,
            "note": self.study.section.note,
            "paper_ran": ran.model_dump(exclude_none=True) if ran else None,
            "reduced": self.study.section.reduced or None,
            "assumptions": [str(one) for one in self.study.assumptions],
            "charts": [self._chart(chart) for chart in self.study.charts],
            "claims": [
                finding.as_json() | {"of": finding.claim.of, "values": finding.detail}
                for finding in self.claims
            ],
            "points": [
                {"number": point.number, "label": point.label}
                | {key: getattr(self.results[point.number], key) for key in _JUDGED}
                | self.results[point.number].record
                for point in self.study.points
            ],
            "inputs": self.inputs,
            "date": self.date,
            "machine": describe_machine() if self.study.is_measured else None,
            "versions": versions(),
            "replay": replay,
        }

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


def digest_inputs(study: Study) -> str:
    """Return a digest of the runs' configurations, their data and prices, the code and libraries.

    Where anything is measured, so is the machine: what another one measured is not reused.
    Claims and labels are no part of it: results are judged and drawn anew. Raise
    :exc:`ConfigError` where there is no data.
    """
    configs = [point.config for point in study.points]
    return digest_runs(configs, parts=study.section.parts, measured=study.is_measured)


def digest_runs(
    configs: Sequence[RunConfig],
    *,
    parts: Mapping[str, Sequence[str]],
    measured: bool,
    tables: Iterable[pa.Table] = (),
) -> str:
    """Return the digest of some runs; *tables* are the data that the caller passed in memory."""
    digest = hashlib.sha256(repr((versions(), _digest_code(), parts)).encode())
    if measured:
        digest.update(repr(describe_machine()).encode())
    for config in configs:
        digest.update(config.model_dump_json().encode())
        for path in profile_files(config.profile):
            digest.update(path.read_bytes())
        for package in sorted(_packages(config)):
            digest.update(_digest_package(package).encode())
    for path in _data(configs):
        file = path.stat()
        digest.update(f"{path} {file.st_mtime_ns} {file.st_size}\n".encode())
    for table in tables:
        add_to_digest(digest, table)
    return digest.hexdigest()


def _packages(config: RunConfig) -> set[str]:
    """Return the packages, or modules, that a topology and structures come from if not ours."""
    named = [value for value in config.parameters.values() if isinstance(value, str)]
    modules = [name.partition(":")[0] for name in named if ":" in name]
    if config.survey is None:
        modules.append(type(topology_of(config)).__module__)
    return {module.partition(".")[0] for module in modules} - {*_PACKAGES}


@cache
def _digest_package(name: str) -> str:
    """Return a digest of the sources of a package, or a module, that is loaded."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None:
        return ""
    path = Path(file)
    return _digest_files(path.parent.rglob("*.py") if path.stem == "__init__" else [path])


def _data(configs: Sequence[RunConfig]) -> Iterator[Path]:
    """Return the files that streams are read from; synthetic streams have none."""
    streams = {stream.files for config in configs for stream in config.streams}
    for files in sorted(files for files in streams if files):
        path = find_file(files)
        yield path.resolve()
        yield from sorted(path.rglob("*"))


@cache
def _digest_code() -> str:
    files = [path for package in _PACKAGES for path in (REPOSITORY / package).rglob("*")]
    scenarios = REPOSITORY / "scenarios"
    return _digest_files(
        path
        for path in files
        if path.suffix == ".py" or (path.suffix == ".toml" and scenarios not in path.parents)
    )


def _digest_files(paths: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(path.read_bytes())
    return digest.hexdigest()
