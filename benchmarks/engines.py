"""W1 on every engine that takes a million tuples a stream: one work, one run, equal pairs.

W1 is `benchmarks.interval_work`'s keyed interval join of two streams, all pairs written. Each
engine runs with its best settings: live Ray with few large messages, operators inside Spark with
triggers of half a million tuples, native Spark in four steps of time with RocksDB, Flink with one
ordered file a stream. Rates inside Spark are those of a second pass after its first trigger, of
native Spark after its first, of the others whole runs; no engine's own start counts. What live Ray
finds is listed where its actors live, and put into a file when its clock has stopped. All find the
pairs of the published comparison, by number and checksum, or nothing is reported. Flink is left out
where it is not installed (``make flink``).

What bounds them: live Ray its two processes' time, a third of it transport; operators inside Spark
what Spark takes a trigger, some tenths of a second whatever it holds (they themselves take a
fiftieth of a second for half a million tuples), and the copies between the JVM and Python; native
Spark its state, a row at a time; Flink its rows as objects, one by one.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from actors.feed import StreamFile
from actors.hosting.ray_cluster import ray_cluster
from benchmarks.hosted import FOR_HOSTED, FOR_NATIVE, host, rate, write_stream
from benchmarks.interval_work import PUBLISHED, IntervalWork, Totals
from benchmarks.live import AT_FULL_SPEED, LIVE, check_pairs, runs
from benchmarks.measure import Result, report
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery
from scenarios.engines.flink_engine import Flink, join
from spark_bridge import totals as spark_totals
from spark_bridge.runs import query_session, splitmix64
from spark_bridge.session import spark_session
from spark_bridge.sql.native import run_streaming

_W1 = (
    "SELECT * FROM A, B WHERE A.key = B.key "
    "AND B.ts BETWEEN A.ts - INTERVAL '100 ms' AND A.ts + INTERVAL '100 ms'"
)
_ROWS = 1_000_000
_TRIGGER_ROWS = 500_000


def main() -> None:
    """Run W1 on all engines, and print the table."""
    query = parse_query(_W1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files = _streams(folder)
        live = _live()
        inside = _inside_spark(query, files, folder)
        native, totals = _native_spark(query, files, folder)
        results = [live, inside, native]
        ratios = [_ratio(live, native, 45), _ratio(inside, native, 4)]
        if Flink().version():
            flink = _flink(query, files, folder, totals)
            results.append(flink)
            ratios += [_ratio(live, flink, 25), _ratio(inside, flink, 2)]
        report("W1, 2 x 1,000,000 tuples, on every engine", results + ratios)


def _live() -> Result:
    with ray_cluster(processes=2):
        check_pairs()
        finished = runs(AT_FULL_SPEED | LIVE | {"processes": 2, "pairs": True})
    seconds = [one.wall_seconds for one in finished]
    return Result.rate("live Ray", 2 * _ROWS, seconds, unit="tuples/s", target=5_000_000)


def _inside_spark(query: JoinQuery, files: tuple[StreamFile, ...], folder: Path) -> Result:
    with spark_session(FOR_HOSTED) as spark:
        run = host(
            query,
            files,
            folder,
            spark,
            "kp_oij",
            _TRIGGER_ROWS,
            replicas=2,
            batch_rows=25_000,
            linger_turns=0,
        )
        _must_be_published("operators inside Spark", folder / "hosted" / "found", spark)
    return rate("operators inside Spark", run, target=400_000)


def _native_spark(
    query: JoinQuery, files: tuple[StreamFile, ...], folder: Path
) -> tuple[Result, spark_totals.Totals]:
    with spark_session(FOR_NATIVE) as spark:
        run = run_streaming(query, files, folder / "native", spark=spark)
        _must_be_published("native Spark", folder / "native" / "found", spark)
    return rate("native Spark", run), run.totals


def _flink(
    query: JoinQuery, files: tuple[StreamFile, ...], folder: Path, wanted: spark_totals.Totals
) -> Result:
    within = folder / "flink"
    within.mkdir()
    run = join(query, files, within, pairs=True)
    if run.totals != wanted:
        sys.exit(f"Flink found {run.totals}, native Spark {wanted}")
    return Result.rate("Flink", 2 * _ROWS, [run.wall_seconds], unit="tuples/s")


def _ratio(one: Result, other: Result, target: float) -> Result:
    times = one.median / other.median
    return Result.of(f"{one.name} over {other.name}", [times], unit="times", target=target)


def _streams(folder: Path) -> tuple[StreamFile, ...]:
    """Write the two streams, a quarter in each file, so that native Spark takes them in step."""
    work = IntervalWork.of("W1", _ROWS)
    files = []
    for name, ts, key in zip("AB", work.ts, work.key, strict=True):
        columns = {"id": np.arange(_ROWS), "ts": ts, "key": key}
        files.append(write_stream(name, columns, folder / name, _ROWS // 4))
    return tuple(files)


def _must_be_published(name: str, found: Path, spark: SparkSession) -> None:
    """Stop unless the pairs that Spark has written are those of the published comparison."""
    pairs = query_session(spark).read.parquet(str(found))
    mixed = splitmix64(sf.shiftleft("probe_id", 32).bitwiseXOR(sf.col("match_id")))
    count, checksum = pairs.agg(sf.count(sf.lit(1)), sf.sum(mixed)).first() or (0, 0)
    if Totals(count, checksum % (1 << 64)) != PUBLISHED["W1", _ROWS]:
        sys.exit(f"{name} found {count} pairs of checksum {checksum % (1 << 64)}")


if __name__ == "__main__":
    main()
