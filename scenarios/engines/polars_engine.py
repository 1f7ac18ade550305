"""Polars: the query as expressions on its streaming engine, its window rewritten to buckets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from joins.batch import Schema
from joins.queries.conditions import Band, Condition
from scenarios.engines import streams
from scenarios.engines.engine import EmbeddedEngine
from spark_bridge.sql.statement import ProbeSide

_P, _M = "p_", "m_"
"""Prefixes of the columns of probing tuples and of stored ones."""


class Polars(EmbeddedEngine):
    """Polars, as a library."""

    name = package = "polars"

    @staticmethod
    def evaluate(
        sides: Sequence[ProbeSide],
        tables: Sequence[pa.Table],
        schemas: Sequence[Schema],
        out: Path | None,
    ) -> Sequence[Sequence[np.ndarray]]:
        """Collect a lazy frame for each join, or write the pairs of all."""
        import polars as pl

        frames = [pl.LazyFrame(pl.from_arrow(table)) for table in tables]
        joins = [join_frames(side, frames, schemas) for side in sides]
        if out is not None:
            pairs = pl.concat([j.select(probe_id="p_id", match_id="m_id") for j in joins])
            pairs.sink_parquet(out, engine="streaming")
            return []
        counts = [
            j.group_by("p_id")
            .agg(count=pl.len().cast(pl.Int64), fingerprint=pl.col("m_mixed").sum())
            .collect(engine="streaming")
            for j in joins
        ]
        return [[column.to_numpy() for column in one.get_columns()] for one in counts]


def join_frames(side: ProbeSide, frames: Sequence[Any], schemas: Sequence[Schema]) -> Any:
    """Return the pairs of *side*: all columns of the probing tuple and of the stored one."""
    import polars as pl

    at, key = pl.col(side.at), pl.col(_M + side.key)
    probes = _with_preceding(side, frames) if side.at == "preceding" else frames[side.probing]
    probes = probes.with_columns(
        low=at // side.slide * side.slide + side.below, high=at + side.above
    )
    buckets = pl.concat_list(*(pl.col(end) // side.length for end in ("low", "high")))
    probes = probes.with_columns(bucket=buckets.list.unique()).explode("bucket")
    stored = frames[side.stored].with_columns(bucket=pl.col(side.key) // side.length)
    fields = [_fields(condition, side, schemas) for condition in side.conditions]
    equal = [
        pair
        for condition, pair in zip(side.conditions, fields, strict=True)
        if condition.operator.is_equality
    ]
    filters = [key >= pl.col("p_low"), key <= pl.col("p_high")]
    filters += [
        holds
        for condition, pair in zip(side.conditions, fields, strict=True)
        for holds in _holds(condition, *pair)
    ]
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


def _fields(condition: Condition, side: ProbeSide, schemas: Sequence[Schema]) -> tuple[Any, Any]:
    """Return a predicate's fields, probing and stored, in the type that they are compared in."""
    import polars as pl

    probe = pl.col(_P + streams.column(schemas[side.probing], condition.probe_field))
    stored = pl.col(_M + streams.column(schemas[side.stored], condition.stored_field))
    if condition.dtype == "int64":
        return probe, stored
    return probe.cast(pl.Float64), stored.cast(pl.Float64)


def _holds(condition: Condition, probe: Any, stored: Any) -> list[Any]:
    """State a predicate as IEEE arithmetic has it: Polars' NaN equals itself and is greatest."""
    import polars as pl

    whole = condition.dtype == "int64"
    if whole and isinstance(condition.operator, Band):  # a difference may not fit 64 bits
        probe, stored = probe.cast(pl.Int128), stored.cast(pl.Int128)
    holds = condition.operator.holds(stored, probe, whole=whole)
    if whole:
        return [holds]
    missing = probe.is_nan() | stored.is_nan()
    return [holds | missing] if condition.negated else [holds, ~missing]
