"""Reads the SQL-like query texts of the papers; points at the character where one goes wrong."""

from __future__ import annotations

import re
from contextlib import suppress
from functools import cache, lru_cache
from typing import Any, NamedTuple

from lark import Lark, Token, Transformer, Tree, v_args
from lark.exceptions import UnexpectedInput, UnexpectedToken, VisitError

from joins.machine.cache import cache_folder
from joins.queries.conditions import OPERATORS, Band, Field, Operator, prepared_name
from joins.queries.interval import IntervalClause, IntervalEnd
from joins.queries.query import JoinQuery, Predicate, QueryError
from joins.queries.windows import StreamWindows, WindowClause

_OPERATORS = " | ".join(f'"{spelt}"' for spelt in sorted(OPERATORS, key=len, reverse=True))

_RESERVED = "SELECT|FROM|WHERE|AND|BETWEEN|WINDOW|AS|ABS|SLIDE|INTERVAL|ON|PRECISE"

GRAMMAR = (
    r"""
query: "SELECT"i select "FROM"i streams "WHERE"i (windowed | timed) ";"?
windowed: predicates "WINDOW"i (same_window | stream_windows)
timed: (predicates "AND"i)? interval ("AND"i predicates)?

select: item ("," item)*
item: STAR | reference
streams: NAME ("," NAME)*
predicates: predicate | predicates "AND"i predicate
?predicate: comparison | band
comparison: reference OPERATOR reference
band: "ABS"i "(" reference "-" reference ")" OPERATOR NUMBER
interval: reference "BETWEEN"i moment "AND"i moment
moment: reference ((PLUS | MINUS) "INTERVAL"i STRING)?
reference: name ("." name)?
?name: NAME | QUOTED
?same_window: "AS"i "(" window ")"
stream_windows: stream_window ("," stream_window)*
stream_window: NAME "AS"i "(" window ")"
window: "SLIDE"i "INTERVAL"i STRING "ON"i STRING PRECISE?

PRECISE: "PRECISE"i
STAR: "*"
PLUS: "+"
MINUS: "-"
QUOTED: /"[^"]+"/
NUMBER: /\d+(\.\d*)?([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?/
STRING: /'[^']*'/

%import common.WS
%ignore WS
%ignore /--[^\n]*|\/\*(.|\n)*?\*\//
"""
    f"OPERATOR: {_OPERATORS}\n"
    rf"NAME: /(?!({_RESERVED})\b)[A-Za-z_][A-Za-z_0-9]*/i"
)

PREDICATES_MAX = 100  # a tree of thousands is too deep to read, and no system evaluates so many

_WORDS = {
    "NAME": "a name",
    "QUOTED": 'a name in "quotes"',
    "NUMBER": "a number",
    "STRING": "a quantity in 'quotes'",
    "OPERATOR": "<, <=, >, >=, = or !=",
    "PLUS": "+",
    "STAR": "*",
    "PRECISE": "PRECISE",
    "COMMA": "a comma",
    "DOT": "a dot",
    "LPAR": "(",
    "RPAR": ")",
    "MINUS": "-",
    "SEMICOLON": "a semicolon",
    "$END": "the end",
}
"""What error messages call the grammar's terminals."""

_REMEMBERED = 128
"""Texts whose tree is known: a search runs the same query hundreds of times."""

_BETWEEN = re.compile(r"""("[^"]*"|'[^']*')|(?:--[^\n]*|/\*[\s\S]*?\*/|\s)+""")
"""What is in quotes, or all that stands between two words."""
_WORD_OR_SIGN = re.compile(r"\w+|.")
_UNQUOTED = re.compile(
    r"\b(\w+)\.(\w+)((?:\.\w+)+|(?: (?!(?:AND|IS)\b)\w+)+"
    r"(?=\s*(?:[<>=!)-]|(?:AND|BETWEEN|WINDOW)\b)))",
    re.IGNORECASE,
)
"""A column with dots or blanks in its name, without quotes: the stream, the name up to the first
of them, and the rest. It begins where a word does: or a long name is read from each letter."""
_SPACE = re.compile(r"\s")
"""Each is shown as one blank, so that the caret under the line is in its place."""


class QuerySyntaxError(QueryError):
    """A text that is no query; shows the line, the character, and what is allowed there."""


