"""The same query as Spark itself would do it.

In batch it is the plain statement of `spark_bridge.sql.oracle`: Spark's own plan for a theta join.
In streaming it is a stream-stream join: tuples are kept until the watermark says that no partner
is to come, which Spark works out from bounds on its timestamps. Those have microseconds, so they
are drawn a microsecond wider than the window, and the exact nanoseconds are a condition beside.
What Spark cannot do, it says itself.
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
from spark_bridge.sql.oracle import EVENT_TIME, expected_pairs
from spark_bridge.streaming import in_sparks_words, run_to_end, streaming_session
from spark_bridge.totals import PAIRS, EngineRun, shuffled_bytes, total, versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

_SHIFT = "interval 1 day"
"""Spark's first watermark is the epoch, and what is not after it is late: synthetic streams begin
there."""


def run_batch(
    query: JoinQuery,
    files: Sequence[StreamFile],
    *,
    spark: SparkSession,
    bucketed: bool = False,
) -> EngineRun:
    """Run *query* over whole streams as one job that counts pairs.

    With *bucketed* the window is rewritten to an equality first, as a person who knows Spark would.

    Raise :exc:`SparkFailed` with Spark's own words.
    """
    session = streaming_session(spark)
    schemas = [file.schema for file in files]
    shuffled, start = shuffled_bytes(spark), time.perf_counter()
    with in_sparks_words():
        frames = [session.read.parquet(os.fspath(file.directory)) for file in files]
        rows = sum(frame.count() for frame in frames)
        totals = total(expected_pairs(query, schemas, frames, bucketed=bucketed))
    return EngineRun(
        engine="native-spark-bucketed" if bucketed else "native-spark-batch",
        totals=totals,
        rows=rows,
        wall_seconds=time.perf_counter() - start,
        shuffled_bytes=shuffled_bytes(spark) - shuffled,
        versions=versions(spark),
    )


def run_streaming(
    query: JoinQuery,
    files: Sequence[StreamFile],
    folder: Path,
    *,
    spark: SparkSession,
    watermark: str = "1 second",
    files_per_trigger: int = 1,
) -> EngineRun:
    """Run *query* as a stream-stream join, its pairs written as Parquet into ``folder/found``.

    State is kept by RocksDB in join state format 4, the fastest Spark has for it. Streams are read
    *files_per_trigger* segments at a time. Spark drops what is not newer than the watermark, which
    follows the latest tuple by *watermark*, and says nothing of it.

    Raise :exc:`SparkFailed` with Spark's own words where it refuses or fails.
    """
    session = streaming_session(spark)
    schemas = [file.schema for file in files]
    with in_sparks_words():
        frames = [
            _stream(session, file, files_per_trigger).withWatermark(EVENT_TIME, watermark)
            for file in files
        ]
        pairs = expected_pairs(query, schemas, frames, bucketed=_is_keyed_by_count(query))
    found = folder / "found"
    return run_to_end(
        "native-spark",
        _writer(pairs, found),
        session=session,
        checkpoint=folder / "checkpoint",
        found=found,
        columns=PAIRS,
    )


def _is_keyed_by_count(query: JoinQuery) -> bool:
    """Tell whether a stream-stream join looks at all tuples of a key, as nothing bounds their time.

    Buckets spare it most of them. Without a key it is for Spark to say that it wants an equality.
    """
    by_count = bool(query.window) and any(window.kind == "count" for window in query.windows)
    return by_count and any(predicate.operator.is_equality for predicate in query.predicates)


def _stream(session: SparkSession, file: StreamFile, files_per_trigger: int) -> DataFrame:
    names = {"int64": "bigint", "float64": "double"}
    fields = [f"{name} {names[dtype]}" for name, dtype in file.schema.fields.items()]
    return (
        session.readStream.schema(", ".join(["id bigint", "ts bigint", *fields]))
        .option("maxFilesPerTrigger", files_per_trigger)
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
