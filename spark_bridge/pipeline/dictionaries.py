"""Texts as integer codes: in one dictionary, equal exactly where the texts are equal.

A text's code is its place among the sorted distinct texts (by their UTF-8 bytes) of all the fields
that share the dictionary, so it depends on nothing but those texts. Spark collects and sorts them;
they are numbered in one pass, in bounded memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from joins.errors import DataError
from spark_bridge.pipeline.raw_files import require_unchanged
from spark_bridge.pipeline.raw_source import Task
from spark_bridge.pipeline.typed_rows import (
    Typed,
    errors_about,
    pipeline_session,
    typed_rows,
)
from spark_bridge.pipeline.values import text_value
from spark_bridge.sql.statement import sql_name

CODED = "string"
"""Spark type of a join field that is stored as codes."""

_SCHEMA = pa.schema([("code", pa.int64()), ("value", pa.string())])
_TEXT, _CODE = "__joinsim_dictionary_value", "__joinsim_dictionary_code"
_GROUP_ROWS = 65_536  # texts in memory at once


@dataclass(frozen=True, kw_only=True)
class Dictionary:
    """The texts of some fields and their codes."""

    file: Path
    """Parquet: ``code`` (int64, from 0 without gaps) and ``value`` (text), in order."""
    size: int
    """Number of texts."""
    digest: str
    """Of the texts in order: dictionaries of the same digest give the same codes."""
    streams: tuple[str, ...]
    """The streams whose texts are in it."""


def build_dictionaries(
    spark: SparkSession, tasks: Sequence[Task], folder: Path
) -> tuple[dict[str, Dictionary], dict[str, Typed]]:
    """Collect the texts of all fields of *tasks* that may have some, by the dictionary's name.

    The second result is the rows of these tasks, by stream: to find the types of CSV is a pass.
    *folder* (existing, empty, of a plain name) receives the files, and links that rows are read by.

    A field without text is in no dictionary. Fields that are all text by their type in Parquet
    stay text, digits too; beside others, one of which most values are numbers has numbers. A
    dictionary has every text of its columns, including those of rejected rows and of rows that a
    condition leaves out.

    Raise :exc:`DataError` if fields of one dictionary are text in one stream and not in another,
    or a source cannot be read.
    """
    session = pipeline_session(spark)
    dictionaries: dict[str, Dictionary] = {}
    typed: dict[str, Typed] = {}
    groups: dict[str, dict[tuple[str, str], DataFrame | None]] = {}
    others = {
        name
        for task in tasks
        for field, name in task.source.codes.items()
        if not _is_text_by_type(task, field)
    }
    for number, task in enumerate(task for task in tasks if task.source.codes):
        source, links = task.source, folder / f"links-{number}"
        links.mkdir()
        text_fields = [field for field, name in source.codes.items() if name not in others]
        with errors_about(f"stream {source.name!r} ({source.files})"):
            typed[source.name] = typed_rows(session, task, links, text_fields)
            for field, name in source.codes.items():
                group = groups.setdefault(name, {})
                group[source.name, field] = _texts(task, typed[source.name], field)
    for number, (name, group) in enumerate(groups.items()):
        texts = {place: frame for place, frame in group.items() if frame is not None}
        if not texts:
            continue
        first = ".".join(next(iter(texts)))
        for stream, field in group:
            if (stream, field) not in texts:
                raise DataError(
                    f"stream {stream!r}: join field {field!r} is compared with {first}, which is "
                    "text, and is not text itself"
                )
        ordered, file = folder / f"sorted-{number}", folder / f"codes-{number}.parquet"
        with errors_about(f"the texts of {first}"):
            distinct = reduce(DataFrame.union, texts.values()).distinct()
            distinct.sort("value").write.parquet(str(ordered))
        size, digest = _number(ordered, file)
        streams = tuple(dict.fromkeys(stream for stream, _ in texts))
        dictionaries[name] = Dictionary(file=file, size=size, digest=digest, streams=streams)
    # Also of streams that are complete already, whose files are not checked later.
    for task in tasks:
        require_unchanged(task.files)
    return dictionaries, typed


def with_codes(frame: DataFrame, files: Mapping[str, Path]) -> DataFrame:
    """Return *frame* with the texts of some columns replaced by their codes.

    *files* gives a column (each with a text in every row) the file of its dictionary.
    """
    for column, file in files.items():
        codes = frame.sparkSession.read.parquet(str(file))
        codes = codes.select(sf.col("code").alias(_CODE), sf.col("value").alias(_TEXT))
        frame = (
            frame.join(codes, sf.expr(f"{sql_name(column)} = {_TEXT}"))
            .withColumn(column, sf.col(_CODE))
            .drop(_TEXT, _CODE)
        )
    return frame


def _is_text_by_type(task: Task, field: str) -> bool:
    """Return whether a file says that a *field* is text; CSV says nothing of its columns."""
    file = task.files[0]
    kind = file.columns.get(task.layout.fields.get(field, ""), pa.null())
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return file.format == "parquet" and kind in (pa.string(), pa.large_string(), pa.string_view())


def _texts(task: Task, typed: Typed, field: str) -> DataFrame | None:
    """Return the texts of a *field* as the column ``value``; None where it is not text."""
    column = task.layout.fields.get(field)
    if column is None or typed.types[column] != CODED:
        return None
    value = sql_name(column)
    filled = typed.frame.filter(f"{text_value(value, task.files[0].format)} is not null")
    return filled.select(sf.expr(value).alias("value"))


def _number(ordered: Path, to: Path) -> tuple[int, str]:
    """Write the texts of the Parquet files *ordered* with their codes; return size and digest."""
    size, digest = 0, hashlib.sha256()
    with pq.ParquetWriter(to, _SCHEMA, compression="zstd") as writer:
        for file in sorted(ordered.glob("*.parquet")):
            for batch in pq.ParquetFile(file).iter_batches(_GROUP_ROWS):
                codes = pa.array(range(size, size + len(batch)), pa.int64())
                values = batch["value"]
                writer.write_batch(pa.record_batch([codes, values], schema=_SCHEMA))
                for value in values.to_pylist():
                    text = value.encode()
                    digest.update(len(text).to_bytes(8) + text)
                size += len(batch)
    return size, digest.hexdigest()
