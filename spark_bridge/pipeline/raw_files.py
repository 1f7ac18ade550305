"""Looking at raw files before Spark does: do they exist, what are they, which columns.

Only headers and footers are read (and every byte once, for the digest), so that what is wrong with
a file is said in a second and by its name.
"""

from __future__ import annotations

import csv
import difflib
import gzip
import hashlib
import io
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from spark_bridge.errors import DataError

CSV_ENDINGS = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz", ".txt.gz")
PARQUET_ENDINGS = (".parquet", ".pq")
HEADER_BYTES_MAX = 1 << 20  # a first line longer than this is no header
_ALLOWED = f"allowed are Parquet and CSV with a header line ({', '.join(CSV_ENDINGS)})"
_MAGIC = b"PAR1"


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """One raw file and what its header or footer says.

    Attributes
    ----------
    path
        Where it lies.
    format
        ``csv`` or ``parquet``.
    columns
        Column name to Arrow type; text for every column of a CSV file.
    rows
        Number of rows; None in CSV, where they must be counted.
    size_bytes, sha256
        Length and digest of the whole file.
    modified_ns
        When the file was last changed, ns since 1970.
    """

    path: Path
    format: str
    columns: dict[str, pa.DataType]
    rows: int | None
    size_bytes: int
    sha256: str
    modified_ns: int

    @property
    def suffix(self) -> str:
        """The ending by which Spark recognises compression."""
        return ".csv.gz" if self.path.name.endswith(".gz") else f".{self.format}"


def look(paths: Iterable[str | Path], delimiter: str) -> list[RawFile]:
    """Return every file of *paths*, folders opened, in order.

    Raises
    ------
    DataError
        A file is missing, unreadable, empty, damaged, or neither CSV nor Parquet; or files of one
        stream have different columns.
    """
    files = [_look_at(path, delimiter) for given in paths for path in _expand(Path(given))]
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
    return files


def require_unchanged(files: Iterable[RawFile]) -> None:
    """Raise :exc:`DataError` if a file is no longer the one that was looked at."""
    for file in files:
        try:
            about = file.path.stat()
        except OSError:
            about = None
        now = (about.st_size, about.st_mtime_ns) if about else None
        if now != (file.size_bytes, file.modified_ns):
            raise DataError(f"{file.path} changed while it was being read; run again")


def _expand(path: Path) -> list[Path]:
    if path.is_dir():
        inside = sorted(
            entry
            for entry in path.iterdir()
            if entry.name.lower().endswith(PARQUET_ENDINGS + CSV_ENDINGS)
            and not entry.name.startswith((".", "_"))
        )
        if not inside:
            raise DataError(f"{path} is a folder without CSV or Parquet files; {_ALLOWED}")
        return inside
    if not path.exists():
        raise DataError(f"{path} does not exist{_near(path)}")
    return [path]


def _near(path: Path) -> str:
    if not path.parent.is_dir():
        return f": there is no folder {path.parent}"
    names = [entry.name for entry in path.parent.iterdir() if not entry.name.startswith(".")]
    close = difflib.get_close_matches(path.name, names, n=3)
    if close:
        return f"; did you mean {' or '.join(str(path.parent / name) for name in close)}?"
    return ""


def _look_at(path: Path, delimiter: str) -> RawFile:
    if not path.is_file():
        raise DataError(f"{path} is not a file; {_ALLOWED}")
    try:
        about = path.stat()
        size_bytes = about.st_size
        with path.open("rb") as raw:
            head = raw.read(4096)
            raw.seek(max(0, size_bytes - len(_MAGIC)))
            tail = raw.read()
            if size_bytes == 0:
                raise DataError(f"{path} is empty (0 bytes); {_ALLOWED}")
            format_, columns, rows = _describe(path, head, tail, delimiter)
            sha256 = _digest(path.resolve(), size_bytes, about.st_mtime_ns)
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    return RawFile(
        path=path.resolve(),
        format=format_,
        columns=columns,
        rows=rows,
        size_bytes=size_bytes,
        sha256=sha256,
        modified_ns=about.st_mtime_ns,
    )


@cache
def _digest(path: Path, size_bytes: int, modified_ns: int) -> str:
    """Return the sha256 of *path*; two streams made of one large file read it for this once."""
    with path.open("rb") as raw:
        return hashlib.file_digest(raw, "sha256").hexdigest()


def _describe(
    path: Path, head: bytes, tail: bytes, delimiter: str
) -> tuple[str, dict[str, pa.DataType], int | None]:
    name = path.name.lower()
    if head.startswith(_MAGIC):
        if tail != _MAGIC:
            raise DataError(
                f"{path} is a truncated Parquet file: its end is missing; copy it again"
            )
        return "parquet", *_footer(path)
    if name.endswith(PARQUET_ENDINGS):
        raise DataError(f"{path} is not a Parquet file, whatever its name says; {_ALLOWED}")
    if not name.endswith(CSV_ENDINGS):
        raise DataError(f"{path} is neither CSV nor Parquet; {_ALLOWED}")
    return "csv", {column: pa.string() for column in _header(path, delimiter)}, None


def _footer(path: Path) -> tuple[dict[str, pa.DataType], int]:
    try:
        with pq.ParquetFile(path) as file:
            schema, rows = file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"{path} is a damaged Parquet file ({reason}); copy it again") from error
    if rows == 0:
        raise DataError(f"{path} has no rows; a stream needs at least one")
    _check_names(path, schema.names)
    return dict(zip(schema.names, schema.types, strict=True)), rows


def _header(path: Path, delimiter: str) -> list[str]:
    opened = gzip.open if path.name.endswith(".gz") else open
    try:
        with opened(path, "rb") as raw:
            line = raw.readline(HEADER_BYTES_MAX)
            following = any(text.strip() for text in islice(raw, 1000))
    except (EOFError, gzip.BadGzipFile) as error:
        raise DataError(f"{path} is a damaged gzip file ({error}); copy it again") from error
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
    cells = [cell.strip() for cell in next(csv.reader(io.StringIO(text), delimiter=delimiter))]
    other = next((sign for sign in ";\t|" if sign in text), None)
    if len(cells) == 1 and other is not None:
        raise DataError(
            f"{path} has one column when cut at {delimiter!r}; its delimiter may be {other!r}"
        )
    if all(re.fullmatch(r"[+-]?[\d.]+([eE][+-]?\d+)?", cell) for cell in cells):
        raise DataError(
            f"{path} has no header: its first line is {text[:60]!r}; put the column names there"
        )
    if not following:
        raise DataError(f"{path} has a header but no rows; a stream needs at least one")
    # A nameless column is what data frames write for their row numbers.
    names = [cell or f"column_{number}" for number, cell in enumerate(cells, 1)]
    _check_names(path, names)
    return names


def _check_names(path: Path, names: list[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise DataError(f"{path} has two columns named {twice[0]!r}; rename one")
