"""Texts as integer codes: in one dictionary, equal exactly where the texts are equal.

A text's code is its place among the sorted distinct texts (by their UTF-8 bytes) of all the fields
that share the dictionary, so it depends on nothing but those texts. Spark collects and sorts them;
they are numbered in one pass, in bounded memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
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
    """The texts of some fields and their codes.

    Attributes
    ----------
    file
        Parquet: ``code`` (int64, from 0 without gaps) and ``value`` (text), in order.
    size
        Number of texts.
    digest
        Of the texts in order: dictionaries of the same digest give the same codes.
    streams
        The streams whose texts are in it.
    """

    file: Path
    size: int
    digest: str
    streams: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class _Member:
    """A field of a dictionary, and the texts of its column; None when it is not text."""

    stream: str
    field: str
    texts: DataFrame | None


def build_dictionaries(
    spark: SparkSession, tasks: Sequence[Task], folder: Path
) -> tuple[dict[str, Dictionary], dict[str, Typed]]:
    """Collect the texts of all fields of *tasks* that may have some, by the dictionary's name.

    The second result is the rows of these tasks, by stream: to find the types of CSV is a pass.

    A field without text is in no dictionary. Fields that are all text by their type in Parquet
    stay text, digits too; beside others, one of which most values are numbers has numbers. A
    dictionary has every text of its columns, including those of rejected rows and of rows that a
    condition leaves out.

    Parameters
    ----------
    spark
        Any session; a sibling of it is used.
    tasks
        The streams that are prepared together.
    folder
        Existing, empty folder with a plain name, which receives the files, and links that the rows
        are read by.

    Raise :exc:`DataError` if fields of one dictionary are text in one stream and not in another,
    or a source cannot be read.
    """
    session = pipeline_session(spark)
    dictionaries: dict[str, Dictionary] = {}
    typed: dict[str, Typed] = {}
    groups: dict[str, list[_Member]] = {}
    others = {
        name
        for task in tasks
        for field, name in task.source.codes.items()
        if not _is_text_by_type(task, field)
    }
    for number, task in enumerate(task for task in tasks if task.source.codes):
        links = folder / f"links-{number}"
        links.mkdir()
        with errors_about(f"stream {task.source.name!r} ({task.source.files})"):
            typed[task.source.name] = typed_rows(
                session,
                task,
                links,
                text_fields=[
                    field for field, name in task.source.codes.items() if name not in others
                ],
            )
            for name, member in _members(task, typed[task.source.name]):
                groups.setdefault(name, []).append(member)
    for number, (name, members) in enumerate(groups.items()):
        if not any(member.texts is not None for member in members):
            continue
        _require_texts(members)
        ordered, file = folder / f"sorted-{number}", folder / f"codes-{number}.parquet"
        with errors_about(f"the texts of {members[0].stream}.{members[0].field}"):
            texts = reduce(
                DataFrame.union, (m.texts for m in members if m.texts is not None)
            ).distinct()
            texts.sort("value").write.parquet(str(ordered))
        size, digest = _number(ordered, file)
        streams = tuple(dict.fromkeys(member.stream for member in members))
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


def _members(task: Task, typed: Typed) -> Iterator[tuple[str, _Member]]:
    source, layout = task.source, task.layout
    for field, name in source.codes.items():
        column = layout.fields.get(field)
        texts = None
        if column is not None and typed.types[column] == CODED:
            value = sql_name(column)
            texts = typed.frame.filter(f"{text_value(value, task.files[0].format)} is not null")
            texts = texts.select(sf.expr(value).alias("value"))
        yield name, _Member(stream=source.name, field=field, texts=texts)


def _require_texts(members: list[_Member]) -> None:
    text = next(member for member in members if member.texts is not None)
    for member in members:
        if member.texts is None:
            raise DataError(
                f"stream {member.stream!r}: join field {member.field!r} is compared with "
                f"{text.stream}.{text.field}, which is text, and is not text itself"
            )


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
