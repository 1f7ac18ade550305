"""The list of scenarios, paper by paper, and of topologies, in whatever width there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from scenarios.formatting import TextTable, format_count
from scenarios.terminal.printing import print_table

_WIDE = 140
"""Columns from which on there is room for what can be read elsewhere too."""


def show_catalog(out: Console, listed: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Print the scenarios of each paper, and the topologies; what is not there is left out."""
    wide = out.width >= _WIDE
    papers: dict[str | None, list[Mapping[str, Any]]] = {}
    for one in listed["scenarios"]:
        papers.setdefault(one["paper"], []).append(one)
    for paper, scenarios in papers.items():
        columns = ["scenario", "what it is", "figure", "runs", "tuples"]
        rows = [
            [
                one["name"],
                one["title"],
                one["figure"] or "",
                str(one["runs"]),
                format_count(one["tuples"]) if one["tuples"] else "",
            ]
            for one in scenarios
        ]
        if wide:
            columns.insert(3, "topologies")
            for row, one in zip(rows, scenarios, strict=True):
                row.insert(3, ", ".join(one["topologies"]))
        table = TextTable(
            title=paper or "For engines",
            columns=tuple(columns),
            rows=rows,
            text_columns=4 if wide else 3,
        )
        print_table(out, table)
    systems = [
        (one["name"], one["title"], "yes" if one["exact"] else "no claim", one["paper"])
        for one in listed["topologies"]
    ]
    columns = ["topology", "what it is", "exact", "paper"]
    if systems:
        kept = len(columns) if wide else 3
        rows = [list(row[:kept]) for row in systems]
        print_table(out, TextTable(title="Topologies", columns=tuple(columns[:kept]), rows=rows))
