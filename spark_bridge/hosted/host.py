"""Runs a graph of actors as a query of Spark Structured Streaming, its state in a checkpoint.

*The log of arrivals* is Spark's source. Each of its files is a run of consecutive arrivals of all
streams, as a partition of a message broker would have them: their order is part of what a window
join means, and Spark guarantees none between two sources. As with a broker, the log consists of
batches, which Spark passes on as they are: turning tuples into rows of the JVM and back into
columns took half of a trigger.

*The query.* Batches go to every shard that has sources. Each stage of the graph is one
``transformWithState`` over its shards, which write their results and their state (see `stage`).
By trigger, Spark commits offsets and which state is the last, so that a query that was killed
continues without a pair missing or doubled. It goes on with its own checkpoint, and takes over no
other's: a checkpoint has a description of its query.

*The rehearsal.* A Python worker takes a second before its first trigger: it starts, imports what
actors consist of, and loads kernels. Spark takes as long to plan that trigger, and seldom keeps all
cores busy. So meanwhile the first tuples of the log go through all actors in each worker, and what
comes out is forgotten; later tasks are given workers that are idle. The library of the state store
is loaded in the same time.

Only Spark's driver imports this module: its Python workers need not wait until networkx, which cuts
the graph into stages, is loaded.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as sf

from actors.feed import StreamFile, open_feed
from actors.protocol import ActorSpec, Wiring
from actors.serialisation import to_bytes
from actors.source import ARRIVALS, Arriving, Feeding, TakesArrivals
from actors.whole_files import remove_unfinished, write_text
from joins.arrivals import Arrivals
from joins.errors import DataError
from spark_bridge.engines import EngineResult, EngineUnavailable
from spark_bridge.hosted.operator import StageOperator
from spark_bridge.hosted.shard import (
    ROW,
    ShardLetter,
    Stages,
    actors_with_a_place,
    pack_letters,
    unpack_letters,
)
from spark_bridge.hosted.stage import HostedQuery, HostedRun, Stage, rehearse
from spark_bridge.query_runs import COUNTS, PAIRS, TAKEN, query_session, run_stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

OLDEST_SPARK = (4, 1)
"""The first version whose ``transformWithState`` takes rows in Python."""

_ARRIVALS = "tuples bigint, parcel binary"
"""Columns of the log: how many tuples arrive, and a parcel for the sources."""

_BATCH_ROWS = 1 << 17
"""Arrivals in a parcel: some megabytes, which Arrow and the JVM process best."""

_ABOUT = "joinsim.json"
"""Whose checkpoint it is."""

_REHEARSED = 96
"""Arrivals of the log that workers rehearse with."""

_SETTINGS = {
    # Plans only pass parcels on: to compile them takes longer than they do.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def run_hosted(
    query: HostedQuery, arrivals: Path, folder: Path, *, spark: SparkSession
) -> EngineResult:
    """Run *query* over the log in the folder *arrivals* until what is there has been taken.

    Each file of the log is a trigger, which has a fixed cost of about half a second and should have
    some 100,000 tuples. *folder* receives ``checkpoint`` and ``found``, the results as Parquet. A
    run of the same query that was there before continues.

    Raise :exc:`DataError` where the checkpoint in *folder* is of another query or log, or is
    incomplete, where there are results without one, and where results of more than two streams are
    to be written; :exc:`EngineUnavailable` where this Spark has no stateful operators for Python;
    and :exc:`SparkFailed`, with Spark's message, where the query failed.
    """
    began_s = time.perf_counter()
    need_stateful_operators()
    if query.pairs and len(query.schemas) > 2:
        raise DataError(
            f"operators inside Spark write pairs; results of {len(query.schemas)} streams are "
            "counted: leave pairs out"
        )
    stages = cut_into_stages(query.specs, query.wiring, fold=query.fold)
    partitions = min(stages.partitions, spark.sparkContext.defaultParallelism)
    description = describe_query(query, stages.actors, partitions, arrivals)
    claim_checkpoint(folder / "checkpoint", description, results=folder / "found")
    settings = _SETTINGS | {"spark.sql.shuffle.partitions": str(partitions)}
    session = query_session(spark, **settings)
    first_parcel = partial(_first_parcel, arrivals)
    with rehearsing(query, first_parcel, workers=partitions, spark=spark):
        hosted = HostedRun(
            run=hashlib.sha256(
                f"{folder.absolute()}{json.dumps(description)}".encode()
            ).hexdigest(),
            query=query,
            stages=stages,
            keys=_keys(session, stages.partitions, partitions),
            folder=folder.absolute(),
        )
        for written in (hosted.log, hosted.results):
            written.mkdir(exist_ok=True)
            remove_unfinished(written)
        plan = _plan(session, hosted, arrivals)
        return run_stream(
            plan.writeStream.format("noop"),  # the last stage passes nothing on
            session=session,
            began_s=began_s,
            checkpoint=folder / "checkpoint" / "spark",
            results=hosted.results,
            columns=PAIRS if query.pairs else COUNTS,
            note=stages.folded,
        )


def need_stateful_operators() -> None:
    """Raise :exc:`EngineUnavailable` where this Spark cannot host operators."""
    import pyspark

    version = tuple(int(part) for part in pyspark.__version__.split(".")[:2])
    if version < OLDEST_SPARK:
        needed = ".".join(map(str, OLDEST_SPARK))
        raise EngineUnavailable(
            f"this is Spark {pyspark.__version__}, which has no transformWithState for rows in "
            f"Python; joinsim's operators run in Spark {needed} or newer: "
            f"pip install 'pyspark>={needed}'"
        )


def _plan(session: SparkSession, hosted: HostedRun, arrivals: Path) -> DataFrame:
    plan = (
        session.readStream.schema(_ARRIVALS)
        .option("maxFilesPerTrigger", 1)
        .parquet(os.fspath(arrivals))
        .observe(TAKEN, sf.sum("tuples").alias("tuples"))
        .selectExpr(f"inline(array({', '.join(_entries(hosted))}))", "parcel")
    )
    for stage in range(len(hosted.stages.actors)):
        operator = StageOperator(Stage(hosted, stage))
        plan = plan.groupBy("via").transformWithState(operator, ROW, "append", "none")
    return plan


def _entries(hosted: HostedRun) -> list[str]:
    """Return where arrivals go, in SQL: each shard of the first stage that has a source."""
    return [
        f"struct({hosted.via(0, (0, shard))} as via, 0 as stage, {shard} as shard)"
        for shard, names in enumerate(hosted.stages.actors[0])
        if any(issubclass(hosted.query.specs[name].actor, TakesArrivals) for name in names)
    ]


def _keys(session: SparkSession, shards: int, partitions: int) -> tuple[int, ...]:
    """Return keys that Spark's hash distributes over its partitions in turns."""
    if partitions == 1:
        return tuple(range(shards))  # and Spark need not be asked
    part = f"pmod(hash(cast(id as int)), {partitions}) as part"
    by_part: list[list[int]] = [[] for _ in range(partitions)]
    for row in session.range(64 * shards).selectExpr("id", part).collect():
        by_part[row.part].append(row.id)
    return tuple(by_part[shard % partitions][shard // partitions] for shard in range(shards))


def write_arrivals(
    files: tuple[StreamFile, ...], feeding: Feeding, folder: Path, *, rows: int
) -> None:
    """Write the arrivals of *files* as runs of *rows* into *folder*.

    Spark takes files by their time of change, so each is a second later than the one before.
    """
    folder.mkdir(parents=True)
    feed = open_feed(files, feeding.disorder)
    run, arrivals = 0, feed.take(rows)
    while arrivals is not None:
        following = feed.take(rows)
        path = folder / f"run-{run:06d}.parquet"
        table = _batches(arrivals, last=following is None)
        pq.write_table(table, path, compression="none", use_dictionary=False)
        os.utime(path, (run, run))
        run, arrivals = run + 1, following


def arrivals_parcel(arrivals: Arrivals, *, last: bool) -> bytes:
    """Return *arrivals* as a message for all sources of the shard that receives it."""
    letter = ShardLetter(arrivals.span[0], 0, ARRIVALS, ARRIVALS, None, ())
    return pack_letters([(letter, to_bytes(Arriving(arrivals, last)))])


def _first_parcel(folder: Path) -> bytes:
    """Return the first tuples of the log in *folder* as a parcel, as if no others followed."""
    with pq.ParquetFile(min(folder.glob("*.parquet"))) as file:
        parcel = next(file.iter_batches(1, columns=["parcel"])).column(0)[0].as_py()
    arrivals = unpack_letters([parcel])[0].payload.arrivals
    first = arrivals.span[0]
    return arrivals_parcel(arrivals.between(first, first + _REHEARSED), last=True)


def _batches(arrivals: Arrivals, *, last: bool) -> pa.Table:
    begin, stop = arrivals.span[0], arrivals.span[1] + 1
    tuples, parcels = [], []
    for first in range(begin, stop, _BATCH_ROWS):
        batch = arrivals.between(first, min(first + _BATCH_ROWS, stop))
        tuples.append(len(batch))
        parcels.append(arrivals_parcel(batch, last=last and first + _BATCH_ROWS >= stop))
    return pa.table({"tuples": pa.array(tuples, pa.int64()), "parcel": pa.array(parcels)})


@contextmanager
def rehearsing(
    query: HostedQuery, first_parcel: Callable[[], bytes], *, workers: int, spark: SparkSession
) -> Iterator[None]:
    """Have *workers* Python workers rehearse *query* from now on, beside what is done here.

    *first_parcel* returns a parcel with the first tuples of all streams, in another thread. What it
    or the rehearsal raises is ignored: the query itself will meet it again.
    """

    def rehearse_in_workers() -> None:
        tasks = spark.sparkContext.parallelize(range(workers), workers)
        tasks.foreachPartition(partial(rehearse, query, first_parcel()))

    def load_library() -> None:
        spark.sparkContext._jvm.org.rocksdb.RocksDB.loadLibrary()

    with ThreadPoolExecutor(max_workers=2) as beside:  # where what they raise stays
        beside.submit(rehearse_in_workers)
        beside.submit(load_library)
        yield


def describe_query(
    query: HostedQuery, actors: Sequence[Any], partitions: int, arrivals: Path
) -> dict[str, Any]:
    """Return as JSON all that a run's state and results depend on; *actors* are by stage."""
    description = {
        "query": query.text,
        "streams": [[schema.stream, dict(schema.fields)] for schema in query.schemas],
        "arrivals": os.fspath(arrivals.absolute()),
        "actors": {
            name: [_name_of(spec.actor), _as_json(spec.arguments)]
            for name, spec in query.specs.items()
        },
        "wiring": {name: dict(ports) for name, ports in query.wiring.items()},
        "stages": actors,
        "partitions": partitions,
        "pairs": query.pairs,
        "seed": query.seed,
    }
    read_back: dict[str, Any] = json.loads(json.dumps(description))
    return read_back


def _as_json(value: Any) -> Any:
    """Return an argument of an actor as JSON has it; of an object its class, and its fields if any.

    Paths are left out: of the streams' files, what counts is the log of their arrivals.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(name): _as_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple | range):
        return [_as_json(one) for one in value]
    if isinstance(value, Set):
        return sorted((_as_json(one) for one in value), key=repr)
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, partial):
        return _as_json([value.func, value.args, value.keywords])
    if isinstance(value, Path):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        content = {field.name: _as_json(getattr(value, field.name)) for field in fields(value)}
        return {"class": _name_of(type(value))} | content
    return _name_of(value if hasattr(value, "__qualname__") else type(value))


def _name_of(code: Any) -> str:
    return f"{code.__module__}.{code.__qualname__}"


def claim_checkpoint(checkpoint: Path, description: Mapping[str, Any], *, results: Path) -> None:
    """Claim the folder *checkpoint* for the query of this *description*, which writes *results*.

    Continuing another query's would give an answer to neither, and so would results of both. Raise
    :exc:`DataError` for a checkpoint of another query, with what differs, and for results without
    one.
    """
    about = checkpoint / _ABOUT
    if not about.exists():
        if checkpoint.exists() and any(checkpoint.iterdir()):
            raise DataError(
                f"{checkpoint} is no checkpoint of joinsim's: there is no {_ABOUT} in it; name "
                "another folder"
            )
        if results.exists() and any(results.iterdir()):
            raise DataError(
                f"{results} has results of a query whose checkpoint is gone: delete them, or name "
                "another folder"
            )
        checkpoint.mkdir(parents=True, exist_ok=True)
        write_text(about, json.dumps(description, indent=1))
        return
    before = json.loads(about.read_text(encoding="utf-8"))
    if description != before:
        where, theirs, ours = _difference(before, description)
        raise DataError(
            f"{checkpoint} is the checkpoint of another query: its {where} is "
            f"{_short(theirs)}, here it is {_short(ours)}; name another folder, or "
            "delete it and the results next to it to begin anew"
        )


def _difference(theirs: Any, ours: Any, *where: str) -> tuple[str, Any, Any]:
    """Return the first place where two unequal values of JSON differ, and both values."""
    sides = [dict(enumerate(side)) if isinstance(side, list) else side for side in (theirs, ours)]
    if all(isinstance(side, dict) for side in sides):
        one, other = sides
        name = next(n for n in [*other, *one] if n not in one or one[n] != other.get(n))
        return _difference(one.get(name), other.get(name), *where, str(name))
    return ".".join(where), theirs, ours


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    text = " ".join(text.split())
    return text if len(text) <= 200 else text[:200] + "..."


def cut_into_stages(
    specs: Mapping[str, ActorSpec], wiring: Wiring, *, fold: str | None = None
) -> Stages:
    """Return the stages of a graph; with *fold*, a reason, one even where it could be cut."""
    if fold:
        return Stages.one(specs, fold)
    graph = _graph_without_sinks(specs, wiring)
    if not nx.is_directed_acyclic_graph(graph):
        cycle = " -> ".join(sender for sender, _ in nx.find_cycle(graph))
        return Stages.one(
            specs,
            f"messages go in a circle ({cycle}), which is impossible in Spark's plans: the "
            "exchange runs inside one stage",
        )
    head = _heads(graph)
    chains: dict[str, list[str]] = {}
    for name in graph:
        chains.setdefault(head[name], []).append(name)
    chained = nx.DiGraph()
    chained.add_nodes_from(chains)
    chained.add_edges_from((head[a], head[b]) for a, b in graph.edges if head[a] != head[b])
    levels = nx.topological_generations(chained)
    rank = {name: place for place, name in enumerate(chains)}
    return Stages(
        actors=tuple(
            tuple(tuple(chains[name]) for name in sorted(level, key=rank.__getitem__))
            for level in levels
        )
    )


def _graph_without_sinks(specs: Mapping[str, ActorSpec], wiring: Wiring) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(actors_with_a_place(specs))
    for sender, ports in wiring.items():
        for receivers in ports.values():
            graph.add_edges_from((sender, receiver) for receiver in receivers if receiver in graph)
    return graph


def _heads(graph: nx.DiGraph) -> dict[str, str]:
    """Return the first actor of each actor's chain."""
    head: dict[str, str] = {}
    for name in nx.topological_sort(graph):
        senders = list(graph.predecessors(name))
        alone = len(senders) == 1 and graph.out_degree(senders[0]) == 1
        head[name] = head[senders[0]] if alone else name
    return head
