"""The stages that turn one source into one stream, in Spark.

A source is read once: its rows are counted as they are written. One of more than one bucket is read
before, for a sample of its times that says where to cut; and one with rejected rows is read again,
for what is wrong with them.

Valid rows are distributed to buckets by time range, a partition each, which Spark sorts, on disk
where one outgrows memory, and writes as a file. These are then copied into segments, some thousand
rows at a time, and each row gets its place among all rows as its id. A single timestamp is never
split between buckets, so a source in which most rows share one timestamp has one large bucket.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as sf

from actors.feed import ARRIVAL, PLACE
from joins.batch import Schema
from joins.errors import DataError
from spark_bridge.engines import plain_name
from spark_bridge.pipeline.dictionaries import CODED, Dictionary, with_codes
from spark_bridge.pipeline.raw_files import require_unchanged
from spark_bridge.pipeline.raw_source import ROWS, ColumnLayout, RawSource, Task, free_name
from spark_bridge.pipeline.typed_rows import (
    FILE,
    NANOS,
    RAW,
    ROW,
    TEXT,
    Typed,
    errors_about,
    pipeline_session,
    place_in_partition,
    quoted,
    typed_rows,
)
from spark_bridge.pipeline.validation import (
    ARRIVES,
    FIELD,
    KINDS,
    REASON,
    TS,
    validate,
)
from spark_bridge.pipeline.values import filled, text_nanos
from spark_bridge.prepared import (
    REJECTED,
    ROW_GROUP_ROWS,
    SEGMENTS,
    PreparedStream,
    TimeOrder,
    codes_file,
    publish,
    save_summary,
    segment_writer,
)
from spark_bridge.sql.statement import sql_name

REASONS_LISTED = 5  # in an error message
_ONE_TASK_BYTES = 8 << 20  # below this a shuffle costs more than a second task saves
_SAMPLED_PER_BUCKET = 10_000  # a bucket's share is then within 2 % of what it should be
BUCKETS_MAX = 128  # the tree of comparisons between buckets must fit into one JVM method


@dataclass(frozen=True, kw_only=True)
class RowCounts:
    """How many rows are valid and how many are not, why, and the notes on what valid ones lost."""

    valid: int
    rejected: int
    reasons: Counter[str]
    lost: list[str]


def build(
    spark: SparkSession,
    task: Task,
    folder: Path,
    dictionaries: Mapping[str, Dictionary],
    typed: Typed | None,
    *,
    only_rejected: Path,
) -> None:
    """Build the stream of *task* in ``folder/stream``; *folder* is for temporary files, too.

    *dictionaries* are those of its text fields, by name, and *typed* its rows where they were made
    of them; None reads the files. Where all rows are rejected, they land in *only_rejected*.

    Raise :exc:`DataError` with the reason why the source cannot become a stream.
    """
    what = f"stream {task.source.name!r} ({task.source.files})"
    with errors_about(what), plain_name(folder) as plain:
        task.report("read")
        if typed is None:
            (plain / "links").mkdir()
            typed = typed_rows(pipeline_session(spark), task, plain / "links")
        _build(task, typed, dictionaries, plain, only_rejected)


def _build(
    task: Task,
    typed: Typed,
    dictionaries: Mapping[str, Dictionary],
    folder: Path,
    only_rejected: Path,
) -> None:
    source, layout, stream = task.source, task.layout, folder / "stream"
    stream.mkdir()
    task.report("validate")
    typed = validate(task, typed)
    bounds = sample_bounds(typed.frame, typed.rows, task.segment_rows)
    watched, seen = _watched(typed, layout), Observation()
    valid = _counted(typed.frame, seen, watched).filter(f"{KINDS} = ''")
    settings = typed.frame.sparkSession.conf
    settings.set("spark.sql.shuffle.partitions", str(len(bounds) + 1))
    task.report("write")
    if source.arrival == ROWS:
        before = Window.orderBy(FILE, ROW).rowsBetween(Window.unboundedPreceding, 0)
        valid = valid.withColumn(ARRIVES, sf.max(TS).over(before))
    coded = {
        name: dictionaries[source.codes[name]]
        for name, column in layout.fields.items()
        if typed.types[column] == CODED
    }
    valid = with_codes(valid, {FIELD + name: one.file for name, one in coded.items()})
    write_sorted(
        valid,
        _columns(source, layout),
        bounds,
        rows=source.rows or typed.rows,
        few=sum(file.size_bytes for file in task.files) < _ONE_TASK_BYTES,
        to=folder / "sorted",
    )
    counts = _count(typed.frame, seen.get, watched)
    _require_some(counts, typed.frame, task, folder, only_rejected)
    length = min(counts.valid, source.rows or counts.valid)
    numbered = number_rows(
        folder / "sorted", stream / SEGMENTS, rows=length, segment_rows=task.segment_rows
    )
    task.report("check")
    require_unchanged(task.files)
    assert numbered.rows == length, f"{numbered.rows} rows in the segments, {length} counted"
    for name, dictionary in coded.items():
        shutil.copyfile(dictionary.file, stream / codes_file(name))
    _summarise(task, typed, counts, numbered, coded, stream)
    shutil.rmtree(only_rejected, ignore_errors=True)  # of an earlier run


def _summarise(
    task: Task,
    typed: Typed,
    counts: RowCounts,
    numbered: TimeOrder,
    coded: Mapping[str, Dictionary],
    stream: Path,
) -> None:
    """Write the summary of what was written in the folder *stream*."""
    source, layout = task.source, task.layout
    notes = [*layout.notes, *typed.notes, *_code_notes(source.name, coded)]
    notes += [*numbered.notes, *counts.lost]
    if numbered.rows < counts.valid:
        notes.append(f"the first {numbered.rows:,} of {counts.valid:,} valid rows, by event time")
    prepared = PreparedStream(
        name=source.name,
        path=stream / SEGMENTS,
        rows=numbered.rows,
        rejected=counts.rejected,
        rejected_reasons=dict(counts.reasons.most_common()),
        schema=Schema(stream=source.name, fields=typed.dtypes),
        first_ts=numbered.first_ts,
        last_ts=numbered.last_ts,
        notes=tuple(notes),
        fingerprint=task.fingerprint,
        time=typed.time if source.time is None else source.time,
        delays=numbered.delays,
        codes={name: dictionary.digest for name, dictionary in coded.items()},
        own_names=layout.own_names,
    )
    sources = [
        {"path": str(file.path), "size_bytes": file.size_bytes, "sha256": file.sha256}
        for file in task.files
    ]
    options = source.options() | {"segment_rows": task.segment_rows}
    save_summary(prepared, stream, sources=sources, options=options)


def _require_some(
    counts: RowCounts, frame: DataFrame, task: Task, folder: Path, only_rejected: Path
) -> None:
    """Write down the rejected rows; raise :exc:`DataError` where there is no valid one."""
    source, rejected = task.source, folder / "stream" / REJECTED
    if not counts.valid + counts.rejected:
        require_unchanged(task.files)
        raise DataError(
            f"stream {source.name!r}: no row of {source.files} satisfies {source.where!r}"
        )
    if counts.rejected:
        _write_rejected(frame, task, folder / "rejected", rejected)
    if counts.valid == 0:
        publish(rejected, only_rejected)
        raise _all_rejected(source, counts, only_rejected)


def _watched(typed: Typed, layout: ColumnLayout) -> dict[str, str]:
    """Return for each note on values lost without rejecting a row the SQL condition for it."""
    watched = {}
    exact = set(layout.fields.values())  # to the nanosecond, or the row is rejected
    for column, kind in typed.types.items():
        if column not in layout.names or column in exact:
            continue
        value, shown = sql_name(column), column.replace("{", "{{").replace("}", "}}")
        cut = f"column {shown}: {{:,}} timestamps cut to the microsecond"
        if NANOS + column in typed.frame.columns:
            watched[cut] = f"{sql_name(NANOS + column)} % 1000 <> 0"
        if column not in typed.texts:
            continue
        text = typed.texts[column]
        if kind == "timestamp":
            watched[cut] = f"{text_nanos(text)} <> 0"
        if column != typed.time:
            note = f"column {shown}: {{:,}} values are not {kind}: null in the stream"
            watched[note] = f"{filled(text)} is not null and {value} is null"
    return watched


def _counted(frame: DataFrame, seen: Observation, watched: dict[str, str]) -> DataFrame:
    """Return *frame*, of which *seen* has what passes through it (see `_count`)."""
    lost = [
        sf.expr(f"count_if({KINDS} = '' and {condition})").alias(f"lost_{place}")
        for place, condition in enumerate(watched.values())
    ]
    valid = sf.expr(f"count_if({KINDS} = '')").alias("valid")
    return frame.observe(seen, sf.count(sf.lit(1)).alias("rows"), valid, *lost)


def _count(frame: DataFrame, seen: Mapping[str, int], watched: dict[str, str]) -> RowCounts:
    """Return what was *seen* of the rows of *frame*, with what is wrong with the rejected ones."""
    reasons: Counter[str] = Counter()
    rejected = seen["rows"] - seen["valid"]
    if rejected:
        kinds = frame.filter(f"{KINDS} <> ''").groupBy(KINDS).count()
        for kind, rows in sorted(tuple(row) for row in kinds.collect()):
            reasons.update(dict.fromkeys(kind.split("\n"), rows))
    lost = {note: seen[f"lost_{place}"] for place, note in enumerate(watched)}
    return RowCounts(
        valid=seen["valid"],
        rejected=rejected,
        reasons=reasons,
        lost=[note.format(rows) for note, rows in lost.items() if rows],
    )


def _columns(source: RawSource, layout: ColumnLayout) -> list[Column]:
    """Return the columns of what is written sorted, in order (see `number_rows`)."""
    by_source = {column: name for name, column in layout.fields.items()}
    columns = [sf.col(TS).alias("ts")]
    if source.arrival is not None:
        columns.append(sf.col(ARRIVES).alias(ARRIVAL))
    columns.append(sf.col(PLACE))
    for column, name in layout.names.items():
        is_field = column in by_source
        value = quoted(FIELD + by_source[column]) if is_field else quoted(column)
        columns.append(value.alias(name))
    return columns


def _write_rejected(frame: DataFrame, task: Task, scratch: Path, to: Path) -> None:
    """Write the rejected rows of *frame* in source order, as Parquet in the folder *to*."""
    names = list(task.files[0].columns)
    ours = {"source_file", "source_row", "source_text", "reason"}
    values = [
        sf.col(f"{RAW}.{sql_name(name)}").alias(
            free_name(f"raw_{name}", names) if name.lower() in ours else name
        )
        for name in names
    ]
    paths = sf.array(*(sf.lit(str(file.path)) for file in task.files))
    rejected = (
        frame.filter(f"{KINDS} <> ''")
        .orderBy(FILE, ROW)
        .select(
            sf.get(paths, sf.col(FILE)).alias("source_file"),
            sf.col(ROW).alias("source_row"),
            sf.col(REASON).alias("reason"),
            sf.col(TEXT).alias("source_text"),
            *values,
        )
    )
    rejected.write.option("compression", "zstd").parquet(str(scratch))
    to.mkdir()
    for number, file in enumerate(sorted(scratch.glob("*.parquet"))):
        file.rename(to / f"part-{number:05d}.parquet")


def _all_rejected(source: RawSource, counts: RowCounts, kept: Path) -> DataError:
    common = counts.reasons.most_common(REASONS_LISTED)
    listed = [f"{why} ({'once' if n == 1 else f'{n:,} times'})" for why, n in common]
    more = len(counts.reasons) - len(listed)
    text = any(why.endswith(": not a number") for why in counts.reasons)
    hint = " Text can be compared with = and != alone." if text else ""
    return DataError(
        f"stream {source.name!r}: all {counts.rejected:,} rows of {source.files} were rejected: "
        f"{'; '.join(listed)}{f'; and {more} more' if more > 0 else ''}. "
        f"They are kept in {kept}.{hint}"
    )


def _code_notes(stream: str, coded: Mapping[str, Dictionary]) -> list[str]:
    notes = []
    for name, dictionary in coded.items():
        others = [other for other in dictionary.streams if other != stream]
        shared = f"shared with {', '.join(others)}" if others else "of this stream alone"
        notes.append(
            f"join field {name}: {dictionary.size:,} texts as their codes in {codes_file(name)}, "
            f"{shared}"
        )
    return notes


def sample_bounds(frame: DataFrame, rows_at_most: int, segment_rows: int) -> list[int]:
    """Return times (ns), increasing, that cut the rows into buckets of about a segment each.

    They are quantiles of a sample, which is the same every time. Rows that will be rejected may
    move them a little, which matters to no result.
    """
    if rows_at_most <= segment_rows:
        return []
    buckets = min(BUCKETS_MAX, 1 + rows_at_most // segment_rows)
    buckets += buckets % 2  # two threads finish together
    one_in = max(1, rows_at_most // (buckets * _SAMPLED_PER_BUCKET))
    sample = frame.filter(sf.pmod(sf.xxhash64(source_place()), sf.lit(one_in)) == 0)
    shares = [sf.lit(part / buckets) for part in range(1, buckets)]
    quantiles = sample.agg(sf.percentile_approx(TS, sf.array(*shares)).alias("bounds")).first()
    assert quantiles is not None
    return sorted(set(quantiles["bounds"] or []))


def write_sorted(
    valid: DataFrame, columns: list[Column], bounds: list[int], *, rows: int, few: bool, to: Path
) -> None:
    """Write the rows of *valid* in order into the folder *to*, a file for each of the buckets.

    Of a bucket, its first *rows* rows are written. Where rows are *few*, and in one bucket, one
    task does it all, without a shuffle.
    """
    placed = valid.withColumn(PLACE, source_place())
    if few and not bounds:
        placed = placed.coalesce(1)
    else:
        placed = placed.repartitionById(len(bounds) + 1, _bucket_of(bounds))
    ordered = placed.sortWithinPartitions(TS, PLACE).filter(place_in_partition() < rows)
    ordered.select(*columns).write.parquet(str(to))


def source_place() -> Column:
    """Return a row's place in the source as one integer: file number, then row."""
    return sf.shiftleft(sf.col(FILE).cast("bigint"), 40).bitwiseOR(sf.col(ROW))


