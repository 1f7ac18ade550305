"""The same operators inside Spark against Spark's own theta join.

Q3 joins 100,000 taxi trips over windows of 10,000, pairs counted, and both ways find equal pairs.
The rate inside Spark is that of a second pass after its first trigger: in the first pass Java
compiles itself, and each pass begins with a plan. Of the batches, the bucketed one runs twice, and
the better run counts; so the plain one, after it, finds Java warm as well.

What bounds operators inside Spark is Spark: per trigger some tenths of a second for its plan, its
tasks and their state variables, whatever the trigger holds; then the copies of each batch between
the JVM and Python.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from actors.feed import StreamFile
from benchmarks.hosted import FOR_HOSTED, FOR_NATIVE, host, rate, write_stream
from benchmarks.inequality_work import taxi_work
from benchmarks.measure import Result, report
from joins.queries.parser import parse_query
from spark_bridge.runs import EngineRun
from spark_bridge.session import spark_session
from spark_bridge.sql.native import run_batch

_Q3 = (
    "SELECT * FROM T WHERE T.distance1 > T.distance2 AND T.fare1 < T.fare2 "
    "WINDOW AS (SLIDE INTERVAL '1' ON '10000')"
)


def main() -> None:
    """Run the join on both hosts, and print the table."""
    with tempfile.TemporaryDirectory() as folder:
        report("Operators inside Spark", _inequality_join(Path(folder)))


def _inequality_join(folder: Path) -> list[Result]:
    query, files = parse_query(_Q3), _trips(folder)
    with spark_session(FOR_HOSTED) as spark:
        hosted = host(query, files, folder, spark, "ie_join", 25_000, pairs=False)
    with spark_session(FOR_NATIVE) as spark:
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


def _trips(folder: Path) -> tuple[StreamFile, ...]:
    distance, fare = taxi_work().stored
    i = np.arange(len(distance))
    columns = {"id": i, "ts": 1_000_000 * i, "distance": distance, "fare": fare}
    return (write_stream("T", columns, folder / "T", len(i)),)


def _must_equal(one: EngineRun, other: EngineRun) -> None:
    if one.totals != other.totals:
        sys.exit(f"{one.engine} found {one.totals}, {other.engine} {other.totals}")


if __name__ == "__main__":
    main()
