"""What benchmarks inside Spark share: streams, systems hosted over them, and their rates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from actors.feed import StreamFile
from actors.source import Feeding
from benchmarks.measure import Result
from joins.batch import Schema
from joins.queries.query import JoinQuery
from scenarios.engines.engine import write_segments
from spark_bridge.hosted.host import run_hosted, write_arrivals
from spark_bridge.hosted.stage import HostedQuery
from spark_bridge.query_runs import EngineRun
from spark_bridge.session import SessionOptions
from topologies import TOPOLOGIES
from topologies.actor_graph import ActorGraph
from topologies.topology import Job

FOR_HOSTED = SessionOptions(memory="4g", quick_start=True)
"""Hosted operators leave the JVM little that is worth compiling."""
_PLACE = ("id", "ts")


def host(
    query: JoinQuery,
    files: tuple[StreamFile, ...],
    folder: Path,
    spark: SparkSession,
    topology: str,
    trigger_rows: int,
    *,
    pairs: bool = True,
    **parameters: int,
) -> EngineRun:
    """Run a system of ours over *files* inside Spark, triggers of *trigger_rows*; the second pass.

    Its arrivals are left in ``folder/arrivals``.
    """
    system = TOPOLOGIES[topology]
    feeding = Feeding(batch_rows=trigger_rows)
    job = Job(query=query, files=files, feeding=feeding, pairs=pairs)
    graph = system.build(job, system.parameters_type(**parameters))
    write_arrivals(files, feeding, folder / "arrivals", rows=trigger_rows)
    run_graph(query, files, folder, "warm", spark, graph, pairs=pairs)
    return run_graph(query, files, folder, "hosted", spark, graph, pairs=pairs)


def run_graph(
    query: JoinQuery,
    files: tuple[StreamFile, ...],
    folder: Path,
    name: str,
    spark: SparkSession,
    graph: ActorGraph,
    *,
    pairs: bool,
) -> EngineRun:
    """Run *graph* over the arrivals in *folder*, into the folder *name* beside them."""
    return run_hosted(
        HostedQuery(
            text=str(query),
            schemas=tuple(file.schema for file in files),
            specs=graph.specs,
            wiring=graph.wiring,
            pairs=pairs,
        ),
        folder / "arrivals",
        folder / name,
        spark=spark,
    )


def write_stream(
    name: str, columns: dict[str, np.ndarray], folder: Path, segment_rows: int
) -> StreamFile:
    """Write a prepared stream."""
    table = pa.table(columns)
    write_segments(table, folder, segment_rows)
    dtypes = {field.name: str(field.type) for field in table.schema if field.name not in _PLACE}
    fields = {field: dtype.replace("double", "float64") for field, dtype in dtypes.items()}
    return StreamFile(schema=Schema(stream=name, fields=fields), directory=folder)


def rate(name: str, run: EngineRun, *, target: float | None = None) -> Result:
    """Return the tuples a second of each trigger after the first."""
    rates = [rows / seconds for rows, seconds in run.triggers[1:] if rows]
    return Result.of(
        name, rates, unit="tuples/s", target=target, note=f"{run.shuffled_bytes >> 20} MiB shuffled"
    )
