"""The source of a stream: what a person declares, and the names of its columns in the stream.

Nothing here needs Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from joins.errors import DataError, suggest
from spark_bridge.pipeline.expressions import Expression, check_expression
from spark_bridge.pipeline.quotes import records_span_lines
from spark_bridge.pipeline.raw_files import RawFile

ROWS = "rows"
"""As an event time or an arrival: the order of the rows in the files."""

_NO_OPTIONS = ("name", "paths")
"""What a stream is prepared from, and how it is called, are not how it is prepared."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


@dataclass(frozen=True, kw_only=True)
class RawSource:
    """One stream in raw files, as a person declares it.

    Raise :exc:`DataError` for an option that is not allowed.
    """

    name: str
    """The stream's name, as the query spells it; also the name of its folder."""
    paths: Sequence[str | Path]
    """CSV or Parquet files (or folders of them), in source order."""
    time: str | None = None
    """Event time: a column's name or an expression (see `expressions`) giving a timestamp, a date,
    a day-time interval (``date_time - date_trunc('year', date_time)``) or a number of nanoseconds,
    of which a row of a column must have a whole one, and that of an expression is rounded; or
    ``rows``, the number of the row, from 0. By default the column ``ts``, or else the first column
    of timestamps."""
    arrival: str | None = None
    """The order in which tuples arrive: a column of times, or ``rows``, the order of the rows, in
    which a tuple arrives when it happens, or with the one before it. None: that of event time."""
    fields: Sequence[str] = ()
    """Join fields: a row is rejected if one of them is not a valid number, or text."""
    where: str | None = None
    """Condition on the source's columns, an expression; rows where it is false are not part of the
    stream."""
    rows: int | None = None
    """Length of the stream at most: the first tuples in event-time order. Rejected rows are
    nevertheless those of the whole source."""
    codes: Mapping[str, str] = field(default_factory=dict)
    """Join fields that may be text, because they are only compared with ``=`` and ``!=``, to the
    name of their dictionary. Fields of one dictionary, in one stream or in several that are
    prepared together, have equal codes exactly where their texts are equal."""
    columns: Sequence[str] | None = None
    """What the stream has beside its tuples' id and time, and the join fields: columns by their
    names in the stream (see `ColumnLayout`); None: all of the source. Rejected rows are written
    with all columns anyway."""

    def __post_init__(self) -> None:
        if isinstance(self.paths, (str, Path)):
            object.__setattr__(self, "paths", (self.paths,))
        if isinstance(self.fields, str):
            object.__setattr__(self, "fields", (self.fields,))
        if not _NAME.fullmatch(self.name) or self.name.endswith(".rejected"):
            raise DataError(
                f"stream name {self.name!r}: at most 100 letters, digits, '_', '-' and '.' are "
                "allowed, and no '.' or '-' at its start, nor '.rejected' at its end"
            )
        if not self.paths:
            raise DataError(f"stream {self.name!r}: no file is named; give one or more")
        if self.rows is not None and self.rows < 1:
            raise DataError(f"stream {self.name!r}: rows is {self.rows}; it must be 1 or more")
        twice = sorted({name for name in self.fields if list(self.fields).count(name) > 1})
        if twice:
            raise DataError(f"stream {self.name!r}: join field {twice[0]!r} is named twice")

    @property
    def files(self) -> str:
        """The files, for messages."""
        more = len(self.paths) - 1
        return f"{self.paths[0]}{f' and {more} more' if more else ''}"

    def options(self) -> dict[str, object]:
        """Return everything but the files, as plain data: it goes into the fingerprint."""
        return {name: value for name, value in asdict(self).items() if name not in _NO_OPTIONS}


@dataclass(frozen=True, kw_only=True)
class ColumnLayout:
    """Which source column has which name in the prepared stream.

    There, ``id`` and ``ts`` are the tuple's position and time; a source's own columns of those
    names are renamed. Upper and lower case count as equal, because SQL ignores case.
    """

    names: dict[str, str]
    """Source column to its name in the prepared stream, in order, of those that it has."""
    fields: dict[str, str]
    """Join field (by its name in the prepared stream) to the source column behind it."""
    notes: list[str]
    """Remarks on renamed columns."""

    @property
    def own_names(self) -> dict[str, str]:
        """The column that is the source's own ``id``, to how the source spells that."""
        return {name: column for column, name in self.names.items() if column.lower() == "id"}


