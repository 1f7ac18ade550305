"""Raw files as typed Spark rows, each with the place that it came from.

Every row has its file's number and its 1-based data row in that file (blank lines are no rows).
Several tasks read one CSV file, cut between lines, unless a quoted text in it has line breaks. CSV
columns are text at first; their types are inferred from all values.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from joins.errors import DataError
from spark_bridge.engines import one_line
from spark_bridge.pipeline.quotes import write_with_line_feeds
from spark_bridge.pipeline.raw_files import has_nanoseconds
from spark_bridge.pipeline.raw_source import ROWS, RawSource, Task
from spark_bridge.pipeline.values import (
    MOMENTS,
    NS_PER_UNIT,
    TYPE_COUNTERS,
    as_type,
    infer,
    type_counters,
)
from spark_bridge.session import session_beside
from spark_bridge.sql.statement import sql_name

FILE, ROW, TEXT = "__joinsim_file", "__joinsim_row", "__joinsim_text"
"""Hidden columns: file number, 1-based data row, and the raw line where it is malformed."""

RAW = "__joinsim_raw"
"""Hidden column: the row's values as the file has them, a struct."""

NANOS = "__joinsim_ns_"
"""Prefix of the hidden columns of nanoseconds, which Spark's timestamps do not have."""

_BLOCK = "__joinsim_block"

_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # nothing to adapt to, and planning takes half the time
    "spark.sql.ansi.enabled": "true",  # an overflow in an expression is an error, not wrapped
    "spark.sql.caseSensitive": "true",
    "spark.sql.csv.parser.columnPruning.enabled": "false",  # a malformed row is one in any column
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
}


@dataclass(frozen=True, kw_only=True)
class Typed:
    """Typed rows of one source."""

    frame: DataFrame
    """The source's columns, typed, under their own names, and the hidden columns."""
    file_rows: list[int]
    """Number of rows in each file, malformed ones included."""
    types: dict[str, str]
    """Source column to Spark type, in order."""
    texts: dict[str, str]
    """Columns that were converted, to the SQL of the text they were read from."""
    time: str | None
    """The column that gives event time, None when it is an expression or the order of the rows."""
    notes: list[str]
    """Decisions to report."""
    dtypes: dict[str, str] = field(default_factory=dict)
    """Join field to its dtype in joinsim, ``int64`` or ``float64``, of rows that `validate` has
    checked; texts become codes."""

    @property
    def rows(self) -> int:
        """Number of rows in all files."""
        return sum(self.file_rows)


def pipeline_session(spark: SparkSession) -> SparkSession:
    """Return a session beside *spark* with the pipeline's own settings."""
    return session_beside(spark, _SETTINGS)


@contextmanager
def errors_about(what: str, failure: str = ": Spark could not do it") -> Iterator[None]:
    """Turn exceptions of Spark into a :exc:`DataError` of one line about *what*."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        reason = re.sub(r"(, )?`__joinsim_\w+`", "", one_line(error))  # columns that nobody wrote
        raise DataError(f"{what}{failure}: {reason}") from error
    except ConnectionError as error:
        raise DataError(
            f"{what}: Spark stopped unexpectedly; a larger memory or a smaller input may help"
        ) from error


def quoted(name: str) -> Column:
    """Return the column of exactly that *name*, dots and spaces included."""
    return sf.col(sql_name(name))


def typed_rows(
    spark: SparkSession, task: Task, folder: Path, text_fields: Collection[str] = ()
) -> Typed:
    """Read the files of *task*; a column's type is the file's own, or inferred.

    A join field is text only where the source allows it codes: one of *text_fields* by its type in
    the file, another if most values are no numbers. *folder* (existing, empty) receives links to
    the files.

    Raise :exc:`DataError` if no column can serve as event time.
    """
    source, files, layout = task.source, task.files, task.layout
    raw = _read(spark, task, folder)
    names = list(files[0].columns)
    timed = task.expressions["time"].columns if "time" in task.expressions else frozenset()
    timed |= {source.arrival} if source.arrival in names else set()
    joined = {
        column: field in source.codes
        for field, column in layout.fields.items()
        if field not in text_fields
    }
    if files[0].format == "csv":
        used = _used(task, timed)
        blocks = _block_counts(raw, _counters(used))
        rows = [
            sum(block["rows"] for block in blocks if block[FILE] == number)
            for number in range(len(files))
        ]
        wanted, time, notes = _csv_types(source, used, joined, timed, blocks)
        raw = _number_rows(raw, blocks)
    else:
        rows = [file.rows or 0 for file in files]
        wanted, time, notes = _parquet_types(raw, source, files[0].columns, joined)
    frame, texts = _convert(raw, names, wanted)
    kinds = dict(frame.dtypes)
    types = {name: kinds[name] for name in names}
    return Typed(frame=frame, file_rows=rows, types=types, texts=texts, time=time, notes=notes)


def _used(task: Task, timed: frozenset[str]) -> list[str]:
    """Return the columns that the stream has or is made by; the others' types are of no use."""
    names, source = list(task.files[0].columns), task.source
    if source.time is None:
        return names  # any of them may turn out to be the event time
    where = task.expressions["where"].columns if "where" in task.expressions else frozenset()
    used = {*task.layout.names, *timed, *where, source.time}
    return [name for name in names if name in used]


