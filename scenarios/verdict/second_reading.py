"""A second reading of the query's text, by another parser, compared with what was run.

The joins and the oracle evaluate what our own parser read. Were it to read ``<=`` as ``<``, both
would be wrong in the same way. So the text is read again by sqlglot, and both readings of each
predicate are evaluated on tuples that are equal, a width apart, or near that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from itertools import product
from typing import Any

import numpy as np
import sqlglot
from sqlglot import exp

from joins.oracle.match import evaluate
from joins.queries.conditions import Field
from joins.queries.query import JoinQuery
from joins.queries.windows import StreamWindows, Window
from scenarios.formatting import format_many
from scenarios.verdict import CheckResult

_PIECE = re.compile(
    r"""(?P<quoted>"[^"]*")|'(?P<quantity>[^']*)'|(?P<comment>--[^\n]*|/\*[\s\S]*?\*/)"""
    r"""|(?P<number>(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)|(?P<word>[A-Za-z_]\w*)"""
)
"""What sqlglot cannot read as it is: quantities, the word before the windows, and names, which may
be words of its own SQL. Names in quotes, comments and numbers are matched too, so that nothing
inside them is taken for any of these."""
_WINDOWS_BEGIN = "\0"
_WORDS = {
    "SELECT", "FROM", "WHERE", "AND", "BETWEEN", "ABS", "INTERVAL", "AS", "SLIDE", "ON", "PRECISE",
}  # fmt: skip
"""Of the language; every other word is a name."""
_WINDOW = re.compile(
    r"""("(?P<stream>\w+)"\s*)?\bAS\s*\(\s*SLIDE\s+INTERVAL\s*'(?P<slide>\d+)'\s*ON\s*"""
    r"""'(?P<length>\d+)'\s*(?P<precise>PRECISE)?\s*\)""",
    re.IGNORECASE,
)
_COMPARE: dict[type[exp.Expr], Callable[[Any, Any], Any]] = {
    exp.LT: np.less,
    exp.LTE: np.less_equal,
    exp.GT: np.greater,
    exp.GTE: np.greater_equal,
    exp.EQ: np.equal,
    exp.NEQ: np.not_equal,
}
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?)\s*"
    r"((?P<prefix>[numkµμ]?)(s|sec|seconds?)|(?P<unit>min|minutes?|h|hr|hours?|d|days?))"
)
_PREFIX = {"n": -9, "u": -6, "µ": -6, "μ": -6, "m": -3, "": 0, "k": 3}
_SECONDS = {"m": 60, "h": 3_600, "d": 86_400}
"""By the first letter of a unit that is longer than a second."""

Column = tuple[str, str, int]
"""Stream, field, and in a self join which tuple it is of: 1 for the newer, 2 for the earlier."""


class _UnreadableError(Exception):
    """A text that the second parser does not take."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What a text says."""

    streams: tuple[str, ...]
    """Names in the order of FROM."""
    predicates: list[tuple[set[Column], Callable[[Mapping[Column, Any]], Any]]]
    """Each with the columns that it compares, and a function of their values."""
    extents: list[tuple[Any, ...]]
    """Of the windows, by stream (None is for all), slide, length and whether they are precise; or
    of the interval, the event times of its probe and base stream and its ends, in nanoseconds. A
    slide or a length is ``("count", tuples)`` or ``("time", nanoseconds)``."""
    widths: list[Decimal] = field(default_factory=list)
    """Of the bands."""


def check_reading(text: str, bound: Mapping[str, str], query: JoinQuery) -> CheckResult:
    """Check that *query* is what *text* says with the names that are *bound* replaced."""
    try:
        second = read_again(text, bound)
    except (_UnreadableError, sqlglot.errors.SqlglotError) as error:
        detail = f"the text could not be read a second time: {str(error).splitlines()[0]}"
        return CheckResult(name="query", passed=None, detail=detail)
    differs = difference(query, second)
    detail = f"another parser reads {differs}" if differs else "another parser reads the same"
    return CheckResult(name="query", passed=differs is None, detail=detail)


