"""Numbered segments in event-time order: rows are cut into buckets, each sorted on its own.

Valid rows are distributed to buckets by time range, a partition each. A row's id is its place in
its bucket plus the sizes of the buckets before it. No step sees more than one bucket, and Spark
sorts a bucket that outgrows memory on disk. A single timestamp is never split between buckets, so a
source in which most rows share one timestamp has one large bucket.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as sf

from spark_bridge.pipeline.typed_rows import FILE, ROW, place_in_partition
from spark_bridge.pipeline.validation import TS
from spark_bridge.prepared import ROW_GROUP_ROWS

SOURCE_PLACE = "__joinsim_source"
"""Hidden column that `write_segments` adds: `source_place`."""

_SAMPLED_PER_BUCKET = 10_000  # a bucket's share is then within 2 % of what it should be
BUCKETS_MAX = 128  # the tree of comparisons between buckets must fit into one JVM method
_BY_SOURCE, _BY_TIME, _ID = "__joinsim_by_source", "__joinsim_by_time", "__joinsim_id"


@dataclass(frozen=True, kw_only=True)
class Span:
    """The valid rows of a bucket: how many, and the first and the last place in the source."""

    rows: int
    first: int
    last: int


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
    firsts
        Place in the source of each bucket's first row, where no other row is between a bucket's
        rows; else None.
    """

    bounds: list[int]
    counts: list[int]
    in_order: bool
    firsts: list[int] | None


ONE_BUCKET = Buckets(bounds=[], counts=[0], in_order=True, firsts=None)
"""Of a source that needs no more; how many rows it has is not known yet, nor of importance."""


def buckets_needed(rows: int, segment_rows: int) -> int:
    """Return how many buckets *rows* rows need for each to be about one segment."""
    if rows <= segment_rows:
        return 1
    # The quantiles are approximate: a tenth to spare, or a bucket may have a tiny second segment.
    needed = 1 + rows * 11 // (segment_rows * 10)
    return min(BUCKETS_MAX, needed + needed % 2)  # even: two threads finish together


def sample_bounds(frame: DataFrame, rows_at_most: int, segment_rows: int) -> list[int]:
    """Return times (ns), increasing, that cut the rows into buckets of about equal size.

    They are quantiles of a sample, which is the same every time. Rows that will be rejected may
    move them a little, which matters to no result.
    """
    buckets = buckets_needed(rows_at_most, segment_rows)
    one_in = max(1, rows_at_most // (buckets * _SAMPLED_PER_BUCKET))
    sample = frame.filter(sf.pmod(sf.xxhash64(source_place()), sf.lit(one_in)) == 0)
    shares = [sf.lit(part / buckets) for part in range(1, buckets)]
    quantiles = sample.agg(sf.percentile_approx(TS, sf.array(*shares)).alias("bounds")).first()
    assert quantiles is not None
    return sorted(set(quantiles["bounds"] or []))


def buckets_of(bounds: list[int], spans: Mapping[int, Span]) -> Buckets:
    """Return the buckets between *bounds* from the spans of those that have rows."""
    if not bounds or not spans:
        return ONE_BUCKET
    start = min(spans)  # Spark writes a file for an empty bucket if it is the first
    rows = {place: spans[place].rows if place in spans else 0 for place in range(len(bounds) + 1)}
    by_time = [spans[place] for place in sorted(spans)]
    gapless = all(span.last - span.first + 1 == span.rows for span in by_time)
    firsts = [spans[place].first if place in spans else 0 for place in rows]
    return Buckets(
        bounds=bounds[start:],
        counts=list(rows.values())[start:],
        in_order=all(a.last < b.first for a, b in pairwise(by_time)),
        firsts=firsts[start:] if gapless else None,
    )


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
) -> bool:
    """Write the first *rows* rows of *valid* in order, numbered, as segments in the folder *to*.

    Where they are *few*, and in one bucket, one task does it all, without a shuffle.

    Returns
    -------
    bool
        Whether they were in order in the source.
    """
    bucket = sf.spark_partition_id()  # which partition a row goes to is its bucket's number
    before = np.cumsum([0, *buckets.counts[:-1]]).tolist()
    placed = valid.withColumn(SOURCE_PLACE, source_place())
    if few and not buckets.bounds:
        placed = placed.coalesce(1)
    else:
        placed = placed.repartitionById(len(buckets.counts), bucket_of(buckets.bounds))
    if not buckets.in_order:
        by_source = sf.lit(-1)  # no row is where it was
    elif buckets.firsts is not None:
        by_source = sf.col(SOURCE_PLACE) - sf.get(_array(buckets.firsts), bucket)
    else:
        by_source = place_in_partition()
        placed = placed.sortWithinPartitions(SOURCE_PLACE)
    disorder = Observation()
    numbered = (
        placed.withColumn(_BY_SOURCE, by_source)
        .sortWithinPartitions(TS, SOURCE_PLACE)
        .withColumn(_BY_TIME, place_in_partition())
        .withColumn(_ID, sf.get(_array(before), bucket) + sf.col(_BY_TIME))
        .filter(sf.col(_ID) < rows)
        .observe(disorder, sf.count_if(sf.col(_BY_TIME) != sf.col(_BY_SOURCE)).alias("moved"))
        .select(sf.col(_ID).alias("id"), *columns)
    )
    (
        numbered.write.option("compression", "zstd")
        .option("maxRecordsPerFile", segment_rows)
        .option("parquet.block.row.count.limit", ROW_GROUP_ROWS)
        .option("parquet.writer.version", "v2")  # times as differences: a fourth of the decoding
        .option("parquet.enable.dictionary#id", "false")  # all differ: it would be tried in vain
        .option("parquet.enable.dictionary#ts", "false")
        .parquet(str(scratch))
    )
    move_parts(scratch, to)
    return not disorder.get["moved"]


def _array(numbers: list[int]) -> Column:
    return sf.array(*(sf.lit(number).cast("bigint") for number in numbers))


def source_place() -> Column:
    """Return a row's place in the source as one integer: file number, then row."""
    return sf.shiftleft(sf.col(FILE).cast("bigint"), 40).bitwiseOR(sf.col(ROW))


def bucket_of(bounds: list[int]) -> Column:
    """Return the number of *bounds* that are not above a row's time, by bisection."""

    def within(low: int, high: int) -> Column:
        if low == high:
            return sf.lit(low)
        middle = (low + high) // 2
        after = sf.col(TS) >= sf.lit(bounds[middle])
        return sf.when(after, within(middle + 1, high)).otherwise(within(low, middle))

    return within(0, len(bounds))


def move_parts(scratch: Path, to: Path) -> None:
    """Move what Spark wrote in the folder *scratch* to the folder *to*, which is created."""
    to.mkdir()
    # Named part-00000-<run>-c000, by partition and file, of which there may be more than 1000.
    parts = scratch.glob("*.parquet")
    files = sorted(parts, key=lambda part: (part.name[:10], len(part.name), part.name))
    for number, file in enumerate(files):
        file.rename(to / f"part-{number:05d}.parquet")
