"""The expected pairs of a query, stated in SQL, independently of `joins.oracle.expected`.

Plain, a window join is a comparison of every tuple with every other. Bucketed, stored tuples are
put into buckets as long as the window and each probing tuple looks into the two that its window
touches: an equality, which engines evaluate by hashing and in parallel. Both say the same.

What a window means (see `joins.queries.windows`): a tuple sees those that arrived before it.
Arrivals are ordered by event time, then by the order of streams in the query, then by position.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf
from pyspark.sql.window import Window as Over

from joins.batch import Schema
from joins.queries.conditions import Band, Field
from joins.queries.query import JoinQuery, Predicate

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

EVENT_TIME = "event_time"
"""A column of Spark's timestamps that frames may have, for Spark to bound its state by."""

_P, _M = "p_", "m_"
"""Prefixes of the columns of probing tuples and of those they look at."""
_INT64_MIN, _INT64_MAX = -(2**63), 2**63 - 1


def expected_pairs(
    query: JoinQuery,
    schemas: Sequence[Schema],
    frames: Sequence[DataFrame],
    *,
    bucketed: bool = True,
    carried: Sequence[str] = (),
) -> DataFrame:
    """Return the pairs of a query as rows of ``probe_stream, probe_id, match_id``.

    Of an interval join the tuples of the base stream are the probing ones.

    Parameters
    ----------
    query, schemas
        What to evaluate, and the dtypes of each stream's fields.
    frames
        Per stream its tuples: ``id``, ``ts`` in nanoseconds, and the join fields. Their session
        must have ``spark.sql.ansi.enabled`` false. With a column `EVENT_TIME`, bounds on it are
        stated as well.
    bucketed
        Whether to rewrite the window to an equality of buckets.
    carried
        Further columns of the frames to return: of a pair's probing tuple and of the other, their
        names behind ``p_`` and ``m_``.
    """
    if query.interval:
        return _pairs(query, schemas, frames, query.reach.base, bucketed, carried)
    parts = [
        _pairs(query, schemas, frames, probing, bucketed, carried)
        for probing in range(len(query.streams))
    ]
    return parts[0] if len(parts) == 1 else parts[0].unionAll(parts[1])


def _pairs(
    query: JoinQuery,
    schemas: Sequence[Schema],
    frames: Sequence[DataFrame],
    probing: int,
    bucketed: bool,
    carried: Sequence[str],
) -> DataFrame:
    stored = probing if query.is_self_join else 1 - probing
    probes, length, key = _with_bounds(query, frames, probing, stored)
    conditions = _seen(query, probing, stored)
    for predicate in query.predicates:
        sides = [
            _value(field, query, probing, schemas) for field in (predicate.left, predicate.right)
        ]
        conditions.append(_holds(predicate, *sides, whole=_whole(predicate, schemas)))
    if EVENT_TIME in frames[stored].columns:
        conditions += _event_times(query, stored)
    matches = _renamed(frames[stored], _M)
    probes = _renamed(probes, _P)
    if bucketed:
        low, high = (_floor(sf.col(_P + end), length) for end in ("low", "high"))
        looks_into = sf.array_distinct(sf.array(low, high))
        probes = probes.withColumn("bucket", sf.explode(looks_into))
        matches = matches.withColumn("m_bucket", _floor(sf.col(_M + key), length))
        conditions.insert(0, sf.col("bucket") == sf.col("m_bucket"))
    condition = conditions[0]
    for other in conditions[1:]:
        condition = condition & other
    return probes.join(matches, condition).select(
        sf.lit(probing).cast("byte").alias("probe_stream"),
        sf.col(_P + "id").alias("probe_id"),
        sf.col(_M + "id").alias("match_id"),
        *(prefix + name for name in carried for prefix in (_P, _M)),
    )


def _with_bounds(
    query: JoinQuery, frames: Sequence[DataFrame], probing: int, stored: int
) -> tuple[DataFrame, int, str]:
    """Return probes with ``low`` and ``high``, both seen; the length; and what is bounded."""
    probes = frames[probing]
    if query.interval:
        reach = query.reach
        low, high = sf.col("ts") + reach.lower_ns, sf.col("ts") + reach.upper_ns
        length = max(1, reach.upper_ns - reach.lower_ns)
        return probes.withColumns({"low": low, "high": high}), length, "ts"
    window = query.windows[stored]
    if window.kind == "count":
        probes = _with_preceding(frames, probing, stored)
        at, key, high = sf.col("preceding"), "id", sf.col("preceding") - 1
    else:
        at, key, high = sf.col("ts"), "ts", sf.col("ts")
    if window.semantics == "precise":
        low, high = at - window.length, at - 1
    else:
        low = at - sf.pmod(at, sf.lit(window.slide)) - (window.length - window.slide)
    return probes.withColumns({"low": low, "high": high}), window.length, key


