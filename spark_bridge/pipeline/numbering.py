"""From valid rows to numbered segments in event-time order.

Rows are distributed to buckets by time range, each bucket is sorted on its own, and a row's id is
its place in the bucket plus the sizes of the buckets before it. No step sees more than one bucket,
and Spark sorts a bucket that outgrows memory on disk. A single timestamp is never split between
buckets, so a source in which most rows share one timestamp has one large bucket.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Observation, Window
from pyspark.sql import functions as sf

from spark_bridge.pipeline.typed_rows import FILE, ROW
from spark_bridge.pipeline.validation import TS
from spark_bridge.prepared import ROW_GROUP_ROWS

BUCKETS_MAX = 128  # the tree of comparisons between buckets must fit into one JVM method
_BUCKET, _SOURCE = "__joinsim_bucket", "__joinsim_source"


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
    in_order = all(a[1] < b[0] for a, b in pairwise(spans))
    return Buckets(bounds=bounds, counts=counts, in_order=in_order)


def write_segments(
    valid: DataFrame,
    columns: list[Column],
    buckets: Buckets,
    *,
    rows: int,
    segment_rows: int,
    scratch: Path,
    to: Path,
) -> int:
    """Write the first *rows* rows of *valid* in order, numbered, as segments in the folder *to*.

    Returns
    -------
    int
        How many of them, going by time, come after a row that followed them in the source
        (counted between neighbours, within buckets).
    """
    before = np.cumsum([0, *buckets.counts[:-1]]).tolist()
    order = Window.partitionBy(_BUCKET).orderBy(TS, FILE, ROW)
    offset = sf.array(*(sf.lit(int(count)) for count in before))
    place = sf.row_number().over(order).cast("bigint")
    disorder = Observation()
    numbered = (
        valid.withColumn(_BUCKET, _bucket(buckets.bounds))
        .withColumn(_SOURCE, source_place())
        .withColumn("__joinsim_id", sf.get(offset, sf.col(_BUCKET)) + place - 1)
        .withColumn("__joinsim_back", sf.col(_SOURCE) < sf.lag(_SOURCE).over(order))
        .filter(sf.col("__joinsim_id") < rows)
        .observe(disorder, sf.count_if("__joinsim_back").alias("back"))
        .select(sf.col("__joinsim_id").alias("id"), *columns, _BUCKET)
    )
    (
        numbered.write.partitionBy(_BUCKET)
        .option("compression", "zstd")
        .option("maxRecordsPerFile", segment_rows)
        .option("parquet.block.row.count.limit", ROW_GROUP_ROWS)
        .option("parquet.writer.version", "v2")  # times as differences: a fourth of the decoding
        .parquet(str(scratch))
    )
    back = int(disorder.get["back"] or 0)
    _move_parts(sorted(scratch.glob(f"{_BUCKET}=*/*.parquet"), key=_first_id), to)
    return back


def write_rejected(rejected: DataFrame, *, scratch: Path, to: Path) -> None:
    """Write *rejected* rows, which are in source order, as Parquet in the folder *to*."""
    rejected.write.option("compression", "zstd").parquet(str(scratch))
    _move_parts(sorted(scratch.glob("*.parquet")), to)


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


def _first_id(file: Path) -> int:
    with pq.ParquetFile(file) as part:
        position = part.schema_arrow.names.index("id")
        return int(part.metadata.row_group(0).column(position).statistics.min)


def _move_parts(files: list[Path], to: Path) -> None:
    """Move what Spark wrote, in the order of *files*, to the folder *to*, which is created."""
    to.mkdir()
    for number, file in enumerate(files):
        file.rename(to / f"part-{number:05d}.parquet")
