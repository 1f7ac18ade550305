"""A Spark session as the data pipeline needs it, and what it takes to be safe from Spark's ways."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from spark_bridge.errors import DataError, one_line

_SETTINGS = {
    "spark.sql.adaptive.enabled": "false",  # nothing to adapt, and planning takes half the time
    "spark.sql.ansi.enabled": "true",  # an overflow in a person's expression is told, not wrapped
    "spark.sql.caseSensitive": "true",
    "spark.sql.csv.parser.columnPruning.enabled": "false",  # a malformed row is one in any column
    "spark.sql.legacy.parquet.nanosAsLong": "true",
    "spark.sql.parquet.datetimeRebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.datetimeRebaseModeInWrite": "CORRECTED",
    "spark.sql.parquet.int96RebaseModeInRead": "CORRECTED",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.timeType.enabled": "true",
}


def pipeline_session(spark: SparkSession) -> SparkSession:
    """Return a sibling of *spark* with the pipeline's own settings."""
    session = spark.newSession()
    for name, value in _SETTINGS.items():
        session.conf.set(name, value)
    return session


@contextmanager
def plain_name(folder: Path) -> Iterator[Path]:
    """Hand out *folder* by a name in which Spark and the JVM see no patterns and no accents."""
    if re.fullmatch(r"[A-Za-z0-9_./-]+", str(folder.resolve())):
        yield folder.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="joinsim-") as elsewhere:
        link = Path(elsewhere) / "folder"
        link.symlink_to(folder.resolve())
        yield link


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn what Spark throws into one sentence about *what*, a :exc:`DataError`."""
    try:
        yield
    except (PySparkException, Py4JError) as error:
        raise DataError(f"{what}: Spark could not do it: {one_line(error)}") from error
    except ConnectionError as error:
        raise DataError(
            f"{what}: Spark stopped unexpectedly; a larger memory or a smaller input may help"
        ) from error
