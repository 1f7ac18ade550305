"""The oracle in SQL and the one in numpy agree on joins of every kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import functions as sf

from joins.batch import Schema
from joins.queries.parser import parse_query
from scenarios.worlds import WorldStream
from spark_bridge.engines import Totals
from spark_bridge.query_runs import query_session, total
from spark_bridge.sql.native import expected_pairs
from tests.spark_bridge.hosted.hosted_jobs import pairs_by_numpy

WINDOWS = (
    "'1' ON '7'",
    "'4' ON '12'",
    "'5' ON '5'",
    "'3 ns' ON '9 ns'",
    "'8 ns' ON '8 ns' PRECISE",
)
SELF = (
    "T.x1 < T.x2 AND T.y1 > T.y2",
    "T.x1 <= T.y2 AND T.y1 != T.y2",
    "ABS(T.y1 - T.y2) < 1.5 AND T.x1 >= T.x2",
    "T.y1 = T.x2",
    "ABS(T.x1 - T.x2) <= 0.3",
)
TWO_WAY = (
    "R.x > S.x AND R.y <= S.y",
    "R.y = S.y AND R.x != S.x",
    "ABS(R.y - S.y) <= 2 AND ABS(R.x - S.x) < 0.3",
    "S.x = R.x",
    "R.x != S.y",
)
INTERVALS = (
    "R.y = S.y AND S.ts BETWEEN R.ts - INTERVAL '3 ns' AND R.ts + INTERVAL '5 ns'",
    "R.ts BETWEEN S.ts + INTERVAL '2 ns' AND S.ts + INTERVAL '9 ns' AND R.x < S.x",
    "S.ts BETWEEN R.ts AND R.ts AND S.x = R.x",
)
QUERIES = (
    *(
        f"SELECT * FROM {names} WHERE {where} WINDOW AS (SLIDE INTERVAL {window})"
        for names, wheres in (("T", SELF), ("R, S", TWO_WAY))
        for where, window in zip(wheres, WINDOWS, strict=True)
    ),
    *(f"SELECT * FROM R, S WHERE {where}" for where in INTERVALS),
)


def stream(rng: np.random.Generator) -> WorldStream:
    """Draw tuples with ties everywhere, both zeros, a huge float, and the ends of int64."""
    rows = int(rng.integers(60, 90))
    some_x = [0.1 * i for i in range(-3, 8)] + [-0.0, 0.30000000000000004, 1e300]
    some_y = [*range(-3, 5), -(2**63), 2**63 - 1]
    ts = np.cumsum(rng.integers(0, 4, rows)) - 20
    return WorldStream(
        ts.tolist(), rng.choice(some_x, rows).tolist(), rng.choice(np.array(some_y), rows).tolist()
    )


@pytest.mark.parametrize("bucketed", [True, False])
def test_both_oracles_agree(spark: Any, tmp_path: Path, bucketed: bool) -> None:
    """In one job of Spark's, which costs more than all these tuples."""
    rng = np.random.default_rng(8 + bucketed)
    session = query_session(spark)
    wanted: list[tuple[int, ...]] = []
    by_spark = None
    for case, text in enumerate(QUERIES):
        query = parse_query(text)
        files = tuple(stream(rng).write(n, tmp_path / f"{case}{n}", 1000) for n in query.streams)
        by_numpy = pairs_by_numpy(text, files)
        assert by_numpy, f"nothing to compare: {text}"
        wanted += [(case, *pair) for pair in by_numpy]
        frames = [session.read.parquet(str(file.directory)) for file in files]
        pairs = expected_pairs(query, [f.schema for f in files], frames, bucketed=bucketed)
        pairs = pairs.select(sf.lit(case).alias("case"), "*")
        by_spark = pairs if by_spark is None else by_spark.unionAll(pairs)
    assert by_spark is not None
    found = [tuple(row) for row in by_spark.collect()]
    for case, text in enumerate(QUERIES):
        mine = [sorted(pair for pair in pairs if pair[0] == case) for pairs in (found, wanted)]
        assert mine[0] == mine[1], text


def test_the_name_of_a_field_cannot_end_its_quotes(spark: Any) -> None:
    session = query_session(spark)
    names = ("id.orig h", "b` + reflect('a', 'b') + `c")
    query = parse_query(
        f'SELECT * FROM R, S WHERE R."{names[0]}" = S."{names[1]}" '
        "WINDOW AS (SLIDE INTERVAL '1' ON '9')"
    )
    schemas = [
        Schema(stream=stream, fields={name: "int64"})
        for stream, name in zip("RS", names, strict=True)
    ]
    rows = [(place, place, place // 2) for place in range(4)]
    frames = [
        session.createDataFrame(rows, "id bigint, ts bigint, x bigint").withColumnRenamed("x", name)
        for name in names
    ]
    found = expected_pairs(query, schemas, frames).collect()
    assert {(row.probe_stream, row.probe_id, row.match_id) for row in found} == {
        *((0, 1, 0), (0, 3, 2)),
        *((1, 0, 0), (1, 1, 0), (1, 1, 1), (1, 2, 2), (1, 3, 2), (1, 3, 3)),
    }


def test_totals_are_those_of_numpy(spark: Any) -> None:
    from joins.hashing import mix

    session = query_session(spark)
    ids = np.array([0, 5, -1, 2**62], np.int64)
    frame = session.createDataFrame(
        [*((int(i), int(i) + 1) for i in ids), (3, None)], "probe_id bigint, match_id bigint"
    )
    with np.errstate(over="ignore"):
        checksum = int((mix(~ids) * mix(ids + 1)).sum(dtype=np.uint64))
    assert total(frame) == Totals(4, checksum), "one was late"
