"""Raw rows with typed columns, and what each column turned out to be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from spark_bridge.errors import DataError
from spark_bridge.pipeline import raw_frame, text_types
from spark_bridge.pipeline.columns import Layout
from spark_bridge.pipeline.raw_files import RawFile
from spark_bridge.pipeline.raw_frame import sql_name
from spark_bridge.pipeline.source import StreamSource

RAW = "__joinsim_raw"
"""Hidden column: the row's values as the file has them, a struct."""


@dataclass(frozen=True, kw_only=True)
class Typed:
    """Typed rows of one source.

    Attributes
    ----------
    frame
        The source's columns, typed, under their own names, and the hidden columns.
    types
        Source column to Spark type, in order.
    texts
        Columns that were converted: to the SQL of the text they were read from.
    rows
        Number of rows in all files, malformed ones included.
    time
        The column that gives event time, None when it is an expression.
    notes
        Decisions that a person should know of.
    """

    frame: DataFrame
    rows: int
    types: dict[str, str]
    texts: dict[str, str]
    time: str | None
    notes: list[str]


def typed_rows(
    spark: SparkSession,
    source: StreamSource,
    files: list[RawFile],
    layout: Layout,
    folder: Path,
) -> Typed:
    """Read *files* and give every column its type: declared, or the file's own, or inferred.

    A join field is text only where the source allows it codes; *folder* (existing, empty) takes
    links to the files.

    Raises
    ------
    DataError
        No column can serve as event time.
    """
    raw = raw_frame.read(spark, files, source.separator, folder)
    names = list(files[0].columns)
    joined = {column: field in source.codes for field, column in layout.fields.items()}
    if files[0].format == "csv":
        blocks = raw_frame.block_counts(raw, _measures(source, names))
        rows = sum(block["rows"] for block in blocks)
        wanted, time, notes = _csv_types(source, names, joined, blocks)
        raw = raw_frame.number_rows(raw, blocks)
    else:
        rows = sum(file.rows or 0 for file in files)
        wanted, time, notes = _parquet_types(raw, source, names, joined)
    frame, texts = _convert(raw, names, wanted)
    kinds = dict(frame.dtypes)
    types = {name: kinds[name] for name in names}
    return Typed(frame=frame, rows=rows, types=types, texts=texts, time=time, notes=notes)


def _measures(source: StreamSource, names: list[str]) -> list[Column]:
    return [
        sf.expr(sql).alias(f"{counter}:{name}")
        for name in names
        if name not in source.schema
        for counter, sql in text_types.type_counters(sql_name(name)).items()
    ]


def _csv_types(
    source: StreamSource, names: list[str], joined: Mapping[str, bool], blocks: list[dict[str, Any]]
) -> tuple[dict[str, str], str | None, list[str]]:
    """Return each column's type, the time column and notes, from what was counted in *blocks*.

    *joined* are the columns behind the join fields, and whether they may be text.
    """
    counts = {
        name: {
            counter: sum(block[f"{counter}:{name}"] for block in blocks)
            for counter in text_types.TYPE_COUNTERS
        }
        for name in names
        if name not in source.schema
    }
    mostly = {name: text_types.infer(count, strict=False) for name, count in counts.items()}
    mostly |= source.schema
    moments = [name for name in names if mostly[name] in text_types.MOMENTS]
    time, notes = _time_column(source, names, moments)
    wanted = dict(source.schema) | {
        # What the request speaks of keeps its type when a few values are odd: they are rejected.
        name: mostly[name]
        if name in joined or _is_said(name, source, time)
        else text_types.infer(count, strict=True)
        for name, count in counts.items()
    }
    for name, codable in joined.items():
        filled = name in source.schema or counts[name]["filled"] > 0
        if wanted[name] == "string" and not (codable and filled):
            # Mostly no number, and nothing else will do: refused value by value, for what each is.
            wanted[name] = "double"
    return wanted, time, notes


def _parquet_types(
    raw: DataFrame, source: StreamSource, names: list[str], joined: Mapping[str, bool]
) -> tuple[dict[str, str], str | None, list[str]]:
    own = dict(raw.dtypes) | dict(source.schema)
    moments = [name for name in names if own[name] in text_types.MOMENTS]
    time, notes = _time_column(source, names, moments)
    wanted = dict(source.schema)
    texts = [name for name in joined if own[name] == "string"]
    undeclared = [name for name in texts if joined[name] and name not in source.schema]
    numbers = _mostly_numbers(raw, undeclared)
    for name in texts:
        if name in numbers or not joined[name]:
            wanted[name] = "double"
    if time is not None and own[time] == "string":
        wanted[time] = "timestamp"
    return wanted, time, notes


def _mostly_numbers(raw: DataFrame, names: list[str]) -> list[str]:
    """Return those of the text columns *names* in which most values are numbers, or none is."""
    if not names:
        return []
    counted = [
        sf.expr(sql).alias(f"{counter}:{name}")
        for name in names
        for counter, sql in text_types.type_counters(sql_name(name)).items()
    ]
    row = raw.agg(*counted).first()
    assert row is not None
    counts = {
        name: {counter: row[f"{counter}:{name}"] for counter in text_types.TYPE_COUNTERS}
        for name in names
    }
    return [
        name
        for name, count in counts.items()
        if not count["filled"] or text_types.infer(count, strict=False) in ("bigint", "double")
    ]


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
    values = [
        sf.expr(text_types.as_type(texts[name], wanted[name])).alias(name)
        if name in texts
        else raw_frame.quoted(name)
        for name in names
    ]
    hidden = [name for name in raw.columns if name.startswith("__joinsim_")]
    frame = raw.withColumn(RAW, sf.struct(*(raw_frame.quoted(name) for name in names)))
    frame = frame.select(*values, *(raw_frame.quoted(name) for name in hidden), RAW)
    return frame, texts


def _is_said(name: str, source: StreamSource, time: str | None) -> bool:
    """Tell whether event time is made of the column: a row where it is odd is then rejected."""
    if name == time:
        return True
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", source.time or "") is not None


def _time_column(
    source: StreamSource, names: list[str], moments: list[str]
) -> tuple[str | None, list[str]]:
    if source.time is not None:
        return (source.time if source.time in names else None), []
    if "ts" in names:
        return "ts", []
    if not moments:
        raise DataError(
            f"stream {source.name!r}: no column of {source.files} holds timestamps; name the "
            f"event time: a column or an expression such as to_timestamp(a_column, 'd/M/yyyy H:m') "
            f"(its columns: {', '.join(names)})"
        )
    others = f" (others: {', '.join(moments[1:])})" if moments[1:] else ""
    return moments[0], [f"event time is the column {moments[0]}{others}"]
