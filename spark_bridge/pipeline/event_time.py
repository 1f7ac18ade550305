"""Event time in integer nanoseconds, from whatever a source calls time."""

from __future__ import annotations

from dataclasses import dataclass

from spark_bridge.errors import DataError
from spark_bridge.pipeline import text_types
from spark_bridge.pipeline.raw_frame import NANOS, sql_name
from spark_bridge.pipeline.source import TIME_UNITS_NS, StreamSource
from spark_bridge.pipeline.text_types import VALUE, Problem
from spark_bridge.pipeline.typed_frame import Typed

_EPOCH = "timestamp'1970-01-01 00:00:00'"
_DAY_TIME = ("interval day", "interval hour", "interval minute", "interval second")
_RANGE = "outside of the years 1677 to 2262"
_UNIT_DIGITS = {"ns": 0, "us": 3, "ms": 6, "s": 9}


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A value as SQL, and what can be wrong with it (the first that holds counts)."""

    value: str
    problems: list[Problem]


def nanoseconds(value: str, kind: str, unit: str) -> Judged | None:
    """Return int64 nanoseconds from SQL *value* of Spark type *kind*, None for other types.

    Timestamps and dates count from 1970 in UTC, intervals from zero; numbers are in *unit*, and
    fractions of a nanosecond are rounded. Overflow is null.
    """
    if kind.startswith(_DAY_TIME):
        value, kind = f"({_EPOCH} + {value})", "timestamp"
    if kind in text_types.MOMENTS:
        ns = f"try_multiply(unix_micros(cast({value} as timestamp)), 1000L)"
        return Judged(value=ns, problems=[Problem(when=f"{VALUE} is null", why=_RANGE)])
    factor = TIME_UNITS_NS[unit]
    overflow = f"overflows int64 nanoseconds (time_unit {unit})"
    if kind in text_types.INTEGERS:
        ns = f"try_multiply(cast({value} as bigint), {factor}L)"
        return Judged(value=ns, problems=[Problem(when=f"{VALUE} is null", why=overflow)])
    if kind not in text_types.FLOATS and not kind.startswith("decimal"):
        return None
    # Decimals keep 1609459200.123 s exact, which a product of doubles does not.
    scaled = f"try_cast({value} as decimal(27,{_UNIT_DIGITS[unit]}))"
    ns = f"try_cast({scaled} * cast({factor} as decimal(10,0)) as bigint)"
    wrong = [Problem(when=f"{VALUE} is null", why=overflow)]
    return Judged(value=ns, problems=float_problems(value, kind) + wrong)


def float_problems(value: str, kind: str) -> list[Problem]:
    """Return what can be wrong with a floating-point *value*: nothing for other types."""
    if kind not in text_types.FLOATS:
        return []
    return [
        Problem(when=f"isnan({value})", why="NaN"),
        Problem(when=f"abs({value}) = double('infinity')", why="infinite"),
    ]


def column_nanoseconds(typed: Typed, column: str, unit: str) -> Judged | None:
    """Return int64 nanoseconds from a *column* of *typed* rows, None where it cannot be a time.

    Digits below the microsecond, which Spark's timestamps drop, are taken from the raw value.
    """
    value, kind = sql_name(column), typed.types[column]
    judged = nanoseconds(value, kind, unit)
    if judged is None:
        return None
    if NANOS + column in typed.frame.columns and column not in typed.texts:
        kept = sql_name(NANOS + column)
        return Judged(value=kept, problems=[Problem(when=f"{kept} is null", why="null")])
    if column not in typed.texts:
        missing = [Problem(when=f"{value} is null", why="null")]
        return Judged(value=judged.value, problems=missing + judged.problems)
    text = typed.texts[column]
    wrong = text_types.text_problems(text, kind) + judged.problems
    if kind != "timestamp":
        return Judged(value=judged.value, problems=wrong)
    return Judged(value=f"({judged.value} + {text_types.text_nanos(text)})", problems=wrong)


def event_time(source: StreamSource, typed: Typed, kind: str) -> Judged:
    """Return the event time of *typed* rows; *kind* is the Spark type of its expression.

    Raises
    ------
    DataError
        The type cannot be a time.
    """
    if typed.time is not None:
        judged = column_nanoseconds(typed, typed.time, source.time_unit)
        what = f"column {typed.time!r}"
    else:
        value = f"({source.time})"
        judged = nanoseconds(value, kind, source.time_unit)
        what = f"expression {source.time!r}"
        if judged is not None:
            # The expression may be costly: it is looked at again only where nothing came of it.
            missing = [Problem(when=f"{VALUE} is null and {value} is null", why="null")]
            judged = Judged(value=judged.value, problems=missing + judged.problems)
    if judged is None:
        raise DataError(
            f"stream {source.name!r}: the event time, {what}, is of type {kind}; a timestamp, a "
            f"date, a day-time interval or a number is needed "
            f"(its columns: {', '.join(f'{c} {t}' for c, t in typed.types.items())})"
        )
    return judged
