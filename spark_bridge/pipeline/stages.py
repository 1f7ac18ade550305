"""The stages that turn one source into one stream, in Spark."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_bridge.errors import DataError
from spark_bridge.pipeline import numbering
from spark_bridge.pipeline.columns import Layout, lay_out
from spark_bridge.pipeline.dictionaries import CODED, Dictionary, with_codes
from spark_bridge.pipeline.pipeline_session import pipeline_session, plain_name, told
from spark_bridge.pipeline.raw_files import require_unchanged
from spark_bridge.pipeline.raw_frame import FILE, NANOS, ROW, TEXT, quoted, sql_name
from spark_bridge.pipeline.source import StreamSource
from spark_bridge.pipeline.stream_store import publish
from spark_bridge.pipeline.text_types import filled, text_nanos
from spark_bridge.pipeline.typed_frame import RAW, Typed, typed_rows
from spark_bridge.pipeline.validation import FIELD, KEY, KINDS, REASON, TS, judge
from spark_bridge.prepared import FORMAT, REJECTED, SEGMENTS, SUMMARY, codes_file

if TYPE_CHECKING:
    from spark_bridge.pipeline.task import Task

REASONS_TOLD = 5  # how many reasons an error message lists
TASKS_MAX = 32  # sorting tasks; beyond that each takes several buckets, one after the other


@dataclass(frozen=True, kw_only=True)
class Counts:
    """What one pass over the judged rows says: how many, how wrong, and when."""

    valid: int
    reasons: Counter[str]
    rejected: int
    lost: dict[str, int]
    quantiles: list[int]


def build(
    spark: SparkSession,
    task: Task,
    folder: Path,
    *,
    dictionaries: Mapping[str, Dictionary],
    kept_at: Path,
) -> None:
    """Build the stream of *task* in ``folder/stream``.

    Parameters
    ----------
    spark
        Any session; a sibling of it is used, with settings of its own.
    task
        What to build from what.
    folder
        Existing, empty folder for everything that is made on the way.
    dictionaries
        Of the source's text fields, by the names it gives them.
    kept_at
        Where the rejected rows go when there are no others.

    Raises
    ------
    DataError
        The source cannot become a stream; the message says why.
    """
    layout = lay_out(task.source, list(task.files[0].columns))
    session, what = pipeline_session(spark), f"stream {task.source.name!r} ({task.source.files})"
    with told(what), plain_name(folder) as plain:
        _build(session, task, layout, dictionaries, plain, kept_at)


def _build(
    session: SparkSession,
    task: Task,
    layout: Layout,
    dictionaries: Mapping[str, Dictionary],
    folder: Path,
    kept_at: Path,
) -> None:
    source, files, stream = task.source, task.files, folder / "stream"
    stream.mkdir()
    task.report("read")
    (folder / "links").mkdir()
    typed = typed_rows(session, source, files, layout, folder / "links")
    task.report("judge")
    rows = judge(source, typed, layout)
    watched = _watched(typed, {*layout.fields.values(), typed.time})
    counts = _count(rows.frame, typed.rows, watched, task.segment_rows)
    if not counts.valid + counts.rejected:
        require_unchanged(files)
        raise DataError(
            f"stream {source.name!r}: no row of {source.files} satisfies {source.where!r}"
        )
    if counts.rejected:
        _write_rejected(rows.frame, task, folder / "rejected", stream / REJECTED)
    if counts.valid == 0:
        _give_up(source, counts, stream, kept_at)
    task.report("order")
    valid = rows.frame.filter(f"{KINDS} = ''")
    buckets = numbering.deal(valid, counts.valid, counts.quantiles)
    tasks = min(len(buckets.counts), TASKS_MAX)
    session.conf.set("spark.sql.shuffle.partitions", str(tasks))
    task.report("write")
    coded = {
        name: dictionaries[source.codes[name]]
        for name, column in layout.fields.items()
        if typed.types[column] == CODED
    }
    code_files = {name: folder / f"codes-{place}.parquet" for place, name in enumerate(coded)}
    for name, file in code_files.items():
        shutil.copyfile(coded[name].file, file)
    valid = with_codes(valid, {FIELD + name: file for name, file in code_files.items()})
    kept = min(counts.valid, source.rows or counts.valid)
    back = numbering.write_segments(
        valid,
        _columns(source, layout),
        buckets,
        rows=kept,
        segment_rows=task.segment_rows,
        scratch=folder / "segments",
        to=stream / SEGMENTS,
    )
    task.report("check")
    require_unchanged(files)
    first_ts, last_ts, repeated = numbering.check(stream / SEGMENTS, kept)
    for name, file in code_files.items():
        file.rename(stream / codes_file(name))
    notes = [*layout.notes, *rows.notes, *_code_notes(source.name, coded)]
    notes += _order_notes(buckets.in_order and back == 0, repeated)
    notes += [note.format(lost) for note, lost in counts.lost.items() if lost]
    if kept < counts.valid:
        notes.append(f"the first {kept:,} of {counts.valid:,} valid rows, by event time")
    summary = {
        "format": FORMAT,
        "name": source.name,
        "rows": kept,
        "rejected": counts.rejected,
        "rejected_reasons": dict(counts.reasons.most_common()),
        "notes": notes,
        "join_fields": list(rows.dtypes),
        "codes": {name: dictionary.digest for name, dictionary in coded.items()},
        "schema": _schema(stream / SEGMENTS, rows.dtypes),
        "first_ts": first_ts,
        "last_ts": last_ts,
        "sources": [
            {"path": str(file.path), "size_bytes": file.size_bytes, "sha256": file.sha256}
            for file in files
        ],
        "options": source.options() | {"segment_rows": task.segment_rows},
        "fingerprint": task.fingerprint,
    }
    (stream / SUMMARY).write_text(json.dumps(summary, indent=2) + "\n")
    shutil.rmtree(kept_at, ignore_errors=True)  # of an earlier run that had nothing but these


def _watched(typed: Typed, judged: set[str | None]) -> dict[str, str]:
    """Return what is lost without a row being rejected: a note, and the SQL condition for it."""
    watched = {}
    for column, kind in typed.types.items():
        value, said = sql_name(column), column.replace("{", "{{").replace("}", "}}")
        cut = f"column {said}: {{:,}} timestamps cut to the microsecond"
        if NANOS + column in typed.frame.columns:
            watched[cut] = f"{sql_name(NANOS + column)} % 1000 <> 0"
        if column not in typed.texts:
            continue
        text = typed.texts[column]
        if kind == "timestamp":
            watched[cut] = f"{text_nanos(text)} <> 0"
        if column not in judged:
            note = f"column {said}: {{:,}} values are not {kind}: null in the stream"
            watched[note] = f"{filled(text)} is not null and {value} is null"
    return watched


def _count(
    frame: DataFrame, rows_at_most: int, watched: dict[str, str], segment_rows: int
) -> Counts:
    """Count the rows by verdict, and cut their time into ranges: one pass over the source."""
    buckets = numbering.buckets_needed(rows_at_most, segment_rows)
    shares = [sf.lit(part / buckets) for part in range(1, buckets)]
    quantiles = sf.percentile_approx(TS, sf.array(*shares)) if shares else sf.array()
    lost = [sf.expr(f"count_if({condition})") for condition in watched.values()]
    counted = frame.groupBy(KINDS).agg(
        sf.count(sf.lit(1)), quantiles.alias("quantiles"), sf.array(*lost)
    )
    by_kinds = {kinds: (rows, cuts, gone) for kinds, rows, cuts, gone in counted.collect()}
    valid, cuts, gone = by_kinds.pop("", (0, [], [0] * len(watched)))
    reasons: Counter[str] = Counter()
    for kinds, (rows, _, _) in by_kinds.items():
        reasons.update(dict.fromkeys(kinds.split("\n"), rows))
    return Counts(
        valid=valid,
        reasons=reasons,
        rejected=sum(rows for rows, _, _ in by_kinds.values()),
        lost=dict(zip(watched, gone, strict=True)),
        quantiles=cuts,
    )


def _columns(source: StreamSource, layout: Layout) -> list[Column]:
    """Return the columns of a segment after ``id``, in order."""
    by_source = {column: name for name, column in layout.fields.items()}
    columns = [sf.col(TS).alias("ts")]
    if source.key is not None:
        columns.append(sf.col(KEY).alias("key"))
    for column, name in layout.kept.items():
        is_field = column in by_source
        value = quoted(FIELD + by_source[column]) if is_field else quoted(column)
        columns.append(value.alias(name))
    return columns


def _write_rejected(frame: DataFrame, task: Task, scratch: Path, to: Path) -> None:
    names = list(task.files[0].columns)
    ours = {"source_file", "source_row", "source_text", "reason"}
    values = [
        sf.col(f"{RAW}.{sql_name(name)}").alias(f"raw_{name}" if name.lower() in ours else name)
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
    numbering.write_rejected(rejected, scratch=scratch, to=to)


def _give_up(source: StreamSource, counts: Counts, stream: Path, kept_at: Path) -> None:
    publish(stream / REJECTED, kept_at)
    listed = [f"{why} ({n:,} times)" for why, n in counts.reasons.most_common(REASONS_TOLD)]
    more = len(counts.reasons) - len(listed)
    text = any(why.endswith(": not a number") for why in counts.reasons)
    hint = " Text can be compared with = and != alone." if text else ""
    raise DataError(
        f"stream {source.name!r}: all {counts.rejected:,} rows of {source.files} were rejected: "
        f"{'; '.join(listed)}{f'; and {more} more reasons' if more > 0 else ''}. "
        f"They are kept in {kept_at}.{hint}"
    )


def _code_notes(stream: str, coded: dict[str, Dictionary]) -> list[str]:
    notes = []
    for name, dictionary in coded.items():
        others = [other for other in dictionary.streams if other != stream]
        shared = f"shared with {', '.join(others)}" if others else "of this stream alone"
        notes.append(
            f"join field {name}: {dictionary.size:,} texts as their codes in {codes_file(name)}, "
            f"{shared}"
        )
    return notes


def _order_notes(in_order: bool, repeated: int) -> list[str]:
    notes = [] if in_order else ["input was not in time order: sorted"]
    if repeated:
        notes.append(f"{repeated:,} timestamps repeated: kept, ordered by source row")
    return notes


def _schema(segments: Path, dtypes: dict[str, str]) -> dict[str, dict[str, Any]]:
    first = min(segments.glob("*.parquet"))
    columns: dict[str, dict[str, Any]] = {}
    for column in pq.read_schema(first):
        dtype = dtypes.get(column.name)
        columns[column.name] = {"type": str(column.type), "join_field": dtype is not None}
        if dtype is not None:
            columns[column.name]["dtype"] = dtype
    return columns
