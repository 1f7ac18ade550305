"""The same query by Spark's own joins.

In batch, it is the statement of `spark_bridge.sql.oracle`, its window rewritten to an equality, and
Spark plans the theta join. In streaming, it is a stream-stream join: Spark stores tuples until the
watermark shows that no partner can follow, which it infers from bounds on its timestamps. These
have microseconds, so the bounds on them are a microsecond wider than the window, and the exact
nanoseconds are a further condition. What Spark cannot do, it reports itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from actors.feed import StreamFile
from joins.queries.query import JoinQuery
from spark_bridge.runs import (
    PAIRS,
    EngineRun,
    query_session,
    read_streams,
    run_batch_job,
    run_stream,
    spark_errors_translated,
)
from spark_bridge.sql.oracle import EVENT_TIME, expected_pairs
from spark_bridge.sql.statement import sql_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

_SHIFT = "interval 1 day"
"""Added to event times: Spark's first watermark is the epoch, where synthetic streams begin, and
tuples that are not after it are late."""
_LATENESS = "1 second"


def run_batch(query: JoinQuery, files: Sequence[StreamFile], *, spark: SparkSession) -> EngineRun:
    """Run *query* over whole streams as one job that counts pairs.

    The rewriting of its window is what an expert in Spark would do.

    Raise :exc:`SparkFailed` with Spark's message.
    """
    session = query_session(spark)

    def build() -> DataFrame:
        frames = read_streams(session, files)
        schemas = [file.schema for file in files]
        return expected_pairs(query, schemas, frames, bucketed=True)

    return run_batch_job(build, session)


def run_streaming(
    query: JoinQuery, files: Sequence[StreamFile], folder: Path, *, spark: SparkSession
) -> EngineRun:
    """Run *query* as a stream-stream join that writes its pairs as Parquet into ``folder/found``.

    The state is in RocksDB in join state format 4, Spark's fastest. Streams are read
    a segment at a time. Spark silently drops tuples that are not newer than the watermark, which
    follows the latest tuple at a distance of `_LATENESS`.

    Raise :exc:`SparkFailed` with Spark's message where it refuses or fails.
    """
    began_s = time.perf_counter()
    session = query_session(spark)
    schemas = [file.schema for file in files]
    with spark_errors_translated():
        frames = [_stream(session, file).withWatermark(EVENT_TIME, _LATENESS) for file in files]
        pairs = expected_pairs(query, schemas, frames, bucketed=_is_keyed_by_count(query))
    found = folder / "found"
    return run_stream(
        _writer(pairs, found),
        session=session,
        began_s=began_s,
        checkpoint=folder / "checkpoint",
        results=found,
        columns=PAIRS,
    )


def _is_keyed_by_count(query: JoinQuery) -> bool:
    """Return whether a stream-stream join would compare all tuples of a key: no time bounds them.

    Buckets spare it most of them. Without a key, Spark itself reports that it needs an equality.
    """
    by_count = bool(query.window) and any(window.kind == "count" for window in query.windows)
    return by_count and any(predicate.operator.is_equality for predicate in query.predicates)


def _stream(session: SparkSession, file: StreamFile) -> DataFrame:
    names = {"int64": "bigint", "float64": "double"}
    fields = [f"{sql_name(name)} {names[dtype]}" for name, dtype in file.schema.fields.items()]
    return (
        session.readStream.schema(", ".join(["id bigint", "ts bigint", *fields]))
        .option("maxFilesPerTrigger", 1)
        .parquet(os.fspath(file.directory))
        .withColumn(EVENT_TIME, sf.timestamp_micros(sf.expr("ts div 1000")) + sf.expr(_SHIFT))
    )


def _writer(pairs: DataFrame, folder: Path) -> DataStreamWriter:
    """Return the writer of pairs as Parquet into *folder*.

    Ids hardly repeat: a dictionary of them costs more than all else in writing, and is given up.
    """
    return (
        pairs.writeStream.format("parquet")
        .option("path", os.fspath(folder))
        .option("parquet.enable.dictionary", "false")
    )
