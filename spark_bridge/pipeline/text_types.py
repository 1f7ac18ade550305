"""From text to typed values, in Spark SQL, saying what is wrong where it cannot be done.

Spark's own casts take ``1d`` for a number, ``2007`` for a timestamp and ``10:11`` for a time of
today; the patterns here come first, so that a value is what it looks like or is refused.
"""

from __future__ import annotations

from dataclasses import dataclass

_INTEGER = "^[+-]?[0-9]+$"
_PLAIN_INTEGER = "^(0|-?[1-9][0-9]*)$"  # nothing is lost when such a text becomes a number
_NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_INFINITE = "^[+-]?inf(inity)?$"
_STAMP = "^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T].*)?$"
_WIDE = "decimal(38,18)"  # holds every int64, and enough of a fraction to see that there is one

INTEGERS = ("tinyint", "smallint", "int", "bigint")
FLOATS = ("float", "double")
MOMENTS = ("timestamp", "timestamp_ntz", "date")
TYPE_COUNTERS = ("filled", "plain", "integers", "numbers", "stamps", "fine", "booleans")


VALUE = "{value}"
"""Stands in a problem's condition for the value made of the text, so that it is made once."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that can be wrong with a value.

    Attributes
    ----------
    when
        Spark SQL condition, in which VALUE may stand, that holds where it is wrong.
    why
        What is wrong, in a word or two.
    shown
        Spark SQL of the offending text, None when there is nothing to show.
    """

    when: str
    why: str
    shown: str | None = None


def filled(text: str) -> str:
    """Return *text* (SQL) without surrounding blanks, null when nothing is left."""
    return f"nullif(trim({text}), '')"


def type_counters(text: str) -> dict[str, str]:
    """Return the SQL aggregates (keys: TYPE_COUNTERS) from which `infer` picks a column's type."""
    value = filled(text)
    special = f"lower({value}) = 'nan' or lower({value}) rlike '{_INFINITE}'"
    return {
        "filled": f"count({value})",
        "plain": f"count_if({value} rlike '{_PLAIN_INTEGER}' "
        f"and try_cast({value} as bigint) is not null)",
        "integers": f"count_if({value} rlike '{_INTEGER}')",
        "numbers": f"count_if({value} rlike '{_NUMBER}' or {special})",
        "stamps": f"count_if({as_type(text, 'timestamp')} is not null)",
        "fine": f"count_if({text_nanos(value)} <> 0)",
        "booleans": f"count_if(lower({value}) in ('true', 'false'))",
    }


def infer(counts: dict[str, int], *, strict: bool) -> str:
    """Return the Spark type of a text column with these counters.

    Strictly, every value must be of the type, and unchanged by it; otherwise most must, because
    the few that are not will be rejected by name.
    """
    total = counts["filled"]

    def holds(counter: str) -> bool:
        return counts[counter] == total if strict else counts[counter] * 2 > total

    if total == 0:
        return "string"
    if strict and holds("plain"):
        return "bigint"
    if not strict and holds("numbers") and counts["integers"] == counts["numbers"]:
        return "bigint"
    if holds("numbers") and (not strict or counts["integers"] < total):
        return "double"
    if holds("stamps") and (not strict or counts["fine"] == 0):
        return "timestamp"
    return "boolean" if holds("booleans") else "string"


def as_type(text: str, kind: str) -> str:
    """Return SQL for *text* as a value of Spark type *kind*, null where it is none."""
    if kind == "string":
        return text
    value = filled(text)
    if kind in INTEGERS:
        # 3.0 and 1e3 are integers too, but most are plainly written and need no decimals.
        wide = f"try_cast({value} as {_WIDE})"
        whole = f"if({wide} = floor({wide}), try_cast({wide} as {kind}), null)"
        return f"coalesce(try_cast({value} as {kind}), {whole})"
    if kind in FLOATS:
        special = f"lower({value}) = 'nan' or lower({value}) rlike '{_INFINITE}'"
        return f"if({value} rlike '{_NUMBER}' or {special}, try_cast({value} as {kind}), null)"
    if kind in MOMENTS:
        return f"if({value} rlike '{_STAMP}', try_cast({value} as {kind}), null)"
    if kind == "boolean":
        return f"try_cast({value} as boolean)"
    return f"if({value} rlike '{_NUMBER}', try_cast({value} as {kind}), null)"


def text_problems(text: str, kind: str) -> list[Problem]:
    """Return what can be wrong with *text* as a value of *kind*, the first that holds counts."""
    value, typed = filled(text), as_type(text, kind)
    wrong = [Problem(when=f"{value} is null", why="null")]
    if kind in MOMENTS:
        return [*wrong, Problem(when=f"{typed} is null", why="not a timestamp", shown=value)]
    if kind == "boolean":
        return [*wrong, Problem(when=f"{typed} is null", why="not a boolean", shown=value)]
    if kind == "string":
        return wrong
    wrong += [
        Problem(when=f"lower({value}) = 'nan'", why="NaN"),
        Problem(when=f"lower({value}) rlike '{_INFINITE}'", why="infinite"),
        Problem(when=f"not {value} rlike '{_NUMBER}'", why="not a number", shown=value),
    ]
    if kind in INTEGERS:
        wide = f"try_cast({value} as {_WIDE})"
        wrong.append(Problem(when=f"{wide} <> floor({wide})", why="not an integer", shown=value))
    too_large = f"abs({typed}) = double('infinity')" if kind in FLOATS else f"{typed} is null"
    return [*wrong, Problem(when=too_large, why=f"overflows {kind}", shown=value)]


def text_nanos(text: str) -> str:
    """Return SQL for the nanoseconds (0 to 999) of a timestamp's text that Spark's type drops."""
    digits = f"regexp_extract({text}, ':[0-9]{{1,2}}[.][0-9]{{6}}([0-9]{{1,3}})', 1)"
    return f"cast(rpad({digits}, 3, '0') as int)"
