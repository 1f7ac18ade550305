"""The same operators inside Spark against Spark's own joins.

W1 is the keyed interval join: a million tuples of each of two streams, all pairs written. Q3 joins
100,000 taxi trips over windows of 10,000, pairs counted. Both ways find equal pairs. Rates are
those of a second pass after its first trigger: in the first pass Java compiles itself, and each
pass begins with a plan. Of the batches, the bucketed one runs twice, and the better run counts; so
the plain one, after it, finds Java warm as well.

What bounds operators inside Spark is Spark: per trigger some tenths of a second for its plan, its
tasks and their state variables, whatever the trigger holds; then the copies of each batch between
the JVM and Python. The operators of W1 take a fiftieth of a second for half a million tuples.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from actors.feed import StreamFile
from actors.source import Feeding
from benchmarks.inequality_work import taxi_work
from benchmarks.measure import Result, report
from joins.batch import Schema
from joins.hashing import mix
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery
from spark_bridge.hosted.arrival_log import write_arrivals
from spark_bridge.hosted.host import HostedQuery, run_hosted
from spark_bridge.session import SessionOptions, spark_session
from spark_bridge.sql.native import run_batch, run_streaming
from spark_bridge.streaming import streaming_session
from spark_bridge.totals import EngineRun, splitmix64
from topologies import TOPOLOGIES
from topologies.actor_graph import ActorGraph
from topologies.topology import Job

_W1 = (
    "SELECT * FROM A, B WHERE A.key = B.key "
    "AND B.ts BETWEEN A.ts - INTERVAL '100 ms' AND A.ts + INTERVAL '100 ms'"
)
_W1_ROWS = 1_000_000
_W1_PAIRS, _W1_CHECKSUM = 3_998_336, 1258833714615941485
_Q3 = (
    "SELECT * FROM T WHERE T.distance1 > T.distance2 AND T.fare1 < T.fare2 "
    "WINDOW AS (SLIDE INTERVAL '1' ON '10000')"
)
_PLACE = ("id", "ts")
_FOR_NATIVE = SessionOptions(memory="4g")
FOR_HOSTED = replace(_FOR_NATIVE, quick_start=True)
"""Each with its best settings: hosted operators leave the JVM little that is worth compiling."""


def main() -> None:
    """Run both works on both hosts, and print the table."""
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        results = [
            *_interval_join(base / "w1"),
            *_inequality_join(base / "q3"),
        ]
    report("Operators inside Spark", results)


def _interval_join(folder: Path) -> list[Result]:
    query, files = parse_query(_W1), _w1_streams(folder, _W1_ROWS)
    with spark_session(FOR_HOSTED) as spark:
        hosted = host(
            query,
            files,
            folder,
            spark,
            "kp_oij",
            500_000,
            replicas=2,
            batch_rows=25_000,
            linger_turns=0,
        )
    with spark_session(_FOR_NATIVE) as spark:
        native = run_streaming(query, files, folder / "native", spark=spark)
        for run in ("hosted", "native"):
            _must_be_w1(folder / run / "found", spark)
    _must_equal(hosted, native)
    return [
        rate("W1, operators inside Spark, two stages, all pairs written", hosted, target=400_000),
        rate("W1, Spark's own stream-stream join, all pairs written", native),
    ]


def _inequality_join(folder: Path) -> list[Result]:
    query, files = parse_query(_Q3), _trips(folder)
    with spark_session(FOR_HOSTED) as spark:
        hosted = host(query, files, folder, spark, "ie_join", 25_000, pairs=False)
    with spark_session(_FOR_NATIVE) as spark:
        bucketed = [run_batch(query, files, spark=spark, bucketed=True) for _ in range(2)]
        plain = run_batch(query, files, spark=spark)
    for run in (plain, *bucketed):
        _must_equal(hosted, run)
    seconds = min(run.wall_seconds for run in bucketed)
    assert hosted.steady_tps is not None
    took = plain.rows / hosted.steady_tps
    return [
        rate("Q3 over windows of 10,000 trips, operators inside Spark", hosted),
        Result.rate(
            "the same, Spark's own theta join", plain.rows, [plain.wall_seconds], unit="tuples/s"
        ),
        Result.rate("the same, rewritten to buckets", plain.rows, [seconds], unit="tuples/s"),
        Result.of(
            "hosted over Spark's own theta join",
            [plain.wall_seconds / took],
            unit="times",
            target=5,
            note=f"{seconds / took:.1f} times over buckets",
        ),
    ]


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


def _w1_streams(folder: Path, rows: int) -> tuple[StreamFile, ...]:
    """Write the two streams, a quarter in each file, so that native Spark takes them in step."""
    i = np.arange(rows)
    files = []
    for name, seed, start_ns in (("A", 1, 0), ("B", 2, 501_000)):
        keys = (mix((np.int64(seed) << 48) ^ i) % np.uint64(50)).astype(np.int64)
        columns = {"id": i, "ts": 1_000_000 * i + start_ns, "key": keys}
        files.append(write_stream(name, columns, folder / name, rows // 4))
    return tuple(files)


def _trips(folder: Path) -> tuple[StreamFile, ...]:
    distance, fare = taxi_work().stored
    i = np.arange(len(distance))
    columns = {"id": i, "ts": 1_000_000 * i, "distance": distance, "fare": fare}
    return (write_stream("T", columns, folder / "T", len(i)),)


def write_stream(
    name: str, columns: dict[str, np.ndarray], folder: Path, segment_rows: int
) -> StreamFile:
    """Write a prepared stream; Spark takes its segments by their time of change."""
    folder.mkdir(parents=True)
    table = pa.table(columns)
    for part, begin in enumerate(range(0, len(table), segment_rows)):
        path = folder / f"part-{part:05d}.parquet"
        pq.write_table(table.slice(begin, segment_rows), path)
        os.utime(path, (part, part))
    dtypes = {field.name: str(field.type) for field in table.schema if field.name not in _PLACE}
    fields = {field: dtype.replace("double", "float64") for field, dtype in dtypes.items()}
    return StreamFile(schema=Schema(stream=name, fields=fields), directory=folder)


def rate(name: str, run: EngineRun, *, target: float | None = None) -> Result:
    """Return the tuples a second of each trigger after the first."""
    rates = [rows / seconds for rows, seconds in run.triggers[1:] if rows]
    return Result.of(
        name, rates, unit="tuples/s", target=target, note=f"{run.shuffled_bytes >> 20} MiB shuffled"
    )


def _must_equal(one: EngineRun, other: EngineRun) -> None:
    if one.totals != other.totals:
        sys.exit(f"{one.engine} found {one.totals}, {other.engine} {other.totals}")


def _must_be_w1(found: Path, spark: SparkSession) -> None:
    """Stop unless the pairs written are those of the work's definition."""
    pairs = streaming_session(spark).read.parquet(str(found))
    mixed = splitmix64(sf.shiftleft("probe_id", 32).bitwiseXOR(sf.col("match_id")))
    count, checksum = pairs.agg(sf.count(sf.lit(1)), sf.sum(mixed)).first() or (0, 0)
    if (count, checksum % (1 << 64)) != (_W1_PAIRS, _W1_CHECKSUM):
        sys.exit(f"W1: {found} holds {count} pairs of checksum {checksum % (1 << 64)}")


if __name__ == "__main__":
    main()
