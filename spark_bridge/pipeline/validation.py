"""Which rows belong to the stream, and what is wrong with those that cannot.

A row is rejected when it is malformed, or has no valid event time or join field. Nothing else is a
reason: duplicates, disorder and odd values in other columns remain in the data.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from joins.errors import DataError
from spark_bridge.pipeline.raw_source import ROWS, RawSource, Task
from spark_bridge.pipeline.typed_rows import FILE, NANOS, ROW, TEXT, Typed, errors_about
from spark_bridge.pipeline.values import (
    FLOATS,
    INTEGERS,
    MOMENTS,
    VALUE,
    Checked,
    Problem,
    filled,
    fraction,
    is_null,
    nanoseconds,
    not_utf8,
    number,
    text_nanos,
    text_problems,
    text_value,
)
from spark_bridge.prepared import rounding_notes
from spark_bridge.sql.statement import sql_name

TS, REASON, KINDS = (f"__joinsim_{name}" for name in ("ts", "reason", "kinds"))
"""Hidden columns: event time in ns, what is wrong, and the same without values."""

ARRIVES = "__joinsim_arrives"
"""Hidden column: when a tuple arrives, ns."""

FIELD = "__joinsim_field_"
"""Prefix of the hidden columns of the join fields as they are written."""

SHOWN_MAX = 60  # characters of an offending value that a reason repeats
_WHERE = "__joinsim_where"
_INVALID = " is not valid"
_MALFORMED = f"{TEXT} is not null"
_MALFORMED_KIND = "row: malformed, its columns do not match the header"


def validate(task: Task, typed: Typed) -> Typed:
    """Return the rows that the condition selects, with time, join fields and what is wrong.

    The frame has every hidden column; KINDS is empty where a row is valid.

    Raise :exc:`DataError` for an expression that is not valid, and for a column that cannot be an
    event time or a join field.
    """
    source, layout, notes = task.source, task.layout, list(typed.notes)
    time_name = typed.time if typed.time is not None else "time"
    checked = {TS: (time_name, _event_time(task, typed))}
    if typed.time is not None and typed.types[typed.time] in (*INTEGERS, *FLOATS):
        notes.append(f"the event time, {time_name}, is a number, taken as nanoseconds")
    dtypes = {name: "int64" for name in source.fields if name == "ts"}
    for name, column in layout.fields.items():
        field, dtypes[name], note = _join_field(task, typed, name, column)
        checked[FIELD + name] = (name, field)
        notes += note
    if source.arrival is not None and source.arrival != ROWS:
        checked[ARRIVES] = (source.arrival, _arrival(source, typed, source.arrival))
    frame = _with_reasons(_selected(task, typed.frame), checked)
    in_order = {name: dtypes[name] for name in source.fields}
    return replace(typed, frame=frame, dtypes=in_order, notes=notes)


def _selected(task: Task, frame: DataFrame) -> DataFrame:
    """Drop the rows for which the condition is false; where it is null, they stay for now."""
    source, where = task.source, task.expressions.get("where")
    condition = f"stream {source.name!r}: the condition {source.where!r}"
    with errors_about(condition, _INVALID):
        chosen = frame.select("*", sf.expr(f"({where.sql if where else 'true'})").alias(_WHERE))
        kind = dict(chosen.dtypes)[_WHERE]
        if kind not in ("boolean", "void"):
            raise DataError(f"{condition} is of type {kind}; a condition is true or false")
        return chosen.filter(f"{_MALFORMED} or coalesce({_WHERE}, true)")


def _with_reasons(frame: DataFrame, checked: dict[str, tuple[str, Checked]]) -> DataFrame:
    kinds = [f"case when {_MALFORMED} then '{_MALFORMED_KIND}' end"]
    reasons = list(kinds)
    for name, (shown, one) in checked.items():
        kinds.append(_case(shown, name, one.problems))
        reasons.append(_case(shown, name, one.problems, with_values=True))
    values = (sf.expr(one.value).alias(name) for name, (_, one) in checked.items())
    frame = frame.select("*", *values).select(
        "*",
        sf.expr(f"concat_ws('\n', {', '.join(kinds)})").alias(KINDS),
        sf.expr(f"concat_ws('; ', {', '.join(reasons)})").alias(REASON),
    )
    # A row whose condition is null because of what is wrong with it is rejected, not dropped.
    return frame.filter(f"{_WHERE} or {KINDS} <> ''").drop(_WHERE)


def _case(shown: str, name: str, problems: list[Problem], *, with_values: bool = False) -> str:
    """Return SQL for the first problem of column *name*, shown as *shown*; null if there is none.

    A malformed row's values are not described: they are in the wrong columns.
    """
    branches = [f"when {_MALFORMED} then null"]
    for problem in problems:
        words = _literal(f"{shown}: {problem.why}")
        if with_values and problem.shown is not None:
            words = f"concat({words}, ' \\'', left({problem.shown}, {SHOWN_MAX}), '\\'')"
        branches.append(f"when {problem.when.replace(VALUE, sql_name(name))} then {words}")
    return f"case {' '.join(branches)} end"


def _literal(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _event_time(task: Task, typed: Typed) -> Checked:
    source = task.source
    if source.time == ROWS:
        before = ", ".join(f"{rows}L" for rows in accumulate([0, *typed.file_rows[:-1]]))
        return Checked(value=f"get(array({before}), {FILE}) + {ROW} - 1")
    if typed.time is not None:
        kind = typed.types[typed.time]
        checked = _column_nanoseconds(typed, typed.time)
        what = f"column {typed.time!r}"
    else:
        what = f"expression {source.time!r}"
        value = f"({task.expressions['time'].sql})"
        with errors_about(f"stream {source.name!r}: the time {what}", _INVALID):
            kind = typed.frame.select(sf.expr(value)).dtypes[0][1]
        checked = nanoseconds(value, kind, rounded=True)  # an expression computes
        if checked is not None:
            # The expression may be costly: it is evaluated again only where its result is null.
            null = Problem(when=f"{VALUE} is null and {value} is null", why="null")
            checked = checked.after([null])
    if checked is None:
        raise DataError(
            f"stream {source.name!r}: the event time, {what}, is of type {kind}; a timestamp, a "
            f"date, a day-time interval or a number is needed "
            f"(its columns: {', '.join(f'{c} {t}' for c, t in typed.types.items())})"
        )
    return checked


def _arrival(source: RawSource, typed: Typed, column: str) -> Checked:
    checked = _column_nanoseconds(typed, column)
    if checked is None:
        raise DataError(
            f"stream {source.name!r}: the arrival {column!r} is of type {typed.types[column]}; a "
            "timestamp, a date or a number is needed"
        )
    return checked


def _column_nanoseconds(typed: Typed, column: str) -> Checked | None:
    """Return a *column* as int64 nanoseconds, None where it cannot be a time.

    Digits below the microsecond, which Spark's timestamps drop, come from the raw value, and so do
    those of a number that a double does not have.
    """
    value, kind = sql_name(column), typed.types[column]
    if kind == "double" and column in typed.texts:
        text = filled(typed.texts[column])
        decimal = f"try_cast({text} as decimal(38,9))"
        exact = nanoseconds(decimal, "decimal(38,9)")
        assert exact is not None
        between = [fraction(value, shown=text), fraction(decimal, shown=text)]
        return exact.after([*_missing(typed, column), *between])
    checked = nanoseconds(value, kind)
    if checked is None:
        return None
    if NANOS + column in typed.frame.columns and column not in typed.texts:
        raw = sql_name(NANOS + column)
        return Checked(value=raw, problems=is_null(raw))
    checked = checked.after(_missing(typed, column))
    if kind != "timestamp" or column not in typed.texts:
        return checked
    with_nanos = f"try_add({checked.value}, {text_nanos(typed.texts[column])})"
    return Checked(value=with_nanos, problems=checked.problems)


def _join_field(task: Task, typed: Typed, name: str, column: str) -> tuple[Checked, str, list[str]]:
    """Return the field, its dtype, and notes."""
    kind, value = typed.types[column], sql_name(column)
    if kind in MOMENTS:
        moment = _column_nanoseconds(typed, column)
        assert moment is not None
        return moment, "int64", [f"join field {name}: {kind} as int64 nanoseconds"]
    if kind == "string":
        problems = is_null(text_value(value, task.files[0].format))
        if task.files[0].format == "csv":
            problems.append(not_utf8(value))
        return Checked(value=value, problems=problems), "int64", []
    as_number = number(value, kind)
    if as_number is None:
        raise DataError(
            f"stream {task.source.name!r}: join field {name!r} is of type {kind}; "
            "a number, a timestamp, a date or a boolean is needed"
        )
    checked, dtype = as_number
    return checked.after(_missing(typed, column)), dtype, rounding_notes(name, kind)


def _missing(typed: Typed, column: str) -> list[Problem]:
    """Return what can be wrong with a column before its value is used."""
    if column in typed.texts:
        return text_problems(typed.texts[column], typed.types[column])
    return is_null(sql_name(column))
