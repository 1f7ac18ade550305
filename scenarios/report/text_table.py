"""A table of text, as HTML and as Markdown; `scenarios.terminal.printing` prints it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import NamedTuple


class TableCell(NamedTuple):
    """Text whose colour shows how good it is: *mark* is one of `VERDICT_WORDS`, or empty.

    *note* goes on a line of its own below the row.
    """

    text: str
    mark: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """Rows of text.

    Attributes
    ----------
    columns
        Their headings; none for names and values without any.
    rows
        As many cells as columns; the last cell of a shorter row spans the rest.
    text_columns
        How many columns, from the first, are text, while the others are numbers; None for all.
    title
        Its heading, if any.
    """

    columns: tuple[str, ...]
    rows: Sequence[Sequence[str | TableCell]]
    text_columns: int | None = None
    title: str = ""

    def html(self) -> str:
        """Return it as a ``<table>``, without its title."""
        head = "".join(f"<th{self._align(i)}>{escape(c)}</th>" for i, c in enumerate(self.columns))
        head = f"<thead><tr>{head}</tr></thead>\n" if head else ""
        body = "\n".join(line for row in self.rows for line in self._html_rows(row))
        return f"<table>\n{head}<tbody>\n{body}\n</tbody></table>"

    def markdown(self) -> str:
        """Return it as a Markdown table, without its title; notes are left out."""
        rules = ["---" if self.is_text(place) else "--:" for place in range(len(self.columns))]
        rows = [
            [cell.text if isinstance(cell, TableCell) else cell for cell in row]
            for row in self.rows
        ]
        return "\n".join(map(_markdown_row, [self.columns, rules, *rows]))

    def _html_rows(self, row: Sequence[str | TableCell]) -> Iterable[str]:
        yield f"<tr>{''.join(self._html_cells(row))}</tr>"
        notes = " ".join(cell.note for cell in row if isinstance(cell, TableCell) and cell.note)
        if notes:
            span = len(self.columns) - 1
            yield f'<tr class="note"><td></td><td colspan="{span}">{escape(notes)}</td></tr>'

    def _html_cells(self, row: Sequence[str | TableCell]) -> Iterable[str]:
        for place, value in enumerate(row):
            cell = value if isinstance(value, TableCell) else TableCell(value)
            tag = "th" if place == 0 else "td"
            spanned = len(self.columns) - place if place == len(row) - 1 else 1
            look = f' colspan="{spanned}"' if spanned > 1 else self._align(place)
            if cell.mark:
                look = f' class="word {cell.mark}"' + (look if spanned > 1 else "")
            yield f"<{tag}{look}>{escape(cell.text)}</{tag}>"

    def chosen(self, places: Sequence[int]) -> TextTable:
        """Return the columns at *places*, from 0, as a table of its own."""
        return replace(
            self,
            columns=tuple(self.columns[place] for place in places),
            rows=[[row[place] for place in places] for row in self.rows],
            text_columns=sum(map(self.is_text, places)),
        )

    def is_text(self, place: int) -> bool:
        """Return whether a column is text, not numbers."""
        return self.text_columns is None or place < self.text_columns

    def _align(self, place: int) -> str:
        return "" if self.is_text(place) else ' class="number"'


def notebook_html(text: str, tables: Iterable[TextTable]) -> str:
    """Return lines of *text* and the *tables* that have rows, with their titles, as HTML."""
    parts = ["<br>".join(map(escape, text.splitlines()))]
    for table in tables:
        if table.rows:
            parts += [f"<b>{escape(table.title)}</b>"] if table.title else []
            parts.append(table.html())
    return "\n".join(part if part.startswith("<table>") else f"<p>{part}</p>" for part in parts)


def _markdown_row(cells: Sequence[str]) -> str:
    escaped = (" ".join(cell.split()).replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
