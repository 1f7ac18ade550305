"""The stages that turn one source into one stream, in Spark.

A source of more than one bucket (see `segments`) is read three times: a sample of its times says
where to cut, one pass counts the rows of each bucket and what is wrong with the others, and one
writes.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, Observation, SparkSession, Window
from pyspark.sql import functions as sf

from actors.feed import ARRIVAL, PLACE
from joins.batch import Schema
from joins.errors import DataError
from spark_bridge.engines import plain_name
from spark_bridge.pipeline.dictionaries import CODED, Dictionary, with_codes
from spark_bridge.pipeline.raw_files import require_unchanged
from spark_bridge.pipeline.raw_source import ROWS, ColumnLayout, RawSource, Task, free_name
from spark_bridge.pipeline.segments import (
    ONE_BUCKET,
    SOURCE_PLACE,
    Buckets,
    Span,
    bucket_of,
    buckets_needed,
    buckets_of,
    move_parts,
    sample_bounds,
    source_place,
    write_segments,
)
from spark_bridge.pipeline.typed_rows import (
    FILE,
    NANOS,
    RAW,
    ROW,
    TEXT,
    Typed,
    errors_about,
    pipeline_session,
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
_BUCKET = "__joinsim_bucket"


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
    at_once = buckets_needed(typed.rows, task.segment_rows) == 1
    passing, seen = rows.frame, Observation()
    counts, buckets = None, ONE_BUCKET
    if at_once:
        passing = _count_passing(rows.frame, seen, watched)
    else:
        bounds = sample_bounds(rows.frame, typed.rows, task.segment_rows)
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
    in_order = write_segments(
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


def _count(frame: DataFrame, bounds: list[int], watched: dict[str, str]) -> RowCounts:
    """Count the rows by what is wrong, and the valid ones by bucket: one pass over the source."""
    lost = [sf.expr(f"count_if({condition})") for condition in watched.values()]
    place = source_place()
    counted = (
        frame.groupBy(KINDS, bucket_of(bounds).alias(_BUCKET))
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
        buckets=buckets_of(bounds, spans),
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
        buckets=ONE_BUCKET,
    )


def _columns(source: RawSource, layout: ColumnLayout) -> list[Column]:
    """Return the columns of a segment after ``id``, in order."""
    by_source = {column: name for name, column in layout.fields.items()}
    columns = [sf.col(TS).alias("ts")]
    if source.arrival is not None:
        columns += [sf.col(ARRIVES).alias(ARRIVAL), sf.col(SOURCE_PLACE).alias(PLACE)]
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
    move_parts(scratch, to)


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
