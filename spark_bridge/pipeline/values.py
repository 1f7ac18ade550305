"""What a valid value is, stated in Spark SQL, and what is wrong with one that is not.

Values of a prepared stream are numbers: integers, finite floats, nanoseconds of time. This module
makes them from text and from Spark's types. Spark's own casts accept ``1d`` as a number, ``2007``
as a timestamp and ``10:11`` as a time of today; the patterns here come first, so that a value is
what it looks like or is rejected.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spark_bridge.prepared import join_dtype

_INTEGER = "^[+-]?[0-9]+$"
_PLAIN_INTEGER = "^(0|-?[1-9][0-9]*)$"  # nothing is lost when such a text becomes a number
_NUMBER = "^[+-]?([0-9]+[.]?[0-9]*|[.][0-9]+)([eE][+-]?[0-9]+)?$"
_INFINITE = "^[+-]?inf(inity)?$"
_STAMP = "^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([ T].*)?$"
_ZONE_AFTER_MINUTES = "^([^:]*:[0-9]{1,2}) *(UTC|[Z+-].*)$"
_EPOCH = "timestamp'1970-01-01 00:00:00'"
_DAY_TIME = ("interval day", "interval hour", "interval minute", "interval second")

INTEGERS = ("tinyint", "smallint", "int", "bigint")
FLOATS = ("float", "double")
MOMENTS = ("timestamp", "timestamp_ntz", "date")
TYPE_COUNTERS = ("filled", "plain", "integers", "numbers", "stamps", "fine", "booleans")

NS_PER_UNIT = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
"""Of Arrow's units of time."""

VALUE = "__joinsim_value"
"""In a problem's condition, stands for the checked value, so that it is computed once; no column of
a file has a name that begins so."""


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One thing that can be wrong with a value."""

    when: str
    """Spark SQL condition, which may contain VALUE, that is true where it is wrong."""
    why: str
    """What is wrong, in a word or two."""
    shown: str | None = None
    """Spark SQL of the offending text, None when there is nothing to show."""


@dataclass(frozen=True, kw_only=True)
class Checked:
    """A value as SQL, with what can be wrong with it (the first true problem counts)."""

    value: str
    problems: list[Problem] = field(default_factory=list)

    def after(self, problems: list[Problem]) -> Checked:
        """Return the same value with *problems* before its own."""
        return Checked(value=self.value, problems=problems + self.problems)


def is_null(value: str) -> list[Problem]:
    """Return the problem of a *value* (SQL) that may be missing."""
    return [Problem(when=f"{value} is null", why="null")]


def filled(text: str) -> str:
    """Return *text* (SQL) without surrounding blanks, null when nothing is left."""
    return f"nullif(trim({text}), '')"


def text_value(text: str, format: str) -> str:
    """Return SQL for the *text* of a file of a *format* that a join field holds, null for none.

    A blank cell of CSV has no value; in Parquet a text is one, whatever its letters.
    """
    return filled(text) if format == "csv" else text


def type_counters(text: str) -> dict[str, str]:
    """Return the SQL aggregates (keys: TYPE_COUNTERS) from which `infer` picks a column's type."""
    value = filled(text)
    return {
        "filled": f"count({value})",
        "plain": f"count_if({value} rlike '{_PLAIN_INTEGER}' "
        f"and try_cast({value} as bigint) is not null)",
        "integers": f"count_if({value} rlike '{_INTEGER}')",
        "numbers": f"count_if({_is_number(value)})",
        "stamps": f"count_if({as_type(text, 'timestamp')} is not null)",
        "fine": f"count_if({text_nanos(value)} <> 0)",
        "booleans": f"count_if(lower({value}) in ('true', 'false'))",
    }


def infer(counts: dict[str, int], *, strict: bool) -> str:
    """Return the Spark type of a text column with these counters.

    If *strict*, every value must be of the type, and unchanged by it; otherwise most must, because
    the few others will be rejected by name.
    """
    total = counts["filled"]

    def are(counter: str) -> bool:
        return counts[counter] == total if strict else counts[counter] * 2 > total

    if total == 0:
        return "string"
    if strict and are("plain"):
        return "bigint"
    if not strict and are("numbers") and counts["integers"] == counts["numbers"]:
        return "bigint"
    if are("numbers") and (not strict or counts["plain"] == counts["integers"] < total):
        return "double"
    if are("stamps") and (not strict or counts["fine"] == 0):
        return "timestamp"
    return "boolean" if are("booleans") else "string"


def as_type(text: str, kind: str) -> str:
    """Return SQL for *text* as a value of a *kind* that is inferred, null where it is none."""
    if kind == "string":
        return text
    value = filled(text)
    if kind in ("bigint", "boolean"):
        return f"try_cast({value} as {kind})"
    if kind == "double":
        return f"if({_is_number(value)}, try_cast({value} as double), null)"
    # Spark reads a zone only after seconds, ISO 8601 after minutes, too.
    with_seconds = f"regexp_replace({value}, '{_ZONE_AFTER_MINUTES}', '$1:00$2')"
    cast = ", ".join(f"try_cast({one} as {kind})" for one in (value, with_seconds))
    return f"if({value} rlike '{_STAMP}', coalesce({cast}), null)"


