"""The sources of streams: what a person declares, the raw files, and the names of columns.

Of the files only headers and footers are read, so that a fault in one is reported within a second
and by its name; every byte is read for the digest alone. Nothing here needs Spark.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from actors.whole_files import require_utf8
from joins.errors import DataError, suggest
from spark_bridge.pipeline.expressions import Expression, check_expression
from spark_bridge.pipeline.quotes import opened, records_span_lines

ROWS = "rows"
"""As an event time or an arrival: the order of the rows in the files."""

_NO_OPTIONS = ("name", "paths")
"""What a stream is prepared from, and how it is called, are not how it is prepared."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
HEADER_BYTES_MAX = 1 << 20  # a first line longer than this is no header
_ALLOWED = f"allowed are Parquet and CSV with a header line ({', '.join(CSV_ENDINGS)})"
MAGIC = b"PAR1"
_TAKEN = r"_(metadata|arrival|place)$|__joinsim_"  # names of columns that a file cannot have


@dataclass(frozen=True, kw_only=True)
class RawSource:
    """One stream in raw files, as a person declares it.

    Attributes
    ----------
    name
        The stream's name, as the query spells it; also the name of its folder.
    paths
        CSV or Parquet files (or folders of them), in source order.
    time
        Event time: a column's name or an expression (see `expressions`) giving a timestamp, a date,
        a day-time interval (``date_time - date_trunc('year', date_time)``) or a number of
        nanoseconds, of which a row of a column must have a whole one, and that of an expression is
        rounded; or ``rows``, the number of the row, from 0. By default the column ``ts``, or
        else the first column of timestamps.
    arrival
        The order in which tuples arrive: a column of times, or ``rows``, the order of the rows, in
        which a tuple arrives when it happens, or with the one before it. None: that of event time.
    fields
        Join fields: a row is rejected if one of them is not a valid number, or text.
    where
        Condition on the source's columns, an expression; rows where it is false are not part of
        the stream.
    rows
        Length of the stream at most: the first tuples in event-time order. Rejected rows are
        nevertheless those of the whole source.
    codes
        Join fields that may be text, because they are only compared with ``=`` and ``!=``, to the
        name of their dictionary. Fields of one dictionary, in one stream or in several that are
        prepared together, have equal codes exactly where their texts are equal.
    columns
        What the stream has beside its tuples' id and time, and the join fields: columns by their
        names in the stream (see `ColumnLayout`); None: all of the source. Rejected rows are written
        with all columns anyway.

    Raise :exc:`DataError` for an option that is not allowed.
    """

    name: str
    paths: Sequence[str | Path]
    time: str | None = None
    arrival: str | None = None
    fields: Sequence[str] = ()
    where: str | None = None
    rows: int | None = None
    codes: Mapping[str, str] = field(default_factory=dict)
    columns: Sequence[str] | None = None

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
class RawFile:
    """One raw file and what its header or footer says.

    Attributes
    ----------
    path
        Where it is.
    format
        ``csv`` or ``parquet``.
    columns
        Column name to Arrow type; text for every column of a CSV file.
    rows
        Number of rows; None in CSV, where they must be counted.
    size_bytes
        Length of the whole file.
    modified_ns
        When the file was last changed, ns since 1970.
    """

    path: Path
    format: str
    columns: dict[str, pa.DataType]
    rows: int | None
    size_bytes: int
    modified_ns: int

    @property
    def separator(self) -> str:
        """The character between the columns of a CSV file."""
        return _separator(self.path)

    @property
    def suffix(self) -> str:
        """The ending by which Spark recognises compression."""
        return ".csv.gz" if self.path.name.lower().endswith(".gz") else f".{self.format}"

    @property
    def sha256(self) -> str:
        """Digest of the whole file. Raise :exc:`DataError` where it can no longer be read."""
        with _readable(self.path):
            return _digest(self.path, self.size_bytes, self.modified_ns)


def inspect_files(paths: Iterable[str | Path]) -> list[RawFile]:
    """Return every file of *paths*, folders opened, in order.

    Raise :exc:`DataError` for a file that is missing, unreadable, empty, damaged, or neither CSV
    nor Parquet, and for files with different columns, or with timestamps in nanoseconds in one
    file and another type of that column in the next.
    """
    files = [_inspect(file) for path in paths for file in _expand(Path(path))]
    first = files[0]
    for other in files[1:]:
        if other.format != first.format:
            raise DataError(
                f"{other.path} is {other.format} but {first.path} is {first.format}: "
                "the files of one stream must be of one format"
            )
        differ = sorted(set(first.columns) ^ set(other.columns))
        if differ:
            raise DataError(
                f"{other.path} and {first.path} have different columns "
                f"(only one has {', '.join(differ)}): the files of one stream must have the same"
            )
        for name, kind in first.columns.items():
            if has_nanoseconds(kind) != has_nanoseconds(other.columns[name]):
                raise DataError(
                    f"column {name!r} is {other.columns[name]} in {other.path} but {kind} in "
                    f"{first.path}: Spark cannot read the two as one column; cast it in one of "
                    "the files to the other's type"
                )
    return files