def read_again(text: str, bound: Mapping[str, str]) -> Reading:
    """Read *text* with sqlglot, its clause of windows apart, which is no SQL."""
    (select, *windows), quantities = _masked(text)
    tree = sqlglot.parse_one(select)
    if not isinstance(tree, exp.Select) or len(windows) > 1 or tree.args.get("where") is None:
        raise _UnreadableError("it is no SELECT with a WHERE and at most one WINDOW")
    streams = tuple(table.name for table in tree.find_all(exp.Table))
    reading = Reading(streams=streams, predicates=[], extents=[])

    def extent(number: str) -> tuple[str, int]:
        spelt = quantities[int(number)]
        return _quantity(bound.get(spelt, spelt))

    for clause in windows:
        for found in _WINDOW.finditer(clause):
            sizes = (extent(found["slide"]), extent(found["length"]))
            reading.extents.append((found["stream"], *sizes, bool(found["precise"])))
    conditions = tree.args["where"].this
    for part in conditions.flatten() if isinstance(conditions, exp.And) else [conditions]:
        if isinstance(part, exp.Between):
            reading.extents.append(_interval(part, streams, extent))
        else:
            reading.predicates.append(_predicate(part.unnest(), streams, reading.widths))
    return reading


def _masked(text: str) -> tuple[list[str], list[str]]:
    """Return *text* as sqlglot can read it, parted where windows begin, and its quantities."""
    quantities: list[str] = []

    def masked(found: re.Match[str]) -> str:
        if found["comment"]:
            return " "
        if word := found["word"]:
            if word.upper() == "WINDOW":
                return _WINDOWS_BEGIN
            return word if word.upper() in _WORDS else f'"{word}"'
        if found["quantity"] is None:
            return found[0]
        # Quantities go by number: sqlglot would take those of intervals apart.
        quantities.append(found["quantity"].strip())
        return f"'{len(quantities) - 1}'"

    return _PIECE.sub(masked, text).strip().rstrip(";").split(_WINDOWS_BEGIN), quantities


def difference(query: JoinQuery, second: Reading) -> str | None:
    """Return what another parser reads otherwise than *query* says; None if nothing."""
    if query.streams != second.streams:
        return f"the streams {', '.join(second.streams)}"
    if _extents(query) != second.extents:
        return f"windows or interval {second.extents}, not {_extents(query)}"
    if len(query.predicates) != len(second.predicates):
        return f"{format_many(len(second.predicates), 'predicate')}, not {len(query.predicates)}"
    spelt = (getattr(predicate.operator, "width", None) for predicate in query.predicates)
    widths = [Decimal(width) for width in spelt if width is not None]
    for predicate, (columns, holds) in zip(query.predicates, second.predicates, strict=True):
        first = {_column(query, side) for side in predicate.fields}
        if first != columns:
            return f"{sorted(columns)} where {predicate} was run"
        left, right = (_column(query, side) for side in predicate.fields)
        values = _tuples(left, right, [float(width) for width in (*second.widths, *widths)])
        with np.errstate(over="ignore", invalid="ignore"):  # an infinite distance is outside
            matched = holds(values)
        if not np.array_equal(evaluate(predicate, values[left], values[right]), matched):
            return f"another condition where {predicate} was run"
    if widths != second.widths:  # as floats they were equal
        return f"widths {second.widths}, not {widths}"
    return None


def _tuples(left: Column, right: Column, widths: list[float]) -> dict[Column, np.ndarray]:
    """Return pairs of values that are equal, or about as far apart as any of *widths*."""
    steps = {0.0, 1.0, *widths, *(2 * width for width in widths), *(width / 2 for width in widths)}
    near = {move for step in steps for move in (step, np.nextafter(step, 0), np.nextafter(step, 9))}
    pairs = np.array([*product((0.0,), near), *product(near, (0.0,)), *product(near, near)])
    pairs = np.concatenate([pairs, -pairs])
    return {left: pairs[:, 0], right: pairs[:, 1]}


