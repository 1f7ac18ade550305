"""The stages that turn one source into one stream, in Spark.

Valid rows become numbered segments in event-time order. They are distributed to buckets by time
range, a partition each. A bucket is sorted on its own, and a row's id is its place in the bucket
plus the sizes of the buckets before it. No step sees more than one bucket, and Spark sorts a bucket
that outgrows memory on disk. A single timestamp is never split between buckets, so a source in
which most rows share one timestamp has one large bucket.

A source of more than one bucket is read three times: a sample of its times says where to cut, one
pass counts the rows of each bucket and what is wrong with the others, and one writes.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from pyspark.sql import Column, DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as sf

from actors.feed import ARRIVAL, PLACE
from joins.batch import Schema
from joins.errors import DataError
from spark_bridge.engines import plain_name
from spark_bridge.pipeline.dictionaries import CODED, Dictionary, with_codes
from spark_bridge.pipeline.raw_files import require_unchanged
from spark_bridge.pipeline.source import ROWS, ColumnLayout, RawSource, Task, free_name
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
    ValidatedRows,
    validate,
)
from spark_bridge.pipeline.values import filled, text_nanos
from spark_bridge.prepared import (
    REJECTED,
    ROW_GROUP_ROWS,
    SEGMENTS,
    PreparedStream,
    arrival_delays,
    check_segments,
    codes_file,
    order_notes,
    publish,
    save_summary,
)
from spark_bridge.sql.statement import sql_name

REASONS_LISTED = 5  # in an error message
_ONE_TASK_BYTES = 8 << 20  # below this a shuffle costs more than a second task saves


@dataclass(frozen=True, kw_only=True)
class RowCounts:
    """The result of one pass over the validated rows: how many, what is wrong, and when."""

    valid: int
    reasons: Counter[str]
    rejected: int
    lost: dict[str, int]
    buckets: Buckets


def build(
    spark: SparkSession,
    task: Task,
    folder: Path,
    dictionaries: Mapping[str, Dictionary],
    typed: Typed | None,
    *,
    only_rejected: Path,
) -> None:
    """Build the stream of *task* in ``folder/stream``.

    Parameters
    ----------
    spark
        Any session; a sibling of it is used, with settings of its own.
    task
        What to build from what.
    folder
        Existing, empty folder for the stream and for temporary files.
    dictionaries
        Of the source's text fields, by the names that it has for them.
    typed
        The source's rows, where its dictionaries were made of them; None reads the files.
    only_rejected
        Folder for the rejected rows when all are.

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
    source, files, layout, stream = task.source, task.files, task.layout, folder / "stream"
    stream.mkdir()
    task.report("judge")
    rows = validate(task, typed)
    watched = _watched(typed, layout)
    # What fits into one segment is written in one pass, which counts it too.
    at_once = _buckets_needed(typed.rows, task.segment_rows) == 1
    passing, seen = rows.frame, Observation()
    counts, buckets = None, _ONE_BUCKET
    if at_once:
        passing = _count_passing(rows.frame, seen, watched)
    else:
        bounds = _sample_bounds(rows.frame, typed.rows, task.segment_rows)
        counts = _count(rows.frame, bounds, watched)
        _require_some(counts, rows.frame, task, folder, only_rejected)
        buckets = counts.buckets
    valid = passing.filter(f"{KINDS} = ''")
    settings = typed.frame.sparkSession.conf
    settings.set("spark.sql.shuffle.partitions", str(len(buckets.counts)))
    task.report("write")
    coded = {
        name: dictionaries[source.codes[name]]
        for name, column in layout.fields.items()
        if typed.types[column] == CODED
    }
    if source.arrival == ROWS:
        before = Window.orderBy(FILE, ROW).rowsBetween(Window.unboundedPreceding, 0)
        valid = valid.withColumn(ARRIVES, sf.max(TS).over(before))
    code_files = {name: folder / f"codes-{place}.parquet" for place, name in enumerate(coded)}
    for name, file in code_files.items():
        shutil.copyfile(coded[name].file, file)
    valid = with_codes(valid, {FIELD + name: file for name, file in code_files.items()})
    in_order = _write_segments(
        valid,
        _columns(source, layout),
        buckets,
        rows=source.rows or typed.rows,
        segment_rows=task.segment_rows,
        few=sum(file.size_bytes for file in files) < _ONE_TASK_BYTES,
        scratch=folder / "segments",
        to=stream / SEGMENTS,
    )
    if counts is None:
        counts = _passed(seen, watched)
        if counts.rejected or not counts.valid:
            counts = _count(rows.frame, [], watched)
        _require_some(counts, rows.frame, task, folder, only_rejected)
    task.report("check")
    require_unchanged(files)
    for name, file in code_files.items():
        file.rename(stream / codes_file(name))
    _summarise(task, typed, rows, counts, coded, stream, in_order=in_order)
    shutil.rmtree(only_rejected, ignore_errors=True)  # of an earlier run


