"""DuckDB and Polars: libraries that join whole tables, each in a process of its own.

They read the prepared files by themselves, on all cores, and count the pairs or write them to one
Parquet file, which is forced to the disk. There the clock stops; the answer is checked afterwards.

They join by an equality of buckets: a keyed interval join is eleven times as fast as the range join
that DuckDB makes of the query itself, an inequality over a window four times.
"""

from __future__ import annotations

import os
import time
from abc import abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.feed import StreamFile, only_times_of_others
from actors.result_files import part_files
from actors.whole_files import force_to_disk
from joins.codes import GREATEST, LEAST
from joins.hashing import mix
from joins.queries.conditions import Condition
from joins.queries.query import JoinQuery
from scenarios.engines import (
    PairEngine,
    pair_totals,
    quote,
    read_columns,
)
from scenarios.plan import Plan
from scenarios.subprocesses import run_alone, tree_peak_bytes
from spark_bridge.engines import EngineResult, Totals
from spark_bridge.sql.statement import ProbeSide, probe_sides, table_columns

Sides = Sequence[ProbeSide]
Files = Sequence[StreamFile]
Columns = list[np.ndarray]

_WORDS = 1 << 64
_P, _M = "p_", "m_"
"""Prefixes of Polars' columns of probing tuples and of stored ones."""


class EmbeddedEngine(PairEngine):
    """A Python library, on all cores.

    Parameters
    ----------
    threads
        Run it on so many threads instead.
    """

    install = "pip install 'joinsim[engines]'"

    def __init__(self, threads: int | None = None) -> None:
        self._threads = threads

    def cannot(self, plan: Plan) -> str | None:
        """Refuse joins of more than two streams, and windows that end beyond int64."""
        return super().cannot(plan) or _beyond_int64(plan)

    def run(self, plan: Plan, directory: Path) -> EngineResult:
        """Count the pairs, or write them where the plan asks for them."""
        out = directory / "found.parquet" if plan.config.pairs else None
        return run_alone(self.join, plan.query, plan.stored_files, out)[0]

    def join(self, query: JoinQuery, files: Files, out: Path | None = None) -> EngineResult:
        """Evaluate *query* over *files*, in this process.

        *out* receives all pairs; by default they are counted.

        Raise :exc:`EngineFailed` where it counts otherwise the second time.
        """
        sides = probe_sides(query, [file.schema for file in files])
        began_s = time.perf_counter()
        engine = self._start()
        started_s = time.perf_counter()
        counted = self._evaluate(engine, sides, files, out)
        if out is not None:
            force_to_disk(out)  # as files of ours are
        ended_s = time.perf_counter()
        memory_bytes = tree_peak_bytes(os.getpid())
        if out is not None:
            totals = pair_totals(pq.read_table(out))
        else:
            matches = self._matches(engine, sides, [_with_mixed_ids(file) for file in files])
            totals = sum((Totals.of_counts(*one) for one in matches), Totals())
            totals.check_counted(counted)
        return EngineResult(
            totals=totals,
            start_seconds=started_s - began_s,
            wall_seconds=ended_s - started_s,
            memory_bytes=memory_bytes,
        )

    @abstractmethod
    def _start(self) -> Any:
        """Import the library, and return what it needs to run."""

    @abstractmethod
    def _evaluate(self, engine: Any, sides: Sides, files: Files, out: Path | None) -> int:
        """Read the *files* and count the pairs of all *sides*, or write them to *out*."""

    @abstractmethod
    def _matches(self, engine: Any, sides: Sides, tables: Sequence[pa.Table]) -> list[Columns]:
        """Return for each side its matches in *tables*: ``probe_id, count, fingerprint``."""


def _beyond_int64(plan: Plan) -> str | None:
    """Return that windows, or their buckets, end beyond int64, in which engines add times."""
    files = only_times_of_others(plan.files)
    times = [batch.ts for file in files for batch in file.batches()]
    if not times:
        return None
    first, last = (int(of(of(ts) for ts in times)) for of in (min, max))
    for side in probe_sides(plan.query, [file.schema for file in plan.files]):
        low = first - side.slide + min(side.below, 0) - side.length
        high = last + max(side.above, 0)
        if side.key == "ts" and not LEAST <= low <= high <= GREATEST:
            return f"event times from {first} to {last} ns have windows that end beyond int64"
    return None


