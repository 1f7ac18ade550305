"""Which rows belong to the stream, and what is wrong with those that cannot.

A row is rejected when it is malformed, or has no valid event time, join field or key. Nothing else
rejects one: duplicates, disorder and dirt in other columns are the data's own business.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from spark_bridge.errors import DataError, one_line
from spark_bridge.pipeline import text_types
from spark_bridge.pipeline.columns import Layout
from spark_bridge.pipeline.event_time import (
    Judged,
    column_nanoseconds,
    event_time,
    float_problems,
    nanoseconds,
)
from spark_bridge.pipeline.raw_frame import TEXT, sql_name
from spark_bridge.pipeline.source import StreamSource
from spark_bridge.pipeline.text_types import VALUE, Problem
from spark_bridge.pipeline.typed_frame import Typed

TS, KEY, REASON, KINDS = (f"__joinsim_{name}" for name in ("ts", "key", "reason", "kinds"))
"""Hidden columns: event time in ns, key, what is wrong in words, and the same without values."""

FIELD = "__joinsim_field_"
"""Prefix of the hidden columns that hold the join fields as they are written."""

SHOWN_MAX = 60  # characters of an offending value that a reason repeats
_WHERE = "__joinsim_where"
_MALFORMED = f"{TEXT} is not null"
_MALFORMED_TOLD = "row: malformed, its columns do not match the header"


@dataclass(frozen=True, kw_only=True)
class Rows:
    """The rows that a source's condition selects, each with its verdict.

    Attributes
    ----------
    frame
        The typed columns and every hidden one; KINDS is empty where the row is valid.
    dtypes
        Join field to its dtype in joinsim, ``int64`` or ``float64``; texts become codes.
    notes
        Decisions that a person should know of.
    """

    frame: DataFrame
    dtypes: dict[str, str]
    notes: list[str]


def judge(source: StreamSource, typed: Typed, layout: Layout) -> Rows:
    """Compute time, key and join fields, and what is wrong with each row.

    Raises
    ------
    DataError
        An expression is not valid, or a column cannot be what it is asked to be.
    """
    notes = list(typed.notes)
    said = typed.time if typed.time is not None else "time"
    time = event_time(source, typed, _type_of(source, typed, "time"))
    judged = {TS: (said, time)}
    if typed.types.get(said) in (*text_types.INTEGERS, *text_types.FLOATS):
        notes.append(f"event time {said} is a number, taken in {source.time_unit} (time_unit)")
    dtypes = {name: "int64" for name in source.fields if name == "ts"}
    for name, column in layout.fields.items():
        field, dtypes[name], note = _join_field(source, typed, name, column)
        judged[FIELD + name] = (name, field)
        notes += note
    if source.key is not None:
        key, note = _key(source, typed)
        judged[KEY] = ("key", key)
        notes += note
    frame = _with_verdict(_not_excluded(source, typed.frame), judged)
    in_order = {name: dtypes[name] for name in source.fields}
    return Rows(frame=frame, dtypes=in_order, notes=notes)


def _not_excluded(source: StreamSource, frame: DataFrame) -> DataFrame:
    """Drop the rows for which the condition is false; those it cannot judge stay for now."""
    try:
        chosen = frame.select("*", sf.expr(f"({source.where or 'true'})").alias(_WHERE))
        return chosen.filter(f"{_MALFORMED} or coalesce({_WHERE}, true)")
    except PySparkException as error:
        raise DataError(
            f"stream {source.name!r}: the condition {source.where!r} is not valid: "
            f"{one_line(error)}"
        ) from error


def _with_verdict(frame: DataFrame, judged: dict[str, tuple[str, Judged]]) -> DataFrame:
    kinds = [f"if({_MALFORMED}, '{_MALFORMED_TOLD}', null)"]
    reasons = list(kinds)
    for name, (said, one) in judged.items():
        kinds.append(_case(said, name, one.problems, show=False))
        reasons.append(_case(said, name, one.problems, show=True))
    values = (sf.expr(one.value).alias(name) for name, (_, one) in judged.items())
    frame = frame.select("*", *values).select(
        "*",
        sf.expr(f"concat_ws('\n', {', '.join(kinds)})").alias(KINDS),
        sf.expr(f"concat_ws('; ', {', '.join(reasons)})").alias(REASON),
    )
    # What cannot be judged, because of what is wrong with the row, is rejected, not dropped.
    return frame.filter(f"{_WHERE} or {KINDS} <> ''").drop(_WHERE)


def _case(said: str, name: str, problems: list[Problem], *, show: bool) -> str:
    """Return SQL for the first of the *problems* of column *name* in words, null if there is none.

    A malformed row's values are not spoken of: they stand in the wrong columns.
    """
    branches = [f"when {_MALFORMED} then null"]
    for problem in problems:
        words = _literal(f"{said}: {problem.why}")
        if show and problem.shown is not None:
            words = f"concat({words}, ' \\'', left({problem.shown}, {SHOWN_MAX}), '\\'')"
        branches.append(f"when {problem.when.replace(VALUE, sql_name(name))} then {words}")
    return f"case {' '.join(branches)} end"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _type_of(source: StreamSource, typed: Typed, what: str) -> str:
    """Return the Spark type of the ``time`` or ``key`` expression."""
    column = typed.time if what == "time" else source.key
    if column in typed.types:
        return typed.types[column]
    expression = getattr(source, what)
    try:
        return str(typed.frame.select(sf.expr(f"({expression})")).dtypes[0][1])
    except PySparkException as error:
        raise DataError(
            f"stream {source.name!r}: the {what} expression {expression!r} is not valid: "
            f"{one_line(error)}"
        ) from error


def _join_field(
    source: StreamSource, typed: Typed, name: str, column: str
) -> tuple[Judged, str, list[str]]:
    kind, value = typed.types[column], sql_name(column)
    if kind in text_types.MOMENTS:
        moment = column_nanoseconds(typed, column, "ns")
        assert moment is not None
        return moment, "int64", [f"join field {name}: {kind} as int64 nanoseconds"]
    if kind == "string":
        problems = text_types.text_problems(value, kind)
        return Judged(value=value, problems=problems), "int64", []
    number = _number(value, kind)
    if number is None:
        raise DataError(
            f"stream {source.name!r}: join field {name!r} is of type {kind}; "
            "a number, a timestamp, a date or a boolean is needed"
        )
    judged, dtype = number
    missing = _missing(typed, column)
    return Judged(value=judged.value, problems=missing + judged.problems), dtype, []


def _missing(typed: Typed, column: str) -> list[Problem]:
    if column in typed.texts:
        return text_types.text_problems(typed.texts[column], typed.types[column])
    return [Problem(when=f"{sql_name(column)} is null", why="null")]


def _number(value: str, kind: str) -> tuple[Judged, str] | None:
    """Return SQL *value* of Spark type *kind* as a number, and its dtype; None if it is none."""
    if kind in text_types.INTEGERS:
        return Judged(value=value, problems=[]), "int64"
    if kind in text_types.FLOATS:
        return Judged(value=value, problems=float_problems(value, kind)), "float64"
    if kind == "boolean":
        return Judged(value=f"cast({value} as bigint)", problems=[]), "int64"
    if kind.startswith("decimal") and kind.endswith(",0)"):
        whole = f"try_cast({value} as bigint)"
        shown = f"cast({value} as string)"
        overflow = Problem(when=f"{VALUE} is null", why="overflows int64", shown=shown)
        return Judged(value=whole, problems=[overflow]), "int64"
    if kind.startswith("decimal"):
        return Judged(value=f"cast({value} as double)", problems=[]), "float64"
    return None


def _key(source: StreamSource, typed: Typed) -> tuple[Judged, list[str]]:
    kind = _type_of(source, typed, "key")
    assert source.key is not None
    if source.key in typed.types:
        value, missing = sql_name(source.key), _missing(typed, source.key)
    else:
        value = f"({source.key})"
        missing = [Problem(when=f"{value} is null", why="null")]
    if kind == "string":
        note = f"key {source.key}: text as its 64-bit hash (xxHash64)"
        return Judged(value=f"xxhash64({value})", problems=missing), [note]
    if kind in text_types.MOMENTS:
        moment = nanoseconds(value, kind, "ns")
        assert moment is not None
        return Judged(value=moment.value, problems=missing + moment.problems), []
    number = _number(value, kind)
    if number is None or number[1] != "int64":
        raise DataError(
            f"stream {source.name!r}: the key {source.key!r} is of type {kind}; an integer, text, "
            "a timestamp, a date or a boolean is needed"
        )
    judged = number[0]
    return Judged(value=f"cast({judged.value} as bigint)", problems=missing + judged.problems), []
