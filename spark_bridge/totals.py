"""What a join on some engine came to: pairs, a checksum that no order changes, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


PAIRS = "probe_stream byte, probe_id bigint, match_id bigint"
COUNTS = "probe_stream byte, probe_id bigint, count bigint, fingerprint bigint"
"""Columns of what is found, as Spark spells them: a row per pair, or per probing tuple and joiner
with matches counted (the fingerprint as its signed twin: Spark has no unsigned numbers). A null in
the third column says that the tuple was dropped as late."""


@dataclass(frozen=True, kw_only=True)
class Totals:
    """How many pairs there are, and which.

    Attributes
    ----------
    pairs
        Their number.
    checksum
        The wrapping sum over all pairs of ``splitmix64(probe id) * splitmix64(match id)``: it can
        be had from the pairs, and from counts with fingerprints as well.
    late
        Tuples that were dropped as late.
    """

    pairs: int
    checksum: int
    late: int = 0


@dataclass(frozen=True, kw_only=True)
class EngineRun:
    """One run on an engine.

    Attributes
    ----------
    engine
        Its name.
    totals
        What came out.
    rows
        Tuples that went in.
    wall_seconds
        From the start of the query to its end, Spark's own start not included.
    shuffled_bytes
        Written by Spark for its exchanges, compressed as it writes them.
    versions
        Name to version of what it ran on.
    triggers
        Of a streaming query the tuples and seconds of each trigger.
    note
        What a reader should know, as why a graph was folded into one stage.
    """

    engine: str
    totals: Totals
    rows: int
    wall_seconds: float
    shuffled_bytes: int
    versions: Mapping[str, str]
    triggers: tuple[tuple[int, float], ...] = field(default=())
    note: str | None = None

    @property
    def steady_tps(self) -> float | None:
        """Tuples a second after the first trigger, in which Spark compiles and starts workers."""
        later = [trigger for trigger in self.triggers[1:] if trigger[0]]
        if not later:
            return None
        return sum(rows for rows, _ in later) / sum(seconds for _, seconds in later)


def total(found: DataFrame) -> Totals:
    """Add up rows of `PAIRS`, or of `COUNTS`.

    The session must compute as machines do: with ``spark.sql.ansi.enabled`` false sums wrap.
    """
    counted = "count" in found.columns
    third = "count" if counted else "match_id"
    dropped = sf.isnull(third)
    matched = sf.col("fingerprint") if counted else splitmix64(sf.col("match_id"))
    row = found.agg(
        sf.sum(sf.when(dropped, 0).otherwise(sf.col("count") if counted else sf.lit(1))),
        sf.sum(sf.when(~dropped, splitmix64(sf.col("probe_id")) * matched)),
        sf.count_if(dropped),
    ).collect()[0]
    pairs, checksum, late = (int(value or 0) for value in row)
    return Totals(pairs=pairs, checksum=checksum % (1 << 64), late=late)


def splitmix64(value: Column) -> Column:
    """Mix a bigint, as `joins.hashing` does; stated for Spark, which wraps without ANSI."""
    z = value + sf.lit(_signed(0x9E3779B97F4A7C15))
    z = z.bitwiseXOR(sf.shiftrightunsigned(z, 30)) * sf.lit(_signed(0xBF58476D1CE4E5B9))
    z = z.bitwiseXOR(sf.shiftrightunsigned(z, 27)) * sf.lit(_signed(0x94D049BB133111EB))
    return z.bitwiseXOR(sf.shiftrightunsigned(z, 31))


def _signed(word: int) -> int:
    return word - (1 << 64) if word >> 63 else word


def shuffled_bytes(spark: SparkSession) -> int:
    """Return what the application has written for exchanges so far."""
    store = spark.sparkContext._jsc.sc().statusStore()
    executors = store.executorList(False)
    return sum(executors.apply(i).totalShuffleWrite() for i in range(executors.length()))


def versions(spark: SparkSession) -> dict[str, str]:
    """Return the versions of Spark and of the Java it runs on."""
    java = spark.sparkContext._jvm.java.lang.System.getProperty("java.version")  # type: ignore[union-attr]
    return {"spark": spark.version, "java": java}


def process_id(spark: SparkSession) -> int:
    """Return the process of Spark's JVM, whose descendants are the Python workers."""
    return int(spark.sparkContext._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
