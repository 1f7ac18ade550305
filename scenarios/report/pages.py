"""The pages of studies, comparisons and reproductions, and their pictures.

matplotlib, which draws them, is imported with the first, because that takes half a second.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import singledispatch
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from actors.whole_files import write_bytes, write_text
from scenarios.choice import by_reason
from scenarios.engines.comparison import IN_THE_CLOCK, EngineComparison
from scenarios.formatting import VERDICT_WORDS
from scenarios.report.page import fill_page
from scenarios.report.result_tables import (
    Table,
    chart_table,
    claims_table,
    comparison_table,
    engine_notes,
    engines_table,
    points_table,
    reproduction_table,
)
from scenarios.study.findings import Findings
from scenarios.study.reproduction import Reproduced, Reproduction, count_claims
from scenarios.study.statements import count_statements
from scenarios.system_comparison import Comparison
from topologies.assumptions import ASSUMPTIONS, Assumption

if TYPE_CHECKING:
    from markupsafe import Markup
    from matplotlib.figure import Figure


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
    fill_page(
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
    return fill_page(
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
    return fill_page(
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
            rows=[(", ".join(names), why) for why, names in by_reason(comparison.refused).items()],
        ),
        replay=replay,
    )


@write_page.register
def write_engines_page(comparison: EngineComparison, directory: Path, replay: str) -> Path:
    """Write ``compare.html`` and ``compare.png`` of engines into *directory*."""
    from scenarios.report.comparison_figures import engines_figure

    notes = engine_notes(comparison)
    return fill_page(
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
