"""The stages that turn one source into one stream, in Spark.

A source is read once: its rows are counted as they are written. One of more than one bucket (see
`segments`) is read before, for a sample of its times that says where to cut; and one with rejected
rows is read again, for what is wrong with them.
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
from spark_bridge.pipeline.segments import number_rows, sample_bounds, write_sorted
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
    validate,
)
from spark_bridge.pipeline.values import filled, text_nanos
from spark_bridge.prepared import (
    REJECTED,
    SEGMENTS,
    PreparedStream,
    TimeOrder,
    codes_file,
    publish,
    save_summary,
)
from spark_bridge.sql.statement import sql_name

REASONS_LISTED = 5  # in an error message
_ONE_TASK_BYTES = 8 << 20  # below this a shuffle costs more than a second task saves


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
    task.report("judge")
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
    listed = [f"{why} ({n:,} times)" for why, n in counts.reasons.most_common(REASONS_LISTED)]
    more = len(counts.reasons) - len(listed)
    text = any(why.endswith(": not a number") for why in counts.reasons)
    hint = " Text can be compared with = and != alone." if text else ""
    return DataError(
        f"stream {source.name!r}: all {counts.rejected:,} rows of {source.files} were rejected: "
        f"{'; '.join(listed)}{f'; and {more} more reasons' if more > 0 else ''}. "
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
