"""Streams as Arrow tables: what a caller passes, Parquet files, prepared streams and segments."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.feed import ARRIVAL, PLACE, StreamFile
from actors.result_files import part_files
from joins.batch import Schema
from joins.errors import DataError
from scenarios.columns import decode
from scenarios.streams import look_for
from scenarios.synthetic import SyntheticStream
from spark_bridge.pipeline.raw_files import (
    CSV_ENDINGS,
    MAGIC,
    PARQUET_ENDINGS,
    is_shown,
    near_files,
    open_parquet,
    refuse_table_format,
)
from spark_bridge.prepared import ROW_GROUP_ROWS, PreparedStream, segment_writer

ROW = "row"
"""Column of a prepared table: the place of each tuple in the table that was passed; a join field of
that name replaces it."""
IN_MEMORY = Path("(memory)")

_BEYOND_INT64 = "a whole number is not in the range of int64, -2**63 to 2**63 - 1"
_LONG_UNITS = {"M": ("Y", "M", "W", "h", "m"), "m": ("W", "D", "h", "m")}
"""NumPy's units of times, and of durations, that Arrow has not; it has days of times."""
_TRACEBACK = ". Detail: Python exception: "
"""Begins what Arrow says of an error in Python that it called, after the error's own words."""


@dataclass(frozen=True, kw_only=True)
class TableStream(PreparedStream):
    """A prepared stream in memory."""

    table: pa.Table = field(repr=False)
    """`ROW`, ``ts`` (int64 ns), and the join fields, in order of event time."""
    source: pa.Table = field(repr=False)
    order: np.ndarray = field(repr=False)
    """The table that was passed, and which of its rows the tuples are."""

    @property
    def columns(self) -> list[str]:
        """Names of the passed table's columns, and ``ts`` and ``id``."""
        names = [name for name in self.source.schema.names if name not in (ARRIVAL, PLACE)]
        return list(dict.fromkeys([*names, "ts", "id"]))

    def values(self, column: str) -> pa.ChunkedArray:
        """Return a column, in the order of the tuples."""
        if column in self.source.schema.names:
            return decode(self.source[column]).take(pa.array(self.order))
        return pa.chunked_array([np.arange(self.rows)]) if column == "id" else self.table[column]


def as_table(value: Any, name: str) -> pa.Table:
    """Return *value* as an Arrow table, without copying where Arrow allows.

    Parameters
    ----------
    value
        Anything with the Arrow C stream interface (pyarrow, pandas, Polars, DuckDB), a mapping of
        column names to arrays, a NumPy array with named fields, a prepared or synthetic stream, or
        the path of a Parquet file.
    name
        The stream's name, for messages.

    Raises
    ------
    DataError
        The value is none of these, or the file cannot be read.
    """
    try:
        if isinstance(value, (str, Path)):
            return _read_file(Path(value), name)
        if isinstance(value, TableStream):
            return value.table
        if isinstance(value, PreparedStream):
            return pq.read_table(part_files(value.path))
        if isinstance(value, SyntheticStream):
            return pa.table(value.columns())
        if isinstance(value, np.ndarray) and value.dtype.names:
            value = {column: value[column] for column in value.dtype.names}
        if isinstance(value, Mapping):
            return pa.table({str(column): _column(name, column, value[column]) for column in value})
        if isinstance(value, pa.Table) or hasattr(value, "__arrow_c_stream__"):
            return _from_library(value, name)
    except (pa.ArrowException, OSError, ValueError, TypeError) as error:
        raise DataError(f"stream {name!r}: {error}") from None
    raise DataError(
        f"stream {name!r} is of type {type(value).__name__}: pass a pyarrow, pandas, Polars or "
        "DuckDB table, a mapping of names to arrays, a prepared stream, or a file's path"
    )


def _from_library(value: Any, name: str) -> pa.Table:
    """Return a table of another library, which may be computed only now: its errors are its own."""
    try:
        return pa.table(value)
    except OverflowError:
        raise DataError(f"stream {name!r}: {_BEYOND_INT64}") from None
    except Exception as error:
        unsupported = "unsupported format string" in str(error)  # Polars' 128 bits, for one
        is_column = not hasattr(value, "columns")
        if "non-struct type" in str(error) or (unsupported and is_column):
            raise DataError(
                f"stream {name!r} is of type {type(value).__name__}, one column: pass a table, or "
                "a mapping of its name to it"
            ) from None
        if unsupported:
            column = next(one for one in value.columns if _is_unsupported(value[[one]]))
            raise DataError(
                f"stream {name!r}: column {column!r} is of type {value[column].dtype}, which Arrow "
                "does not have; cast it to another"
            ) from None
        # Of two messages, as pandas' tables have, the later says where the fault is.
        messages = reversed([message for message in error.args if isinstance(message, str)])
        words, _, _ = (": ".join(messages) or str(error)).partition(_TRACEBACK)
        raise DataError(f"stream {name!r}: {words}") from None


