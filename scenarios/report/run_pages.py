"""The page of a run, and that of several runs side by side.

A page of several runs has their figures, and their pictures on one axis.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from scenarios.formatting import (
    NO_VALUE,
    VERDICT_WORDS,
    TextTable,
    format_bytes,
    format_count,
    format_ms,
)
from scenarios.report.page import fill_page
from scenarios.report.picture import SERIES, pictures_json
from scenarios.report.result_tables import checks_table, offenders_table
from scenarios.report.run_load import NEAR_SATURATION
from scenarios.report.run_pictures import (
    MESSAGES_MAX,
    Columns,
    load_picture,
    run_pictures,
    stages_picture,
    time_picture,
)
from scenarios.report.run_settings import settings_tables
from scenarios.report.run_summary import describe_verdict, summary
from scenarios.run import FinishedRun
from scenarios.run_directory import RUN_RECORD, read_json
from scenarios.scenario_files import ConfigError, validate

_DATA = re.compile(r'<script type="application/json" id="pictures">(.*?)</script>', re.DOTALL)
_DRAWN = ("time", "stages", "load")
"""Pictures of a run that several runs share."""


def write_report(finished: FinishedRun, path: Path, replay: str) -> None:
    """Write the page of a run to *path*; *replay* is the command that repeats the run.

    Raise :exc:`OutputError` when the file cannot be written.
    """
    figures = run_pictures(finished)
    finished.clock.lap("report")
    run, plan = summary(finished), finished.plan
    remarks = [*plan.notes, *plan.warnings, *plan.assumptions]
    remarks += filter(None, [finished.price_note])
    fill_page(
        path,
        "report.html",
        run=run,
        word=VERDICT_WORDS[finished.verdict.passed],
        verdict=describe_verdict(finished.verdict),
        checks=checks_table(finished.verdict),
        offenders=offenders_table(finished) if finished.verdict.offenders else None,
        remarks=remarks,
        figures=figures,
        near_saturation=NEAR_SATURATION,
        messages_max=MESSAGES_MAX,
        streams=_streams_table(run["streams"]),
        settings=settings_tables(finished),
        wall=finished.clock,
        replay=replay,
    )
    finished.clock.lap("report")


def _streams_table(streams: Sequence[Mapping[str, Any]]) -> TextTable:
    rows = [
        (one["name"], one["path"], format_count(one["rows"]), format_count(one["rejected"]))
        for one in streams
    ]
    columns = ("stream", "read from", "tuples read", "rows rejected")
    return TextTable(columns=columns, rows=rows, text_columns=2)


class _Latency(BaseModel):
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None


class _Network(BaseModel):
    messages: int
    bytes: int


class _Verdict(BaseModel):
    passed: bool | None
    produced: int | None


class _Summary(BaseModel):
    """What a page of several runs shows of each one's ``run.json``."""

    scenario: str
    topology: str
    backend: str
    clock: str
    seed: int
    digest: str | None
    tuples: int
    throughput_tps: float | None
    latency_ms: _Latency
    network: _Network
    memory_bytes: int | None
    verdict: _Verdict


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """A run as its folder has it: the summary of ``run.json``, and the data of its pictures."""

    where: str
    summary: Mapping[str, Any]
    data: Mapping[str, Columns]

    @classmethod
    def of(cls, finished: FinishedRun) -> RunRecord:
        """Return the record of a run that is at hand."""
        pictures = json.loads(pictures_json(run_pictures(finished).pictures))
        return cls(where=str(finished.directory), summary=summary(finished), data=_data(pictures))

    @classmethod
    def read(cls, directory: Path) -> RunRecord:
        """Return the record in a run's folder.

        Raise :exc:`ConfigError` where there is none, or one that is damaged.
        """
        try:
            record = read_json(directory / RUN_RECORD)
            page = (directory / "report.html").read_text(encoding="utf-8")
        except (OSError, ValueError):
            raise ConfigError(
                f"{directory} is no finished run: it needs run.json and report.html, which "
                "`joinsim run` writes"
            ) from None
        found = _DATA.search(page)
        if found is None:
            raise ConfigError(f"{directory}/report.html is of an earlier version: run it again")
        validate(_Summary, record, where=f"{directory / RUN_RECORD} is damaged, run it again")
        try:
            data = _data(json.loads(found[1]))
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{directory}/report.html is damaged: its data cannot be read ({error}); run it "
                "again"
            ) from None
        return cls(where=str(directory), summary=record, data=data)


