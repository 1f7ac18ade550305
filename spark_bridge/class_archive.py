"""Spark's classes as a file that Java maps: it saves a third of what Spark takes to start.

A JVM that runs Spark reads, checks and links 12,000 classes out of 200 jars, each time anew. Java
can store them once, as they lie in memory (an archive of class data), and map that file from then
on. That takes half a minute and 180 MB, so it is not done behind anybody's back:
``python -m spark_bridge.class_archive`` does it, as a step of an installation. Java itself sees
whether the file fits its version and the jars, and goes on without it where it does not.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from pathlib import Path

from spark_bridge.errors import EngineUnavailable
from spark_bridge.pipeline.pipeline import prepare
from spark_bridge.pipeline.source import StreamSource
from spark_bridge.session import (
    SessionOptions,
    active_session,
    classes_path,
    find_java,
    spark_session,
)


def store_classes() -> Path:
    """Prepare a small stream in a JVM that stores its classes as it ends; return the file.

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
        raw, stored = Path(folder) / "raw.csv", Path(folder) / path.name
        with raw.open("w", newline="") as file:
            csv.writer(file).writerows([("ts", "a"), *((row, row % 7) for row in range(100))])
        with spark_session(SessionOptions(quick_start=True, store_classes=stored)) as spark:
            prepare(StreamSource(name="R", paths=[str(raw)]), Path(folder) / "out", spark=spark)
        if not stored.is_file():
            raise EngineUnavailable("Java ended without storing Spark's classes")
        stored.replace(path)
    return path


if __name__ == "__main__":
    try:
        print(store_classes())
    except EngineUnavailable as error:
        sys.exit(f"joinsim: {error}")
