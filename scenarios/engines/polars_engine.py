"""Polars: the query as expressions on its streaming engine, its window rewritten to buckets."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from actors.feed import StreamFile
from joins.batch import Schema
from joins.queries.conditions import Comparison, Condition
from joins.queries.query import JoinQuery
from scenarios.engines import streams
from scenarios.engines.engine import Measured, Totals
from scenarios.engines.looking import Looking, lookings

_P, _M = "p_", "m_"
"""Prefixes of the columns of probing tuples and of those they look at."""


def join(query: JoinQuery, files: Sequence[StreamFile], out: Path | None = None) -> Measured:
    """Evaluate *query*; with *out* write all pairs there instead of counting them."""
    import polars as pl

    start = time.perf_counter()
    frames = [pl.LazyFrame(pl.from_arrow(streams.table(file))) for file in files]
    schemas = [file.schema for file in files]
    joins = [joined(looking, frames, schemas) for looking in lookings(query, schemas)]
    if out:
        pairs = pl.concat([j.select(probe_id="p_id", match_id="m_id") for j in joins])
        pairs.sink_parquet(out, engine="streaming")
        seconds = time.perf_counter() - start
        found = pq.read_table(out)
        totals = Totals.of_pairs(*(found[name].to_numpy() for name in ("probe_id", "match_id")))
    else:
        counts = [
            j.group_by("p_id")
            .agg(count=pl.len().cast(pl.Int64), fingerprint=pl.col("m_mixed").sum())
            .collect(engine="streaming")
            for j in joins
        ]
        seconds = time.perf_counter() - start
        totals = sum(
            (Totals.of_counts(*(c.to_numpy() for c in found.get_columns())) for found in counts),
            Totals(),
        )
    return Measured(totals=totals, wall_seconds=seconds)


def joined(looking: Looking, frames: Sequence[Any], schemas: Sequence[Schema]) -> Any:
    """Return the pairs of *looking*: all columns of the probing tuple and of the other."""
    import polars as pl

    at = pl.col(looking.at)
    probes = _with_at(looking, frames).with_columns(
        low=at // looking.slide * looking.slide + looking.below, high=at + looking.above
    )
    buckets = pl.concat_list(*(pl.col(end) // looking.length for end in ("low", "high")))
    probes = probes.with_columns(bucket=buckets.list.unique()).explode("bucket")
    matches = frames[looking.stored].with_columns(bucket=pl.col(looking.key) // looking.length)
    equal, others = _sides_of_equalities(looking, schemas), []
    for condition in looking.conditions:
        others += _states(condition, looking, schemas)
    if looking.earlier:
        others.append(pl.col("m_id") < pl.col("p_id"))
    key = pl.col(_M + looking.key)
    return (
        probes.select(pl.all().name.prefix(_P))
        .join(
            matches.select(pl.all().name.prefix(_M)),
            left_on=[pl.col("p_bucket"), *(probe for probe, _ in equal)],
            right_on=[pl.col("m_bucket"), *(stored for _, stored in equal)],
            coalesce=False,
        )
        .filter(key >= pl.col("p_low"), key <= pl.col("p_high"), *others)
    )


def _with_at(looking: Looking, frames: Sequence[Any]) -> Any:
    import polars as pl

    probes = frames[looking.probing]
    if looking.at != "preceding":
        return probes
    last = frames[looking.stored].group_by("ts").agg(last=pl.col("id").max()).sort("ts")
    counted = probes.sort("ts").join_asof(last, on="ts", allow_exact_matches=looking.ties_precede)
    return counted.with_columns(preceding=pl.col("last").fill_null(-1) + 1)


def _fields(condition: Condition, looking: Looking, schemas: Sequence[Schema]) -> tuple[Any, Any]:
    import polars as pl

    probe = pl.col(_P + streams.column(schemas[looking.probing], condition.probe_field))
    stored = pl.col(_M + streams.column(schemas[looking.stored], condition.stored_field))
    if condition.dtype == "int64":
        return probe, stored
    return probe.cast(pl.Float64), stored.cast(pl.Float64)


def _sides_of_equalities(looking: Looking, schemas: Sequence[Schema]) -> list[tuple[Any, Any]]:
    return [_fields(c, looking, schemas) for c in looking.conditions if c.operator.is_equality]


def _states(condition: Condition, looking: Looking, schemas: Sequence[Schema]) -> list[Any]:
    """State one predicate as IEEE arithmetic has it: Polars' NaN equals itself and is greatest."""
    import polars as pl

    probe, stored = _fields(condition, looking, schemas)
    whole = condition.dtype == "int64"
    if whole and not isinstance(condition.operator, Comparison):  # a difference may not fit 64 bits
        probe, stored = probe.cast(pl.Int128), stored.cast(pl.Int128)
    holds = condition.operator.holds(stored, probe, whole=whole)
    if whole:
        return [holds]
    missing = probe.is_nan() | stored.is_nan()
    return [holds | missing] if condition.negated else [holds, ~missing]
