"""Runs of queries on Spark: the session they need, a run to the end, and what it came to."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from actors.feed import StreamFile
from actors.whole_files import output_error
from joins.errors import DataError
from spark_bridge.engines import EngineResult, SparkFailed, Totals, no_room, one_line
from spark_bridge.session import session_beside

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

PAIRS = "probe_stream byte, probe_id bigint, match_id bigint"
COUNTS = "probe_stream byte, probe_id bigint, count bigint, fingerprint bigint"
"""Columns of results, as Spark spells them: a row per pair, or per probing tuple and joiner with
the matches counted (the fingerprint as a signed integer: Spark has no unsigned ones). A null in the
third column means that the tuple was dropped as late."""

TAKEN = "taken"
"""Name of the observation in which a query counts the ``tuples`` of each trigger, where its rows
are not tuples."""

_OUR_ERROR = f"{DataError.__module__}.{DataError.__qualname__}: "
"""How a worker's traceback, which Spark passes on as text, ends with an error of ours."""

_STREAMING = "org.apache.spark.sql.execution.streaming."
_SETTINGS = {
    # Sums and products of 64 bits wrap, as in any checksum.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
    # By default, Spark starts a shell for each file that it renames in a local checkpoint: dozens
    # in a trigger.
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_STREAMING}checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.join.stateFormatVersion": "4",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def query_session(spark: SparkSession, **settings: str) -> SparkSession:
    """Return a session beside *spark* with the settings that queries need, and further ones."""
    return session_beside(spark, _SETTINGS | settings)


def read_streams(session: SparkSession, files: Sequence[StreamFile]) -> list[DataFrame]:
    """Return whole prepared streams, each as a frame."""
    return [session.read.parquet(os.fspath(file.directory)) for file in files]


@contextmanager
def spark_errors_translated() -> Iterator[None]:
    """Turn Spark's exceptions into :exc:`SparkFailed`.

    A :exc:`DataError` that our operators raised in a worker is raised as such, and an
    :exc:`OutputError` where there is no room to write.
    """
    try:
        yield
    except PySparkException as error:
        if (full := no_room(error)) is not None:
            raise output_error(full, "a file of Spark's") from error
        for line in str(error).splitlines():
            if line.startswith(_OUR_ERROR):
                raise DataError(line.removeprefix(_OUR_ERROR)) from error
        raise SparkFailed(one_line(error)) from error


def run_batch_job(build: Callable[[], DataFrame], session: SparkSession) -> EngineResult:
    """Count the results of a batch query, which *build* returns.

    When the clock has stopped, they are computed again and added up.

    Raise :exc:`SparkFailed` with Spark's message, and :exc:`EngineFailed` if they then differ.
    """
    shuffled, start = _shuffled_bytes(session), time.perf_counter()
    with spark_errors_translated():
        results = build()
        counted = results.count()
        seconds = time.perf_counter() - start
        shuffled = _shuffled_bytes(session) - shuffled
        totals = total(results)
    totals.check_counted(counted)
    return EngineResult(totals=totals, wall_seconds=seconds, shuffled_bytes=shuffled)


def run_stream(
    writer: DataStreamWriter,
    *,
    session: SparkSession,
    began_s: float,
    checkpoint: Path,
    results: Path,
    columns: str,
    note: str | None = None,
) -> EngineResult:
    """Run a streaming query until it has taken all input that there is.

    Its run began at *began_s*, by `time.perf_counter`: making its plan is part of it. The folder
    *checkpoint* is Spark's own; *results* receives *columns* as Parquet.

    Raise :exc:`SparkFailed` with Spark's message if it refuses or fails the query, and
    :exc:`DataError` if a file that a hosted operator stored is missing.
    """
    shuffled = _shuffled_bytes(session)
    writer = writer.trigger(availableNow=True).option("checkpointLocation", os.fspath(checkpoint))
    with spark_errors_translated():
        query = writer.start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
    seconds = time.perf_counter() - began_s
    triggers = tuple(
        (_tuples(progress), progress.durationMs["triggerExecution"] / 1000)
        for progress in query.recentProgress
    )
    beside = query_session(session)  # whose plans are compiled, even where the query's are not
    with spark_errors_translated():
        totals = total(beside.read.schema(columns).parquet(os.fspath(results)))
    return EngineResult(
        totals=totals,
        wall_seconds=seconds,
        shuffled_bytes=_shuffled_bytes(session) - shuffled,
        triggers=triggers,
        note=note,
    )


def total(results: DataFrame) -> Totals:
    """Add up rows of `PAIRS`, or of `COUNTS`, without those of tuples that were late.

    The session must be a `query_session`: its sums wrap.
    """
    counted = "count" in results.columns
    matched = sf.col("fingerprint") if counted else splitmix64(sf.col("match_id"))
    # Neither counts nor sums take nulls, which the rows of late tuples have.
    row = results.agg(
        sf.sum("count") if counted else sf.count("match_id"),
        sf.sum(splitmix64(sf.bitwise_not(sf.col("probe_id"))) * matched),
    ).collect()[0]
    pairs, checksum = (int(value or 0) for value in row)
    return Totals(pairs, checksum % (1 << 64))


def splitmix64(value: Column) -> Column:
    """Mix a bigint as `joins.hashing.mix` does, in a session whose products wrap."""
    z = value + sf.lit(_signed(0x9E3779B97F4A7C15))
    z = z.bitwiseXOR(sf.shiftrightunsigned(z, 30)) * sf.lit(_signed(0xBF58476D1CE4E5B9))
    z = z.bitwiseXOR(sf.shiftrightunsigned(z, 27)) * sf.lit(_signed(0x94D049BB133111EB))
    return z.bitwiseXOR(sf.shiftrightunsigned(z, 31))


def process_id(spark: SparkSession) -> int:
    """Return the process of Spark's JVM, whose descendants are the Python workers."""
    return int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())


def _tuples(progress: Any) -> int:
    taken = progress.observedMetrics.get(TAKEN)
    return progress.numInputRows if taken is None else taken.tuples or 0


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def _shuffled_bytes(spark: SparkSession) -> int:
    """Return what the application has written for exchanges so far."""
    store = spark.sparkContext._jsc.sc().statusStore()
    executors = store.executorList(False)
    return sum(executors.apply(i).totalShuffleWrite() for i in range(executors.length()))
