"""``compare.html`` and ``compare.png`` of engines."""

from __future__ import annotations

from pathlib import Path

from scenarios.engines.comparison import EngineComparison
from scenarios.report.template import write_page


def write_engines(comparison: EngineComparison, directory: Path, replay: str) -> None:
    """Draw *comparison* into *directory*."""
    # Only here: importing matplotlib takes half a second that other commands need not spend.
    from scenarios.drawing.both import page_and_png
    from scenarios.drawing.style import style
    from scenarios.engines.figure import engines_figure

    with style():
        svg = page_and_png(
            engines_figure(comparison),
            "compare",
            "Bars of each engine's figures",
            directory / "compare.png",
        )
    write_page(directory / "compare.html", "engines.html", told=comparison.as_json(replay), svg=svg)
