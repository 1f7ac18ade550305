"""Where a command writes, and how it prints a table; imports nothing that runs need."""

from __future__ import annotations

import os
import sys

from rich import table as rich
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.text import Text

from scenarios.report.table import Cell, Table

STYLES = {"PASS": "bold green", "FAIL": "bold red", "UNKNOWN": "yellow"}
_FILE_WIDTH = 160
"""Width of what goes into a file or pipe, where tables need not be squeezed."""


def console(*, quiet: bool) -> Console:
    """Return the console of stdout; it swallows everything when *quiet*."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _FILE_WIDTH
    return Console(quiet=quiet, highlight=False, markup=False, soft_wrap=True, width=width)


def print_table(out: Console, table: Table) -> None:
    """Print *table* with its title."""
    if table.columns:
        shown = rich.Table(
            box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title=table.title or None, title_justify="left"
        )
        for place, column in enumerate(table.columns):
            is_text = table.is_text(place)
            shown.add_column(column, justify="left" if is_text else "right", no_wrap=not is_text)
    else:
        shown = rich.Table.grid(padding=(0, 2))
    for row in table.rows:
        shown.add_row(*map(styled, row))
    out.print(shown)


def styled(cell: str | Cell) -> str | Text:
    """Return a cell's text in the colour of its mark."""
    if isinstance(cell, Cell):
        return Text(cell.text, STYLES.get(cell.mark, ""))
    return Text(cell)