def _with_mixed_ids(file: StreamFile) -> pa.Table:
    """Return a stream as statements name its columns, with ``mixed``, ``splitmix64(id)``."""
    columns = read_columns(file)
    return pa.table(columns | {"mixed": mix(columns["id"])})


class DuckDB(EmbeddedEngine):
    """DuckDB, as a library."""

    name = package = "duckdb"

    def _start(self) -> Any:
        import duckdb

        return duckdb.connect(config={"threads": self._threads} if self._threads else {})

    def _evaluate(self, engine: Any, sides: Sides, files: Files, out: Path | None) -> int:
        engine.execute("SET preserve_insertion_order = false").fetchall()
        for place, file in enumerate(files):
            engine.execute(_duckdb_table(f"s{place}", file)).fetchall()
        joins = [duckdb_join(side) for side in sides]
        if out is not None:
            pairs = " UNION ALL ".join(
                f"SELECT p.id AS probe_id, m.id AS match_id {join}" for join in joins
            )
            target = quote(str(out))
            engine.execute(f"COPY ({pairs}) TO {target} (FORMAT parquet)").fetchall()
            return 0
        return sum(engine.execute(f"SELECT count(*) {join}").fetchall()[0][0] for join in joins)

    def _matches(self, engine: Any, sides: Sides, tables: Sequence[pa.Table]) -> list[Columns]:
        for place, table in enumerate(tables):
            engine.register("arrow", table)
            engine.execute(f"CREATE OR REPLACE TABLE s{place} AS SELECT * FROM arrow").fetchall()
            engine.unregister("arrow")
        fingerprint = f"(sum(m.mixed) % {_WORDS})::UBIGINT"
        found = []
        for side in sides:
            counts = f"SELECT p.id, count(*), {fingerprint} {duckdb_join(side)} GROUP BY p.id"
            columns = engine.execute(counts).fetchnumpy()
            found.append([np.asarray(column) for column in columns.values()])
        return found


def _duckdb_table(name: str, file: StreamFile) -> str:
    """Return the statement that loads a prepared stream as the table *name*."""
    named = ", ".join(
        f'"{field.replace(chr(34), chr(34) * 2)}" AS {column}'
        for column, field in table_columns(file.schema).items()
    )
    paths = ", ".join(quote(str(path)) for path in part_files(file.directory))
    return f"CREATE TABLE {name} AS SELECT {named} FROM read_parquet([{paths}])"


def duckdb_join(side: ProbeSide) -> str:
    """Return ``FROM ... WHERE ...`` of the pairs of *side*, between tables ``s0``, ``s1``, ...

    The probing tuples are ``p``, the stored ones ``m``.
    """
    low = f"{side.at} - {_modulo(side.at, side.slide)} + ({side.below})"
    buckets = ", ".join(_bucket(end, side.length) for end in ("low", "high"))
    probes = f"SELECT *, {low} AS low, {side.at} + ({side.above}) AS high FROM {_probes(side)}"
    conditions = [
        "p.bucket = m.bucket",
        *side.predicates("p.", "m."),
        f"m.{side.key} BETWEEN p.low AND p.high",
        *(["m.id < p.id"] if side.by_id else []),
    ]
    return (
        f"FROM (SELECT *, unnest(list_distinct([{buckets}])) AS bucket FROM ({probes})) p, "
        f"(SELECT *, {_bucket(side.key, side.length)} AS bucket FROM s{side.stored}) m "
        f"WHERE {' AND '.join(conditions)}"
    )


def _probes(side: ProbeSide) -> str:
    if side.at != "preceding":
        return f"s{side.probing}"
    at_least = ">=" if side.ties_precede else ">"
    return (
        f"(SELECT p.*, coalesce(m.last + 1, 0) AS preceding FROM s{side.probing} p "
        f"ASOF LEFT JOIN (SELECT ts, max(id) AS last FROM s{side.stored} GROUP BY ts) m "
        f"ON p.ts {at_least} m.ts)"
    )


def _modulo(value: str, length: int) -> str:
    return f"((({value}) % {length} + {length}) % {length})"


def _bucket(value: str, length: int) -> str:
    return f"({value} - {_modulo(value, length)}) // {length}"


