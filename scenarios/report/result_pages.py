"""The pages, and the pictures, of studies, comparisons, advice and reproductions.

What is compared is drawn as a row of bars for each system or engine, a panel per measure.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from pathlib import Path
from typing import Any

from actors.whole_files import write_text
from scenarios.advice import TOML, CandidateRanking
from scenarios.engines.comparison import IN_THE_CLOCK, EngineRanking
from scenarios.formatting import VERDICT_WORDS, TextTable, by_reason, format_many
from scenarios.many_runs import RunResult, SystemRanking
from scenarios.measures import look_up
from scenarios.plan import bound_line
from scenarios.report.picture import (
    Picture,
    Spec,
    colour_of,
    fill_page,
    layer,
    number_axis,
    row_axis,
    short,
    tooltip,
)
from scenarios.report.result_tables import (
    GOAL_COLUMNS,
    advice_table,
    changes_table,
    chart_table,
    claims_table,
    comparison_table,
    engine_notes,
    engines_table,
    left_out_table,
    measured_table,
    points_table,
    reproduction_table,
)
from scenarios.report.run_pages import run_pictures
from scenarios.report.study_picture import kinds_key, study_picture
from scenarios.run import FinishedRun
from scenarios.scenario_files import ConfigError
from scenarios.study.findings import Findings
from scenarios.study.reproduction import (
    ClaimCounts,
    ReproducedPaper,
    ReproducedStudy,
    went_wrong,
    what_is_assumed,
)
from scenarios.sweep import MEASURES

_MEASURES = MEASURES | {
    "state_bytes.total": "state at the end, bytes",
    "kernel_seconds.total": "kernel time, s",
}
_EXACTNESS_COLOURS = {
    "exact": "blue",
    "not exact, and does not claim to be": "orange",
    "not exact, though it claims to be": "red",
}
_EQUALITY_COLOURS = {"found exactly the expected pairs": "blue", "found others": "red"}
_LINE = 12
"""Pixels between two lines of a name."""


@singledispatch
def write_page(result: Any, path: Path, replay: str) -> Path:
    """Write the page of a study, a comparison, advice or a reproduction to *path*; return that.

    Raise :exc:`OutputError` when the file cannot be written.
    """
    raise TypeError(f"a {type(result).__name__} has no page")


@singledispatch
def picture_of(result: Any) -> Picture:
    """Return the picture of a run, a study, a comparison or advice, for a file of its own.

    Raise :exc:`ConfigError` where it has none.
    """
    raise ConfigError(
        f"a {type(result).__name__} has no figure of its own: draw one of its studies"
    )


picture_of.register(Findings, study_picture)


@picture_of.register
def _(finished: FinishedRun) -> Picture:
    return run_pictures(finished)[0]["time"]


@picture_of.register
def _(comparison: SystemRanking) -> Picture:
    return comparison_picture(comparison.results)


@picture_of.register
def _(advice: CandidateRanking) -> Picture:
    judged = [one for one in advice.shown if one.last]
    results = [RunResult(config=advice.config, record=one.saturated[0]) for one in judged]
    columns: dict[str, list[float | None]] = {}
    for goal, title in GOAL_COLUMNS.items():  # as in the table
        found = [one.estimate(goal) for one in judged]
        columns[title] = [value.mean if value else None for value in found]
    kernel = "kernel_seconds.total"
    columns[_MEASURES[kernel]] = [_value(one, kernel) for one in results]
    return _bars(
        "system",
        [one.label for one in judged],
        [_answer(one) for one in results],
        columns,
        _EXACTNESS_COLOURS,
    )


def comparison_picture(results: Mapping[str, RunResult]) -> Picture:
    """Return a picture of the systems that ran, in the order given."""
    ran = {label: result for label, result in results.items() if result.record}
    words = [_answer(one) for one in ran.values()]
    columns = {
        title: [_value(one, name) for one in ran.values()] for name, title in _MEASURES.items()
    }
    return _bars("system", list(ran), words, columns, _EXACTNESS_COLOURS)


def _answer(result: RunResult) -> str:
    """Return whether a run was exact, a word of `_EXACTNESS_COLOURS`."""
    exact, excused, wrong = _EXACTNESS_COLOURS
    return exact if result.is_exact is not False else wrong if result.claims_exact else excused


def _value(result: RunResult, name: str) -> float | None:
    try:
        return look_up(result.record, name)
    except KeyError:  # actors in other processes are not timed
        return None


@picture_of.register
def engines_picture(comparison: EngineRanking) -> Picture:
    """Return a picture of the engines that ran, the fastest first.

    A measure that none of them has is left out.
    """
    measured = comparison.measured
    equal, other = _EQUALITY_COLOURS
    columns: dict[str, list[float | None]] = {
        "throughput, tuples/s": [comparison.throughput_tps(name) for name in measured],
        "steady, tuples/s": [one.steady_tps for one in measured.values()],
        "latency p95, ms": [(one.latency_ms or {}).get("p95") for one in measured.values()],
        "shuffled, bytes": [one.shuffled_bytes for one in measured.values()],
        "memory, bytes": [one.memory_bytes for one in measured.values()],
    }
    first, *others = columns
    some = [first, *(title for title in others if any(v is not None for v in columns[title]))]
    words = [equal if comparison.equals(name) else other for name in measured]
    return _bars(
        "engine",
        list(measured),
        words,
        {title: columns[title] for title in some},
        _EQUALITY_COLOURS,
    )


def _bars(
    kind: str,
    names: list[str],
    words: list[str],
    columns: Mapping[str, list[float | None]],
    colours: Mapping[str, str],
) -> Picture:
    """Return a panel for each of *columns*; *words* are what *colours* are of."""
    fields = {
        title: title.replace(", ", "_").replace("/", "p").replace(" ", "_") for title in columns
    }
    data = {kind: names, "answer": words} | {fields[title]: columns[title] for title in columns}
    lines = max((name.count(", ") + 1 for name in names), default=1)
    panels: list[Spec] = []
    for title, field in fields.items():
        top = max((value for value in columns[title] if value is not None), default=0.0) or 1.0
        x = number_axis(field, None, domain=[0, 1.3 * top], nice=False)
        x["axis"] |= {"tickCount": 3, "grid": True, "labelFlush": 16}
        y = row_axis(kind, names)
        y["axis"] |= {
            "grid": False,
            "labelExpr": "split(datum.label, ', ')",
            "labelOffset": {  # the first line is drawn beside the bar's middle, the others below
                "condition": [
                    {
                        "test": f"length(split(datum.value, ', ')) === {n}",
                        "value": -_LINE / 2 * (n - 1),
                    }
                    for n in range(2, lines + 1)
                ],
                "value": 0,
            },
        }
        hover = tooltip(**{kind: kind, field: title, "answer": "answer"})
        bar = layer("bar", x=x, color=colour_of("answer", colours), tooltip=hover)
        text = {"calculate": short(field), "as": "text"}
        value = layer("text", text, look={"align": "left", "dx": 3}, x=x, text="text")
        panels.append(
            {
                "title": title,
                "height": 30 + 22 * max(1, len(names) * lines),
                "encoding": {"y": y},
                "layer": [bar, value],
            }
        )
    return Picture(
        title=f"Bars of each {kind}'s figures",
        data=data,
        panels=panels,
        columns=3,
        legend=colours,
    )


@write_page.register
def _(findings: Findings, path: Path, replay: str) -> Path:
    study, picture = findings.study, study_picture(findings)
    return fill_page(
        path,
        "study.html",
        study=study,
        query=study.query_line,
        pictures={"study": picture},
        kinds=kinds_key(study, picture),
        charts=[chart_table(findings, chart) for chart in study.charts],
        claims=claims_table(findings),
        points=points_table(findings),
        remarks=[*findings.remarks, *study.assumptions],
        replay=replay,
    )


@write_page.register
def write_reproduction(reproduction: ReproducedPaper, path: Path, replay: str) -> Path:
    """Write the page to *path*, and beside it ``reproduction.md`` and a folder per study."""
    directory = path.parent
    counts = ClaimCounts.of(reproduction.claims)
    stated = ClaimCounts.of(reproduction.statements).statements
    table = reproduction_table(reproduction.claim_records)
    parts = [
        f"# {reproduction.title}",
        f"`{replay}`",
        table.markdown(),
        *what_is_assumed(reproduction.assumption_records),
        *went_wrong({study.name: study.mistakes for study in reproduction.studies}),
        str(counts),
        stated,
    ]
    write_text(directory / "reproduction.md", "\n\n".join(parts) + "\n")
    studies: list[tuple[ReproducedStudy, Any, Picture | None, TextTable | None]] = []
    for study in reproduction.studies:
        picture, claims = None, None
        if study.findings is not None:
            page = directory / study.name / "study.html"
            page.parent.mkdir(exist_ok=True)
            write_page(study.findings, page, study.replay)
            picture = study_picture(study.findings)
            claims = claims_table(study.findings)
        studies.append((study, ClaimCounts.of(study.claims), picture, claims))
    return fill_page(
        path,
        "reproduce.html",
        reproduction=reproduction,
        word=VERDICT_WORDS[reproduction.passed],
        counts=counts,
        stated=stated,
        studies=studies,
        pictures={one.name: picture for one, _, picture, _ in studies if picture},
        kinds_key=kinds_key,
        replay=replay,
    )


@write_page.register
def _(comparison: SystemRanking, path: Path, replay: str) -> Path:
    base = comparison.base
    streams = [
        f"Stream {stream['name']}: {format_many(stream['rows'], 'tuple')}."
        for stream in comparison.streams
    ]
    live = base.clock == "live"
    best = "No system gave an exact answer that could be tested."
    if comparison.fastest:
        time = "by this machine's clock" if live else "in virtual time"
        best = (
            f"{comparison.fastest} is the fastest of those whose answer was exactly right, {time}."
        )
    return fill_page(
        path,
        "compare.html",
        name=base.name,
        what=f"{format_many(len(comparison.results), 'system')} compared",
        how=f", seed {base.seed}, {base.backend} backend",
        query=bound_line(base),
        opening=" ".join([best, *streams, f"Network: {base.network.preset}."]),
        pictures={"comparison": comparison_picture(comparison.results)},
        caption="Fastest first. "
        + (
            "All times are measured on this machine."
            if live
            else "Throughput and latency are virtual time, from counted work and one cost profile; "
            "kernel time is measured on this machine."
        ),
        table=comparison_table(comparison),
        notes=TextTable(
            title="Systems that cannot evaluate this query",
            columns=(),
            rows=[(", ".join(names), why) for why, names in by_reason(comparison.refused).items()],
        ),
        replay=replay,
    )


@write_page.register
def write_advice(advice: CandidateRanking, path: Path, replay: str) -> Path:
    """Write the page to *path*, and beside it the winner as ``advice.toml``, which it names."""
    write_text(path.parent / TOML, advice.toml)
    return fill_page(
        path,
        "advice.html",
        name=advice.config.name,
        what=f"advice for {', '.join(advice.goals)}",
        query=bound_line(advice.config),
        why=advice.why,
        data=str(advice.statistics),
        pictures={"comparison": picture_of(advice)} if advice.winner.last else {},
        table=advice_table(advice),
        note=advice.note,
        changes=changes_table(advice),
        left_out=left_out_table(advice),
        engines=measured_table(advice),
        lines=advice.reproduce(path.parent),
        toml=advice.toml if advice.runs_from_file else "",
        replay=replay,
    )


@write_page.register
def _(comparison: EngineRanking, path: Path, replay: str) -> Path:
    notes = engine_notes(comparison)
    return fill_page(
        path,
        "compare.html",
        name=comparison.plan.config.name,
        what=f"{format_many(len(comparison.measured), 'engine')} compared",
        how="",
        query=comparison.plan.query_line,
        opening=f"{format_many(comparison.rows, 'tuple')}; the oracle expects "
        f"{format_many(comparison.expected.pairs, 'pair')}.",
        pictures={"comparison": engines_picture(comparison)},
        caption=f"Fastest first. {IN_THE_CLOCK}",
        table=engines_table(comparison),
        notes=TextTable(title="Notes on engines", columns=(), rows=notes.rows),
        replay=replay,
    )
