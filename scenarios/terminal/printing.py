"""Where a command writes, and how it prints tables and the list of all scenarios.

It imports nothing that runs need.
"""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import takewhile
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from joins.errors import show_controls
from scenarios.formatting import TableCell, TextTable, format_count

STYLES = {"PASS": "bold green", "FAIL": "bold red", "UNKNOWN": "yellow"}
_FILE_WIDTH = 160
"""Width of what goes into a file or pipe, where tables need not be squeezed."""
_UNBOUNDED = 100_000
_NO_BREAK = "\N{NO-BREAK SPACE}"

_WIDE = 140
"""Columns from which on there is room for what can be read elsewhere too."""


class _Console(Console):
    """A console on which texts, which may have names out of files, control nothing."""

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(show_controls(text), **how)


def console(*, quiet: bool) -> Console:
    """Return the console of stdout; it swallows everything when *quiet*."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _FILE_WIDTH
    return _Console(
        quiet=quiet, emoji=False, highlight=False, markup=False, soft_wrap=True, width=width
    )


def print_wrapped(
    out: Console, line: str, style: str = "", *, head: str = "", head_style: str = "bold"
) -> None:
    """Print *head* and *line* no wider than *out*; no word is cut.

    What wraps is indented to behind the head where that leaves room, else deeper than the line;
    words around a no-break space stay together.
    """
    fits = 0 < len(head) <= out.width // 2
    start = head or line
    indent = len(head) if fits else len(start) - len(start.lstrip(" ")) + 2
    wrapped = textwrap.fill(
        show_controls(head + line),
        out.width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    text = Text(wrapped.replace(_NO_BREAK, " "), style)
    if fits:
        text.stylize(head_style, 0, len(head))
    out.print(text)


def keep_together(items: Iterable[str]) -> str:
    """Return *items* as a line that `print_wrapped` breaks between them alone."""
    return "  ".join(item.replace(" ", _NO_BREAK) for item in items)


def print_table(out: Console, table: TextTable) -> None:
    """Print *table* with its title.

    Where its columns do not fit side by side, they come in several tables, each with the first
    column; where not even two do, a row is a block.
    """
    shown = _drawn(table)
    if not table.columns or _fits(out, shown):
        out.print(shown)
        return
    parts = _parts(out, table)
    for part in parts:
        out.print(_drawn(part))
    if not parts:
        _print_blocks(out, table)


def _drawn(table: TextTable) -> Table:
    if table.columns:
        shown = Table(
            box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title=table.title or None, title_justify="left"
        )
        for place, column in enumerate(table.columns):
            if table.is_text(place):
                shown.add_column(column)
            else:  # on one line: rich alone would need no more room than the longest word
                texts = [column, *(styled(row[place]) for row in table.rows if place < len(row))]
                longest = max(cell_len(str(text)) for text in texts)
                shown.add_column(column, justify="right", no_wrap=True, min_width=longest)
    else:
        shown = Table.grid(padding=(0, 2))
    for row in table.rows:
        shown.add_row(*map(styled, row))
    return shown


def _fits(out: Console, shown: Table) -> bool:
    room = out.options.update(max_width=_UNBOUNDED)
    return Measurement.get(out, room, shown).minimum <= out.width


def _parts(out: Console, table: TextTable) -> list[TextTable]:
    """Return tables that fit, of the first column and some others each; none where one does not."""
    if any(len(row) < len(table.columns) for row in table.rows):
        return []  # a cell spans columns that would come apart
    parts: list[TextTable] = []
    start, count = 1, len(table.columns)
    while start < count:
        longer = (table.chosen([0, *range(start, end)]) for end in range(start + 1, count + 1))
        fitting = list(takewhile(lambda part: _fits(out, _drawn(part)), longer))
        if not fitting:
            return []
        parts.append(replace(fitting[-1], title="" if parts else table.title))
        start += len(fitting[-1].columns) - 1
    return parts


def _print_blocks(out: Console, table: TextTable) -> None:
    if table.title:
        out.print(table.title)
    for row in table.rows:
        block = Table.grid(padding=(0, 2))
        for column, cell in zip(table.columns, row, strict=False):
            block.add_row(f" {column}", styled(cell))
        out.print(block)
        out.print()


def styled(cell: str | TableCell) -> str | Text:
    """Return a cell's text in the colour of its mark."""
    if isinstance(cell, TableCell):
        return Text(show_controls(cell.text), STYLES.get(cell.mark, ""))
    return Text(show_controls(cell))


def show_catalog(out: Console, listed: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Print the scenarios of each paper, and the topologies; what is not there is left out."""
    wide = out.width >= _WIDE
    papers: dict[str | None, list[Mapping[str, Any]]] = {}
    for one in listed["scenarios"]:
        papers.setdefault(one["paper"], []).append(one)
    for paper, scenarios in papers.items():
        rows = [
            (
                one["name"],
                one["title"],
                one["figure"] or "",
                ", ".join(one["topologies"]),
                str(one["runs"]),
                format_count(one["tuples"]) if one["tuples"] else "",
            )
            for one in scenarios
        ]
        columns = ("scenario", "what it is", "figure", "topologies", "runs", "tuples")
        title = paper or "For engines"
        table = TextTable(title=title, columns=columns, rows=rows, text_columns=4)
        print_table(out, table if wide else table.chosen((0, 1, 2, 4, 5)))
    systems = [
        (one["name"], one["title"], "yes" if one["exact"] else "no claim", one["paper"])
        for one in listed["topologies"]
    ]
    if systems:
        named = ("topology", "what it is", "exact", "paper")
        table = TextTable(title="Topologies", columns=named, rows=systems)
        print_table(out, table if wide else table.chosen(range(3)))