def _with_preceding(frames: Sequence[DataFrame], probing: int, stored: int) -> DataFrame:
    """Return the probes with how many tuples of the stream they look into came before them."""
    if probing == stored:
        return frames[probing].withColumn("preceding", sf.col("id"))
    ticks = frames[stored].select("ts", sf.lit(stored).alias("of"), "id")
    ticks = ticks.unionAll(frames[probing].select("ts", sf.lit(probing).alias("of"), "id"))
    order = Over.orderBy("ts", "of", "id").rowsBetween(Over.unboundedPreceding, 0)
    counted = ticks.withColumn(
        "preceding", sf.sum((sf.col("of") == stored).cast("long")).over(order)
    )
    counts = counted.filter(sf.col("of") == probing).select("id", "preceding")
    return frames[probing].join(counts, "id")


def _seen(query: JoinQuery, probing: int, stored: int) -> list[Column]:
    """Return what says that a tuple is within the window or interval, and came before."""
    by_count = query.window is not None and query.windows[stored].kind == "count"
    key = sf.col(_M + ("id" if by_count else "ts"))
    bounds = [key >= sf.col(_P + "low"), key <= sf.col(_P + "high")]
    if by_count or query.interval:
        return bounds
    before = sf.col(_M + "ts") < sf.col(_P + "ts")
    if probing == stored:
        before = sf.col(_M + "id") < sf.col(_P + "id")
    elif stored < probing:
        before = sf.col(_M + "ts") <= sf.col(_P + "ts")
    return [*bounds, before]


def _event_times(query: JoinQuery, stored: int) -> list[Column]:
    """Return bounds on microseconds that hold wherever those on nanoseconds do."""
    if query.interval:
        below_ns, above_ns = query.reach.lower_ns, query.reach.upper_ns
    elif query.windows[stored].kind == "time":
        below_ns, above_ns = -query.windows[stored].length, 0
    else:
        return []
    probe, match = sf.col(_P + EVENT_TIME), sf.col(_M + EVENT_TIME)
    below, above = (
        sf.expr(f"interval '{ns // 1000 + wider}' microsecond")
        for ns, wider in ((below_ns, -1), (above_ns, 2))
    )
    return [match >= probe + below, match <= probe + above]


def _value(field: Field, query: JoinQuery, probing: int, schemas: Sequence[Schema]) -> Column:
    probes = field.role == 1 if query.is_self_join else field.stream == probing
    return sf.col((_P if probes else _M) + field.name)


def _whole(predicate: Predicate, schemas: Sequence[Schema]) -> bool:
    sides = (predicate.left, predicate.right)
    return all(schemas[side.stream].fields[side.name] == "int64" for side in sides)


def _holds(predicate: Predicate, left: Column, right: Column, *, whole: bool) -> Column:
    """State one predicate as IEEE arithmetic has it: Spark's NaN equals itself and is greatest."""
    if not whole:
        left, right = left.cast("double"), right.cast("double")
    operator = predicate.operator
    if isinstance(operator, Band):
        return _near(operator, left, right, whole=whole)
    holds: Column = operator.compare(left, right)
    if whole:
        return holds
    missing = sf.isnan(left) | sf.isnan(right)
    return holds | missing if operator.negated else holds & ~missing


def _near(band: Band, left: Column, right: Column, *, whole: bool) -> Column:
    if not whole:
        distance, width = sf.abs(left - right), sf.lit(float(band.width))
        return distance < width if band.symbol == "<" else distance <= width
    reach = sf.lit(Decimal(band.reach))
    # The ends are found in decimals, once a tuple; what is compared pair by pair stays whole.
    exact = left.cast("decimal(38,0)")
    low = sf.greatest(exact - reach, sf.lit(Decimal(_INT64_MIN))).cast("bigint")
    high = sf.least(exact + reach, sf.lit(Decimal(_INT64_MAX))).cast("bigint")
    return (right >= low) & (right <= high)


def _floor(value: Column, length: int) -> Column:
    """Return the number of the bucket of *length* that *value* lies in, rounded down."""
    return sf.call_function("div", value - sf.pmod(value, sf.lit(length)), sf.lit(length))


def _renamed(frame: DataFrame, prefix: str) -> DataFrame:
    return frame.select(*(sf.col(name).alias(prefix + name) for name in frame.columns))
