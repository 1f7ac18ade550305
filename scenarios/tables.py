"""Tables in memory as prepared streams, without Spark and without files.

The rules are those of the Spark pipeline: rows in order of event time (equal times keep their
order), numbered from 0; join fields as int64 or float64; text as codes that are equal exactly where
the texts are; texts as times, in ISO 8601. A row without a valid time or join field is rejected,
counted, and kept out.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.feed import ARRIVAL, PLACE
from actors.protocol import NS_PER_S
from actors.result_files import part_files
from joins.batch import Schema
from joins.errors import DataError, suggest
from joins.queries.conditions import prepared_name
from joins.queries.query import JoinQuery
from scenarios.streams import dictionary_names, event_time, look_for
from scenarios.synthetic import TIME, SyntheticStream
from spark_bridge.pipeline.source import (
    CSV_ENDINGS,
    MAGIC,
    PARQUET_ENDINGS,
    ROWS,
    free_name,
    is_shown,
    near_files,
    open_parquet,
    refuse_table_format,
)
from spark_bridge.pipeline.values import NS_PER_UNIT
from spark_bridge.prepared import PreparedStream, order_notes, rounding_notes

ROW = "row"
"""Column of a prepared table: the place of each tuple in the table that was passed; a join field of
that name replaces it."""

_NOT_ORDERED = (
    "cannot be compared so; text can with = and != alone, and a time needs timestamps, dates, "
    "texts as 2024-03-01T09:30:00+02:00 of the years 1678 to 2261, or nanoseconds"
)
_BEYOND_INT64 = "a whole number is not in the range of int64, -2**63 to 2**63 - 1"
IN_MEMORY = Path("(memory)")
_LONG_UNITS = {"M": ("Y", "M", "W", "h", "m"), "m": ("W", "D", "h", "m")}
"""NumPy's units of times, and of durations, that Arrow has not; it has days of times."""
_NUMBERED = (pa.types.is_primitive, pa.types.is_null)
"""Types that have whole numbers, besides those that are looked at before."""
_TRACEBACK = ". Detail: Python exception: "
"""Begins what Arrow says of an error in Python that it called, after the error's own words."""
_REASONS = {
    "null": "is null",
    "nan": "is NaN",
    "infinite": "is infinite",
    "no time": "is not a timestamp",
    "years": "is outside of the years 1677 to 2262",
    "int64": "overflows int64",
    "fraction": "is not a whole number of nanoseconds",
}


@dataclass(frozen=True, kw_only=True)
class TableStream(PreparedStream):
    """A prepared stream in memory.

    Attributes
    ----------
    table
        `ROW`, ``ts`` (int64 ns), and the join fields, in order of event time.
    source, order
        The table that was passed, and which of its rows the tuples are.
    """

    table: pa.Table = field(repr=False)
    source: pa.Table = field(repr=False)
    order: np.ndarray = field(repr=False)

    @property
    def columns(self) -> list[str]:
        """Names of the passed table's columns, and ``ts`` and ``id``."""
        names = [name for name in self.source.schema.names if name not in (ARRIVAL, PLACE)]
        return list(dict.fromkeys([*names, "ts", "id"]))

    def values(self, column: str) -> pa.ChunkedArray:
        """Return a column, in the order of the tuples."""
        if column in self.source.schema.names:
            return _decode(self.source[column]).take(pa.array(self.order))
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
    options = ds.FileSystemFactoryOptions(
        partition_base_dir=str(folder),
        partitioning=ds.HivePartitioning.discover(infer_dictionary=True),
    )
    format_ = ds.ParquetFileFormat(coerce_int96_timestamp_unit="us")
    return (
        ds.FileSystemDatasetFactory(LocalFileSystem(), files, format_, options).finish().to_table()
    )


