"""From valid rows to numbered segments in event-time order.

Rows are distributed to buckets by time range, a partition each. A bucket is sorted on its own, and
a row's id is its place in the bucket plus the sizes of the buckets before it. No step sees more
than one bucket, and Spark sorts a bucket that outgrows memory on disk. A single timestamp is never
split between buckets, so a source in which most rows share one timestamp has one large bucket.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as sf

from spark_bridge.pipeline.typed_rows import FILE, ROW, place_in_partition
from spark_bridge.pipeline.validation import TS
from spark_bridge.prepared import ROW_GROUP_ROWS

BUCKETS_MAX = 128  # the tree of comparisons between buckets must fit into one JVM method
_BUCKET, _SOURCE = "__joinsim_bucket", "__joinsim_source"
_BY_SOURCE, _BY_TIME, _ID = "__joinsim_by_source", "__joinsim_by_time", "__joinsim_id"


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """Time ranges and how many rows are in each.

    Attributes
    ----------
    bounds
        First timestamp (ns) of every bucket but the first, increasing.
    counts
        Rows per bucket.
    in_order
        True when no bucket starts, in source order, before the one before it ends.
    """

    bounds: list[int]
    counts: list[int]
    in_order: bool


ONE_BUCKET = Buckets(bounds=[], counts=[0], in_order=True)
"""Of a source that needs no more; how many rows it has is not known yet, nor of importance."""


def buckets_needed(rows: int, segment_rows: int) -> int:
    """Return how many buckets *rows* rows need for each to be about one segment."""
    if rows <= segment_rows:
        return 1
    # The quantiles are approximate: a tenth to spare, or a bucket may have a tiny second segment.
    return min(BUCKETS_MAX, 1 + rows * 11 // (segment_rows * 10))


def make_buckets(valid: DataFrame, quantiles: list[int]) -> Buckets:
    """Count the rows of *valid* in the ranges between the *quantiles* of their timestamps."""
    bounds = sorted(set(quantiles))
    if not bounds:
        return ONE_BUCKET
    counted = (
        valid.withColumn(_BUCKET, _bucket(bounds))
        .groupBy(_BUCKET)
        .agg(sf.count(sf.lit(1)), sf.min(source_place()), sf.max(source_place()))
        .collect()
    )
    counts, spans = [0] * (len(bounds) + 1), []
    for bucket, count, first, last in sorted(tuple(row) for row in counted):
        counts[bucket] = count
        spans.append((first, last))
    if not counts[0]:  # the first quantile is the earliest time
        bounds, counts = bounds[1:], counts[1:]
    in_order = all(a[1] < b[0] for a, b in pairwise(spans))
    return Buckets(bounds=bounds, counts=counts, in_order=in_order)


def write_segments(
    valid: DataFrame,
    columns: list[Column],
    buckets: Buckets,
    *,
    rows: int,
    segment_rows: int,
    few: bool,
    scratch: Path,
    to: Path,
) -> int:
    """Write the first *rows* rows of *valid* in order, numbered, as segments in the folder *to*.

    Where they are *few*, and in one bucket, one task does it all, without a shuffle.

    Returns
    -------
    int
        How many of them have another place in their bucket by time than by source.
    """
    before = np.cumsum([0, *buckets.counts[:-1]]).tolist()
    offsets = sf.array(*(sf.lit(int(count)) for count in before))
    bucket = _bucket(buckets.bounds)
    disorder = Observation()
    if few and not buckets.bounds:
        valid = valid.coalesce(1)
    else:
        valid = valid.repartitionById(len(buckets.counts), bucket)
    numbered = (
        valid.withColumn(_SOURCE, source_place())
        .sortWithinPartitions(_SOURCE)
        .withColumn(_BY_SOURCE, place_in_partition())
        .sortWithinPartitions(TS, _SOURCE)
        .withColumn(_BY_TIME, place_in_partition())
        .withColumn(_ID, sf.get(offsets, bucket) + sf.col(_BY_TIME))
        .filter(sf.col(_ID) < rows)
        .observe(disorder, sf.count_if(sf.col(_BY_TIME) != sf.col(_BY_SOURCE)).alias("moved"))
        .select(sf.col(_ID).alias("id"), *columns)
    )
    (
        numbered.write.option("compression", "zstd")
        .option("maxRecordsPerFile", segment_rows)
        .option("parquet.block.row.count.limit", ROW_GROUP_ROWS)
        .option("parquet.writer.version", "v2")  # times as differences: a fourth of the decoding
        .parquet(str(scratch))
    )
    _move_parts(scratch, to)
    return int(disorder.get["moved"] or 0)


def write_rejected(rejected: DataFrame, *, scratch: Path, to: Path) -> None:
    """Write *rejected* rows, which are in source order, as Parquet in the folder *to*."""
    rejected.write.option("compression", "zstd").parquet(str(scratch))
    _move_parts(scratch, to)


def source_place() -> Column:
    """Return a row's place in the source as one integer: file number, then row."""
    return sf.shiftleft(sf.col(FILE).cast("bigint"), 40).bitwiseOR(sf.col(ROW))


def _bucket(bounds: list[int]) -> Column:
    """Return the number of *bounds* that are not above a row's time, by bisection."""

    def within(low: int, high: int) -> Column:
        if low == high:
            return sf.lit(low)
        middle = (low + high) // 2
        after = sf.col(TS) >= sf.lit(bounds[middle])
        return sf.when(after, within(middle + 1, high)).otherwise(within(low, middle))

    return within(0, len(bounds))


def _move_parts(scratch: Path, to: Path) -> None:
    """Move what Spark wrote in the folder *scratch* to the folder *to*, which is created."""
    to.mkdir()
    # Named part-00000-<run>-c000, by partition and file, of which there may be more than 1000.
    parts = scratch.glob("*.parquet")
    files = sorted(parts, key=lambda part: (part.name[:10], len(part.name), part.name))
    for number, file in enumerate(files):
        file.rename(to / f"part-{number:05d}.parquet")
