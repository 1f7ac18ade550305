"""How two runs differ, in the terminal."""

from __future__ import annotations

from rich.console import Console

from scenarios.report.table import TableCell, TextTable
from scenarios.terminal.printing import print_table
from scenarios.trace_difference import Difference

_SHOWN = ("sender", "receiver", "port", "seq", "nbytes", "rows")
_TIMES = ("sent_ns", "left_ns", "arrived_ns", "started_ns", "done_ns")


def show_difference(out: Console, difference: Difference) -> None:
    """Print the first row that differs, with rows around it from either run."""
    runs = [str(run) for run in difference.runs]
    for key, a, b in difference.settings:
        out.print(f"{key}: {a!r} in {runs[0]}, {b!r} in {runs[1]}")
    if difference.row is None:
        out.print("both runs served the same messages at the same virtual times")
        return
    for run, table in zip(runs, _tables(difference), strict=True):
        out.print()
        print_table(out, table)
        if difference.row >= difference.first + len(table.rows):
            out.print(f"{run} has no row {difference.row:,}: it ended before")
    if difference.columns:
        what = ", ".join(difference.columns)
        out.print(f"the first difference is in row {difference.row:,}: {what}")


def _tables(difference: Difference) -> list[TextTable]:
    """Return the rows of either run; the one that differs is marked."""
    columns = ("row", *_SHOWN, *(f"{name.removesuffix('_ns')} (ms)" for name in _TIMES))
    tables = []
    for run, rows in zip(difference.runs, difference.rows, strict=True):
        lines = []
        for place, row in enumerate(rows.to_pylist(), difference.first):
            mark = "FAIL" if place == difference.row else ""
            times = [f"{row[name] / 1e6:.6f}" for name in _TIMES]
            cells = [f"{place:,}", *(str(row[name]) for name in _SHOWN), *times]
            lines.append([TableCell(cell, mark) for cell in cells])
        tables.append(TextTable(columns=columns, rows=lines, title=str(run)))
    return tables
