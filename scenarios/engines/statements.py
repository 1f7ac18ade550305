"""How each engine that is no part of joinsim states a query: SQL, or Polars' expressions.

All of them state the joins that `spark_bridge.sql.statement` makes of a query, over the same
columns: a stream is a table of ``id``, ``ts`` in nanoseconds, and its join fields ``f0``, ``f1``
and so on. (Spark's own statement is `spark_bridge.sql.oracle`.)

*DuckDB and Polars* join by an equality of buckets: a keyed interval join is eleven times as fast as
the range join that DuckDB makes of the query itself, an inequality over a window four times.

*Flink* drops state in a stream-stream join only where it joins within an interval of event time, to
the millisecond. So each side has a clock of its own: the time of a tuple in milliseconds, or for
windows by count its position, a millisecond each. The interval of clocks is as wide as the window
can be; the exact bounds are further conditions. Buckets take a fifth more processor time there, and
half as much again where the window is short: Flink joins tuple by tuple anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from actors.feed import StreamFile
from joins.batch import Schema
from joins.queries.conditions import Band, Condition
from spark_bridge.sql.statement import ProbeSide, predicate_sql

MILLISECOND_NS = 1_000_000
_WORDS = 1 << 64
_P, _M = "p_", "m_"
"""Prefixes of Polars' columns of probing tuples and of stored ones."""
_FLINK_TYPES = {"int64": "BIGINT", "float64": "DOUBLE"}


def column(schema: Schema, field: str) -> str:
    """Return what a *field* of a stream is called in all statements."""
    return f"f{list(schema.fields).index(field)}"


def columns(schema: Schema) -> dict[str, str]:
    """Return the columns of a prepared stream that are read: name in the file to name here."""
    return {"id": "id", "ts": "ts"} | {field: column(schema, field) for field in schema.fields}


def _predicates(
    side: ProbeSide, schemas: Sequence[Schema], *, nan_is_greatest: bool = True
) -> list[str]:
    """Return the predicates of *side* in SQL, between a table ``p`` that probes and one ``m``."""
    return [
        predicate_sql(
            condition,
            f"p.{column(schemas[side.probing], condition.probe_field)}",
            f"m.{column(schemas[side.stored], condition.stored_field)}",
            nan_is_greatest=nan_is_greatest,
        )
        for condition in side.conditions
    ]


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


# DuckDB


def duckdb_table(name: str, file: StreamFile) -> str:
    """Return the statement that loads a prepared stream as the table *name*."""
    names = (f'"{field.replace(chr(34), chr(34) * 2)}"' for field in columns(file.schema))
    named = ", ".join(
        f"{a} AS {b}" for a, b in zip(names, columns(file.schema).values(), strict=True)
    )
    paths = ", ".join(_quoted(str(path)) for path in segments(file))
    return f"CREATE TABLE {name} AS SELECT {named} FROM read_parquet([{paths}])"


def duckdb_pairs(sides: Sequence[ProbeSide], schemas: Sequence[Schema], **how: bool) -> str:
    """Return the statement of all pairs, as ``probe_id, match_id``; *how* as `duckdb_join`."""
    return " UNION ALL ".join(
        f"SELECT p.id AS probe_id, m.id AS match_id {duckdb_join(side, schemas, **how)}"
        for side in sides
    )


def duckdb_counts(side: ProbeSide, schemas: Sequence[Schema], **how: bool) -> str:
    """Return the statement of how many matches each probing tuple has, and their fingerprint.

    The stored tables have a further column ``mixed``, each id as `joins.hashing.mix` mixes it.
    """
    return (
        f"SELECT p.id AS probe_id, count(*) AS count, (sum(m.mixed) % {_WORDS})::UBIGINT AS "
        f"fingerprint {duckdb_join(side, schemas, **how)} GROUP BY p.id"
    )