def _begins_as_parquet(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _refuse_csv(path: Path, name: str) -> None:
    if path.name.lower().endswith(CSV_ENDINGS):
        raise DataError(
            f"stream {name!r}: {path} is CSV, and Parquet is read here: pass what "
            "joinsim.prepare makes of it"
        )


def prepare_tables(
    query: JoinQuery,
    tables: Sequence[Any],
    times: Sequence[str | None],
    arrivals: Sequence[str | None] = (),
) -> tuple[TableStream, ...]:
    """Return the streams of *query* from *tables*, each ordered by its event time.

    Parameters
    ----------
    query
        Names the streams, in the order of *tables*, and their join fields.
    tables
        What `as_table` takes.
    times
        Per stream the column of its event time: a timestamp, a date, a text in ISO 8601, or a
        number of nanoseconds; or ``rows``, the number of the row, from 0. None takes the one that
        *query* names, else the column ``ts``, else the first timestamp, else ``rows``.

        A text without a zone is in UTC, as in the Spark pipeline.
    arrivals
        Per stream the column that says when its tuples arrive, or ``rows``, the order of the rows;
        None: in the order of event time. By default all None.

    Raises
    ------
    DataError
        A column is missing or of a type that cannot be joined, or no row is valid.
    ConfigError
        A time is not the one that *query* names.
    """
    codes = dictionary_names(query)
    streams = [
        _Unordered(
            name,
            _all_of(table) if isinstance(table, PreparedStream) else _raw(table, name),
            query.fields(place),
            event_time(query, place, time),
            arrival or _recorded(table),
        )
        for place, (name, table, time, arrival) in enumerate(
            zip(query.streams, tables, times, arrivals or [None] * len(tables), strict=True)
        )
    ]
    dictionaries = _dictionaries(streams, codes)
    return tuple(
        stream.prepare({f: dictionaries[d] for f, d in named.items() if d in dictionaries})
        for stream, named in zip(streams, codes, strict=True)
    )


def _raw(value: Any, name: str) -> pa.Table:
    """Return what was passed as a table, without the columns that prepared streams alone have."""
    table = as_table(value, name)
    for column in table.schema.names:
        if column.lower() in (ARRIVAL, PLACE):
            raise DataError(
                f"stream {name!r} has a column named {column!r}, by which joinsim means the order "
                "of arrival of a prepared stream; rename it"
            )
    return table


def _all_of(stream: PreparedStream) -> pa.Table:
    """Return all that a stream has, as it was before it was prepared but in order of event time."""
    table = as_table(stream, stream.name)
    own = stream.own_names
    columns = {own.get(name, name): stream.values(name) for name in stream.columns if name != "id"}
    hidden = [name for name in (TIME, ARRIVAL, PLACE) if name in table.schema.names]
    return pa.table(columns | {name: table[name] for name in hidden})


def _recorded(table: Any) -> str | None:
    """Return the column of the order of arrival that a stream was prepared with, if it was."""
    is_recorded = isinstance(table, PreparedStream) and table.delays is not None
    return ARRIVAL if is_recorded else None


def _column(stream: str, name: Any, data: Any) -> pa.Array | pa.ChunkedArray:
    """Return a column's data as Arrow; NumPy's NaN stays NaN, so that it is rejected by name."""
    if isinstance(data, (pa.Array, pa.ChunkedArray)):
        return data
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


def _is_text(kind: pa.DataType) -> bool:
    """Return whether a decoded column is of texts."""
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _decode(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column with a value per row, of a type of which Arrow takes and casts rows.

    Not of such a type are columns that store equal values once, and Polars' texts, which are views.
    """
    kind = column.type
    if pa.types.is_run_end_encoded(kind):
        return _decode(pc.run_end_decode(column))
    if pa.types.is_dictionary(kind):
        values = _without_views(kind.value_type)
        chunks = [chunk.dictionary.cast(values).take(chunk.indices) for chunk in column.chunks]
        return pa.chunked_array(chunks, values)
    plain = _without_views(kind)
    return column if plain == kind else column.cast(plain)


def _without_views(kind: pa.DataType) -> pa.DataType:
    """Return a type, or what is within it, without views of texts and bytes."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_without_views(field.type)) for field in kind])
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_without_views(kind.value_type), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(_without_views(kind.value_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_without_views(kind.value_type))
    return kind


def _is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


class _Unordered:
    """One stream's table, with its join fields and time located."""

    def __init__(
        self,
        name: str,
        table: pa.Table,
        fields: Sequence[str],
        time: str | None,
        arrival: str | None,
    ) -> None:
        for column, times in Counter(table.schema.names).items():
            if times > 1:
                raise DataError(
                    f"stream {name!r}: {times} columns are called {column!r}; give each a name of "
                    "its own"
                )
        own = table.schema.names
        named = {column: prepared_name(column) for column in own}
        named = {old: new if new == old else free_name(new, own) for old, new in named.items()}
        table = table.rename_columns(named)
        self.own_names = {new: old for old, new in named.items() if new != old}
        time = time and named.get(time, time)
        arrival = arrival and named.get(arrival, arrival)
        self.name = name
        self.table = table
        self.fields = fields
        self.named = time is not None
        self.time = None if time == ROWS else time or self._find_time()
        self.arrival = arrival
        if self.time != TIME and TIME in table.schema.names:  # `ts` is the event time
            own = free_name(f"source_{TIME}", table.schema.names)
            renamed = {column: own if column == TIME else column for column in table.schema.names}
            self.table = table.rename_columns(renamed)
            self.arrival = own if arrival == TIME else arrival
        names = self.table.schema.names
        needed = [column for column in fields if column != TIME]  # every tuple has that
        needed += [column for column in (self.time, self.arrival) if column not in (None, ROWS)]
        for column in needed:
            if column not in names:
                spelt = dict.fromkeys([column.removeprefix("source_"), column])
                either = " or ".join(
                    repr(one) for one in spelt if column in (one, prepared_name(one))
                )
                raise DataError(
                    f"stream {name!r}: there is no column {either}; {suggest(column, names)}"
                )

    def _column(self, name: str) -> pa.ChunkedArray:
        return _decode(self.table[name])

    def texts(self, field_name: str) -> pa.ChunkedArray | None:
        """Return the field's texts; None where it holds none."""
        if field_name not in self.table.schema.names:
            return None
        column = self._column(field_name)
        return self._utf8(field_name, column) if _is_text(column.type) else None

    def _utf8(self, name: str, column: pa.Array | pa.ChunkedArray) -> Any:
        """Return a column's texts; raise :exc:`DataError` naming a row that is no UTF-8 text.

        Arrow takes what a file says for text as it is, whatever its bytes.
        """
        raw = column.cast(pa.large_binary())
        try:
            texts = raw.cast(pa.large_string())
        except pa.ArrowInvalid:
            rows = enumerate(raw.to_pylist())
            row, value = next(
                (row, one) for row, one in rows if one is not None and not _is_utf8(one)
            )
            raise DataError(
                f"stream {self.name!r}, column {name!r}: row {row} is {value!r}, which is not "
                "text in UTF-8; encode it so, or leave the row out"
            ) from None
        return texts.cast(pa.string())

    def prepare(self, dictionaries: Mapping[str, _Dictionary]) -> TableStream:
        """Return the stream: valid rows, typed, in order of event time."""
        rejected = np.zeros(len(self.table), bool)
        reasons: Counter[str] = Counter()
        ts, invalid = self._event_time()
        self._reject(rejected, reasons, self.time or TIME, invalid)
        columns: dict[str, np.ndarray] = {}
        for name in self.fields:
            if name == TIME:  # what is wrong with it is of the event time
                values, invalid = ts, {}
            elif name in dictionaries:
                values, invalid = dictionaries[name].encode(self.texts(name))
            else:
                values, invalid = self._number(name)
            columns[name] = values
            self._reject(rejected, reasons, name, invalid)
        arrives = None
        if self.arrival is not None and self.arrival != ROWS:
            arrives, invalid = self._times(self.arrival, "arrival")
            self._reject(rejected, reasons, self.arrival, invalid)
        valid = np.flatnonzero(~rejected)
        if not len(valid):
            why = "; ".join(f"{reason} in {rows:,}" for reason, rows in reasons.items())
            raise DataError(f"stream {self.name!r}: no row is valid ({why or 'it has no rows'})")
        order = valid[np.argsort(ts[valid], kind="stable")]
        table = pa.table({ROW: order, TIME: ts[order]} | {n: c[order] for n, c in columns.items()})
        delays = None
        if self.arrival is not None:
            if arrives is None:  # a tuple arrives when it happens, or with the one before it
                arrives = np.copy(ts)
                arrives[valid] = np.maximum.accumulate(ts[valid])
            table = table.append_column(ARRIVAL, pa.array(arrives[order]))
            places = order
            if self.arrival == ARRIVAL:  # the rows of a stream that is prepared are ordered anew
                places = self.table[PLACE].to_numpy()[order]
            table = table.append_column(PLACE, pa.array(places))
            late = arrives[order] - ts[order]
            delays = int(late.min()), int(late.max())
        return TableStream(
            name=self.name,
            path=IN_MEMORY,
            rows=len(order),
            rejected=len(rejected) - len(order),
            rejected_reasons=dict(reasons),
            schema=Schema(
                stream=self.name, fields={name: str(c.dtype) for name, c in columns.items()}
            ),
            first_ts=int(ts[order[0]]),
            last_ts=int(ts[order[-1]]),
            notes=(*self._notes(rejected, reasons), *self._order_notes(ts, order)),
            fingerprint="",
            time=self.time,
            delays=delays,
            codes={name: dictionary.digest for name, dictionary in dictionaries.items()},
            own_names=self.own_names,
            table=table,
            source=self.table,
            order=order,
        )

    def _find_time(self) -> str | None:
        if TIME in self.table.schema.names:
            return TIME
        moments = (f.name for f in self.table.schema if pa.types.is_timestamp(f.type))
        return next(moments, None)

    def _event_time(self) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        if self.time is None:
            return np.arange(len(self.table), dtype=np.int64), {}
        return self._times(self.time, "event time")

    def _times(self, name: str, what: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        kind = self._column(name).type
        if pa.types.is_boolean(kind):
            raise DataError(
                f"stream {self.name!r}: the {what} {name!r} is of type {kind}; "
                "give timestamps, dates, texts of them or whole nanoseconds"
            )
        values, invalid = self._number(name)
        if values.dtype == np.int64:
            return values, invalid
        whole, no_int64 = _whole_numbers(self._column(name).combine_chunks(), values)
        return whole, invalid | no_int64

    def _number(self, name: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return a column as int64 or float64, and per reason which of its rows are not valid."""
        column = self._column(name).combine_chunks()
        kind = column.type
        missing = pc.is_null(column).to_numpy(zero_copy_only=False)
        invalid = {"null": missing} if missing.any() else {}
        try:
            if _is_text(kind):
                moments, no_time = self._moments(name, self._utf8(name, column))
                return moments, invalid | no_time
            whole = pa.types.is_decimal(kind) and kind.scale <= 0
            if pa.types.is_floating(kind) or (pa.types.is_decimal(kind) and not whole):
                # Arrow makes 0.30000000000000004 of the decimal 0.3, and 0.3 of its text.
                floats = column if pa.types.is_floating(kind) else column.cast(pa.string())
                values = floats.cast(pa.float64()).fill_null(0.0).to_numpy()
                wrong = {"nan": np.isnan(values), "infinite": np.isinf(values)}
                return values, invalid | {why: rows for why, rows in wrong.items() if rows.any()}
            numbered = any(is_kind(kind) for is_kind in _NUMBERED)
            if not whole and (not numbered or pa.types.is_interval(kind)):
                raise DataError(f"stream {self.name!r}, column {name!r}: {kind} {_NOT_ORDERED}")
            values, outside = _as_int64(column)
        except pa.ArrowException as error:
            raise DataError(f"stream {self.name!r}, column {name!r}: {error}") from None
        return values, invalid | outside

    def _moments(self, name: str, texts: pa.Array) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return the *texts* of a column as int64 nanoseconds, and which of them are no times.

        Raise :exc:`DataError` where most of them are none, or one names its time zone in words.
        """
        values, valid = read_times(texts)
        missing = pc.is_null(texts).to_numpy(zero_copy_only=False)
        if zoned := zone_name(texts):
            raise DataError(
                f"stream {self.name!r}, column {name!r}: {zoned!r} names its time zone in words; "
                "write its offset, as in 2024-03-01T09:30:00+02:00, or pass a column of timestamps"
            )
        wrong = ~valid & ~missing
        if wrong.any() and valid.sum() <= wrong.sum():
            first = int(np.flatnonzero(wrong)[0])
            raise DataError(
                f"stream {self.name!r}, column {name!r}: text {_NOT_ORDERED}; "
                f"row {first} is {texts[first].as_py()!r}"
            )
        return values, {"no time": wrong} if wrong.any() else {}

    def _reject(
        self,
        rejected: np.ndarray,
        reasons: Counter[str],
        name: str,
        invalid: Mapping[str, np.ndarray],
    ) -> None:
        for why, rows in invalid.items():
            rejected |= rows
            reasons[f"{name} {_REASONS[why]}"] += int(rows.sum())

    def _notes(self, rejected: np.ndarray, reasons: Mapping[str, int]) -> tuple[str, ...]:
        notes = []
        if not self.named:
            notes.append(
                "no column of event times: the order of the rows is taken; time= names one"
                if self.time is None
                else f"event time is the column {self.time}, because none was named"
            )
        for column in self.table.schema:
            if column.name in self.fields:
                notes += rounding_notes(column.name, str(column.type))
        if rejected.any():
            first = int(np.flatnonzero(rejected)[0])
            why = ", ".join(f"{reason} ({rows:,})" for reason, rows in reasons.items())
            notes.append(f"{int(rejected.sum()):,} rows rejected, the first is row {first}: {why}")
        return tuple(notes)

    def _order_notes(self, ts: np.ndarray, order: np.ndarray) -> list[str]:
        in_order = self.arrival is not None or bool((np.diff(order) > 0).all())
        return order_notes(int((np.diff(ts[order]) == 0).sum()), in_order=in_order)


@dataclass(frozen=True)
class _Dictionary:
    """The sorted distinct texts of the fields that share them; a text's code is its place."""

    texts: pa.Array
    digest: str

    def encode(self, column: pa.ChunkedArray | None) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Return a column's codes, and which of its rows are null."""
        assert column is not None  # `_dictionaries` refuses fields without text
        codes = pc.index_in(column, self.texts).combine_chunks()
        missing = pc.is_null(column).to_numpy()
        return (
            codes.fill_null(0).to_numpy().astype(np.int64),
            {"null": missing} if missing.any() else {},
        )


def _dictionaries(
    streams: Sequence[_Unordered], codes: Sequence[Mapping[str, str]]
) -> dict[str, _Dictionary]:
    """Return by name the dictionaries of all fields that hold text."""
    members: dict[str, list[tuple[_Unordered, str]]] = {}
    for stream, named in zip(streams, codes, strict=True):
        for name, dictionary in named.items():
            members.setdefault(dictionary, []).append((stream, name))
    found = {}
    for dictionary, fields in members.items():
        texts = {(stream.name, name): stream.texts(name) for stream, name in fields}
        if not any(column is not None for column in texts.values()):
            continue
        for (stream_name, name), column in texts.items():
            if column is None:
                raise DataError(
                    f"stream {stream_name!r}: join field {name!r} is compared with text and holds "
                    "none itself"
                )
        chunks = [chunk for column in texts.values() if column for chunk in column.chunks]
        distinct = pc.unique(pa.chunked_array(chunks, pa.string())).drop_null()
        ordered = distinct.take(pc.array_sort_indices(distinct))
        digest = hashlib.sha256("\0".join(ordered.to_pylist()).encode()).hexdigest()
        found[dictionary] = _Dictionary(ordered, digest)
    return found


_WHOLE_DECIMAL = pa.decimal256(76, 0)


def _as_int64(column: pa.Array) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return whole numbers and times as int64, and by reason which of them do not fit it.

    Dates, timestamps, durations and times of day are in nanoseconds. What is null or does not fit
    has the value 0.
    """
    if pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("ms"))
    elif pa.types.is_time(column.type):
        column = column.cast(pa.time64("ns"))
    kind = column.type
    is_moment = pa.types.is_timestamp(kind)
    ns = NS_PER_UNIT[kind.unit] if is_moment or pa.types.is_duration(kind) else 1
    if pa.types.is_decimal(kind):
        column = column.cast(_WHOLE_DECIMAL)
        most, least = (pa.scalar(Decimal(n), _WHOLE_DECIMAL) for n in (2**63 - 1, -(2**63)))
    elif pa.types.is_uint64(kind):
        most, least = pa.scalar(2**63 - 1, kind), pa.scalar(0, kind)
    else:
        column = column.cast(pa.int64())
        if ns == 1:
            return column.fill_null(0).to_numpy(zero_copy_only=False), {}
        most, least = pa.scalar((2**63 - 1) // ns), pa.scalar(-(2**63 // ns))
    beyond = pc.or_(pc.greater(column, most), pc.less(column, least)).fill_null(fill_value=False)
    fitting = pc.if_else(beyond, pa.scalar(None, column.type), column).cast(pa.int64())
    values = fitting.fill_null(0).to_numpy(zero_copy_only=False) * ns
    outside = beyond.to_numpy(zero_copy_only=False)
    why = "years" if is_moment else "int64"
    return values.astype(np.int64, copy=False), {why: outside} if outside.any() else {}


def _whole_numbers(
    column: pa.Array, floats: np.ndarray
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return floats or decimals as int64, and by reason which of them are not.

    *floats* are the values of *column*; of decimals they have 15 digits. What is no number of
    int64 has the value 0.
    """
    if pa.types.is_decimal(column.type):
        floor = pc.floor(column)
        between = pc.not_equal(column, floor).fill_null(fill_value=False)
        values, invalid = _as_int64(floor)
        fraction = between.to_numpy(zero_copy_only=False)
    else:
        finite = np.where(np.isfinite(floats), floats, 0.0)
        outside = (finite < -(2.0**63)) | (finite >= 2.0**63)
        values = np.where(outside, 0.0, finite).astype(np.int64)
        invalid = {"int64": outside} if outside.any() else {}
        fraction = finite % 1 != 0
    return values, invalid | ({"fraction": fraction} if fraction.any() else {})


# Texts as times: ISO 8601, as the Spark pipeline reads it in CSV files.

_ISO_8601 = (
    r"^\s*(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})"
    r"(?:[T ](?P<hour>\d{1,2})"
    r"(?::(?P<minute>\d{1,2})(?::(?P<second>\d{1,2})(?:\.(?P<part>\d{0,9})\d*)?)?"
    r"\s*(?:Z|UTC|(?P<sign>[+-])(?P<zone_hour>\d{1,2})(?::?(?P<zone_minute>\d{2}))?)?)?)?\s*$"
)
_ZONE_NAME = r":\d\d(\.\d+)?\s*[A-Z][A-Za-z]+(/\w+)*\s*$"
_LIMITS = (
    ("month", 1, 12), ("hour", 0, 23), ("minute", 0, 59), ("second", 0, 59),
    ("zone_hour", 0, 18), ("zone_minute", 0, 59), ("year", 1678, 2261),
)  # fmt: skip
"""Of the parts of a time in int64 nanoseconds, the least and the most."""


def read_times(texts: pa.Array) -> tuple[np.ndarray, np.ndarray]:
    """Return *texts* as int64 nanoseconds since 1970, and which of them are times.

    A text without a zone is in UTC. What is no time has the value 0.
    """
    parts = pc.extract_regex(texts, _ISO_8601)
    number = {name: _whole(parts, name) for name in (
        "year", "month", "day", "hour", "minute", "second", "zone_hour", "zone_minute",
    )}  # fmt: skip
    valid = pc.is_valid(parts).to_numpy(zero_copy_only=False)
    for name, least, most in _LIMITS:
        valid &= (number[name] >= least) & (number[name] <= most)
    months = np.where(valid, (number["year"] - 1970) * 12 + number["month"] - 1, 0).astype("M8[M]")
    first, following = months.astype("M8[D]"), (months + 1).astype("M8[D]")
    valid &= (number["day"] >= 1) & (number["day"] <= (following - first).astype(np.int64))
    days = first.astype(np.int64) + number["day"] - 1
    west = pc.equal(pc.struct_field(parts, "sign"), "-").fill_null(fill_value=False)
    sign = np.where(west.to_numpy(zero_copy_only=False), -1, 1)
    zone = sign * (number["zone_hour"] * 3600 + number["zone_minute"] * 60)
    seconds = number["hour"] * 3600 + number["minute"] * 60 + number["second"] - zone
    nanos = _whole(parts, "part", digits=9)
    return np.where(valid, (days * 86_400 + seconds) * NS_PER_S + nanos, 0), valid


def zone_name(texts: pa.Array) -> str | None:
    """Return the first of *texts* that names its time zone in words, which `read_times` refuses."""
    named = texts.filter(pc.match_substring_regex(texts, _ZONE_NAME))
    named = named.filter(pc.invert(pc.match_substring_regex(named, r"UTC\s*$")))
    return str(named[0]) if len(named) else None


def _whole(parts: pa.StructArray, name: str, digits: int = 1) -> np.ndarray:
    """Return a part of each text as a number, 0 where it has none; *digits* after a point."""
    text = pc.utf8_rpad(pc.struct_field(parts, name).fill_null(""), digits, "0")
    whole: np.ndarray = text.cast(pa.int64()).to_numpy()
    return whole
