"""The same interval join by other means: DuckDB, Polars and Bytewax, one thread each, if installed.

The first two are given the join as `joinsim compare --engines` gives it to them: an equality on key
and time bucket. That is eleven times as fast as the range join DuckDB makes of the query itself.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec

import numpy as np
import pyarrow as pa

from benchmarks.interval_work import IntervalWork
from joins.batch import Schema
from joins.queries.parser import parse_query
from scenarios.engines import duckdb_engine, polars_engine
from spark_bridge.sql.statement import ProbeSide, probe_sides

Run = Callable[[], tuple[np.ndarray, np.ndarray]]
"""Computes all pairs: base ids and probe ids."""

_SCHEMAS = tuple(Schema(stream=name, fields={"key": "int64"}) for name in "AB")


def peers(work: IntervalWork) -> dict[str, Run]:
    """Return by name how each peer that is installed computes *work*."""
    makers = {
        "duckdb": ("DuckDB, bucketed", _duckdb),
        "polars": ("Polars, bucketed", _polars),
        "bytewax": ("Bytewax, by hand", _bytewax),
    }
    return {name: make(work) for module, (name, make) in makers.items() if find_spec(module)}


def _side(work: IntervalWork) -> ProbeSide:
    within = f"INTERVAL '{work.within_ns} ns'"
    text = (
        "SELECT * FROM A, B WHERE A.key = B.key "
        f"AND B.ts BETWEEN A.ts - {within} AND A.ts + {within}"
    )
    return probe_sides(parse_query(text), _SCHEMAS)[0]


def _tables(work: IntervalWork) -> list[pa.Table]:
    return [
        pa.table({"id": np.arange(len(ts)), "ts": ts, "f0": key})
        for ts, key in zip(work.ts, work.key, strict=True)
    ]


def _duckdb(work: IntervalWork) -> Run:
    connection = duckdb_engine.connect(_tables(work), threads=1)
    pairs = duckdb_engine.join_sql(_side(work), _SCHEMAS)

    def run() -> tuple[np.ndarray, np.ndarray]:
        found = connection.execute(f"SELECT p.id AS base, m.id AS probe {pairs}").fetchnumpy()
        return np.asarray(found["base"]), np.asarray(found["probe"])

    return run


def _polars(work: IntervalWork) -> Run:
    os.environ["POLARS_MAX_THREADS"] = "1"  # Read when it is imported.
    import polars as pl

    frames = [pl.LazyFrame(pl.from_arrow(table)) for table in _tables(work)]
    joined = polars_engine.join_frames(_side(work), frames, _SCHEMAS).select("p_id", "m_id")

    def run() -> tuple[np.ndarray, np.ndarray]:
        found = joined.collect(engine="streaming")
        return found["p_id"].to_numpy(), found["m_id"].to_numpy()

    return run


def _bytewax(work: IntervalWork) -> Run:
    from benchmarks.interval_bytewax import pairs_of

    return partial(pairs_of, work)