def has_nanoseconds(kind: pa.DataType) -> bool:
    """Return whether a column is of timestamps in nanoseconds, which Spark reads as integers."""
    return pa.types.is_timestamp(kind) and kind.unit == "ns"


def require_unchanged(files: Iterable[RawFile]) -> None:
    """Raise :exc:`DataError` if a file has changed since it was inspected."""
    for file in files:
        try:
            about = file.path.stat()
        except OSError:
            about = None
        now = (about.st_size, about.st_mtime_ns) if about else None
        if now != (file.size_bytes, file.modified_ns):
            raise DataError(f"{file.path} changed while it was being read; run again")


_TABLE_FORMATS = {
    "_delta_log": ("Delta", "deltalake.DeltaTable(folder).to_pyarrow_table()"),
    "metadata/*.metadata.json": (
        "Iceberg", "pyiceberg.table.StaticTable.from_metadata(file).scan().to_arrow()",
    ),
    ".hoodie": ("Hudi", "spark.read.format('hudi').load(folder)"),
}  # fmt: skip
"""By what a folder is known to be a table of which not every file counts, its format, and a call
that reads what does."""


def refuse_table_format(folder: Path) -> None:
    """Raise :exc:`DataError` where a folder's files also have rows that its table no longer has."""
    for pattern, (kind, call) in _TABLE_FORMATS.items():
        if any(folder.glob(pattern)):
            raise DataError(
                f"{folder} is a table of {kind}, whose files also have rows that were deleted or "
                f"replaced: read what it has now, as with {call}, and pass that or write it as "
                "Parquet"
            )


def _expand(path: Path) -> list[Path]:
    if path.is_dir():
        refuse_table_format(path)
        inside = sorted(entry for entry in path.iterdir() if _is_data(entry))
        for within in sorted(entry for entry in path.iterdir() if is_shown(entry)):
            below = within.is_dir() and next(filter(_is_data, sorted(within.rglob("*"))), None)
            if below:
                raise DataError(
                    f"{path} has files in folders of its own, as {below}, which would not be read: "
                    "the files of a stream are in one folder, or named one by one to js.prepare"
                )
        if not inside:
            raise DataError(f"{path} is a folder without CSV or Parquet files; {_ALLOWED}")
        if any(entry.name.lower().endswith(PARQUET_ENDINGS) for entry in inside):
            return [entry for entry in inside if entry.suffix.lower() != ".txt"]  # no README
        return inside
    if not path.exists():
        raise DataError(f"{path} does not exist{near_files(path)}")
    return [path]


def _is_data(path: Path) -> bool:
    return is_shown(path) and path.name.lower().endswith(PARQUET_ENDINGS + CSV_ENDINGS)


def is_shown(path: Path) -> bool:
    """Return whether a folder's entry is not hidden, as what programs note in folders is."""
    return not path.name.startswith((".", "_"))


def near_files(path: Path) -> str:
    """Return what to say of a path that is not there: what is like it, or that it has no folder."""
    if not path.parent.is_dir():
        return f": there is no folder {path.parent}"
    names = [entry.name for entry in path.parent.iterdir() if not entry.name.startswith(".")]
    close = difflib.get_close_matches(path.name, names, n=3)
    if close:
        return f"; did you mean {' or '.join(str(path.parent / name) for name in close)}?"
    return ""


def _inspect(path: Path) -> RawFile:
    if not path.is_file():
        raise DataError(f"{path} is not a file; {_ALLOWED}")
    require_utf8(path, DataError)
    with _readable(path):
        about = path.stat()
        size_bytes = about.st_size
        with path.open("rb") as raw:
            head = raw.read(4096)
            raw.seek(max(0, size_bytes - len(MAGIC)))
            tail = raw.read()
            if size_bytes == 0:
                raise DataError(f"{path} is empty (0 bytes); {_ALLOWED}")
            format_, columns, rows = _describe(path, head, tail)
    return RawFile(
        path=path.absolute(),
        format=format_,
        columns=columns,
        rows=rows,
        size_bytes=size_bytes,
        modified_ns=about.st_mtime_ns,
    )


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn an :exc:`OSError` into a :exc:`DataError` that names *path*."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error


@cache
def _digest(path: Path, size_bytes: int, modified_ns: int) -> str:
    """Return the sha256 of *path*, once for two streams that are made of one large file."""
    with path.open("rb") as raw:
        return hashlib.file_digest(raw, "sha256").hexdigest()


