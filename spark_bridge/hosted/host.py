"""Runs a graph of actors as a query of Spark Structured Streaming, its state in Spark's checkpoint.

The log of arrivals is Spark's source; its batches go to every shard that holds sources. Each stage
of the graph is one ``transformWithState`` over its shards, which write down what they find (see
`found`) and what they have become (see `kept`). Spark commits offsets, and which state is the last,
by trigger, so that a query that was killed goes on without a pair missing or doubled.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as sf

from actors.protocol import ActorSpec, Wiring
from actors.source import TakesArrivals
from joins.batch import Schema
from spark_bridge.errors import DataError, EngineUnavailable
from spark_bridge.hosted import arrival_log
from spark_bridge.hosted.checkpoint import claim
from spark_bridge.hosted.parcels import ROW
from spark_bridge.hosted.processor import Hosted, StageProcessor
from spark_bridge.hosted.stages import cut
from spark_bridge.hosted.whole_file import remove_unfinished
from spark_bridge.runs import COUNTS, PAIRS, TAKEN, EngineRun, query_session, run_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OLDEST_SPARK = (4, 1)
"""The first whose ``transformWithState`` takes rows in Python."""


@dataclass(frozen=True, kw_only=True)
class HostedQuery:
    """A graph of actors to host.

    Attributes
    ----------
    text
        The join query, as a person reads it.
    schemas
        Its streams' fields.
    specs, wiring
        The graph: how actors are built, and who is wired to whom.
    pairs
        Whether the output is pairs; otherwise matches are counted.
    seed
        The run's seed.
    fold
        Run all of it in one stage, even where the graph could be cut.
    """

    text: str
    schemas: tuple[Schema, ...]
    specs: Mapping[str, ActorSpec]
    wiring: Wiring
    pairs: bool = True
    seed: int = 1
    fold: bool = False


def run_hosted(
    query: HostedQuery,
    arrivals: Path,
    folder: Path,
    *,
    spark: SparkSession,
    files_per_trigger: int = 1,
) -> EngineRun:
    """Run *query* over the log in the folder *arrivals* until what is there has been taken.

    Parameters
    ----------
    folder
        Receives ``checkpoint`` and ``found``, the output as Parquet (see `found`). Where a run of
        the same query was there before, it goes on.
    files_per_trigger
        Files of the log that make a trigger. A fixed cost of about half a second a trigger wants
        triggers of some 100,000 tuples.

    Raises
    ------
    DataError
        The checkpoint in *folder* is of another query or log, or not whole, or results of more
        than two streams are to be written.
    EngineUnavailable
        This Spark has no stateful operators for Python.
    SparkFailed
        The query failed; in Spark's own words.
    """
    need_stateful_operators()
    if query.pairs and len(query.schemas) > 2:
        raise DataError(
            f"operators inside Spark write pairs; results of {len(query.schemas)} streams are "
            "counted: leave pairs out"
        )
    session = query_session(spark)
    stages = cut(query.specs, query.wiring, fold=query.fold)
    partitions = min(stages.partitions, spark.sparkContext.defaultParallelism)
    about = _about(query, stages.actors, partitions, arrivals)
    claim(folder / "checkpoint", about)
    session.conf.set("spark.sql.shuffle.partitions", str(partitions))
    hosted = Hosted(
        run=hashlib.sha256(f"{folder.resolve()}{json.dumps(about)}".encode()).hexdigest(),
        specs=query.specs,
        wiring=query.wiring,
        seed=query.seed,
        stages=stages,
        keys=_keys(session, stages.partitions, partitions),
        kept=folder.resolve() / "checkpoint" / "kept",
        found=folder.resolve() / "found",
        pairs=query.pairs,
    )
    for written in (hosted.kept, hosted.found):
        written.mkdir(exist_ok=True)
        remove_unfinished(written)
    plan = _plan(session, hosted, arrivals, files_per_trigger)
    return run_stream(
        "spark-hosted",
        plan.writeStream.format("noop"),  # the last stage passes nothing on
        session=session,
        checkpoint=folder / "checkpoint" / "spark",
        results=hosted.found,
        columns=PAIRS if query.pairs else COUNTS,
        note=stages.folded,
    )


def need_stateful_operators() -> None:
    """Raise :exc:`EngineUnavailable` where this Spark cannot host operators."""
    import pyspark

    told = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if told < OLDEST_SPARK:
        needed = ".".join(map(str, OLDEST_SPARK))
        raise EngineUnavailable(
            f"this is Spark {pyspark.__version__}, which has no transformWithState for rows in "
            f"Python; joinsim's operators run in Spark {needed} or newer: "
            f"pip install 'pyspark>={needed}'"
        )


def _plan(
    session: SparkSession, hosted: Hosted, arrivals: Path, files_per_trigger: int
) -> DataFrame:
    plan = (
        session.readStream.schema(arrival_log.COLUMNS)
        .option("maxFilesPerTrigger", files_per_trigger)
        .parquet(os.fspath(arrivals))
        .observe(TAKEN, sf.sum("tuples").alias("tuples"))
        .selectExpr(f"inline(array({', '.join(_entries(hosted))}))", "parcel")
    )
    for stage in range(len(hosted.stages.actors)):
        processor = StageProcessor(hosted, stage)
        plan = plan.groupBy("via").transformWithState(processor, ROW, "append", "none")
    return plan


def _entries(hosted: Hosted) -> list[str]:
    """Return where arrivals go, in SQL: each shard of the first stage that holds a source."""
    return [
        f"struct({hosted.via(0, (0, shard))} as via, 0 as stage, {shard} as shard)"
        for shard, names in enumerate(hosted.stages.actors[0])
        if any(issubclass(hosted.specs[name].actor, TakesArrivals) for name in names)
    ]


def _keys(session: SparkSession, shards: int, partitions: int) -> tuple[int, ...]:
    """Return keys that Spark's hash spreads over its partitions in turns."""
    part = f"pmod(hash(cast(id as int)), {partitions}) as part"
    by_part: list[list[int]] = [[] for _ in range(partitions)]
    for row in session.range(64 * shards).selectExpr("id", part).collect():
        by_part[row.part].append(row.id)
    return tuple(by_part[shard % partitions][shard // partitions] for shard in range(shards))


def _about(
    query: HostedQuery, actors: Sequence[Any], partitions: int, arrivals: Path
) -> dict[str, Any]:
    return {
        "query": query.text,
        "streams": [[schema.stream, dict(schema.fields)] for schema in query.schemas],
        "arrivals": os.fspath(arrivals.resolve()),
        "actors": {
            name: [f"{spec.actor.__module__}.{spec.actor.__qualname__}", _plainly(spec.arguments)]
            for name, spec in query.specs.items()
        },
        "wiring": {name: dict(ports) for name, ports in query.wiring.items()},
        "stages": actors,
        "partitions": partitions,
        "pairs": query.pairs,
        "seed": query.seed,
    }


def _plainly(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that are numbers, words or lists of them."""
    return {
        name: value
        for name, value in arguments.items()
        if value is None or isinstance(value, bool | int | float | str)
    }
