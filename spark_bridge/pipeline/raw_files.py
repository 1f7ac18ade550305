"""The raw files of a stream, CSV and Parquet: what headers and footers say, and faults in them.

Only headers and footers are read, so that a fault in one is reported within a second and by its
name; every byte is read for the digest alone. Nothing here needs Spark.
"""

from __future__ import annotations

import csv
import difflib
import hashlib
import io
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from actors.whole_files import require_utf8
from joins.errors import DataError
from spark_bridge.pipeline.quotes import opened

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
HEADER_BYTES_MAX = 1 << 20  # a first line longer than this is no header
_ALLOWED = f"allowed are Parquet and CSV with a header line ({', '.join(CSV_ENDINGS)})"
MAGIC = b"PAR1"
_TAKEN = r"_(metadata|arrival|place)$|__joinsim_"  # names of columns that a file cannot have


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """One raw file and what its header or footer says."""

    path: Path
    """Where it is."""
    format: str
    """``csv`` or ``parquet``."""
    columns: dict[str, pa.DataType]
    """Column name to Arrow type; text for every column of a CSV file."""
    rows: int | None
    """Number of rows; None in CSV, where they must be counted."""
    size_bytes: int
    """Length of the whole file."""
    modified_ns: int
    """When the file was last changed, ns since 1970."""

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
    return bool(pa.types.is_timestamp(kind) and kind.unit == "ns")


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
    name = path.name.lower()
    rows: int | None = None
    with _readable(path):
        about = path.stat()
        if about.st_size == 0:
            raise DataError(f"{path} is empty (0 bytes); {_ALLOWED}")
        with path.open("rb") as raw:
            head = raw.read(len(MAGIC))
            raw.seek(max(0, about.st_size - len(MAGIC)))
            tail = raw.read()
        if head == MAGIC:
            if tail != MAGIC:
                raise DataError(
                    f"{path} is a truncated Parquet file: its end is missing; copy it again"
                )
            format_, (columns, rows) = "parquet", _footer(path)
        elif name.endswith(PARQUET_ENDINGS):
            raise DataError(f"{path} is not a Parquet file, whatever its name says; {_ALLOWED}")
        elif name.endswith(CSV_ENDINGS):
            format_, columns = "csv", dict.fromkeys(_header(path), pa.string())
        else:
            raise DataError(f"{path} is neither CSV nor Parquet; {_ALLOWED}")
    return RawFile(
        path=path.absolute(),
        format=format_,
        columns=columns,
        rows=rows,
        size_bytes=about.st_size,
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