def duckdb_join(side: ProbeSide, schemas: Sequence[Schema], *, windowed: bool = True) -> str:
    """Return ``FROM ... WHERE ...`` of the pairs of *side*, between tables ``s0``, ``s1``, ...

    The probing tuples are ``p``, the stored ones ``m``. Not *windowed*, every tuple of one table
    sees every tuple of the other.
    """
    predicates = _predicates(side, schemas)
    if not windowed:
        return f"FROM s{side.probing} p, s{side.stored} m WHERE {' AND '.join(predicates)}"
    low = f"{side.at} - {_modulo(side.at, side.slide)} + ({side.below})"
    buckets = ", ".join(_bucket(end, side.length) for end in ("low", "high"))
    probes = f"SELECT *, {low} AS low, {side.at} + ({side.above}) AS high FROM {_probes(side)}"
    conditions = [
        "p.bucket = m.bucket",
        *predicates,
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


# Polars


def polars_frame(file: StreamFile) -> Any:
    """Return a prepared stream as a lazy frame."""
    import polars as pl

    names = columns(file.schema)
    return pl.scan_parquet(segments(file)).select(pl.col(a).alias(b) for a, b in names.items())


def polars_join(
    side: ProbeSide, frames: Sequence[Any], schemas: Sequence[Schema], *, windowed: bool = True
) -> Any:
    """Return the pairs of *side*: columns ``p_...`` of the probing tuple, ``m_...`` of the stored.

    Not *windowed*, every tuple of one frame sees every tuple of the other.
    """
    import polars as pl

    fields = [_fields(condition, side, schemas) for condition in side.conditions]
    filters = [
        holds
        for condition, pair in zip(side.conditions, fields, strict=True)
        for holds in _holds(condition, *pair)
    ]
    if not windowed:
        probes, stored = (
            frames[stream].select(pl.all().name.prefix(prefix))
            for stream, prefix in ((side.probing, _P), (side.stored, _M))
        )
        return probes.join_where(stored, *filters)
    at, key = pl.col(side.at), pl.col(_M + side.key)
    probes = _with_preceding(side, frames) if side.at == "preceding" else frames[side.probing]
    probes = probes.with_columns(
        low=at // side.slide * side.slide + side.below, high=at + side.above
    )
    buckets = pl.concat_list(*(pl.col(end) // side.length for end in ("low", "high")))
    probes = probes.with_columns(bucket=buckets.list.unique()).explode("bucket")
    stored = frames[side.stored].with_columns(bucket=pl.col(side.key) // side.length)
    equal = [
        pair
        for condition, pair in zip(side.conditions, fields, strict=True)
        if condition.operator.is_equality
    ]
    filters += [key >= pl.col("p_low"), key <= pl.col("p_high")]
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

    probe = pl.col(_P + column(schemas[side.probing], condition.probe_field))
    stored = pl.col(_M + column(schemas[side.stored], condition.stored_field))
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


# Flink


def flink_table(name: str, schema: Schema, path: Path) -> str:
    """Return the statement that declares the CSV file of one side of a join.

    Its columns are ``id``, ``ts``, ``at`` (each tuple's number, see
    `spark_bridge.sql.statement.ProbeSide`), ``mixed`` (the id, mixed), ``clock`` in milliseconds,
    and the fields.
    """
    fields = [
        f"`{column(schema, field)}` {_FLINK_TYPES[dtype]}" for field, dtype in schema.fields.items()
    ]
    columns = [f"`{name}` BIGINT" for name in ("id", "ts", "at", "mixed", "clock")]
    return (
        f"CREATE TABLE {name} ({', '.join(columns + fields)}, "
        "tick AS TO_TIMESTAMP_LTZ(`clock`, 3), "
        f"WATERMARK FOR tick AS tick - INTERVAL '1' SECOND) WITH ({_flink_files(path)})"
    )


def flink_results(name: str, path: Path) -> str:
    """Return the statement that declares the table of pairs, files in the folder *path*."""
    return f"CREATE TABLE {name} (probe_id BIGINT, match_id BIGINT) WITH ({_flink_files(path)})"


def flink_pairs(joins: Iterable[str]) -> str:
    """Return the statement of all pairs of *joins*."""
    return " UNION ALL ".join(f"SELECT p.id, m.id {one}" for one in joins)


def flink_count(joins: Iterable[str]) -> str:
    """Return the statement that counts pairs: a row for each day of the clock that has any.

    Without days, each change of the count would be a row to pass on to Python, which took most of
    the time.
    """
    union = " UNION ALL ".join(f"SELECT p.tick AS tick {one}" for one in joins)
    return f"SELECT COUNT(*) FROM ({union}) GROUP BY TUMBLE(tick, INTERVAL '1' DAY)"


def flink_totals(joins: Iterable[str]) -> str:
    """Return the statement that counts pairs and adds up their checksum, which wraps, by day."""
    union = " UNION ALL ".join(
        f"SELECT p.tick AS tick, p.mixed * m.mixed AS mixed {one}" for one in joins
    )
    day = "GROUP BY TUMBLE(tick, INTERVAL '1' DAY)"
    return f"SELECT COUNT(*), SUM(mixed) FROM ({union}) {day}"


def flink_join(side: ProbeSide, schemas: Sequence[Schema], probing: str, stored: str) -> str:
    """Return ``FROM ... WHERE ...`` of the pairs of *side*: probing ``p``, stored ``m``."""
    slid = f"MOD(MOD(p.`at`, {side.slide}) + {side.slide}, {side.slide})"
    low, high = side.least, side.above
    if side.key == "ts":  # milliseconds are rounded down on both sides
        low, high = low // MILLISECOND_NS - 1, -(-high // MILLISECOND_NS) + 1
    conditions = [
        *_predicates(side, schemas, nan_is_greatest=False),
        f"m.tick BETWEEN p.tick {_interval(low)} AND p.tick {_interval(high)}",
        f"m.`at` BETWEEN p.`at` - {slid} + ({side.below}) AND p.`at` + ({side.above})",
        *(["m.id < p.id"] if side.by_id else []),
    ]
    return f"FROM {probing} p, {stored} m WHERE {' AND '.join(conditions)}"


def _interval(ms: int) -> str:
    """Return ``+ INTERVAL ...`` or ``- INTERVAL ...``."""
    seconds, rest = divmod(abs(ms), 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    span = f"{days} {hours:02}:{minutes:02}:{seconds:02}.{rest:03}"
    return f"{'-' if ms < 0 else '+'} INTERVAL '{span}' DAY TO SECOND(3)"


def _flink_files(path: Path) -> str:
    where = _quoted(path.resolve().as_uri())
    return f"'connector' = 'filesystem', 'path' = {where}, 'format' = 'csv'"


def segments(file: StreamFile) -> list[Path]:
    """Return the files of a prepared stream, in order."""
    return sorted(file.directory.glob("*.parquet"))