def _data(pictures: Mapping[str, Any]) -> dict[str, Columns]:
    return {name: pictures[name]["data"] for name in _DRAWN}


def write_runs_page(runs: Sequence[RunRecord], path: Path, replay: str) -> Path:
    """Write the page of *runs*; *replay* is the command that repeats it. Return *path*.

    Raise :exc:`ConfigError` where there are fewer than two runs or too many to tell apart,
    :exc:`OutputError` where the file cannot be written.
    """
    if not 2 <= len(runs) <= len(SERIES):
        raise ConfigError(f"{len(runs)} run(s): a page can have 2 to {len(SERIES)} side by side")
    letters = "ABCDEFGH"[: len(runs)]
    names = [f"{a}: {run.summary['topology']}" for a, run in zip(letters, runs, strict=True)]
    colours = dict(zip(names, SERIES, strict=False))
    data = {name: _merged(name, runs, names, letters) for name in _DRAWN}
    return fill_page(
        path,
        "runs.html",
        runs=dict(zip(names, runs, strict=True)),
        numbers=_numbers(runs, names),
        pictures={
            "time": time_picture(data["time"], colours),
            "stages": stages_picture(data["stages"]),
            "load": load_picture(data["load"], colours),
        },
        replay=replay,
    )


def _merged(
    name: str, runs: Sequence[RunRecord], names: Sequence[str], letters: Sequence[str]
) -> Columns:
    """Return the data of the runs' pictures of this name as one, with a column for the run."""
    merged: dict[str, list[object]] = {column: [] for column in ("run", *runs[0].data[name])}
    for run, label, letter in zip(runs, names, letters, strict=True):
        for column, values in run.data[name].items():
            rows = [f"{value}, {letter}" for value in values] if column == "operator" else values
            merged[column] += rows
        merged["run"] += [label] * len(next(iter(run.data[name].values())))
    if name == "time":
        return merged
    operators = [str(operator)[:-1] for operator in merged["operator"]]
    first = {operator: place for place, operator in reversed(list(enumerate(operators)))}
    order = sorted(range(len(operators)), key=lambda i: first[operators[i]])
    return {column: [values[i] for i in order] for column, values in merged.items()}


def _numbers(runs: Sequence[RunRecord], names: Sequence[str]) -> TextTable:
    """Return the main figures, a row each and a column per run."""

    def row(name: str, values: Sequence[Any], write: Any) -> tuple[str, ...]:
        return (name, *(NO_VALUE if value is None else write(value) for value in values))

    all_ = [run.summary for run in runs]
    rows = [
        ("verdict", *(VERDICT_WORDS[one["verdict"]["passed"]] for one in all_)),
        row("pairs", [one["verdict"]["produced"] for one in all_], format_count),
        row("tuples", [one["tuples"] for one in all_], format_count),
        row("tuples/s", [one["throughput_tps"] for one in all_], format_count),
        *(
            row(f"latency {p}, ms", [one["latency_ms"][p] for one in all_], format_ms)
            for p in ("p50", "p95", "p99", "max")
        ),
        row("messages", [one["network"]["messages"] for one in all_], format_count),
        row("network", [one["network"]["bytes"] for one in all_], format_bytes),
        row("peak memory, real", [one["memory_bytes"] for one in all_], format_bytes),
    ]
    return TextTable(columns=("", *names), rows=rows, text_columns=1)