def text_problems(text: str, kind: str) -> list[Problem]:
    """Return what can be wrong with *text* as a value of a *kind* that is inferred, but text."""
    value, typed = filled(text), as_type(text, kind)
    problems = is_null(value)
    if kind in ("timestamp", "boolean"):
        return [*problems, Problem(when=f"{typed} is null", why=f"not a {kind}", shown=value)]
    problems += [
        Problem(when=f"lower({value}) = 'nan'", why="NaN"),
        Problem(when=f"lower({value}) rlike '{_INFINITE}'", why="infinite"),
        Problem(when=f"not {value} rlike '{_NUMBER}'", why="not a number", shown=value),
    ]
    too_large = f"abs({typed}) = double('infinity')" if kind == "double" else f"{typed} is null"
    return [*problems, Problem(when=too_large, why=f"overflows {kind}", shown=value)]


def not_utf8(text: str) -> Problem:
    """Return the problem of a CSV file's *text* (SQL) that has bytes which are not UTF-8.

    Spark reads all of them as one character, so that texts which differ would be equal.
    """
    return Problem(when=f"contains({text}, '\ufffd')", why="not UTF-8 text", shown=text)


def text_nanos(text: str) -> str:
    """Return SQL for the nanoseconds (0 to 999) of a timestamp's text that Spark's type drops."""
    digits = f"regexp_extract({text}, ':[0-9]{{1,2}}[.][0-9]{{6}}([0-9]{{1,3}})', 1)"
    return f"cast(rpad({digits}, 3, '0') as int)"


def number(value: str, kind: str) -> tuple[Checked, str] | None:
    """Return *value* of Spark type *kind* as a number, and its dtype; None for other types."""
    dtype = join_dtype(kind)
    if dtype is None:
        return None
    if kind == "boolean":
        return Checked(value=f"cast({value} as bigint)"), dtype
    if not kind.startswith("decimal"):
        return Checked(value=value, problems=_float_problems(value, kind)), dtype
    if dtype == "float64":
        return Checked(value=f"cast({value} as double)"), dtype
    shown = f"cast({value} as string)"
    overflow = Problem(when=f"{VALUE} is null", why="overflows int64", shown=shown)
    return Checked(value=f"try_cast({value} as bigint)", problems=[overflow]), dtype


def nanoseconds(value: str, kind: str, *, rounded: bool = False) -> Checked | None:
    """Return *value* of Spark type *kind* as int64 nanoseconds, None for types that are no time.

    Timestamps and dates count from 1970 in UTC, intervals from zero; numbers are nanoseconds. A
    fraction of one is a problem, unless it is to be *rounded*. Overflow is null.
    """
    if kind.startswith(_DAY_TIME):
        value, kind = f"({_EPOCH} + {value})", "timestamp"
    if kind in MOMENTS:
        ns = f"try_multiply(unix_micros(cast({value} as timestamp)), 1000L)"
        outside = Problem(when=f"{VALUE} is null", why="outside of the years 1677 to 2262")
        return Checked(value=ns, problems=[outside])
    if kind in INTEGERS:
        return Checked(value=f"cast({value} as bigint)")
    if kind not in FLOATS and not kind.startswith("decimal"):
        return None
    # A cast to an integer cuts, and is exact of whole numbers; a decimal between them rounds.
    whole = f"try_cast({value} as decimal(27,0))" if rounded or kind not in FLOATS else value
    problems = _float_problems(value, kind)
    if not rounded:
        problems.append(fraction(value, shown=f"cast({value} as string)"))
    too_large = f"{VALUE} is null"
    if kind in FLOATS:
        too_large += f" or {value} >= double('9223372036854775808')"  # the cast takes it for less
    overflow = Problem(when=too_large, why="overflows int64 nanoseconds")
    return Checked(value=f"try_cast({whole} as bigint)", problems=[*problems, overflow])


def fraction(value: str, shown: str) -> Problem:
    """Return the problem of a *value* (SQL), *shown* so, that is not a whole number."""
    return Problem(when=f"{value} % 1 <> 0", why="not a whole number of nanoseconds", shown=shown)


def _is_number(value: str) -> str:
    low = f"lower({value})"
    return f"({value} rlike '{_NUMBER}' or {low} = 'nan' or {low} rlike '{_INFINITE}')"


def _float_problems(value: str, kind: str) -> list[Problem]:
    """Return what can be wrong with a floating-point *value*: nothing for other types."""
    if kind not in FLOATS:
        return []
    return [
        Problem(when=f"isnan({value})", why="NaN"),
        Problem(when=f"abs({value}) = double('infinity')", why="infinite"),
    ]
