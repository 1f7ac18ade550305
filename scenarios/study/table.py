"""A chart in numbers, for the terminal and the page."""

from __future__ import annotations

from typing import Any

from scenarios.study.claims import told
from scenarios.study.config import Chart
from scenarios.study.findings import Findings


def chart_table(findings: Findings, chart: Chart) -> dict[str, Any]:
    """Return a chart as a table: a row per x, a column per variant and per figure of the paper."""
    curves = findings.curves(chart)
    columns = {name: [told(value) for value in values] for name, values in curves.items()}
    for paper, theirs, ours in findings.paper(chart):
        columns[" / ".join(paper.of)] = [
            told(our) if their != their else f"{told(our)} (paper {told(their)})"
            for our, their in zip(ours, theirs, strict=True)
        ]
    return {
        "panel": chart.panel.name,
        "axis": chart.axis.label,
        "measure": chart.label,
        "x": [chart.axis.name(place) for place in chart.axis.places],
        "columns": list(columns.items()),
    }
