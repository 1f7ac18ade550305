"""How numbers, sizes, times, verdicts and refusals are written wherever a person reads them.

Tables of text are written as HTML and as Markdown; `scenarios.terminal.printing` prints them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from html import escape
from math import isfinite, isnan
from typing import Any, NamedTuple

from pydantic import BaseModel, TypeAdapter
from quantiphy import Quantity

VERDICT_WORDS: dict[bool | None, str] = {True: "PASS", False: "FAIL", None: "UNKNOWN"}
"""What a verdict, or one of its checks, is called; None where nobody can say."""

NO_VALUE = "–"


def format_value(value: float | None) -> str:
    """Return *value* to three digits, with a letter for thousands, millions and billions."""
    if value is None or isnan(value):
        return NO_VALUE
    if not isfinite(value):
        return "∞" if value > 0 else "-∞"
    for scale, unit in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= 0.9995 * scale:  # what rounds up to it
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"


def format_digits(value: float, digits: int) -> str:
    """Return *value* to so many *digits*, or whole where it has more; no exponent if it is large.

    >>> format_digits(20_000, 3), format_digits(999.96, 3), format_digits(0.25, 3)
    ('20,000', '1,000', '0.25')
    """
    has_more = abs(value) >= 10**digits - 0.5
    return f"{value:,.0f}" if has_more else f"{value:,.{digits}g}"


def format_bytes(count: float | None) -> str:
    """Return a number of bytes to three digits, with a unit of its size."""
    return NO_VALUE if count is None else Quantity(count, "B").render(prec=2)


def format_duration(nanoseconds: float | None) -> str:
    """Return a time to three digits, with a unit of its size."""
    if nanoseconds is None:
        return NO_VALUE
    return Quantity(nanoseconds / 1e9, "s").render(prec=2).replace(" us", " µs")


def format_rate(tps: int) -> str:
    """Return a number of tuples per second with its unit."""
    return f"{format_many(tps, 'tuple')}/s"


def format_many(count: int, thing: str, things: str | None = None) -> str:
    """Return *count* of a *thing*, in the plural, *things*, unless it is one."""
    return f"{count:,} {thing if count == 1 else things or f'{thing}s'}"


def format_bit_rate(bps: int) -> str:
    """Return a bandwidth to three digits, with a unit of its size."""
    return Quantity(bps, "b/s").render(prec=2)


_QUANTITIES = {"duration": format_duration, "bandwidth": format_bit_rate}
"""How a quantity is written, by the format that its JSON schema names."""


def format_values(section: Any) -> dict[str, Any]:
    """Return the values of a section of a configuration, quantities with their units."""
    values = dict(section) if isinstance(section, BaseModel) else asdict(section)
    hashable: Any = type(section)
    for name, kind in _quantities_of(hashable).items():
        if values[name] is not None:
            values[name] = _QUANTITIES[kind](values[name])
    return values


@cache
def _quantities_of(section: type) -> Mapping[str, str]:
    """Return name to kind of the quantities in a section; making a schema takes milliseconds."""
    kinds = {}
    for name, schema in TypeAdapter(section).json_schema().get("properties", {}).items():
        for one in (schema, *schema.get("anyOf", ())):
            if one.get("format") in _QUANTITIES:
                kinds[name] = one["format"]
    return kinds


def format_ms(ms: float | None) -> str:
    """Return milliseconds without their unit: three digits, from a thousand on whole ones."""
    if ms is None:
        return NO_VALUE
    return f"{ms:,.0f}" if ms >= 999.5 else f"{ms:,.3g}"


def format_count(value: float | None, decimals: int = 0) -> str:
    """Return *value* with commas between thousands."""
    return NO_VALUE if value is None else f"{value:,.{decimals}f}"


def json_text(value: Mapping[str, Any], *, ascii_only: bool = False) -> str:
    """Return *value* as JSON for files and for stdout: indented, characters as they are.

    With *ascii_only* those that ASCII does not have are escaped.
    """
    return json.dumps(value, indent=2, ensure_ascii=ascii_only) + "\n"


def format_toml(value: Any) -> str:
    """Return *value* as it is written in TOML, on one line; keys without a value are left out."""
    if isinstance(value, Mapping):
        there = {format_toml(str(key)): one for key, one in value.items() if one is not None}
        return f"{{ {', '.join(f'{key} = {format_toml(one)}' for key, one in there.items())} }}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(format_toml, value))}]"
    # TOML's texts are JSON's, but that they have no control character as it is.
    return json.dumps(value, ensure_ascii=False, default=str).replace("\x7f", "\\u007f")


def format_setting(key: str, value: Any) -> str:
    """Return ``KEY=VALUE`` as ``--set`` takes it."""
    if value is None:
        return f"{key}=none"
    return f"{key}={value if isinstance(value, str) else format_toml(value)}"


def group_refusals(refused: Mapping[str, str]) -> str:
    """Return the reasons why systems cannot evaluate a query, each once with its systems."""
    return "; ".join(f"{', '.join(names)}: {why}" for why, names in by_reason(refused).items())


def by_reason(refused: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the refused systems by reason; a reason may begin with the name of its system.

    A variant is left out where its system is refused for the same reason.

    >>> why = "joins over windows"
    >>> by_reason({"a": f"a {why}", "a, fast": f"a {why}", "b, fast": f"b {why}"})
    {'joins over windows': ['a', 'b, fast']}
    """
    reasons: dict[str, list[str]] = {}
    for label, why in refused.items():
        system = label.split(",")[0]
        systems = reasons.setdefault(why.removeprefix(f"{system} "), [])
        if system not in systems:
            systems.append(label)
    return reasons


class TableCell(NamedTuple):
    """Text whose colour shows how good it is: *mark* is one of `VERDICT_WORDS`, or empty.

    *note* goes on a line of its own below the row.
    """

    text: str
    mark: str = ""
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """Rows of text."""

    columns: tuple[str, ...]
    """Their headings; none for names and values without any."""
    rows: Sequence[Sequence[str | TableCell]]
    """As many cells as columns; the last cell of a shorter row spans the rest."""
    text_columns: int | None = None
    """How many columns, from the first, are text, while the others are numbers; None for all."""
    title: str = ""
    """Its heading, if any."""

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
