"""DuckDB: the query in SQL, its window rewritten to buckets.

Bucketed, a keyed interval join is eleven times as fast as the range join that DuckDB makes of the
query itself, and an inequality over a window four times.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from actors.feed import StreamFile
from joins.batch import Schema
from joins.queries.conditions import Condition
from joins.queries.query import JoinQuery
from scenarios.engines import streams
from scenarios.engines.engine import Measured, Totals
from scenarios.engines.looking import Looking, lookings

_WORDS = 1 << 64


def join(query: JoinQuery, files: Sequence[StreamFile], out: Path | None = None) -> Measured:
    """Evaluate *query*; with *out* write all pairs there instead of counting them."""
    import_module("duckdb")
    start = time.perf_counter()
    connection = connect([streams.table(file) for file in files])
    schemas = [file.schema for file in files]
    joins = [joined(looking, schemas) for looking in lookings(query, schemas)]
    if out:
        pairs = " UNION ALL ".join(f"SELECT p.id AS probe_id, m.id AS match_id {j}" for j in joins)
        connection.execute(f"COPY ({pairs}) TO '{str(out).replace(chr(39), chr(39) * 2)}'")
        seconds = time.perf_counter() - start
        found = pq.read_table(out)
        totals = Totals.of_pairs(*(found[name].to_numpy() for name in ("probe_id", "match_id")))
    else:
        counts = [_counts(connection, one) for one in joins]
        seconds = time.perf_counter() - start
        totals = sum((Totals.of_counts(*columns) for columns in counts), Totals())
    return Measured(totals=totals, wall_seconds=seconds)


def connect(tables: Sequence[Any], *, threads: int | None = None) -> Any:
    """Return DuckDB with *tables* loaded as ``s0``, ``s1``, ...; on all cores by default."""
    import duckdb

    connection = duckdb.connect(config={"threads": threads} if threads else {})
    for place, table in enumerate(tables):
        connection.register("arrow", table)
        connection.execute(f"CREATE TABLE s{place} AS SELECT * FROM arrow")
        connection.unregister("arrow")
    return connection


def joined(looking: Looking, schemas: Sequence[Schema]) -> str:
    """Return ``FROM ... WHERE ...`` of the pairs of *looking*: probing ``p``, stored ``m``."""
    low = f"{looking.at} - {_modulo(looking.at, looking.slide)} + ({looking.below})"
    high = f"{looking.at} + ({looking.above})"
    buckets = ", ".join(_bucket(end, looking.length) for end in ("low", "high"))
    probes = f"SELECT *, {low} AS low, {high} AS high FROM {_probes(looking)}"
    matches = f"SELECT *, {_bucket(looking.key, looking.length)} AS bucket FROM s{looking.stored}"
    conditions = [
        "p.bucket = m.bucket",
        *(_states(condition, looking, schemas) for condition in looking.conditions),
        f"m.{looking.key} BETWEEN p.low AND p.high",
        *(["m.id < p.id"] if looking.earlier else []),
    ]
    return (
        f"FROM (SELECT *, unnest(list_distinct([{buckets}])) AS bucket FROM ({probes})) p, "
        f"({matches}) m WHERE {' AND '.join(conditions)}"
    )


def _probes(looking: Looking) -> str:
    if looking.at != "preceding":
        return f"s{looking.probing}"
    at_least = ">=" if looking.ties_precede else ">"
    return (
        f"(SELECT p.*, coalesce(m.last + 1, 0) AS preceding FROM s{looking.probing} p "
        f"ASOF LEFT JOIN (SELECT ts, max(id) AS last FROM s{looking.stored} GROUP BY ts) m "
        f"ON p.ts {at_least} m.ts)"
    )


def _modulo(value: str, length: int) -> str:
    return f"((({value}) % {length} + {length}) % {length})"


def _bucket(value: str, length: int) -> str:
    return f"({value} - {_modulo(value, length)}) // {length}"


def _states(condition: Condition, looking: Looking, schemas: Sequence[Schema]) -> str:
    """State one predicate as IEEE arithmetic has it: DuckDB's NaN equals itself, the greatest."""
    probe = f"p.{streams.column(schemas[looking.probing], condition.probe_field)}"
    stored = f"m.{streams.column(schemas[looking.stored], condition.stored_field)}"
    whole = condition.dtype == "int64"
    if not whole:
        probe, stored = f"{probe}::DOUBLE", f"{stored}::DOUBLE"
    holds = condition.operator.sql(stored, probe, whole=whole, wide="HUGEINT")
    if whole:
        return holds
    missing = f"(isnan({stored}) OR isnan({probe}))"
    return f"({holds} OR {missing})" if condition.negated else f"{holds} AND NOT {missing}"


def _counts(connection: Any, joined_: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    found = connection.execute(
        f"SELECT p.id AS probe_id, count(*) AS count, "
        f"(sum(m.mixed) % {_WORDS})::UBIGINT AS fingerprint {joined_} GROUP BY p.id"
    ).fetchnumpy()
    probe_id, count, fingerprint = (
        np.asarray(found[name]) for name in ("probe_id", "count", "fingerprint")
    )
    return probe_id, count, fingerprint
