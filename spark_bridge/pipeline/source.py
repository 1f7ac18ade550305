"""What a person says about a stream: which files, which clock, which fields."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from spark_bridge.errors import DataError

TIME_UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
"""Units a numeric event time may be in, and their length in nanoseconds."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_SYNONYMS = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "int",
    "integer": "int",
    "int64": "bigint",
    "long": "bigint",
    "float32": "float",
    "float64": "double",
    "str": "string",
    "bool": "boolean",
}
_TYPES = re.compile(
    r"tinyint|smallint|int|bigint|float|double|decimal\(\d{1,2},\d{1,2}\)|string|boolean|date|timestamp"
)
_TYPES_TOLD = (
    "tinyint, smallint, int, bigint (or int8 to int64), float, double (or float32, float64), "
    "decimal(p,s), string, boolean, date, timestamp"
)


@dataclass(frozen=True, kw_only=True)
class StreamSource:
    """One stream as it lies in raw files.

    Attributes
    ----------
    name
        The stream's name, as the query spells it; also the name of its folder.
    paths
        CSV or Parquet files (or folders of them), in source order.
    time
        Event time: a column's name or a Spark SQL expression giving a timestamp, a date, a
        day-time interval (``date_time - date_trunc('year', date_time)``) or a number. By default
        the column ``ts``, or else the first column of timestamps.
    time_unit
        Unit of a numeric event time: ``ns`` (default), ``us``, ``ms`` or ``s``.
    fields
        Join fields: a row where one of them is not a valid number, or text, is rejected.
    where
        Spark SQL condition on the source's columns; rows where it is false are not part of the
        stream.
    key
        Column or Spark SQL expression for the join key. Integers are taken as they are, text as
        its 64-bit hash (xxHash64).
    rows
        Keep only this many, the first in event-time order. Rejected rows are those of the whole
        source nevertheless.
    schema
        Declared types of some or all columns, in Spark SQL's or numpy's words; the others are
        inferred in CSV and kept in Parquet.
    delimiter
        One character between the columns of a CSV file; by default a comma, or a tab in ``.tsv``.
    codes
        Join fields that may hold text, because they are only ever compared with ``=`` and ``!=``:
        to the name of their dictionary. Fields of one dictionary, in one stream or in several that
        are prepared together, have equal codes exactly where their texts are equal.

    Raises
    ------
    DataError
        An option is outside of what is allowed.
    """

    name: str
    paths: Sequence[str | Path]
    time: str | None = None
    time_unit: str = "ns"
    fields: Sequence[str] = ()
    where: str | None = None
    key: str | None = None
    rows: int | None = None
    schema: Mapping[str, str] = field(default_factory=dict)
    delimiter: str | None = None
    codes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if isinstance(self.paths, (str, Path)):
            object.__setattr__(self, "paths", (self.paths,))
        if isinstance(self.fields, str):
            object.__setattr__(self, "fields", (self.fields,))
        if not _NAME.fullmatch(self.name) or self.name.endswith(".rejected"):
            raise DataError(
                f"stream name {self.name!r}: letters, digits, '_', '-' and '.' are allowed, "
                "and no '.' or '-' at its start, nor '.rejected' at its end"
            )
        if not self.paths:
            raise DataError(f"stream {self.name!r}: no file is named; give one or more")
        if self.time_unit not in TIME_UNITS_NS:
            raise DataError(
                f"stream {self.name!r}: time_unit {self.time_unit!r} is not one of "
                f"{', '.join(TIME_UNITS_NS)}"
            )
        if self.rows is not None and self.rows < 1:
            raise DataError(f"stream {self.name!r}: rows is {self.rows}; it must be 1 or more")
        if self.delimiter is None:
            tabs = str(self.paths[0]).lower().endswith((".tsv", ".tsv.gz"))
            object.__setattr__(self, "delimiter", "\t" if tabs else ",")
        if len(self.separator) != 1:
            raise DataError(
                f"stream {self.name!r}: delimiter {self.delimiter!r} is not one character"
            )
        twice = sorted({name for name in self.fields if list(self.fields).count(name) > 1})
        if twice:
            raise DataError(f"stream {self.name!r}: join field {twice[0]!r} is named twice")
        object.__setattr__(self, "schema", {c: self._type(c, t) for c, t in self.schema.items()})

    def _type(self, column: str, name: str) -> str:
        plain = re.sub(r"\s", "", name).lower()
        plain = _SYNONYMS.get(plain, plain)
        if not _TYPES.fullmatch(plain):
            raise DataError(
                f"stream {self.name!r}, column {column!r}: {name!r} is not a type that can be "
                f"declared; allowed are {_TYPES_TOLD}"
            )
        return plain

    @property
    def separator(self) -> str:
        """The character between columns."""
        assert self.delimiter is not None
        return self.delimiter

    @property
    def files(self) -> str:
        """The files in words, for messages."""
        more = len(self.paths) - 1
        return f"{self.paths[0]}{f' and {more} more' if more else ''}"

    def options(self) -> dict[str, object]:
        """Return everything but the files, as plain data: it goes into the fingerprint."""
        codes = {"codes": dict(self.codes)} if self.codes else {}
        return codes | {
            "time": self.time,
            "time_unit": self.time_unit,
            "fields": list(self.fields),
            "where": self.where,
            "key": self.key,
            "rows": self.rows,
            "schema": dict(sorted(self.schema.items())),
            "delimiter": self.delimiter,
        }
