"""What Spark's streaming queries share: a session with their settings, their end, their times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException

from spark_bridge.errors import SparkFailed, one_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TAKEN = "taken"
"""Name under which a query tells the ``tuples`` of each trigger, where its rows are not tuples."""

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


def await_end(query: Any) -> None:
    """Wait for a streaming query, and stop it whatever happens meanwhile.

    Raise :exc:`SparkFailed` with Spark's own complaint when it fails.
    """
    try:
        query.awaitTermination()
    except PySparkException as error:
        raise SparkFailed(one_line(error)) from error
    finally:
        query.stop()


def trigger_times(query: Any) -> tuple[tuple[int, float], ...]:
    """Return tuples and seconds of each trigger of a query that has ended."""
    return tuple(
        (_tuples(progress), progress.durationMs["triggerExecution"] / 1000)
        for progress in query.recentProgress
    )


def _tuples(progress: Any) -> int:
    taken = progress.observedMetrics.get(TAKEN)
    return progress.numInputRows if taken is None else taken.tuples or 0
