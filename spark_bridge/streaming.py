"""What Spark's streaming queries share: a session with their settings, and a run to the end."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from spark_bridge.errors import DataError, SparkFailed, one_line
from spark_bridge.totals import EngineRun, shuffled_bytes, total, versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamWriter

TAKEN = "taken"
"""Name under which a query tells the ``tuples`` of each trigger, where its rows are not tuples."""

_OUR_WORDS = f"{DataError.__module__}.{DataError.__qualname__}: "
"""How a worker's traceback, which Spark passes on as text, ends with an error of ours."""

_STREAMING = "org.apache.spark.sql.execution.streaming."
_SETTINGS = {
    # Sums and products of 64 bits wrap, as in any checksum.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000000",
    # Spark's own choice starts a shell for each file that it renames in a local checkpoint, some
    # dozens a trigger.
    "spark.sql.streaming.checkpointFileManagerClass": (
        f"{_STREAMING}checkpointing.FileSystemBasedCheckpointFileManager"
    ),
    "spark.sql.streaming.join.stateFormatVersion": "4",
    "spark.sql.streaming.numRecentProgressUpdates": "100000",
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
}


def streaming_session(spark: SparkSession) -> SparkSession:
    """Return a session beside *spark*, on the same JVM, with the settings of its own."""
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    return session


@contextmanager
def in_sparks_words() -> Iterator[None]:
    """Turn what Spark complains of into :exc:`SparkFailed`.

    What our own operators raised in a worker as :exc:`DataError` is raised as that.
    """
    try:
        yield
    except PySparkException as error:
        for line in str(error).splitlines():
            if line.startswith(_OUR_WORDS):
                raise DataError(line.removeprefix(_OUR_WORDS)) from error
        raise SparkFailed(one_line(error)) from error


def run_to_end(
    engine: str,
    writer: DataStreamWriter,
    *,
    session: SparkSession,
    checkpoint: Path,
    found: Path,
    columns: str,
    note: str | None = None,
) -> EngineRun:
    """Run a streaming query until it has taken all that is there, and say what it came to.

    Parameters
    ----------
    checkpoint
        Spark's own, of the query.
    found, columns
        The folder that receives its results as Parquet, and their columns.

    Raises
    ------
    DataError
        What a hosted operator kept is missing.
    SparkFailed
        The query failed, or Spark refuses it; in Spark's own words.
    """
    shuffled, start = shuffled_bytes(session), time.perf_counter()
    writer = writer.trigger(availableNow=True).option("checkpointLocation", os.fspath(checkpoint))
    with in_sparks_words():
        query = writer.start()
        try:
            query.awaitTermination()
        finally:
            query.stop()
    seconds = time.perf_counter() - start
    triggers = tuple(
        (_tuples(progress), progress.durationMs["triggerExecution"] / 1000)
        for progress in query.recentProgress
    )
    return EngineRun(
        engine=engine,
        totals=total(session.read.schema(columns).parquet(os.fspath(found))),
        rows=sum(rows for rows, _ in triggers),
        wall_seconds=seconds,
        shuffled_bytes=shuffled_bytes(session) - shuffled,
        versions=versions(session),
        triggers=triggers,
        note=note,
    )


def _tuples(progress: Any) -> int:
    taken = progress.observedMetrics.get(TAKEN)
    return progress.numInputRows if taken is None else taken.tuples or 0