def parse_query(text: str) -> JoinQuery:
    """Read a query.

    Raise :exc:`QuerySyntaxError` pointing at the first character that does not fit, and
    :exc:`QueryError` naming a part that makes no sense.
    """
    try:
        query: JoinQuery = _Builder().transform(_tree(text))
    except VisitError as error:
        raise error.orig_exc from None
    return query


def on_one_line(text: str) -> str:
    """Return a query's text on one line, without comments; what is in quotes stays as it is."""
    return _BETWEEN.sub(lambda found: found[1] or " ", text).strip()


@lru_cache(_REMEMBERED)
def _tree(text: str) -> Tree[Any]:
    parser: Any = _grammar().parse_interactive(text)  # partly untyped
    predicates = 0
    try:
        for token in parser.iter_parse():
            predicates += token.type == "OPERATOR"
            if predicates > PREDICATES_MAX:
                raise QueryError(
                    f"line {token.line}, character {token.column} of the query: it has more than "
                    f"{PREDICATES_MAX} predicates"
                )
        tree: Tree[Any] = parser.resume_parse()
        return tree
    except UnexpectedInput as error:
        raise _syntax_error(text, error, parser.accepts()) from None


@cache
def _grammar() -> Lark:
    folder = cache_folder()
    with suppress(OSError):  # without the folder it is read anew each time, which takes 40 ms
        folder.mkdir(parents=True, exist_ok=True)
    return Lark(GRAMMAR, start="query", parser="lalr", cache=str(folder / "grammar"))


def _syntax_error(text: str, error: UnexpectedInput, accepted: set[str]) -> QuerySyntaxError:
    at_end = isinstance(error, UnexpectedToken) and error.token.type == "$END"
    # The parser counts no other line ends than these.
    lines = (text.rstrip(" \t\f\r\n") if at_end else text).split("\n")
    line = len(lines) if at_end else error.line
    column = len(lines[-1]) + 1 if at_end else error.column
    allowed = sorted(_WORDS.get(name, name) for name in accepted)
    listed = " or ".join(filter(None, [", ".join(allowed[:-1]), allowed[-1]]))
    found = None if at_end else _WORD_OR_SIGN.match(lines[line - 1], column - 1)
    actual = f"not {found[0]!r}" if found else "but the text ends"
    if lines[line - 1][column - 2 : column] == "==":
        actual += "; one = compares for equality"
    if found and found[0].upper() == "JOIN":
        actual += "; a join is written FROM A, B WHERE A.x = B.x"
    if found and "QUOTED" in accepted and re.match(r"[\d']", found[0]):
        actual += "; rows of one stream are chosen by its key where, as in streams.0.where"
    for name in _UNQUOTED.finditer(lines[line - 1]):
        blank = name[3][0] == " "  # the parser stops at a dot, or at the word after a blank
        if found and name.end(2) + blank == column - 1:
            sign = "space" if blank else "dot"
            actual += f'; a name that has a {sign} needs quotes: {name[1]}."{name[2]}{name[3]}"'
    return QuerySyntaxError(
        f"line {line}, character {column} of the query: expected {listed}, {actual}\n"
        f"  {_SPACE.sub(' ', lines[line - 1])}\n  {' ' * (column - 1)}^"
    )


