"""Numbered segments in event-time order: Spark sorts the rows, and a copy of them gets the numbers.

Valid rows are distributed to buckets by time range, a partition each, which Spark sorts, on disk
where one outgrows memory, and writes as a file. These are then copied into segments, some thousand
rows at a time, and each row gets its place among all rows as its id. A single timestamp is never
split between buckets, so a source in which most rows share one timestamp has one large bucket.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from actors.feed import ARRIVAL, PLACE
from spark_bridge.pipeline.typed_rows import FILE, ROW, place_in_partition
from spark_bridge.pipeline.validation import TS
from spark_bridge.prepared import ROW_GROUP_ROWS, TimeOrder, segment_writer

_SAMPLED_PER_BUCKET = 10_000  # a bucket's share is then within 2 % of what it should be
BUCKETS_MAX = 128  # the tree of comparisons between buckets must fit into one JVM method


def sample_bounds(frame: DataFrame, rows_at_most: int, segment_rows: int) -> list[int]:
    """Return times (ns), increasing, that cut the rows into buckets of about a segment each.

    They are quantiles of a sample, which is the same every time. Rows that will be rejected may
    move them a little, which matters to no result.
    """
    if rows_at_most <= segment_rows:
        return []
    buckets = min(BUCKETS_MAX, 1 + rows_at_most // segment_rows)
    buckets += buckets % 2  # two threads finish together
    one_in = max(1, rows_at_most // (buckets * _SAMPLED_PER_BUCKET))
    sample = frame.filter(sf.pmod(sf.xxhash64(source_place()), sf.lit(one_in)) == 0)
    shares = [sf.lit(part / buckets) for part in range(1, buckets)]
    quantiles = sample.agg(sf.percentile_approx(TS, sf.array(*shares)).alias("bounds")).first()
    assert quantiles is not None
    return sorted(set(quantiles["bounds"] or []))


def write_sorted(
    valid: DataFrame, columns: list[Column], bounds: list[int], *, rows: int, few: bool, to: Path
) -> None:
    """Write the rows of *valid* in order into the folder *to*, a file for each of the buckets.

    Of a bucket, its first *rows* rows are written. Where rows are *few*, and in one bucket, one
    task does it all, without a shuffle.
    """
    placed = valid.withColumn(PLACE, source_place())
    if few and not bounds:
        placed = placed.coalesce(1)
    else:
        placed = placed.repartitionById(len(bounds) + 1, _bucket_of(bounds))
    ordered = placed.sortWithinPartitions(TS, PLACE).filter(place_in_partition() < rows)
    ordered.select(*columns).write.parquet(str(to))


def source_place() -> Column:
    """Return a row's place in the source as one integer: file number, then row."""
    return sf.shiftleft(sf.col(FILE).cast("bigint"), 40).bitwiseOR(sf.col(ROW))


def _bucket_of(bounds: list[int]) -> Column:
    """Return the number of *bounds* that are not above a row's time, by bisection."""

    def within(low: int, high: int) -> Column:
        if low == high:
            return sf.lit(low)
        middle = (low + high) // 2
        after = sf.col(TS) >= sf.lit(bounds[middle])
        return sf.when(after, within(middle + 1, high)).otherwise(within(low, middle))

    return within(0, len(bounds))


def number_rows(ordered: Path, to: Path, *, rows: int, segment_rows: int) -> TimeOrder:
    """Copy the first *rows* rows that `write_sorted` wrote into numbered segments in *to*.

    No segment has more than *segment_rows* rows. `PLACE` is copied where `ARRIVAL` is recorded.
    """
    to.mkdir()
    done, parts, in_segment = TimeOrder(), 0, segment_rows
    with ExitStack() as segment:
        for batch in _batches(ordered, min(ROW_GROUP_ROWS, segment_rows)):
            batch = batch.slice(0, rows - done.rows)
            if not len(batch):
                break
            is_recorded = ARRIVAL in batch.schema.names
            ids = pa.array(np.arange(done.rows, done.rows + len(batch)))
            done.add(
                batch["ts"].to_numpy(),
                batch[PLACE].to_numpy(),
                batch[ARRIVAL].to_numpy() if is_recorded else None,
            )
            batch = batch.add_column(0, "id", ids)
            if not is_recorded:
                batch = batch.drop_columns([PLACE])
            if in_segment + len(batch) > segment_rows:
                segment.close()
                path = to / f"part-{parts:05d}.parquet"
                # What Spark noted of the columns would hide the id from it.
                writer = segment.enter_context(segment_writer(path, batch.schema.remove_metadata()))
                parts, in_segment = parts + 1, 0
            writer.write_batch(batch)
            in_segment += len(batch)
    return done


def _batches(ordered: Path, rows: int) -> Iterator[pa.RecordBatch]:
    for path in sorted(ordered.glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            yield from filter(len, file.iter_batches(rows))
        path.unlink()  # or all rows would be on the disk twice
