"""Preparing the streams of runs: small and simple ones in memory, others by Spark.

Spark takes several seconds to start, and one more for each stream. In memory are prepared synthetic
streams, and Parquet files whose event time and join fields are numbers or times, all of them valid:
`scenarios.tables` and the pipeline make the same tuples of these. All else is left to Spark, which
also keeps what it rejects, and says why.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from joins.errors import DataError
from joins.queries.query import JoinQuery
from scenarios.config import RunConfig
from scenarios.streams import dictionary_names, find_sources, prepare_streams
from scenarios.synthetic import TIME
from scenarios.tables import TableStream, prepare_tables
from spark_bridge.pipeline.raw_files import inspect_files, open_parquet
from spark_bridge.pipeline.source import ROWS, RawSource, lay_out
from spark_bridge.prepared import PreparedStream

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
        asked = (query.streams, query.times, query.select, fields, dictionary_names(query))
        key = repr((config.streams, asked))
        if key not in self._known:
            self._known[key] = self._prepare(config, query)
        return self._known[key]

    def _prepare(self, config: RunConfig, query: JoinQuery) -> tuple[PreparedStream, ...]:
        made = _make(config, query, self._room) or _read(config, query, self._room)
        if made is None:
            how: dict[str, Any] = {"progress": self._progress, "on_spark": self._on_spark}
            return prepare_streams(config, query, **how)
        self._room -= sum(stream.rows for stream in made)
        return made


def _make(config: RunConfig, query: JoinQuery, most: int) -> tuple[TableStream, ...] | None:
    """Return the streams if all are synthetic, and have no more than *most* tuples."""
    streams = config.streams
    made = [one.synthetic for one in streams if one.synthetic and not one.where]
    if not len(made) == len(streams) == len(query.streams):  # too many are refused elsewhere
        return None
    if sum(one.rows for one in made) > most:
        return None
    return prepare_tables(query, made, [TIME] * len(made), [stream.arrival for stream in streams])


def _read(config: RunConfig, query: JoinQuery, most: int) -> tuple[TableStream, ...] | None:
    """Return the streams if all are simple Parquet files, and have no more than *most* rows."""
    if any(stream.synthetic or stream.where for stream in config.streams):
        return None
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
        all(name.lower() not in ("id", TIME) or name == TIME == time for name in read)
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
    if source.time is not None or TIME in columns:
        return source.time or TIME
    first = next((name for name, kind in columns.items() if _is(_MOMENTS, kind)), None)
    return None if first is None or pa.types.is_date(columns[first]) else first


def _is(kinds: Sequence[Callable[[pa.DataType], bool]], kind: pa.DataType) -> bool:
    return any(is_kind(kind) for is_kind in kinds)