def _read(spark: SparkSession, task: Task, folder: Path) -> DataFrame:
    """Return the rows of *task*'s files in a frame with the hidden columns FILE, ROW and TEXT.

    *folder* (existing, empty, absolute) receives links to the files, so that Spark sees names
    without patterns, dots or escapes, whose digits are the file's number, and copies of CSV files
    in which records span lines. In CSV, ROW counts within a block of the file until `_number_rows`
    completes it.
    """
    files = task.files
    groups: dict[tuple[bool, str, tuple[tuple[str, pa.DataType], ...]], list[str]] = defaultdict(
        list
    )
    for number, (file, spanning) in enumerate(zip(files, task.spanning, strict=True)):
        if spanning:
            link = folder / f"{number:06d}.csv"
            write_with_line_feeds(file.path, file.separator, link)
        else:
            link = folder / f"{number:06d}{file.suffix}"
            link.symlink_to(file.path)
        groups[spanning, file.separator, tuple(file.columns.items())].append(str(link))
    frames = []
    for (spanning, separator, columns), paths in groups.items():
        types = dict(columns)
        if files[0].format == "csv":
            frames.append(_csv(spark, paths, list(types), separator, spanning=spanning))
        else:
            frames.append(_parquet(spark, paths, types, folder))
    return reduce(DataFrame.unionByName, frames)


def place_in_partition() -> Column:
    """Return a row's place in its partition, from 0."""
    return sf.monotonically_increasing_id().bitwiseAND(sf.lit((1 << 33) - 1))


def _file_number(paths: list[str]) -> Column:
    """Return the number of the file among *paths* that a row comes from."""
    if len(paths) == 1:  # no reason to cut it out of a name row by row
        return sf.lit(int(Path(paths[0]).name[:6])).alias(FILE)
    return sf.substring(sf.col("_metadata.file_name"), 1, 6).cast("int").alias(FILE)


def _csv(
    spark: SparkSession, paths: list[str], names: list[str], separator: str, *, spanning: bool
) -> DataFrame:
    fields = [StructField(name, StringType()) for name in [*names, TEXT]]
    reader = spark.read.schema(StructType(fields))
    if spanning:  # a line break within a text is kept only where Spark need not find out which one
        reader = reader.option("multiLine", True).option("lineSep", "\n")
    frame = (
        reader.option("header", True)
        .option("sep", separator)
        .option("escape", '"')  # quotes are doubled, as in the CSV standard
        .option("mode", "PERMISSIVE")
        .option("columnNameOfCorruptRecord", TEXT)
        .csv(paths)
    )
    return frame.select(
        *map(quoted, names),
        _file_number(paths),
        place_in_partition().alias(ROW),
        sf.col(TEXT),
        sf.col("_metadata.file_block_start").alias(_BLOCK),
    )