def lay_out(source: RawSource, columns: list[str]) -> ColumnLayout:
    """Name those of the *columns* that the prepared stream has, and find its join fields.

    Raise :exc:`DataError` for a column that the source does not have: of its time or its arrival, a
    join field, or one to store.
    """
    if source.time is not None and source.time.isidentifier() and source.time != ROWS:
        _require(source, source.time, columns, "event time")
    if source.arrival is not None and source.arrival != ROWS:
        _require(source, source.arrival, columns, "arrival")
    time = source.time or "ts"
    names, notes = {}, []
    for column in columns:
        low = column.lower()
        if low == "ts" and column == time:
            notes.append(f"column {column} is the event time: ts holds it in nanoseconds")
        elif low in ("id", "ts"):
            names[column] = free_name(f"source_{column}", columns)
        else:
            names[column] = column
    fields = _join_fields(source, names)
    if source.columns is not None:
        for name in source.columns:
            _require(source, name, list(names.values()), "column")
        stored = {*source.columns, *fields}
        names = {column: name for column, name in names.items() if name in stored}
    notes += [
        f"the source's own column {column} is named {name}"
        for column, name in names.items()
        if column != name
    ]
    return ColumnLayout(names=names, fields=fields, notes=notes)


def _join_fields(source: RawSource, names: Mapping[str, str]) -> dict[str, str]:
    """Return each join field's column; *names* are those that columns have in the stream."""
    fields = {}
    for name in source.fields:
        if name == "ts":
            continue  # every tuple has a valid event time
        renamed = names.get(name, name)
        if name.lower() in ("id", "ts") or renamed != name:
            raise DataError(
                f"stream {source.name!r}: join field {name!r} means the tuple's own "
                f"{name.lower()} in a prepared stream; the source's column is "
                f"{renamed if renamed != name else 'ts'!r} there, name that one"
            )
        by_name = {new: old for old, new in names.items()}
        if name not in by_name:
            _require(source, name, list(names), "join field")
        fields[name] = by_name[name]
    return fields


def free_name(name: str, taken: Iterable[str]) -> str:
    """Return *name*, with underscores where a column has it, in upper or lower case."""
    low = {other.lower() for other in taken}
    while name.lower() in low:
        name += "_"
    return name


def _require(source: RawSource, name: str, columns: list[str], what: str) -> None:
    if name in columns:
        return
    raise DataError(
        f"stream {source.name!r}: {what} {name!r} is not in {source.files}; "
        f"{suggest(name, columns, 'its columns:')}"
    )


@dataclass(frozen=True, kw_only=True)
class Task:
    """One stream to prepare: its declaration, the files as they are, and the digest of both."""

    source: RawSource
    files: list[RawFile]
    segment_rows: int
    fingerprint: str
    report: Callable[[str], None]

    @cached_property
    def layout(self) -> ColumnLayout:
        """The columns of the stream (see `lay_out`)."""
        return lay_out(self.source, list(self.files[0].columns))

    @cached_property
    def spanning(self) -> list[bool]:
        """Whether each file is CSV and has a quoted text with a line break in it.

        Raise :exc:`DataError` for one with a quote that is not closed (see `quotes`).
        """
        return [
            file.format == "csv" and records_span_lines(file.path, file.separator)
            for file in self.files
        ]

    @cached_property
    def expressions(self) -> dict[str, Expression]:
        """The checked expressions among the source's ``time`` and ``where``.

        A time that names a column is none. Raise :exc:`DataError` for one that is not allowed.
        """
        words = {"time": "the time expression", "where": "the condition"}
        return {
            name: check_expression(text, f"stream {self.source.name!r}: {what}")
            for name, what in words.items()
            if (text := getattr(self.source, name)) is not None
            and (name == "where" or text not in (*self.files[0].columns, ROWS))
        }
