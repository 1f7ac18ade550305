"""A join as a batch job that ships full tuples, or reduces them first by partial tuples.

Spark ships both sides' tuples, all their columns, to where they meet. A semijoin first ships the
partial tuples, which are the distinct values of the join attributes, and then only those full
tuples whose value has a partner; a Bloom filter may represent the values (a Bloomjoin). Whether
that pays depends on how many tuples have no partner, and on how wide they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf

from actors.feed import StreamFile
from joins.batch import Schema
from joins.errors import DataError
from joins.queries.query import JoinQuery
from joins.semijoins.bloom_filter import BloomFilter
from spark_bridge.engines import EngineResult
from spark_bridge.query_runs import query_session, read_streams, run_batch_job
from spark_bridge.sql.native import expected_pairs
from spark_bridge.sql.statement import sql_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Shipping = Literal["full", "semijoin", "bloom"]
"""What travels: full tuples of both streams; or first the partial tuples of each to the other, as
values or as a Bloom filter."""

REST = "rest"
"""The column of what a tuple has besides its join fields."""

_BITS_PER_VALUE = 10
_DIGEST_BYTES = 64


def run_shipping(
    query: JoinQuery, files: Sequence[StreamFile], shipping: Shipping, *, spark: SparkSession
) -> EngineResult:
    """Join two whole streams; a result is as wide as both its tuples.

    A tuple has its join fields and as many incompressible bytes as its schema's *width_bytes*. In
    the result, *shuffled_bytes* is what Spark shuffled plus the partial tuples, once for each core.

    Raise :exc:`DataError` for a query whose tuples cannot be reduced (see `join_keys`).
    """
    schemas = [file.schema for file in files]
    keys = join_keys(query, schemas)
    if isinstance(keys, str):
        raise DataError(f"{keys}: {query}")
    # Small streams are not to be sent whole to every core: what is compared is shuffling.
    session = query_session(spark, **{"spark.sql.autoBroadcastJoinThreshold": "-1"})
    partial_bytes = 0

    def build() -> DataFrame:
        nonlocal partial_bytes
        frames = read_streams(session, files)
        if shipping != "full":
            for place, other in ((0, 1), (1, 0)):
                values = _values(frames[other], keys[other])
                keep, nbytes = _REDUCERS[shipping](keys[place], values)
                frames[place] = frames[place].mapInArrow(keep, frames[place].schema)
                partial_bytes += nbytes * spark.sparkContext.defaultParallelism
        wide = [
            frame.withColumn(REST, _rest(schema.width_bytes))
            for frame, schema in zip(frames, schemas, strict=True)
        ]
        pairs = expected_pairs(query, schemas, wide, carried=(REST,))
        # Spark does not ship columns that nobody reads.
        width = sf.length(f"p_{REST}") + sf.length(f"m_{REST}")
        return pairs.filter(width == sum(schema.width_bytes for schema in schemas))

    run = run_batch_job(build, session)
    return replace(run, shuffled_bytes=(run.shuffled_bytes or 0) + partial_bytes)


def join_keys(query: JoinQuery, schemas: Sequence[Schema]) -> tuple[list[str], list[str]] | str:
    """Return each stream's fields that must equal the other's, in the same order.

    If the query's tuples cannot be reduced by partial tuples, return the reason instead: it is not
    of two streams, compares no whole numbers by ``=``, or has a window by count (which depends on
    the positions of tuples without partners too).
    """
    if len(query.streams) != 2:
        return f"tuples of two streams reduce each other; here are {len(query.streams)}"
    if query.window and any(window.kind == "count" for window in query.windows):
        return "a window by count cannot be reduced to some of its tuples"
    keys: tuple[list[str], list[str]] = ([], [])
    for predicate in query.predicates:
        sides = (predicate.left, predicate.right)
        whole = all(schemas[side.stream].fields[side.name] == "int64" for side in sides)
        if predicate.operator.is_equality and whole:
            for side in sides:
                keys[side.stream].append(side.name)
    return keys if keys[0] else "there is no equality of whole numbers to reduce tuples by"


def _values(frame: DataFrame, keys: list[str]) -> list[np.ndarray]:
    """Return the distinct values of *keys*, a column each."""
    found = frame.select(*map(sql_name, keys)).distinct().toArrow()
    return [found[name].to_numpy() for name in keys]


Reducer = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def _by_values(keys: list[str], values: list[np.ndarray]) -> tuple[Reducer, int]:
    """Return a reducer to the tuples whose values are among *values*, and the bytes of these."""
    rows = pa.table(values, names=keys)

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            partners = pa.Table.from_batches([batch]).join(rows, keys, join_type="left semi")
            yield from partners.select(batch.schema.names).to_batches()

    return keep, sum(column.nbytes for column in values)


def _by_filter(keys: list[str], values: list[np.ndarray]) -> tuple[Reducer, int]:
    """Return a reducer to the tuples that a Bloom filter of *values* lets pass, and its bytes."""
    bloom = BloomFilter.of(values, _BITS_PER_VALUE)

    def keep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            columns = [batch[name].to_numpy(zero_copy_only=False) for name in keys]
            yield batch.filter(pa.array(bloom.may_contain(columns)))

    return keep, bloom.nbytes


_REDUCERS: dict[str, Callable[[list[str], list[np.ndarray]], tuple[Reducer, int]]] = {
    "semijoin": _by_values,
    "bloom": _by_filter,
}


def _rest(nbytes: int) -> Any:
    """Return a column of *nbytes* bytes, different for every tuple."""
    if not nbytes:
        return sf.lit(b"")
    digests = [
        sf.sha2(sf.concat_ws(" ", "id", "ts", sf.lit(place)), 512)
        for place in range(-(-nbytes // _DIGEST_BYTES))
    ]
    return sf.substring(sf.unhex(sf.concat(*digests)), 1, nbytes)