def _describe(
    path: Path, head: bytes, tail: bytes
) -> tuple[str, dict[str, pa.DataType], int | None]:
    name = path.name.lower()
    if head.startswith(MAGIC):
        if tail != MAGIC:
            raise DataError(
                f"{path} is a truncated Parquet file: its end is missing; copy it again"
            )
        return "parquet", *_footer(path)
    if name.endswith(PARQUET_ENDINGS):
        raise DataError(f"{path} is not a Parquet file, whatever its name says; {_ALLOWED}")
    if not name.endswith(CSV_ENDINGS):
        raise DataError(f"{path} is neither CSV nor Parquet; {_ALLOWED}")
    return "csv", {column: pa.string() for column in _header(path)}, None


def open_parquet(path: Path) -> pq.ParquetFile:
    """Return a Parquet file; times of 96 bits, of any year, are read to the microsecond."""
    return pq.ParquetFile(path, coerce_int96_timestamp_unit="us")


def _footer(path: Path) -> tuple[dict[str, pa.DataType], int]:
    try:
        with open_parquet(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} is a damaged Parquet file ({reason}); copy it again") from error
    if rows == 0:
        raise DataError(f"{path} has no rows; a stream needs at least one")
    _check_names(path, schema.names)
    for column in schema:
        unknown = _unknown_to_spark(column.type)
        if unknown is not None:
            raise DataError(
                f"{path}: column {column.name!r} is of type {column.type}, and Spark cannot read "
                f"{unknown}; cast it or leave it out, or pass the file to js.run as it is"
            )
    return dict(zip(schema.names, schema.types, strict=True)), rows


def _unknown_to_spark(kind: pa.DataType, *, within: bool = False) -> pa.DataType | None:
    """Return the type, *kind* or one *within* it, that Spark does not read; None if it reads it."""
    if pa.types.is_float16(kind) or (pa.types.is_decimal(kind) and kind.precision > 38):
        return kind
    if pa.types.is_time(kind) and within:
        return kind
    inner = (kind.field(place).type for place in range(kind.num_fields))
    return next(filter(None, (_unknown_to_spark(one, within=True) for one in inner)), None)


def _separator(path: Path) -> str:
    return "\t" if path.name.lower().endswith((".tsv", ".tsv.gz")) else ","


def _header(path: Path) -> list[str]:
    with opened(path) as raw:
        line = raw.readline(HEADER_BYTES_MAX)
        following = any(text.strip() for text in islice(raw, 1000))
    if b"\0" in line:
        raise DataError(f"{path} is not text: it has NUL bytes; {_ALLOWED}, in UTF-8")
    if b"\r" in line.rstrip(b"\r\n"):
        raise DataError(f"{path} ends its lines with CR alone; end them with LF or CR LF")
    try:
        text = line.decode("utf-8-sig").strip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text (byte {error.start} of line 1)") from error
    if not text.strip():
        raise DataError(f"{path} begins with an empty line where the header should be")
    try:
        cells = next(csv.reader(io.StringIO(text), delimiter=_separator(path), strict=True))
    except csv.Error as error:
        raise DataError(
            f"{path}, line 1: the header is not CSV ({error}); a column's name is on one line, and "
            "a quote in it is doubled"
        ) from error
    cells = [cell.strip() for cell in cells]
    other = next((sign for sign in ";\t|" if sign in text), None)
    if len(cells) == 1 and other is not None:
        raise DataError(
            f"{path} has one column, and {other!r} in its name: columns are to be separated by "
            "commas, or by tabs in a .tsv file"
        )
    if all(re.fullmatch(r"[+-]?[\d.]+([eE][+-]?\d+)?", cell) for cell in cells):
        raise DataError(
            f"{path} has no header: its first line is {text[:60]!r}; put the column names there"
        )
    if not following:
        raise DataError(f"{path} has a header but no rows; a stream needs at least one")
    # Data frames write their row numbers as a column without a name.
    names = [cell or f"column_{number}" for number, cell in enumerate(cells, 1)]
    _check_names(path, names)
    return names


def _check_names(path: Path, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{path} has two columns named {twice[0]!r}; rename one")
    taken = next((name for name in names if re.match(_TAKEN, name, re.IGNORECASE)), None)
    if taken:
        raise DataError(
            f"{path} has a column named {taken!r}, by which Spark or joinsim means something else "
            "than a column of a file; rename it"
        )


@dataclass(frozen=True, kw_only=True)
class ColumnLayout:
    """Which source column has which name in the prepared stream.

    There, ``id`` and ``ts`` are the tuple's position and time; a source's own columns of those
    names are renamed. Upper and lower case count as equal, because SQL ignores case.

    Attributes
    ----------
    names
        Source column to its name in the prepared stream, in order, of those that it has.
    fields
        Join field (by its name in the prepared stream) to the source column behind it.
    notes
        Remarks on renamed columns.
    """

    names: dict[str, str]
    fields: dict[str, str]
    notes: list[str]

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


def stream_layout(source: RawSource) -> ColumnLayout:
    """Return which columns the stream of *source* has of it, from its headers.

    Raise :exc:`DataError` as `inspect_files` and `lay_out` do.
    """
    files = inspect_files(source.paths)
    return lay_out(source, list(files[0].columns))


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
    def records_span_lines(self) -> list[bool]:
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
