"""A query as Spark itself evaluates it, independently of `joins.oracle`: its pairs, and runs of it.

Plain, a window join compares every tuple with every other. Bucketed (see `statement`), it is an
equi-join of buckets, which Spark evaluates by hashing. Both return the same pairs.

What a window means (see `joins.queries.windows`): a tuple sees those that arrived before it.
Arrivals are ordered by event time, then by the order of streams in the query, then by position.

A run in batch is the bucketed join, for which Spark plans a theta join. In streaming, it is a
stream-stream join: Spark stores tuples until the watermark shows that no partner can follow, which
it infers from bounds on its timestamps. These have microseconds, so the bounds on them are a
microsecond wider than the window, and the exact nanoseconds are a further condition. What Spark
cannot do, it reports itself.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from functools import reduce
from operator import and_
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.window import Window as Over

from actors.feed import StreamFile
from joins.batch import Schema
from joins.queries.query import JoinQuery
from spark_bridge.engines import EngineResult
from spark_bridge.query_runs import (
    PAIRS,
    query_session,
    read_streams,
    run_batch_job,
    run_stream,
    spark_errors_translated,
)
from spark_bridge.sql.statement import ProbeSide, probe_sides, sql_name, table_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession

EVENT_TIME = "event_time"
"""Optional column of Spark timestamps, by which Spark bounds the state of a stream-stream join."""

_P, _M = "p_", "m_"
"""Prefixes of the columns of probing tuples and of stored ones."""


def expected_pairs(
    query: JoinQuery,
    schemas: Sequence[Schema],
    frames: Sequence[DataFrame],
    *,
    bucketed: bool = True,
    carried: Sequence[str] = (),
) -> DataFrame:
    """Return the pairs of a query as rows of ``probe_stream, probe_id, match_id``.

    In an interval join, the tuples of the base stream are the probing ones.

    Parameters
    ----------
    query, schemas
        What to evaluate, and the dtypes of each stream's fields.
    frames
        The tuples of each stream: ``id``, ``ts`` in nanoseconds, and the join fields, in a
        `query_session`. With a column `EVENT_TIME`, bounds on it are stated as well.
    bucketed
        Whether to rewrite the window to an equality of buckets.
    carried
        Further columns of the frames to return, of a pair's probing tuple with the prefix ``p_``,
        of the stored one with ``m_``.
    """
    tables = [
        frame.select(
            *(sf.col(sql_name(field)).alias(name) for name, field in table_columns(schema).items()),
            *(name for name in (EVENT_TIME, *carried) if name in frame.columns),
        )
        for frame, schema in zip(frames, schemas, strict=True)
    ]
    sides = probe_sides(query, schemas)
    return reduce(
        DataFrame.unionAll, (_pairs(side, tables, carried, bucketed=bucketed) for side in sides)
    )


def _pairs(
    side: ProbeSide, frames: Sequence[DataFrame], carried: Sequence[str], *, bucketed: bool
) -> DataFrame:
    at, key = sf.col(side.at), sf.col(_M + side.key)
    low = at - sf.pmod(at, sf.lit(side.slide)) + side.below
    probes = _with_preceding(side, frames) if side.at == "preceding" else frames[side.probing]
    probes = _prefixed(probes.withColumns({"low": low, "high": at + side.above}), _P)
    stored = _prefixed(frames[side.stored], _M)
    conditions = [sf.expr(sql) for sql in side.predicates(_P, _M)]
    conditions += [key >= sf.col(_P + "low"), key <= sf.col(_P + "high")]
    if side.by_id:
        conditions.append(sf.col(_M + "id") < sf.col(_P + "id"))
    if EVENT_TIME in frames[side.stored].columns and side.key == "ts":
        conditions += _event_time_bounds(side)
    if bucketed:
        low, high = (_bucket(sf.col(_P + end), side.length) for end in ("low", "high"))
        probes = probes.withColumn("bucket", sf.explode(sf.array_distinct(sf.array(low, high))))
        stored = stored.withColumn("m_bucket", _bucket(key, side.length))
        conditions.insert(0, sf.col("bucket") == sf.col("m_bucket"))
    return probes.join(stored, reduce(and_, conditions)).select(
        sf.lit(side.probing).cast("byte").alias("probe_stream"),
        sf.col(_P + "id").alias("probe_id"),
        sf.col(_M + "id").alias("match_id"),
        *(prefix + name for name in carried for prefix in (_P, _M)),
    )


def _with_preceding(side: ProbeSide, frames: Sequence[DataFrame]) -> DataFrame:
    """Return the probes with how many stored tuples arrived before each of them."""
    probing, stored = side.probing, side.stored
    ticks = frames[stored].select("ts", sf.lit(stored).alias("of"), "id")
    ticks = ticks.unionAll(frames[probing].select("ts", sf.lit(probing).alias("of"), "id"))
    order = Over.orderBy("ts", "of", "id").rowsBetween(Over.unboundedPreceding, 0)
    counted = ticks.withColumn(
        "preceding", sf.sum((sf.col("of") == stored).cast("long")).over(order)
    )
    counts = counted.filter(sf.col("of") == probing).select("id", "preceding")
    return frames[probing].join(counts, "id")


def _event_time_bounds(side: ProbeSide) -> list[Column]:
    """Return bounds in microseconds that hold wherever those in nanoseconds do."""
    probe, stored = sf.col(_P + EVENT_TIME), sf.col(_M + EVENT_TIME)
    below, above = (
        sf.expr(f"interval '{ns // 1000 + margin}' microsecond")
        for ns, margin in ((side.least, -1), (side.above, 2))
    )
    return [stored >= probe + below, stored <= probe + above]


def _bucket(value: Column, length: int) -> Column:
    """Return the number of the bucket of *length* that *value* lies in, rounded down."""
    return sf.call_function("div", value - sf.pmod(value, sf.lit(length)), sf.lit(length))


def _prefixed(frame: DataFrame, prefix: str) -> DataFrame:
    return frame.toDF(*(prefix + name for name in frame.columns))


_SHIFT = "interval 1 day"
"""Added to event times: Spark's first watermark is the epoch, where synthetic streams begin, and
tuples that are not after it are late."""
_LATENESS = "1 second"


def run_batch(
    query: JoinQuery, files: Sequence[StreamFile], *, spark: SparkSession
) -> EngineResult:
    """Run *query* over whole streams as one job that counts pairs.

    The rewriting of its window is what an expert in Spark would do.

    Raise :exc:`SparkFailed` with Spark's message.
    """
    session, schemas = query_session(spark), [file.schema for file in files]
    return run_batch_job(
        lambda: expected_pairs(query, schemas, read_streams(session, files), bucketed=True),
        session,
    )


def run_streaming(
    query: JoinQuery, files: Sequence[StreamFile], folder: Path, *, spark: SparkSession
) -> EngineResult:
    """Run *query* as a stream-stream join that writes its pairs as Parquet into ``folder/found``.

    The state is in RocksDB in join state format 4, Spark's fastest. Streams are read a segment at
    a time. Spark silently drops tuples that are not newer than the watermark, which follows the
    latest tuple at a distance of `_LATENESS`.

    Raise :exc:`SparkFailed` with Spark's message where it refuses or fails.
    """
    began_s = time.perf_counter()
    session = query_session(spark)
    schemas = [file.schema for file in files]
    with spark_errors_translated():
        frames = [_stream(session, file).withWatermark(EVENT_TIME, _LATENESS) for file in files]
        pairs = expected_pairs(query, schemas, frames, bucketed=_is_keyed_by_count(query))
    found = folder / "found"
    writer = pairs.writeStream.format("parquet").option("path", os.fspath(found))
    return run_stream(
        # Ids hardly repeat: a dictionary of them costs more than all else, and is given up.
        writer.option("parquet.enable.dictionary", "false"),
        session=session,
        began_s=began_s,
        checkpoint=folder / "checkpoint",
        results=found,
        columns=PAIRS,
    )


def _is_keyed_by_count(query: JoinQuery) -> bool:
    """Return whether a stream-stream join would compare all tuples of a key: no time bounds them.

    Buckets spare it most of them. Without a key, Spark itself reports that it needs an equality.
    """
    by_count = bool(query.window) and any(window.kind == "count" for window in query.windows)
    return by_count and any(predicate.operator.is_equality for predicate in query.predicates)


def _stream(session: SparkSession, file: StreamFile) -> DataFrame:
    names = {"int64": "bigint", "float64": "double"}
    fields = [f"{sql_name(name)} {names[dtype]}" for name, dtype in file.schema.fields.items()]
    return (
        session.readStream.schema(", ".join(["id bigint", "ts bigint", *fields]))
        .option("maxFilesPerTrigger", 1)
        .parquet(os.fspath(file.directory))
        .withColumn(EVENT_TIME, sf.timestamp_micros(sf.expr("ts div 1000")) + sf.expr(_SHIFT))
    )
