"""What a batch join in Spark shuffles: full tuples, or partial tuples first and then what matches.

In the clock, of the seconds in the notes: from prepared files to pairs counted, without Spark's
start.

Two streams of 200,000 tuples of 400 bytes are joined by key within a second; a share of the tuples
has a key that the other stream has too.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from benchmarks.measure import Result, report
from joins.batch import Schema
from joins.queries.parser import parse_query
from scenarios.engines.engine import write_segments
from spark_bridge.query_runs import EngineRun
from spark_bridge.session import SessionOptions, spark_session
from spark_bridge.sql.semijoin_batch import Shipping, run_shipping

_QUERY = parse_query(
    "SELECT * FROM A, B WHERE A.key = B.key "
    "AND B.ts BETWEEN A.ts - INTERVAL '1 s' AND A.ts + INTERVAL '1 s'"
)
_ROWS, _KEYS, _REST_BYTES = 200_000, 20_000, 400
_SHARES = (0.05, 0.5, 1.0)
_SHIPPINGS: tuple[Shipping, ...] = ("full", "semijoin", "bloom")


def main() -> None:
    """Join by each way of shipping, for each share of keys in common, and print the table."""
    results = []
    with tempfile.TemporaryDirectory() as folder, spark_session(SessionOptions()) as spark:
        for share in _SHARES:
            results += _shipped(Path(folder) / str(share), share, spark)
    report("Bytes that a batch join shuffles", results)


def _shipped(folder: Path, share: float, spark: SparkSession) -> list[Result]:
    rng = np.random.default_rng(1)
    i = np.arange(_ROWS)
    apart = round(_KEYS * (1 - share))
    files = []
    for name, first in (("A", 0), ("B", apart)):
        keys = rng.integers(first, first + _KEYS, _ROWS)
        schema = Schema(stream=name, fields={"key": "int64"}, width_bytes=_REST_BYTES)
        rows = pa.table({"id": i, "ts": 1_000_000 * i, "key": keys})
        files.append(write_segments(schema, rows, folder / name, _ROWS))
    runs: dict[str, EngineRun] = {}
    for shipping in _SHIPPINGS:
        runs[shipping] = run_shipping(_QUERY, files, shipping, spark=spark)
        if runs[shipping].totals != runs["full"].totals:
            sys.exit(f"{shipping} found {runs[shipping].totals}, full {runs['full'].totals}")
    return [
        Result.of(
            f"{shipping}, {share:.0%} of keys in common",
            [run.shuffled_bytes / 2**20],
            unit="MiB",
            at_least=False,
            note=f"{run.wall_seconds:.1f} s, {run.totals.pairs:,} pairs",
        )
        for shipping, run in runs.items()
    ]


if __name__ == "__main__":
    main()
