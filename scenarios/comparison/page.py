"""``compare.html`` and ``compare.png``."""

from __future__ import annotations

from pathlib import Path

from scenarios.comparison.compare import Comparison
from scenarios.report.template import write_page
from scenarios.terminal.comparison_view import exact_told


def write_comparison(comparison: Comparison, directory: Path, replay: str) -> None:
    """Draw *comparison* into *directory*."""
    # Only here: importing matplotlib takes half a second that other commands need not spend.
    from scenarios.comparison.figure import comparison_figure
    from scenarios.drawing.both import page_and_png
    from scenarios.drawing.style import style

    with style():
        figure = comparison_figure(comparison.results)
        svg = page_and_png(
            figure, "compare", "Bars of each system's figures", directory / "compare.png"
        )
    write_page(
        directory / "compare.html",
        "compare.html",
        told=comparison.as_json(replay),
        svg=svg,
        words={True: "PASS", False: "FAIL", None: "UNKNOWN"},
        exact=lambda system: exact_told(system["verdict"], claims=system["claims_exact"]),
    )