def _is_unsupported(table: Any) -> bool:
    """Return whether Arrow does not have the types of another library's *table*."""
    try:
        pa.table(table)
    except pa.ArrowException:
        return True
    return False


def _column(stream: str, name: Any, data: Any) -> pa.Array | pa.ChunkedArray:
    """Return a column's data as Arrow; NumPy's NaN stays NaN, so that it is rejected by name."""
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        return data
    if isinstance(data, (str, bytes)):  # which are sequences, too
        raise DataError(
            f"stream {stream!r}, column {name!r}: {data[:40]!r} is one value; pass an array or a "
            "list, with a value for each row"
        )
    try:
        return pa.array(_for_arrow(data) if isinstance(data, np.ndarray) else data)
    except pa.ArrowNotImplementedError as error:
        kind = f" ({data.dtype})" if isinstance(data, np.ndarray) else ""
        raise DataError(f"stream {stream!r}, column {name!r}: {error}{kind}") from None
    except OverflowError:
        raise DataError(f"stream {stream!r}, column {name!r}: {_BEYOND_INT64}") from None
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DataError(f"stream {stream!r}, column {name!r}: {error}") from None


def _for_arrow(data: np.ndarray) -> np.ndarray:
    """Return an array in this machine's byte order, and of a type or a unit that Arrow has, too."""
    if data.dtype.kind == "T":  # NumPy's texts of any length
        return data.astype(object)
    kind = data.dtype.newbyteorder("=")
    if kind.kind in "mM" and np.datetime_data(kind)[0] in _LONG_UNITS[kind.kind]:
        kind = np.dtype(f"{kind.kind}8[s]")
    return data if kind == data.dtype else data.astype(kind)


def _read_file(given: Path, name: str) -> pa.Table:
    path = look_for(given)
    if path is None:
        raise DataError(f"stream {name!r}: {given} does not exist{near_files(given)}")
    if not (path.is_file() or path.is_dir()):
        raise DataError(f"stream {name!r}: {path} is a pipe or a device; pass a file of Parquet")
    if path.is_dir():
        return _read_folder(path, name)
    _refuse_csv(path, name)
    with open_parquet(path) as file:
        return file.read()


def _read_folder(folder: Path, name: str) -> pa.Table:
    """Return all rows of a folder's Parquet files, and of those below, with columns of ``k=v/``.

    Hidden files are passed over, and so are files, such as a README, that neither have a name for
    Parquet nor begin as Parquet does.
    """
    import pyarrow.dataset as ds  # which takes longer to import than to read a small file
    from pyarrow.fs import FileSelector, LocalFileSystem

    refuse_table_format(folder)
    found = LocalFileSystem().get_file_info(FileSelector(str(folder), recursive=True))
    files = []
    for path in sorted(Path(one.path) for one in found if one.is_file):
        if all(map(is_shown, map(Path, path.relative_to(folder).parts))):
            if path.suffix.lower() != ".txt":
                _refuse_csv(path, name)
            is_named_so = any(one.lower() in PARQUET_ENDINGS for one in path.suffixes)
            if is_named_so or _begins_as_parquet(path):
                files.append(str(path))
    if not files:
        raise DataError(f"stream {name!r}: {folder} is a folder without Parquet files")
    dataset = ds.dataset(
        files,
        format=ds.ParquetFileFormat(coerce_int96_timestamp_unit="us"),
        partitioning=ds.HivePartitioning.discover(infer_dictionary=True),
        partition_base_dir=str(folder),
    )
    return dataset.to_table()


def _begins_as_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _refuse_csv(path: Path, name: str) -> None:
    if path.name.lower().endswith(CSV_ENDINGS):
        raise DataError(
            f"stream {name!r}: {path} is CSV, and Parquet is read here: pass what "
            "joinsim.prepare makes of it"
        )


def with_texts(stream: PreparedStream) -> pa.Table:
    """Return the tuples of a stream, in their order, with texts where join fields hold codes."""
    table = as_table(stream, stream.name)
    for name in stream.codes:
        table = table.set_column(table.schema.get_field_index(name), name, stream.values(name))
    return table


def add_to_digest(digest: hashlib._Hash, table: pa.Table) -> None:
    """Add the names and the values of a table's columns, all of numbers, to a digest."""
    for name in table.column_names:
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(table[name].to_numpy()).data)


def write_segments(schema: Schema, rows: pa.Table, folder: Path, segment_rows: int) -> StreamFile:
    """Write a stream as segments of *segment_rows* tuples into *folder*; return what reads it.

    *rows* are the columns ``id`` and ``ts`` and the fields of *schema*. The folder is created.
    """
    folder.mkdir(parents=True)
    for part, begin in enumerate(range(0, max(1, len(rows)), segment_rows)):
        path = folder / f"part-{part:05d}.parquet"
        with segment_writer(path, rows.schema) as segment:
            segment.write_table(rows.slice(begin, segment_rows), ROW_GROUP_ROWS)
        # Spark takes files in the order of their times of change.
        os.utime(path, (part, part))
    return StreamFile(schema=schema, directory=folder)
