"""Spark's classes as a file that Java maps: it saves a third of what Spark takes to start.

A JVM that runs Spark reads, checks and links 12,000 classes out of 200 jars, each time anew. Java
can store them once, as they lie in memory (an archive of class data), and map that file from then
on. That takes half a minute and 200 MB, so it is not done behind anybody's back:
``python -m spark_bridge.class_archive`` does it, as a step of an installation. Java itself sees
whether the file fits its version and the jars, and goes on without it where it does not.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from actors.feed import StreamFile
from actors.protocol import ActorSpec
from actors.source import Feeding, Source
from spark_bridge.engines import EngineUnavailable
from spark_bridge.hosted.host import run_hosted, write_arrivals
from spark_bridge.hosted.stage import HostedQuery
from spark_bridge.pipeline.pipeline import prepare
from spark_bridge.pipeline.raw_source import RawSource
from spark_bridge.session import (
    SessionOptions,
    active_session,
    classes_path,
    find_java,
    spark_session,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def store_classes() -> Path:
    """Prepare a small stream and host an actor in a JVM that stores its classes; return the file.

    Raise :exc:`EngineUnavailable` where there is no Java or no Spark, where Spark runs in this
    process already (its JVM was not started to store anything), or Java stores nothing.
    """
    if active_session() is not None:
        raise EngineUnavailable(
            "Spark runs in this process already; store its classes from a process of its own: "
            "python -m spark_bridge.class_archive"
        )
    path = classes_path(find_java())
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        stored = Path(folder) / path.name
        with spark_session(SessionOptions(quick_start=True, store_classes=stored)) as spark:
            use_spark(spark, Path(folder))
        if not stored.is_file():
            raise EngineUnavailable("Java ended without storing Spark's classes")
        stored.replace(path)
    return path


def use_spark(spark: SparkSession, folder: Path) -> None:
    """Prepare a small stream in *folder* and run a query of one actor, which reads it, in Spark."""
    raw = folder / "raw.csv"
    with raw.open("w", newline="") as rows:
        csv.writer(rows).writerows([("ts", "a"), *((row, row % 7) for row in range(100))])
    (stream,) = prepare(RawSource(name="R", paths=[str(raw)]), folder / "out", spark=spark)
    file = StreamFile(schema=stream.schema, directory=stream.path)
    feeding = Feeding(batch_rows=50)
    write_arrivals((file,), feeding, folder / "arrivals", rows=50)
    arguments = {"files": (file,), "feeding": feeding}
    query = HostedQuery(
        text="",
        schemas=(file.schema,),
        specs={"source": ActorSpec(actor=Source, arguments=arguments)},
        wiring={"source": {"out": ()}},
    )
    run_hosted(query, folder / "arrivals", folder / "hosted", spark=spark)


def main() -> None:
    """Store the classes, and print the file or why there is none."""
    try:
        print(store_classes())
    except EngineUnavailable as error:
        sys.exit(f"joinsim: {error}")


if __name__ == "__main__":
    main()
