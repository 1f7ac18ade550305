"""``study.html`` and ``study.png``."""

from __future__ import annotations

from pathlib import Path

from scenarios.report.template import write_page
from scenarios.study.findings import Findings
from scenarios.study.table import chart_table

_WORDS = {True: "holds", False: "does not hold", None: "unknown"}
_CLASSES = {True: "PASS", False: "FAIL", None: "UNKNOWN"}


def write_study(findings: Findings, directory: Path, replay: str) -> None:
    """Draw *findings* into *directory*."""
    # Only here: importing matplotlib takes half a second that other commands need not spend.
    from scenarios.drawing.both import page_and_png
    from scenarios.drawing.style import style
    from scenarios.study.figure import study_figure

    with style():
        svg = page_and_png(
            study_figure(findings), "study", findings.study.base.title, directory / "study.png"
        )
    write_page(
        directory / "study.html",
        "study.html",
        told=findings.as_json(replay),
        tables=[chart_table(findings, chart) for chart in findings.study.charts],
        svg=svg,
        words=_WORDS,
        classes=_CLASSES,
    )