@v_args(inline=True)
class _Builder(Transformer[Any, JoinQuery]):  # type: ignore[misc]
    """Turns the parse tree into a query; resolves fields once the streams are known."""

    def __default_token__(self, token: Token) -> str:
        return str(token)

    def reference(self, *parts: Any) -> tuple[Any, ...]:
        return parts

    select = streams = stream_window = windowed = reference

    def item(self, value: Any) -> str:
        return ".".join(value) if isinstance(value, tuple) else value

    def comparison(self, left: Any, operator: str, right: Any) -> Any:
        return left, OPERATORS[operator], right

    def band(self, left: Any, right: Any, operator: str, width: str) -> Any:
        try:
            return left, Band(operator, width), right
        except ValueError as error:
            text = f"ABS({'.'.join(left)} - {'.'.join(right)}) {operator} {width}"
            raise QueryError(f"{text}: {error}") from None

    def predicates(self, *predicates: Any) -> Any:
        *earlier, last = predicates
        return [*(predicate for several in earlier for predicate in several), last]

    def window(self, slide: str, length: str, precise: str = "") -> WindowClause:
        return WindowClause(
            slide=slide[1:-1].strip(), length=length[1:-1].strip(), precise=bool(precise)
        )

    def stream_windows(self, *windows: tuple[str, WindowClause]) -> StreamWindows:
        streams, clauses = zip(*windows, strict=True)
        return StreamWindows(streams=streams, clauses=clauses)

    def moment(self, base: Any, sign: str = "", extent: str = "''") -> Any:
        return base, IntervalEnd(sign=sign, extent=extent[1:-1].strip())

    def interval(self, probe: Any, lower: Any, upper: Any) -> _Between:
        return _Between(probe, lower, upper)

    def timed(self, *conditions: Any) -> Any:
        place = next(i for i, part in enumerate(conditions) if isinstance(part, _Between))
        before = conditions[0] if place else []
        predicates = [p for part in conditions if isinstance(part, list) for p in part]
        return predicates, conditions[place]._replace(place=len(before))

    def query(self, select: Any, streams: tuple[str, ...], conditions: Any) -> JoinQuery:
        repeated = {name for name in streams if streams.count(name) > 1}
        if repeated:
            raise QueryError(
                f"FROM names {', '.join(sorted(repeated))} twice: a self join names its stream "
                "once, and its fields have the suffix 1 (newer tuple) or 2 (earlier tuple)"
            )
        predicates, extent = conditions
        timed = isinstance(extent, _Between)
        return JoinQuery(
            select=select,
            streams=streams,
            predicates=tuple(_predicate(streams, *predicate) for predicate in predicates),
            window=None if timed else extent,
            interval=_interval(streams, extent) if timed else None,
        )


class _Between(NamedTuple):
    """An interval before its fields are resolved; each end is a field and an `IntervalEnd`."""

    probe: Any
    lower: Any
    upper: Any
    place: int = 0


def _interval(streams: tuple[str, ...], between: _Between) -> IntervalClause:
    if len(streams) != 2:
        raise QueryError(
            f"BETWEEN: an interval joins two streams, and FROM names {len(streams)}; to join a "
            "stream with itself, use its data under two names"
        )
    (lower_base, lower), (upper_base, upper) = between.lower, between.upper
    probe, base = _field(streams, between.probe), _field(streams, lower_base)
    if _field(streams, upper_base) != base:
        raise QueryError(
            f"BETWEEN {base.text} AND {'.'.join(upper_base)}: both ends must be of one tuple"
        )
    if probe.stream == base.stream:
        raise QueryError(
            f"{probe.text} BETWEEN {base.text}: both sides are of stream {streams[base.stream]}"
        )
    return IntervalClause(probe=probe, base=base, lower=lower, upper=upper, place=between.place)


def _predicate(streams: tuple[str, ...], left: Any, operator: Operator, right: Any) -> Predicate:
    a, b = _field(streams, left), _field(streams, right)
    predicate = Predicate(left=a, operator=operator, right=b)
    if len(streams) == 1 and a.role == b.role:
        raise QueryError(
            f"{predicate}: in a self join one side is the newer tuple (suffix 1) and the other an "
            "earlier one (suffix 2)"
        )
    if len(streams) > 1 and a.stream == b.stream:
        raise QueryError(f"{predicate}: both sides are of stream {streams[a.stream]}")
    return predicate


def _field(streams: tuple[str, ...], parts: tuple[str, ...]) -> Field:
    text = ".".join(parts)
    parts = tuple(part.strip('"') for part in parts)
    if len(parts) == 1 and len(streams) > 1:
        raise QueryError(f"{text}: name its stream, as in {streams[0]}.{text}")
    if len(parts) == 2 and parts[0] not in streams:
        raise QueryError(
            f"{text}: there is no stream {parts[0]!r} in FROM, only {', '.join(streams)}"
        )
    stream = streams.index(parts[0]) if len(parts) == 2 else 0
    name = parts[-1]
    if len(streams) > 1:
        return Field(stream=stream, name=prepared_name(name), role=0, text=text)
    if name[-1] not in "12" or len(name) == 1:
        raise QueryError(
            f"{text}: in a self join a field ends in 1 (of the newer tuple) or 2 (of the earlier)"
        )
    return Field(stream=0, name=prepared_name(name[:-1]), role=int(name[-1]), text=text)