class Polars(EmbeddedEngine):
    """Polars, as a library, on its streaming engine."""

    name = package = "polars"

    def _start(self) -> Any:
        if self._threads:
            os.environ["POLARS_MAX_THREADS"] = str(self._threads)  # read when it is imported
        import polars as pl

        return pl

    def _evaluate(self, engine: Any, sides: Sides, files: Files, out: Path | None) -> int:
        frames = [_polars_frame(file) for file in files]
        joins = [polars_join(side, frames) for side in sides]
        if out is not None:
            pairs = engine.concat([one.select(probe_id="p_id", match_id="m_id") for one in joins])
            pairs.sink_parquet(out, engine="streaming", compression="snappy")
            return 0
        return sum(one.select(engine.len()).collect(engine="streaming").item() for one in joins)

    def _matches(self, engine: Any, sides: Sides, tables: Sequence[pa.Table]) -> list[Columns]:
        frames = [engine.LazyFrame(engine.from_arrow(table)) for table in tables]
        counts = [
            polars_join(side, frames)
            .group_by("p_id")
            .agg(count=engine.len().cast(engine.Int64), fingerprint=engine.col("m_mixed").sum())
            .collect(engine="streaming")
            for side in sides
        ]
        return [[column.to_numpy() for column in one.get_columns()] for one in counts]


def _polars_frame(file: StreamFile) -> Any:
    """Return a prepared stream as a lazy frame."""
    import polars as pl

    return pl.scan_parquet(part_files(file.directory)).select(
        pl.col(field).alias(name) for name, field in table_columns(file.schema).items()
    )


def polars_join(side: ProbeSide, frames: Sequence[Any]) -> Any:
    """Return the pairs of *side*: columns ``p_...`` of probing tuples, ``m_...`` of stored ones."""
    import polars as pl

    at, key = pl.col(side.at), pl.col(_M + side.key)
    probes = _with_preceding(side, frames) if side.at == "preceding" else frames[side.probing]
    probes = probes.with_columns(
        low=at // side.slide * side.slide + side.below, high=at + side.above
    )
    buckets = pl.concat_list(*(pl.col(end) // side.length for end in ("low", "high")))
    probes = probes.with_columns(bucket=buckets.list.unique()).explode("bucket")
    stored = frames[side.stored].with_columns(bucket=pl.col(side.key) // side.length)
    equal = [_fields(one) for one in side.conditions if one.operator.is_equality]
    filters = [*polars_predicates(side), key >= pl.col("p_low"), key <= pl.col("p_high")]
    if side.by_id:
        filters.append(pl.col("m_id") < pl.col("p_id"))
    return (
        probes.select(pl.all().name.prefix(_P))
        .join(
            stored.select(pl.all().name.prefix(_M)),
            left_on=[pl.col("p_bucket"), *(probe for probe, _ in equal)],
            right_on=[pl.col("m_bucket"), *(stored for _, stored in equal)],
            coalesce=False,
        )
        .filter(*filters)
    )


def _with_preceding(side: ProbeSide, frames: Sequence[Any]) -> Any:
    """Return the probes with how many stored tuples arrived before each of them."""
    import polars as pl

    last = frames[side.stored].group_by("ts").agg(last=pl.col("id").max()).sort("ts")
    probes = frames[side.probing].sort("ts")
    counted = probes.join_asof(last, on="ts", allow_exact_matches=side.ties_precede)
    return counted.with_columns(preceding=pl.col("last").fill_null(-1) + 1)


def polars_predicates(side: ProbeSide) -> list[Any]:
    """Return the predicates of *side* as expressions of the columns of `polars_join`."""
    return [holds for condition in side.conditions for holds in _holds(condition)]


def _fields(condition: Condition) -> tuple[Any, Any]:
    """Return a predicate's fields, probing and stored, in the type that they are compared in."""
    import polars as pl

    probe, stored = pl.col(_P + condition.probe_field), pl.col(_M + condition.stored_field)
    if condition.dtype == "int64":
        return probe, stored
    return probe.cast(pl.Float64), stored.cast(pl.Float64)


def _holds(condition: Condition) -> list[Any]:
    """State a predicate as IEEE arithmetic has it: Polars' NaN equals itself and is greatest."""
    import polars as pl

    probe, stored = _fields(condition)
    whole = condition.dtype == "int64"
    if whole and condition.operator.subtracts:
        probe, stored = probe.cast(pl.Int128), stored.cast(pl.Int128)
    holds = condition.operator.holds(stored, probe, whole=whole)
    if whole:
        return [holds]
    missing = probe.is_nan() | stored.is_nan()
    return [holds | missing] if condition.operator.negated else [holds, ~missing]