def _column(query: JoinQuery, side: Field) -> Column:
    return query.streams[side.stream], side.name, side.role


def _extents(query: JoinQuery) -> list[tuple[Any, ...]]:
    """Return the windows or the interval of *query*, as `Reading.extents`."""
    if query.interval:
        interval = query.bound_interval
        in_order = sorted(query.interval.fields, key=lambda side: side.stream == interval.base)
        probe, base = (_column(query, side) for side in in_order)
        return [(probe, base, interval.lower_ns, interval.upper_ns)]
    # One clause gives every stream the same window: another one counts as one too many.
    named: list[tuple[str | None, Window]] = [(None, w) for w in dict.fromkeys(query.windows)]
    if isinstance(query.window, StreamWindows):
        sizes = dict(zip(query.streams, query.windows, strict=True))
        named = [(stream, sizes[stream]) for stream in query.window.streams]
    return [
        (name, (w.kind, w.slide), (w.kind, w.length), w.semantics == "precise") for name, w in named
    ]


def _quantity(text: str) -> tuple[str, int]:
    """Return a number of tuples, or a time in nanoseconds, and which of the two it is."""
    if text.isdigit():
        return "count", int(text)
    found = _QUANTITY.fullmatch(text)
    if found is None:
        raise _UnreadableError(f"{text!r} is no number of tuples and no time")
    try:
        number = Decimal(found["number"])
    except ArithmeticError:
        raise _UnreadableError(f"{text!r} has too many digits in its exponent") from None
    if found["unit"]:
        return "time", round(number * _SECONDS[found["unit"][0]] * 10**9)
    return "time", round(number.scaleb(_PREFIX[found["prefix"]] + 9))


def _interval(
    between: exp.Between, streams: tuple[str, ...], extent: Callable[[str], tuple[str, int]]
) -> tuple[Column, Column, int, int]:
    ends, bases = [], []
    for end in (between.args["low"], between.args["high"]):
        moved = isinstance(end, (exp.Add, exp.Sub))
        bases.append(_column_of(end.this if moved else end, streams))
        _, distance = extent(end.expression.this.name) if moved else ("time", 0)
        ends.append(-distance if isinstance(end, exp.Sub) else distance)
    if len(set(bases)) > 1:
        raise _UnreadableError("the ends of BETWEEN are of two columns")
    return _column_of(between.this, streams), bases[0], ends[0], ends[1]


def _predicate(
    node: exp.Expr, streams: tuple[str, ...], widths: list[Decimal]
) -> tuple[set[Column], Callable[[Mapping[Column, Any]], Any]]:
    if type(node) not in _COMPARE:
        raise _UnreadableError(f"{node.sql()} is no comparison")
    compare = _COMPARE[type(node)]
    if isinstance(node.this, exp.Abs):
        left = _column_of(node.this.this.this, streams)
        right = _column_of(node.this.this.expression, streams)
        widths.append(Decimal(node.expression.name))
        width = float(widths[-1])
        return {left, right}, lambda values: compare(abs(values[left] - values[right]), width)
    left, right = _column_of(node.this, streams), _column_of(node.expression, streams)
    return {left, right}, lambda values: compare(values[left], values[right])


def _column_of(node: exp.Expr, streams: tuple[str, ...]) -> Column:
    if not isinstance(node, exp.Column):
        raise _UnreadableError(f"{node.sql()} is no field")
    if len(streams) > 1:
        return node.table, _prepared(node.name), 0
    return streams[0], _prepared(node.name[:-1]), int(node.name[-1])


def _prepared(column: str) -> str:
    """Return what a column is called in a prepared stream, by a rule of our own.

    The parser's rule is not used: were it wrong, both readings would name the same wrong column.
    """
    return f"source_{column}" if column.lower() == "id" else column