def _parquet(
    spark: SparkSession, paths: list[str], types: dict[str, pa.DataType], folder: Path
) -> DataFrame:
    # Spark has no nanoseconds: such columns arrive as integers. So do durations, of whatever unit,
    # and times of day, if they are asked for as integers.
    nanos = {name: kind for name, kind in types.items() if has_nanoseconds(kind)}
    reader = spark.read
    if any(pa.types.is_time(kind) for kind in types.values()):
        reader = reader.schema(_with_times_as_integers(spark, types, folder / "types.parquet"))
    frame = reader.parquet(*paths).select("*", "_metadata")
    for name, kind in types.items():
        if (ns := _ns_per_unit(kind)) is not None:
            whole = f"try_multiply(cast({sql_name(name)} as bigint), {ns}L)"
            frame = frame.withColumn(name, sf.expr(whole))
    for name, kind in nanos.items():
        whole = sql_name(name)
        micros = f"timestamp_micros({whole} div 1000 - if({whole} % 1000 < 0, 1, 0))"
        frame = frame.withColumn(NANOS + name, quoted(name)).withColumn(
            name, sf.expr(micros if kind.tz else f"cast({micros} as timestamp_ntz)")
        )
    return frame.select(
        *map(quoted, types),
        *(quoted(NANOS + name) for name in nanos),
        _file_number(paths),
        (sf.col("_metadata.row_index") + 1).alias(ROW),
        sf.lit(None).cast("string").alias(TEXT),
    )


def _ns_per_unit(kind: pa.DataType) -> int | None:
    """Return how many nanoseconds a file's integers of a *kind* count; None for other kinds."""
    if pa.types.is_time32(kind):
        return NS_PER_UNIT["ms"]  # Parquet has no times of seconds
    if pa.types.is_time64(kind) or pa.types.is_duration(kind):
        return NS_PER_UNIT[kind.unit]
    return None


def _with_times_as_integers(
    spark: SparkSession, types: Mapping[str, pa.DataType], file: Path
) -> StructType:
    """Return what Spark makes of *types*, but integers of times; *file* is written for it."""
    others = pa.schema((name, kind) for name, kind in types.items() if not pa.types.is_time(kind))
    pq.write_table(others.empty_table(), file)
    known = {field.name: field for field in spark.read.parquet(str(file)).schema.fields}
    for name, kind in types.items():
        if pa.types.is_time(kind):
            integer = IntegerType() if pa.types.is_time32(kind) else LongType()
            known[name] = StructField(name, integer)
    return StructType([known[name] for name in types])


def _block_counts(frame: DataFrame, measures: list[Column]) -> list[dict[str, Any]]:
    """Return per block of every CSV file its place, row count and *measures*, files in order."""
    rows = frame.groupBy(FILE, _BLOCK).agg(
        sf.count(sf.lit(1)).alias("rows"), sf.min(ROW).alias("first"), *measures
    )
    return [row.asDict() for row in rows.orderBy(FILE, _BLOCK).collect()]


def _number_rows(frame: DataFrame, blocks: list[dict[str, Any]]) -> DataFrame:
    """Return the CSV *frame* with ROW as the 1-based data row in its file.

    Both readings, this and that of `_block_counts`, have the same blocks: Spark cuts by size alone.
    """
    before: dict[object, int] = defaultdict(int)
    shifts: list[Column] = []
    for block in blocks:
        place, rows, first = block[FILE], int(block["rows"]), int(block["first"])
        shifts += [sf.lit(f"{place}:{block[_BLOCK]}"), sf.lit(before[place] - first + 1)]
        before[place] += rows
    shift = sf.create_map(*shifts)[sf.concat_ws(":", sf.col(FILE), sf.col(_BLOCK))]
    return frame.withColumn(ROW, sf.col(ROW) + shift).drop(_BLOCK)


def _counters(names: list[str]) -> list[Column]:
    """Return the aggregates from which the types of text columns are inferred."""
    return [
        sf.expr(sql).alias(f"{counter}:{name}")
        for name in names
        for counter, sql in type_counters(sql_name(name)).items()
    ]


def _counts(names: list[str], parts: list[dict[str, Any]]) -> dict[str, dict[str, int]]:
    """Return the counters of each column, added up over *parts*."""
    return {
        name: {
            counter: sum(part[f"{counter}:{name}"] for part in parts) for counter in TYPE_COUNTERS
        }
        for name in names
    }