def _summarise(
    task: Task,
    typed: Typed,
    rows: ValidatedRows,
    counts: RowCounts,
    coded: Mapping[str, Dictionary],
    stream: Path,
    *,
    in_order: bool,
) -> None:
    """Check what was written in the folder *stream*, and write its summary."""
    source, layout = task.source, task.layout
    length = min(counts.valid, source.rows or counts.valid)
    span = check_segments(stream / SEGMENTS)
    assert span.rows == length, f"{span.rows} rows in the segments, {length} counted"
    notes = [*layout.notes, *rows.notes, *_code_notes(source.name, coded)]
    notes += order_notes(span.repeated, in_order=in_order or source.arrival is not None)
    notes += [note.format(lost) for note, lost in counts.lost.items() if lost]
    if length < counts.valid:
        notes.append(f"the first {length:,} of {counts.valid:,} valid rows, by event time")
    prepared = PreparedStream(
        name=source.name,
        path=stream / SEGMENTS,
        rows=length,
        rejected=counts.rejected,
        rejected_reasons=dict(counts.reasons.most_common()),
        schema=Schema(stream=source.name, fields=rows.dtypes),
        first_ts=span.first_ts,
        last_ts=span.last_ts,
        notes=tuple(notes),
        fingerprint=task.fingerprint,
        time=typed.time if source.time is None else source.time,
        delays=None if source.arrival is None else arrival_delays(stream / SEGMENTS),
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
    source, stream = task.source, folder / "stream"
    if not counts.valid + counts.rejected:
        require_unchanged(task.files)
        raise DataError(
            f"stream {source.name!r}: no row of {source.files} satisfies {source.where!r}"
        )
    if counts.rejected:
        _write_rejected(frame, task, folder / "rejected", stream / REJECTED)
    if counts.valid == 0:
        _give_up(source, counts, stream, only_rejected)


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


def _sample_bounds(frame: DataFrame, rows_at_most: int, segment_rows: int) -> list[int]:
    """Return times (ns), increasing, that cut the rows into buckets of about equal size.

    They are quantiles of a sample, which is the same every time. Rows that will be rejected may
    move them a little, which matters to no result.
    """
    buckets = _buckets_needed(rows_at_most, segment_rows)
    one_in = max(1, rows_at_most // (buckets * _SAMPLED_PER_BUCKET))
    sample = frame.filter(sf.pmod(sf.xxhash64(_source_place()), sf.lit(one_in)) == 0)
    shares = [sf.lit(part / buckets) for part in range(1, buckets)]
    quantiles = sample.agg(sf.percentile_approx(TS, sf.array(*shares)).alias("bounds")).first()
    assert quantiles is not None
    return sorted(set(quantiles["bounds"] or []))


def _count(frame: DataFrame, bounds: list[int], watched: dict[str, str]) -> RowCounts:
    """Count the rows by what is wrong, and the valid ones by bucket: one pass over the source."""
    lost = [sf.expr(f"count_if({condition})") for condition in watched.values()]
    place = _source_place()
    counted = (
        frame.groupBy(KINDS, _bucket(bounds).alias(_BUCKET))
        .agg(sf.count(sf.lit(1)), sf.min(place), sf.max(place), sf.array(*lost))
        .collect()
    )
    spans: dict[int, Span] = {}
    reasons: Counter[str] = Counter()
    gone = [0] * len(watched)
    rejected = 0
    for kinds, bucket, rows, first, last, lost_here in sorted(tuple(row) for row in counted):
        if kinds:
            rejected += rows
            reasons.update(dict.fromkeys(kinds.split("\n"), rows))
        else:
            spans[bucket] = Span(rows=rows, first=first, last=last)
            gone = [a + b for a, b in zip(gone, lost_here, strict=True)]
    return RowCounts(
        valid=sum(span.rows for span in spans.values()),
        reasons=reasons,
        rejected=rejected,
        lost=dict(zip(watched, gone, strict=True)),
        buckets=_buckets_of(bounds, spans),
    )


def _count_passing(frame: DataFrame, seen: Observation, watched: dict[str, str]) -> DataFrame:
    """Return *frame*, which counts the rows that pass through it (see `_passed`)."""
    lost = [
        sf.expr(f"count_if({KINDS} = '' and {condition})").alias(f"lost_{place}")
        for place, condition in enumerate(watched.values())
    ]
    valid = sf.expr(f"count_if({KINDS} = '')").alias("valid")
    return frame.observe(seen, sf.count(sf.lit(1)).alias("rows"), valid, *lost)


def _passed(seen: Observation, watched: dict[str, str]) -> RowCounts:
    """Return what was counted of the rows that have passed; not what is wrong with the others."""
    counted = seen.get
    return RowCounts(
        valid=counted["valid"],
        reasons=Counter(),
        rejected=counted["rows"] - counted["valid"],
        lost={note: counted[f"lost_{place}"] for place, note in enumerate(watched)},
        buckets=_ONE_BUCKET,
    )


def _columns(source: RawSource, layout: ColumnLayout) -> list[Column]:
    """Return the columns of a segment after ``id``, in order."""
    by_source = {column: name for name, column in layout.fields.items()}
    columns = [sf.col(TS).alias("ts")]
    if source.arrival is not None:
        columns += [sf.col(ARRIVES).alias(ARRIVAL), sf.col(_SOURCE).alias(PLACE)]
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
    _move_parts(scratch, to)


def _give_up(source: RawSource, counts: RowCounts, stream: Path, only_rejected: Path) -> None:
    publish(stream / REJECTED, only_rejected)
    listed = [f"{why} ({n:,} times)" for why, n in counts.reasons.most_common(REASONS_LISTED)]
    more = len(counts.reasons) - len(listed)
    text = any(why.endswith(": not a number") for why in counts.reasons)
    hint = " Text can be compared with = and != alone." if text else ""
    raise DataError(
        f"stream {source.name!r}: all {counts.rejected:,} rows of {source.files} were rejected: "
        f"{'; '.join(listed)}{f'; and {more} more reasons' if more > 0 else ''}. "
        f"They are kept in {only_rejected}.{hint}"
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


_SAMPLED_PER_BUCKET = 10_000  # a bucket's share is then within 2 % of what it should be
BUCKETS_MAX = 128  # the tree of comparisons between buckets must fit into one JVM method
_BUCKET, _SOURCE = "__joinsim_bucket", "__joinsim_source"
_BY_SOURCE, _BY_TIME, _ID = "__joinsim_by_source", "__joinsim_by_time", "__joinsim_id"


@dataclass(frozen=True, kw_only=True)
class Span:
    """The valid rows of a bucket: how many, and the first and the last place in the source."""

    rows: int
    first: int
    last: int


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """Time ranges and how many rows are in each.

    Attributes
    ----------
    bounds
        First timestamp (ns) of every bucket but the first, increasing.
    counts
        Rows per bucket.
    in_order
        True when no bucket starts, in source order, before the one before it ends.
    firsts
        Place in the source of each bucket's first row, where no other row is between a bucket's
        rows; else None.
    """

    bounds: list[int]
    counts: list[int]
    in_order: bool
    firsts: list[int] | None


_ONE_BUCKET = Buckets(bounds=[], counts=[0], in_order=True, firsts=None)
"""Of a source that needs no more; how many rows it has is not known yet, nor of importance."""


def _buckets_needed(rows: int, segment_rows: int) -> int:
    """Return how many buckets *rows* rows need for each to be about one segment."""
    if rows <= segment_rows:
        return 1
    # The quantiles are approximate: a tenth to spare, or a bucket may have a tiny second segment.
    needed = 1 + rows * 11 // (segment_rows * 10)
    return min(BUCKETS_MAX, needed + needed % 2)  # even: two threads finish together


def _buckets_of(bounds: list[int], spans: Mapping[int, Span]) -> Buckets:
    """Return the buckets between *bounds* from the spans of those that have rows."""
    if not bounds or not spans:
        return _ONE_BUCKET
    start = min(spans)  # Spark writes a file for an empty bucket if it is the first
    rows = {place: spans[place].rows if place in spans else 0 for place in range(len(bounds) + 1)}
    by_time = [spans[place] for place in sorted(spans)]
    gapless = all(span.last - span.first + 1 == span.rows for span in by_time)
    firsts = [spans[place].first if place in spans else 0 for place in rows]
    return Buckets(
        bounds=bounds[start:],
        counts=list(rows.values())[start:],
        in_order=all(a.last < b.first for a, b in pairwise(by_time)),
        firsts=firsts[start:] if gapless else None,
    )


def _write_segments(
    valid: DataFrame,
    columns: list[Column],
    buckets: Buckets,
    *,
    rows: int,
    segment_rows: int,
    few: bool,
    scratch: Path,
    to: Path,
) -> bool:
    """Write the first *rows* rows of *valid* in order, numbered, as segments in the folder *to*.

    Where they are *few*, and in one bucket, one task does it all, without a shuffle.

    Returns
    -------
    bool
        Whether they were in order in the source.
    """
    bucket = sf.spark_partition_id()  # which partition a row goes to is its bucket's number
    before = np.cumsum([0, *buckets.counts[:-1]]).tolist()
    placed = valid.withColumn(_SOURCE, _source_place())
    if few and not buckets.bounds:
        placed = placed.coalesce(1)
    else:
        placed = placed.repartitionById(len(buckets.counts), _bucket(buckets.bounds))
    if not buckets.in_order:
        by_source = sf.lit(-1)  # no row is where it was
    elif buckets.firsts is not None:
        by_source = sf.col(_SOURCE) - sf.get(_array(buckets.firsts), bucket)
    else:
        by_source = place_in_partition()
        placed = placed.sortWithinPartitions(_SOURCE)
    disorder = Observation()
    numbered = (
        placed.withColumn(_BY_SOURCE, by_source)
        .sortWithinPartitions(TS, _SOURCE)
        .withColumn(_BY_TIME, place_in_partition())
        .withColumn(_ID, sf.get(_array(before), bucket) + sf.col(_BY_TIME))
        .filter(sf.col(_ID) < rows)
        .observe(disorder, sf.count_if(sf.col(_BY_TIME) != sf.col(_BY_SOURCE)).alias("moved"))
        .select(sf.col(_ID).alias("id"), *columns)
    )
    (
        numbered.write.option("compression", "zstd")
        .option("maxRecordsPerFile", segment_rows)
        .option("parquet.block.row.count.limit", ROW_GROUP_ROWS)
        .option("parquet.writer.version", "v2")  # times as differences: a fourth of the decoding
        .option("parquet.enable.dictionary#id", "false")  # all differ: it would be tried in vain
        .option("parquet.enable.dictionary#ts", "false")
        .parquet(str(scratch))
    )
    _move_parts(scratch, to)
    return not disorder.get["moved"]


def _array(numbers: list[int]) -> Column:
    return sf.array(*(sf.lit(number).cast("bigint") for number in numbers))


def _source_place() -> Column:
    """Return a row's place in the source as one integer: file number, then row."""
    return sf.shiftleft(sf.col(FILE).cast("bigint"), 40).bitwiseOR(sf.col(ROW))


def _bucket(bounds: list[int]) -> Column:
    """Return the number of *bounds* that are not above a row's time, by bisection."""

    def within(low: int, high: int) -> Column:
        if low == high:
            return sf.lit(low)
        middle = (low + high) // 2
        after = sf.col(TS) >= sf.lit(bounds[middle])
        return sf.when(after, within(middle + 1, high)).otherwise(within(low, middle))

    return within(0, len(bounds))


def _move_parts(scratch: Path, to: Path) -> None:
    """Move what Spark wrote in the folder *scratch* to the folder *to*, which is created."""
    to.mkdir()
    # Named part-00000-<run>-c000, by partition and file, of which there may be more than 1000.
    parts = scratch.glob("*.parquet")
    files = sorted(parts, key=lambda part: (part.name[:10], len(part.name), part.name))
    for number, file in enumerate(files):
        file.rename(to / f"part-{number:05d}.parquet")
