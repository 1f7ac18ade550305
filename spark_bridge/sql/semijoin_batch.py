"""A join as a batch job that ships full tuples, or reduces them first by partial tuples.

Spark joins by shipping both sides' tuples, all their columns, to where they meet. A semijoin ships
the distinct values of the join attributes first, the partial tuples, and afterwards only those full
tuples that have a partner of that value; a Bloom filter of the values may stand for them (a
Bloomjoin). Whether that pays depends on how many tuples have none, and on how wide they are.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf

from actors.feed import StreamFile
from joins.queries.query import JoinQuery
from joins.semijoins.bloom_filter import BloomFilter
from spark_bridge.errors import DataError
from spark_bridge.sql.oracle import expected_pairs
from spark_bridge.streaming import streaming_session
from spark_bridge.totals import EngineRun, shuffled_bytes, total, versions

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Shipping = Literal["full", "semijoin", "bloom"]

REST = "rest"
"""The column of what a tuple has beside its join fields."""

_BITS_PER_VALUE = 10
_DIGEST_BYTES = 64


def run_shipping(
    query: JoinQuery,
    files: Sequence[StreamFile],
    shipping: Shipping,
    *,
    spark: SparkSession,
    rest_bytes: int,
) -> EngineRun:
    """Join two whole streams, results as wide as both their tuples.

    Parameters
    ----------
    query
        Of two streams, with an equality between fields of whole numbers, within an interval or a
        window by time. (Windows by count are of positions, which other tuples than partners give.)
    shipping
        What travels: full tuples of both streams; or first the partial tuples of each to the other,
        as values or as a filter.
    rest_bytes
        What each tuple is wide beside its join fields; bytes that no codec makes fewer.

    Returns
    -------
    EngineRun
        *shuffled_bytes* is what Spark shuffled, and the partial tuples, once for each core.

    Raises
    ------
    DataError
        The query is another.
    """
    keys = _keys(query, files)
    session = streaming_session(spark)
    # Streams, however small, are not to be sent whole to every core: what is compared is shuffling.
    session.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    shuffled, start = shuffled_bytes(spark), time.perf_counter()
    frames = [session.read.parquet(os.fspath(file.directory)) for file in files]
    rows = sum(frame.count() for frame in frames)
    partial_bytes = 0
    if shipping != "full":
        for place, other in ((0, 1), (1, 0)):
            values = _values(frames[other], keys[other])
            keep, nbytes = _REDUCERS[shipping](keys[place], values)
            frames[place] = frames[place].mapInArrow(keep, frames[place].schema)
            partial_bytes += nbytes * spark.sparkContext.defaultParallelism
    schemas = [file.schema for file in files]
    wide = [frame.withColumn(REST, _rest(rest_bytes)) for frame in frames]
    found = expected_pairs(query, schemas, wide, carried=(REST,))
    # What nobody reads, Spark does not ship.
    read = found.filter(sf.length(f"p_{REST}") + sf.length(f"m_{REST}") == 2 * rest_bytes)
    totals = total(read)
    return EngineRun(
        engine=f"native-spark-{shipping}",
        totals=totals,
        rows=rows,
        wall_seconds=time.perf_counter() - start,
        shuffled_bytes=shuffled_bytes(spark) - shuffled + partial_bytes,
        versions=versions(spark),
    )


def _keys(query: JoinQuery, files: Sequence[StreamFile]) -> tuple[list[str], list[str]]:
    """Return each stream's fields that must be equal to the other's, in the same order."""
    if len(query.streams) != 2:
        raise DataError(f"tuples of two streams reduce each other; here are {len(query.streams)}")
    if query.window and any(window.kind == "count" for window in query.windows):
        raise DataError(f"a window by count cannot be reduced to some of its tuples: {query}")
    keys: tuple[list[str], list[str]] = ([], [])
    for predicate in query.predicates:
        sides = (predicate.left, predicate.right)
        whole = all(files[side.stream].schema.fields[side.name] == "int64" for side in sides)
        if predicate.operator.is_equality and whole:
            for side in sides:
                keys[side.stream].append(side.name)
    if not keys[0]:
        raise DataError(f"there is no equality of whole numbers to reduce tuples by: {query}")
    return keys


def _values(frame: DataFrame, keys: list[str]) -> list[np.ndarray]:
    """Return the distinct values of *keys*, a column each."""
    found = frame.select(*keys).distinct().toArrow()
    return [found[name].to_numpy() for name in keys]


Reducer = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _by_values(keys: list[str], values: list[np.ndarray]) -> tuple[Reducer, int]:
    """Return what keeps the tuples whose values are among *values*, and what these take."""
    rows = pa.table(values, names=keys)

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            kept = pa.Table.from_batches([batch]).join(rows, keys, join_type="left semi")
            yield from kept.select(batch.schema.names).to_batches()

    return keep, sum(column.nbytes for column in values)


def _by_filter(keys: list[str], values: list[np.ndarray]) -> tuple[Reducer, int]:
    """Return what keeps the tuples whose values a Bloom filter may hold, and what that takes."""
    bloom = BloomFilter.of(values, _BITS_PER_VALUE)

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [batch[name].to_numpy(zero_copy_only=False) for name in keys]
            yield batch.filter(pa.array(bloom.may_hold(columns)))

    return keep, bloom.nbytes


_REDUCERS: dict[str, Callable[[list[str], list[np.ndarray]], tuple[Reducer, int]]] = {
    "semijoin": _by_values,
    "bloom": _by_filter,
}


def _rest(nbytes: int) -> Any:
    """Return a column of so many bytes, different for every tuple."""
    digests = [
        sf.sha2(sf.concat_ws(" ", "id", "ts", sf.lit(place)), 512)
        for place in range(-(-nbytes // _DIGEST_BYTES))
    ]
    return sf.substring(sf.unhex(sf.concat(*digests)), 1, nbytes)