def _csv_types(
    source: RawSource,
    names: list[str],
    joined: Mapping[str, bool],
    timed: frozenset[str],
    blocks: list[dict[str, Any]],
) -> tuple[dict[str, str], str | None, list[str]]:
    """Return each column's type, the time column and notes, from what was counted in *blocks*.

    *joined* are the columns behind the join fields, and whether they may be text; *timed* those
    that event time is computed from.
    """
    counts = _counts(names, blocks)
    mostly = {name: infer(count, strict=False) for name, count in counts.items()}
    moments = [name for name in names if mostly[name] in MOMENTS]
    time, notes = _time_column(source, names, moments)
    wanted = {
        # A requested column has the type of most of its values; the rest are rejected.
        name: mostly[name]
        if name in joined or name in timed or name == time
        else infer(count, strict=True)
        for name, count in counts.items()
    }
    for name, codable in joined.items():
        if wanted[name] == "string" and not (codable and counts[name]["filled"]):
            # Mostly no numbers, but it must be one: its values are rejected one by one.
            wanted[name] = "double"
    return wanted, time, notes


def _parquet_types(
    raw: DataFrame,
    source: RawSource,
    columns: Mapping[str, pa.DataType],
    joined: Mapping[str, bool],
) -> tuple[dict[str, str], str | None, list[str]]:
    own, names = dict(raw.dtypes), list(columns)
    moments = [name for name in names if own[name] in MOMENTS]
    time, notes = _time_column(source, names, moments)
    wanted = _inferred(raw, {name: joined[name] for name in joined if own[name] == "string"})
    times = {time, source.arrival}
    wanted |= {name: "timestamp" for name in names if name in times and own[name] == "string"}
    notes += [
        f"column {name}: times of day and durations as int64 nanoseconds"
        for name, kind in columns.items()
        if _ns_per_unit(kind) is not None
    ]
    return wanted, time, notes


def _inferred(raw: DataFrame, columns: Mapping[str, bool]) -> dict[str, str]:
    """Return the types of those text *columns* that are not to be text, by most of their values.

    The values of *columns* are whether they may be text: then only numbers are not.
    """
    if not columns:
        return {}
    row = raw.agg(*_counters(list(columns))).first()
    assert row is not None
    found = {}
    for name, count in _counts(list(columns), [row.asDict()]).items():
        kind = infer(count, strict=False)
        if not columns[name] or not count["filled"] or kind in ("bigint", "double"):
            found[name] = "double" if kind == "string" else kind
    return found


def _convert(
    raw: DataFrame, names: list[str], wanted: dict[str, str]
) -> tuple[DataFrame, dict[str, str]]:
    """Return the rows with *wanted* types, and the SQL of the text that each was read from."""
    own = dict(raw.dtypes)
    texts = {
        name: f"cast({RAW}.{sql_name(name)} as string)"
        for name, kind in wanted.items()
        if kind != own[name]
    }
    columns = [
        sf.expr(as_type(texts[name], wanted[name])).alias(name) if name in texts else quoted(name)
        for name in names
    ]
    hidden = [name for name in raw.columns if name.startswith("__joinsim_")]
    frame = raw.withColumn(RAW, sf.struct(*(quoted(name) for name in names)))
    frame = frame.select(*columns, *(quoted(name) for name in hidden), RAW)
    return frame, texts


def _time_column(
    source: RawSource, names: list[str], moments: list[str]
) -> tuple[str | None, list[str]]:
    if source.time is not None:
        return (source.time if source.time in names and source.time != ROWS else None), []
    if "ts" in names:
        return "ts", []
    if not moments:
        raise DataError(
            f"stream {source.name!r}: no column of {source.files} holds timestamps; name the "
            "event time as time: a column, an expression such as to_timestamp(a_column, 'd/M/yyyy "
            f"H:m'), or {ROWS}, the order of the rows (its columns: {', '.join(names)})"
        )
    others = f" (others: {', '.join(moments[1:])})" if moments[1:] else ""
    return moments[0], [
        f"event time is the column {moments[0]}, the first of timestamps{others}, because none was "
        "named"
    ]