def _bucket_of(bounds: list[int]) -> Column:
    """Return the number of *bounds* that are not above a row's time, by bisection."""

    def within(low: int, high: int) -> Column:
        if low == high:
            return sf.lit(low)
        middle = (low + high) // 2
        after = sf.col(TS) >= sf.lit(bounds[middle])
        return sf.when(after, within(middle + 1, high)).otherwise(within(low, middle))

    return within(0, len(bounds))


def number_rows(ordered: Path, to: Path, *, rows: int, segment_rows: int) -> TimeOrder:
    """Copy the first *rows* rows that `write_sorted` wrote into numbered segments in *to*.

    No segment has more than *segment_rows* rows. `PLACE` is copied where `ARRIVAL` is recorded.
    """
    to.mkdir()
    done, parts, in_segment = TimeOrder(), 0, segment_rows
    with ExitStack() as segment:
        for batch in _batches(ordered, min(ROW_GROUP_ROWS, segment_rows)):
            batch = batch.slice(0, rows - done.rows)
            if not len(batch):
                break
            is_recorded = ARRIVAL in batch.schema.names
            ids = pa.array(np.arange(done.rows, done.rows + len(batch)))
            done.add(
                batch["ts"].to_numpy(),
                batch[PLACE].to_numpy(),
                batch[ARRIVAL].to_numpy() if is_recorded else None,
            )
            batch = batch.add_column(0, "id", ids)
            if not is_recorded:
                batch = batch.drop_columns([PLACE])
            if in_segment + len(batch) > segment_rows:
                segment.close()
                path = to / f"part-{parts:05d}.parquet"
                # What Spark noted of the columns would hide the id from it.
                writer = segment.enter_context(segment_writer(path, batch.schema.remove_metadata()))
                parts, in_segment = parts + 1, 0
            writer.write_batch(batch)
            in_segment += len(batch)
    return done


def _batches(ordered: Path, rows: int) -> Iterator[pa.RecordBatch]:
    for path in sorted(ordered.glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            yield from filter(len, file.iter_batches(rows))
        path.unlink()  # or all rows would be on the disk twice
