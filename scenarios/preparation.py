"""Preparing the streams of runs: tables and small, simple files in memory, all else by Spark.

Spark takes several seconds to start, and one more for each stream. In memory are prepared synthetic
streams, and Parquet files whose event time and join fields are numbers or times, all of them valid:
`prepare_tables` and the pipeline make the same tuples of these. All else is left to Spark, which
also keeps what it rejects, and says why.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from actors.feed import ARRIVAL, PLACE
from joins.batch import Schema
from joins.errors import DataError, suggest
from joins.queries.conditions import prepared_name
from joins.queries.interval import TIME_FIELD
from joins.queries.query import JoinQuery
from scenarios.columns import (
    Numbers,
    TextCodes,
    decode,
    read_numbers,
    read_texts,
    read_whole_numbers,
)
from scenarios.config import RunConfig
from scenarios.formatting import format_many
from scenarios.scenario_files import ConfigError
from scenarios.streams import (
    codes_mistake,
    dictionary_names,
    event_time,
    find_sources,
    prepared_folder,
)
from scenarios.tables import IN_MEMORY, ROW, TableStream, as_table
from spark_bridge.pipeline.raw_files import inspect_files, open_parquet
from spark_bridge.pipeline.raw_source import ROWS, RawSource, free_name, lay_out
from spark_bridge.prepared import PreparedStream, TimeOrder, rounding_notes

T = TypeVar("T")

_MOST_IN_MEMORY = 1 << 22
"""Most tuples that the streams of all runs have in memory together: some 450 MB, where they have
but few columns."""
_LARGEST_FILE = 128 << 20
"""Most bytes of a file that is read into memory."""

_MOMENTS = (pa.types.is_timestamp, pa.types.is_date)
_TIMES = (*_MOMENTS, pa.types.is_integer, pa.types.is_float32, pa.types.is_float64)
_FIELDS = (*_TIMES, pa.types.is_boolean)
"""Types of columns of which Spark and Arrow make the same numbers."""


class Preparation:
    """Prepares the streams of one run, or of several, each once; `make_plan` calls it.

    Parameters
    ----------
    progress
        Called with the stage of what Spark prepares, how many stages are done, and of how many.
    on_spark
        Called before Spark starts.
    """

    def __init__(
        self,
        progress: Callable[[str, int, int], None] | None = None,
        on_spark: Callable[[], None] = lambda: None,
    ) -> None:
        self._progress = progress
        self._on_spark = on_spark
        self._known: dict[str, tuple[PreparedStream, ...]] = {}
        self._room = _MOST_IN_MEMORY  # for tuples

    def __call__(self, config: RunConfig, query: JoinQuery) -> tuple[PreparedStream, ...]:
        """Return the streams of *config*, prepared if they are not yet."""
        fields = [query.fields(stream) for stream in range(len(query.streams))]
        needs = (query.streams, query.times, query.select, fields, dictionary_names(query))
        key = repr((config.streams, needs))
        if key not in self._known:
            self._known[key] = self._prepare(config, query)
        return self._known[key]

    def _prepare(self, config: RunConfig, query: JoinQuery) -> tuple[PreparedStream, ...]:
        made = _in_memory(config, query, self._room)
        if made is None:
            return prepare_by_spark(config, query, progress=self._progress, on_spark=self._on_spark)
        self._room -= sum(stream.rows for stream in made)
        return made


def prepare_by_spark(
    config: RunConfig,
    query: JoinQuery,
    *,
    progress: Callable[[str, int, int], None] | None = None,
    on_spark: Callable[[], None] = lambda: None,
) -> tuple[PreparedStream, ...]:
    """Return the query's streams, each prepared by Spark unless it is already.

    *on_spark* is called before Spark starts, where there is something for it to do.

    Raise :exc:`ConfigError` when streams and data do not go together, and what the pipeline
    raises.
    """
    found = find_sources(config, query)
    made: list[PreparedStream] = []
    if raw := [one for one in found if isinstance(one, RawSource)]:
        # Only here: a run over prepared streams needs nothing of the pipeline.
        from spark_bridge.pipeline.pipeline import prepare

        out = prepared_folder() / _folder(config.name, raw)
        made = prepare(raw, out, progress=progress, on_spark=on_spark)
    next_made = iter(made)
    streams = tuple(one if isinstance(one, PreparedStream) else next(next_made) for one in found)
    if mistake := codes_mistake(query, streams):
        raise ConfigError(mistake)
    return streams


def _folder(name: str, sources: list[RawSource]) -> str:
    """Name a folder after its sources, so that runs over other sources do not replace it."""
    requests = []
    for s in sources:
        options = [option for option in (s.arrival, s.columns) if option is not None]
        requests.append((s.name, s.paths, s.time, s.where, s.fields, s.codes, *options))
    return f"{name}-{hashlib.sha256(repr(requests).encode()).hexdigest()[:8]}"


def _in_memory(config: RunConfig, query: JoinQuery, most: int) -> tuple[TableStream, ...] | None:
    """Return the streams if all are synthetic, or all simple files, of no more than *most* rows."""
    if any(stream.where for stream in config.streams):
        return None
    made = [one.synthetic for one in config.streams if one.synthetic]
    if made:
        # Too many are refused elsewhere.
        is_all = len(made) == len(config.streams) == len(query.streams)
        if not is_all or sum(one.rows for one in made) > most:
            return None
        arrivals = [stream.arrival for stream in config.streams]
        return prepare_tables(query, made, [TIME_FIELD] * len(made), arrivals)
    found = find_sources(config, query)
    sources = [one for one in found if isinstance(one, RawSource)]
    if len(sources) < len(found):
        return None
    tables: list[pa.Table] = []
    for source in sources:
        table = _table(source, most)
        if table is None:
            return None
        most -= len(table)
        tables.append(table)
    times, arrivals = [one.time for one in sources], [one.arrival for one in sources]
    try:
        streams = prepare_tables(query, tables, times, arrivals)
    except DataError:  # Spark says of each row what is wrong with it
        return None
    if any(stream.rejected for stream in streams):
        return None
    files = [Path(source.paths[0]).absolute() for source in sources]
    return tuple(replace(one, path=file) for one, file in zip(streams, files, strict=True))


def _table(source: RawSource, most: int) -> pa.Table | None:
    """Return what is read of *source* if it is a simple file, and has no more than *most* rows."""
    (path,) = source.paths
    if Path(path).is_dir():
        return None
    (file,) = inspect_files([path])
    is_small = file.size_bytes <= _LARGEST_FILE and (file.rows or 0) <= most
    if file.format != "parquet" or not is_small:
        return None
    time, layout = _time(source, file.columns), lay_out(source, list(file.columns))
    times = [one for one in (time, source.arrival or ROWS) if one != ROWS]
    read = [name for name in file.columns if name in layout.names or name in times]
    simple = (
        # A tuple has a position and a time of these names, too.
        all(name.lower() not in ("id", TIME_FIELD) or name == TIME_FIELD == time for name in read)
        and not any("." in name for name in read)  # by which Arrow means a column in a column
        and all(name in file.columns and _is(_TIMES, file.columns[name]) for name in times)
        and all(_is(_FIELDS, file.columns[name]) for name in layout.fields.values())
    )
    if not simple:
        return None
    try:
        with open_parquet(file.path) as parquet:
            return parquet.read(columns=read)
    except (pa.ArrowException, OSError):  # Spark says what is damaged
        return None


def _time(source: RawSource, columns: Mapping[str, pa.DataType]) -> str | None:
    """Return the column of event time, or `ROWS`, as Spark and `prepare_tables` both find it."""
    if source.time is not None or TIME_FIELD in columns:
        return source.time or TIME_FIELD
    first = next((name for name, kind in columns.items() if _is(_MOMENTS, kind)), None)
    return None if first is None or pa.types.is_date(columns[first]) else first


def _is(kinds: Sequence[Callable[[pa.DataType], bool]], kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in kinds)


def prepare_tables(
    query: JoinQuery,
    tables: Sequence[Any],
    times: Sequence[str | None],
    arrivals: Sequence[str | None] = (),
) -> tuple[TableStream, ...]:
    """Return the streams of *query* from *tables*, each ordered by its event time.

    The rules are those of the Spark pipeline: rows in order of event time (equal times keep their
    order), numbered from 0; join fields as int64 or float64, texts as codes. A row without a valid
    time or join field is rejected, counted, and kept out.

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
    read: dict[int, pa.Table] = {}  # of each object once: a reader has its rows only once
    for name, table in zip(query.streams, tables, strict=True):
        if not isinstance(table, PreparedStream) and id(table) not in read:
            read[id(table)] = _raw(table, name)
    tables = [read.get(id(table), table) for table in tables]
    streams = [
        _Unordered(name, table, query.fields(place), event_time(query, place, time), arrival)
        for place, (name, table, time, arrival) in enumerate(
            zip(query.streams, tables, times, arrivals or [None] * len(tables), strict=True)
        )
    ]
    members: dict[str, dict[tuple[str, str], pa.ChunkedArray | None]] = {}
    for stream, named in zip(streams, codes, strict=True):
        for field, dictionary in named.items():
            members.setdefault(dictionary, {})[stream.name, field] = stream.texts(field)
    dictionaries = {name: TextCodes.of(fields) for name, fields in members.items()}
    return tuple(
        stream.prepare({f: made for f, name in named.items() if (made := dictionaries[name])})
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
    hidden = [name for name in (TIME_FIELD, ARRIVAL, PLACE) if name in table.schema.names]
    return pa.table(columns | {name: table[name] for name in hidden})


class _Rejected:
    """Which rows of a table are not valid, and how many of them why."""

    def __init__(self, rows: int) -> None:
        self.rows = np.zeros(rows, bool)
        self.reasons: Counter[str] = Counter()

    def check(self, column: str, numbers: Numbers) -> np.ndarray:
        """Return the values of a column; the rows in which it is not valid are rejected."""
        values, invalid = numbers
        for why, rows in invalid.items():
            if rows.any():
                self.rows |= rows
                self.reasons[f"{column} {why}"] += int(rows.sum())
        return values


class _Unordered:
    """One stream's table, with its join fields and time located."""

    def __init__(
        self,
        name: str,
        value: pa.Table | PreparedStream,
        fields: Sequence[str],
        time: str | None,
        arrival: str | None,
    ) -> None:
        if isinstance(value, PreparedStream):
            table = _all_of(value)
            # What it was prepared with, unless another order is named.
            arrival = arrival or (None if value.delays is None else ARRIVAL)
        else:
            table = value
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
        moments = [f.name for f in table.schema if pa.types.is_timestamp(f.type)]
        found = TIME_FIELD if TIME_FIELD in table.schema.names else next(iter(moments), None)
        self.time = None if time == ROWS else time or found
        self.arrival = arrival
        if self.time != TIME_FIELD and TIME_FIELD in table.schema.names:  # `ts` is the event time
            own = free_name(f"source_{TIME_FIELD}", table.schema.names)
            self.table = table.rename_columns({TIME_FIELD: own})
            self.arrival = own if arrival == TIME_FIELD else arrival
        names = self.table.schema.names
        needed = [column for column in fields if column != TIME_FIELD]  # every tuple has that
        needed += [column for column in (self.time, self.arrival) if column not in (None, ROWS)]
        for column in needed:
            if column not in names:
                own_id = column.removeprefix("source_")
                if own_id in self.own_names.values():
                    taken = next(one for one in names if one.lower() == column.lower())
                    raise DataError(
                        f"stream {name!r} has columns {own_id!r} and {taken!r}, and a column "
                        f"{own_id!r} is called {column!r} here, where the id is a tuple's "
                        "position; rename one of them"
                    )
                spelt = dict.fromkeys([own_id, column])
                either = " or ".join(
                    repr(one) for one in spelt if column in (one, prepared_name(one))
                )
                raise DataError(
                    f"stream {name!r}: there is no column {either}; {suggest(column, names)}"
                )

    def texts(self, field: str) -> pa.ChunkedArray | None:
        """Return the texts of a field; None where it holds none."""
        return self._read(read_texts, field) if field in self.table.schema.names else None

    def _read(self, read: Callable[[pa.ChunkedArray], T], column: str) -> T:
        """Return what a function of `scenarios.columns` reads of a column."""
        try:
            return read(decode(self.table[column]))
        except (DataError, pa.ArrowException) as error:
            raise DataError(f"stream {self.name!r}, column {column!r}: {error}") from None

    def prepare(self, dictionaries: Mapping[str, TextCodes]) -> TableStream:
        """Return the stream: valid rows, typed, in order of event time."""
        rejected = _Rejected(len(self.table))
        checked = rejected.check
        ts = np.arange(len(self.table), dtype=np.int64)
        if self.time is not None:
            ts = checked(self.time, self._times(self.time, "event time"))
        columns: dict[str, np.ndarray] = {}
        for name in self.fields:
            if name == TIME_FIELD:  # what is wrong with it is of the event time
                columns[name] = ts
            elif name in dictionaries:
                columns[name] = checked(name, dictionaries[name].encode(self.texts(name)))
            else:
                columns[name] = checked(name, self._read(read_numbers, name))
        arrives = None
        if self.arrival is not None and self.arrival != ROWS:
            arrives = checked(self.arrival, self._times(self.arrival, "arrival"))
        valid = np.flatnonzero(~rejected.rows)
        if not len(valid):
            why = "; ".join(f"{reason} in {rows:,}" for reason, rows in rejected.reasons.items())
            raise DataError(f"stream {self.name!r}: no row is valid ({why or 'it has no rows'})")
        order = valid[np.argsort(ts[valid], kind="stable")]
        table = pa.table(
            {ROW: order, TIME_FIELD: ts[order]} | {n: c[order] for n, c in columns.items()}
        )
        if self.arrival is not None:
            if arrives is None:  # a tuple arrives when it happens, or with the one before it
                arrives = np.copy(ts)
                arrives[valid] = np.maximum.accumulate(ts[valid])
            table = table.append_column(ARRIVAL, pa.array(arrives[order]))
            places = order
            if self.arrival == ARRIVAL:  # the rows of a stream that is prepared are ordered anew
                places = self.table[PLACE].to_numpy()[order]
            table = table.append_column(PLACE, pa.array(places))
        ordered = TimeOrder()
        ordered.add(ts[order], order, None if arrives is None else arrives[order])
        return TableStream(
            name=self.name,
            path=IN_MEMORY,
            rows=ordered.rows,
            rejected=len(self.table) - len(order),
            rejected_reasons=dict(rejected.reasons),
            schema=Schema(
                stream=self.name, fields={name: str(c.dtype) for name, c in columns.items()}
            ),
            first_ts=ordered.first_ts,
            last_ts=ordered.last_ts,
            notes=(*self._notes(rejected), *ordered.notes),
            fingerprint="",
            time=self.time,
            delays=ordered.delays,
            codes={name: dictionary.digest for name, dictionary in dictionaries.items()},
            own_names=self.own_names,
            table=table,
            source=self.table,
            order=order,
        )

    def _times(self, column: str, what: str) -> Numbers:
        kind = decode(self.table[column]).type
        if pa.types.is_boolean(kind):
            raise DataError(
                f"stream {self.name!r}: the {what} {column!r} is of type {kind}; "
                "give timestamps, dates, texts of them or whole nanoseconds"
            )
        return self._read(read_whole_numbers, column)

    def _notes(self, rejected: _Rejected) -> list[str]:
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
        if rejected.rows.any():
            first = int(np.flatnonzero(rejected.rows)[0])
            why = ", ".join(f"{reason} ({rows:,})" for reason, rows in rejected.reasons.items())
            count = format_many(int(rejected.rows.sum()), "row")
            notes.append(f"{count} rejected, the first is row {first}: {why}")
        return notes
