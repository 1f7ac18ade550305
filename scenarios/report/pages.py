"""Pages that need nothing but themselves: of a run, a study, and comparisons.

All have one look, light and dark, from the templates beside this file. The libraries that draw and
fill them are imported when the first page is written, because that takes a second which commands
without a page need not spend.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import singledispatch
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors.whole_files import write_bytes, write_text
from scenarios.engines.comparison import IN_THE_CLOCK, EngineComparison
from scenarios.formatting import (
    VERDICT_WORDS,
    format_bytes,
    format_count,
    format_duration,
)
from scenarios.report.result_tables import (
    Table,
    chart_table,
    checks_table,
    claims_table,
    comparison_table,
    engine_notes,
    engines_table,
    offenders_table,
    points_table,
    reproduction_table,
)
from scenarios.report.run_analysis import STAGES
from scenarios.report.summary import describe_verdict, settings_tables
from scenarios.run import Report
from scenarios.run_json import summary
from scenarios.study.findings import Findings
from scenarios.study.reproduction import Reproduced, Reproduction, count_claims
from scenarios.study.statements import count_statements
from scenarios.system_comparison import Comparison
from topologies.assumptions import ASSUMPTIONS, Assumption

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure

    from scenarios.report.run_figures import OperatorStages

_TEMPLATES = Path(__file__).parent / "templates"


def write_report(report: Report, path: Path, replay: str) -> None:
    """Write the page of a run to *path*; *replay* is the command that repeats the run.

    Raise :exc:`OutputError` when the file cannot be written.
    """
    from scenarios.report.run_figures import run_figures

    figures = run_figures(report)
    report.clock.lap("report")
    run = summary(report)
    _write_page(
        path,
        "report.html",
        run=run,
        word=VERDICT_WORDS[report.verdict.passed],
        verdict=describe_verdict(report.verdict),
        checks=checks_table(report.verdict),
        offenders=offenders_table(report) if report.verdict.offenders else None,
        remarks=[*report.plan.notes, *report.plan.warnings, *report.plan.assumptions],
        figures=figures,
        stages=_stages_table(figures.stages),
        streams=_streams_table(run["streams"]),
        settings=settings_tables(report),
        wall=report.clock,
        replay=replay,
    )
    report.clock.lap("report")


@singledispatch
def write_page(result: Any, directory: Path, replay: str) -> Path:
    """Write the page and the picture of a study or a comparison; return the page's path.

    Raise :exc:`OutputError` when the file cannot be written.
    """
    raise TypeError(f"a {type(result).__name__} has no page")


@write_page.register
def write_study_page(findings: Findings, directory: Path, replay: str) -> Path:
    """Write ``study.html`` and ``study.png`` into *directory*."""
    page = directory / "study.html"
    _write_study(findings, page, replay)
    return page


def _write_study(findings: Findings, path: Path, replay: str) -> Markup:
    """Write the page of a study to *path* and its picture beside it; return the picture."""
    from scenarios.report.study_figure import study_figure

    study = findings.study
    picture = path.with_suffix(".png")
    svg = _draw(lambda: study_figure(findings), study.base.title, picture)
    _write_page(
        path,
        "study.html",
        study=study,
        query=" ".join(study.base.query.split()),
        svg=svg,
        charts=[chart_table(findings, chart) for chart in study.charts],
        claims=claims_table(findings),
        points=points_table(findings),
        remarks=[*findings.remarks, *study.assumptions],
        replay=replay,
    )
    return svg


@write_page.register
def write_reproduction_page(reproduction: Reproduction, directory: Path, replay: str) -> Path:
    """Write ``reproduce.html``, ``reproduction.md`` and a folder per study into *directory*."""
    counts, stated = count_claims(reproduction.claims), count_statements(reproduction.statements)
    table = reproduction_table(reproduction)
    mistakes = [
        f"- {study.name}: {one}" for study in reproduction.studies for one in study.mistakes
    ]
    parts = [
        f"# {reproduction.title}",
        f"`{replay}`",
        table.markdown(),
        *(["\n".join(["What went wrong:", "", *mistakes])] if mistakes else []),
        str(counts),
        str(stated),
    ]
    write_text(directory / "reproduction.md", "\n\n".join(parts) + "\n")
    studies = []
    for study in reproduction.studies:
        svg, claims = None, None
        if study.findings is not None:
            page = directory / study.name / "study.html"
            page.parent.mkdir(exist_ok=True)
            svg = _write_study(study.findings, page, study.replay)
            claims = claims_table(study.findings)
        studies.append((study, count_claims(study.claims), svg, claims))
    return _write_page(
        directory / "reproduce.html",
        "reproduce.html",
        reproduction=reproduction,
        word=VERDICT_WORDS[reproduction.passed],
        counts=counts,
        stated=stated,
        studies=studies,
        assumptions=_figures_by_assumption(reproduction),
        replay=replay,
    )


def _figures_by_assumption(reproduction: Reproduction) -> dict[Assumption, list[Reproduced]]:
    """Return what any of the studies assumes, with those that do."""
    studies: dict[Assumption, list[Reproduced]] = {}
    for study in reproduction.studies:
        for one in study.findings.study.assumptions if study.findings else []:
            studies.setdefault(one, []).append(study)
    return {one: studies[one] for one in ASSUMPTIONS if one in studies}


@write_page.register
def write_comparison_page(comparison: Comparison, directory: Path, replay: str) -> Path:
    """Write ``compare.html`` and ``compare.png`` of systems into *directory*."""
    from scenarios.report.comparison_figures import comparison_figure

    base = comparison.base
    streams = [
        f"Stream {stream['name']}: {stream['rows']:,} tuples." for stream in comparison.streams
    ]
    best = "No system gave an exact answer that could be tested."
    if comparison.fastest:
        best = (
            f"{comparison.fastest} is the fastest of those whose answer was exactly right, in "
            "virtual time."
        )
    return _write_page(
        directory / "compare.html",
        "compare.html",
        name=base.name,
        what=f"{len(comparison.results)} systems compared",
        how=f", seed {base.seed}, {base.backend} backend",
        query=" ".join(base.query.split()),
        opening=" ".join([best, *streams, f"Network: {base.network.preset}."]),
        svg=_draw(
            lambda: comparison_figure(comparison.results),
            "Bars of each system's figures",
            directory / "compare.png",
        ),
        caption="Fastest first. Throughput and latency are virtual time, from counted work and one "
        "cost profile; kernel time is measured on this machine.",
        table=comparison_table(comparison),
        notes=Table(
            title="Systems that cannot evaluate this query",
            columns=(),
            rows=list(comparison.refused.items()),
        ),
        replay=replay,
    )


@write_page.register
def write_engines_page(comparison: EngineComparison, directory: Path, replay: str) -> Path:
    """Write ``compare.html`` and ``compare.png`` of engines into *directory*."""
    from scenarios.report.comparison_figures import engines_figure

    notes = engine_notes(comparison)
    return _write_page(
        directory / "compare.html",
        "compare.html",
        name=comparison.plan.config.name,
        what=f"{len(comparison.measured)} engines compared",
        how="",
        query=" ".join(str(comparison.plan.query).split()),
        opening=f"{comparison.rows:,} tuples; the oracle expects {comparison.expected.pairs:,} "
        "pairs.",
        svg=_draw(
            lambda: engines_figure(comparison),
            "Bars of each engine's figures",
            directory / "compare.png",
        ),
        caption=f"Fastest first. {IN_THE_CLOCK}",
        table=engines_table(comparison),
        notes=Table(title="Notes on engines", columns=(), rows=notes.rows),
        replay=replay,
    )


def _stages_table(stages: list[OperatorStages]) -> Table:
    columns = ("operator", "messages", *(f"{stage} (ms)" for stage in STAGES), "together (ms)")
    rows = [
        (
            stage.role,
            format_count(stage.messages),
            *(format_count(ms, 4) for ms in [*stage.mean_ms, sum(stage.mean_ms)]),
        )
        for stage in stages
    ]
    return Table(columns=columns, rows=rows, text_columns=1)


def _streams_table(streams: Sequence[Mapping[str, Any]]) -> Table:
    rows = [
        (one["name"], one["path"], format_count(one["rows"]), format_count(one["rejected"]))
        for one in streams
    ]
    columns = ("stream", "prepared at", "tuples read", "rows rejected")
    return Table(columns=columns, rows=rows, text_columns=2)


def _draw(draw: Callable[[], Figure], description: str, png: Path) -> Markup:
    """Write a figure to the file *png* and return it as markup for a page."""
    from markupsafe import Markup

    from scenarios.report.style import PNG_DPI, style, svg_markup

    with style():
        figure = draw()
        drawing = BytesIO()
        figure.savefig(drawing, format="png", dpi=PNG_DPI, facecolor="white", metadata={})
        write_bytes(png, drawing.getvalue())
        return Markup(svg_markup(figure, png.stem, description))


def _write_page(path: Path, template: str, **context: Any) -> Path:
    """Fill *template* with *context*, write it to *path*, and return that.

    Raise :exc:`OutputError` when the file cannot be written.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    from scenarios.report.style import COLOURS

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "bytes": format_bytes,
        "count": format_count,
        "duration": format_duration,
        "table": lambda table: Markup(table.html()),
    }
    page = environment.get_template(template).render(colours=COLOURS, **context)
    write_text(path, page)
    return path
