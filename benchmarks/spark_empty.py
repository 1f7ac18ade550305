"""PanJoin inside Spark against an operator there that is empty (Figures 15g and 15h).

In the clock: a trigger, from Spark's plan of it to its commit; the first trigger of the second of
two passes is left out, because the figures are about an operator that is running.

The paper compares it with a system that receives tuples and discards them, subwindows of a million
tuples; here a tuple has one match, and a count for each is written.

What either pays is Spark's: some tenths of a second a trigger. Of what PanJoin adds for half a
million tuples, about a tenth of a second, a fifth goes into files: the counts found, and what would
rebuild it after a crash. So the ratio depends on how many tuples there are in a trigger.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from actors.feed import StreamFile
from actors.protocol import Actor, Context, Message
from actors.source import Feeding, Source
from benchmarks.measure import Result, report
from joins.batch import Schema
from joins.hashing import mix
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery
from scenarios.tables import write_segments
from spark_bridge.engines import EngineResult
from spark_bridge.hosted.host import run_hosted, write_arrivals
from spark_bridge.hosted.stage import HostedQuery
from spark_bridge.session import SessionOptions, spark_session
from topologies import TOPOLOGIES
from topologies.actor_graph import ActorGraph
from topologies.topology import Job

_EQUI = "SELECT * FROM R, S WHERE R.v = S.v WINDOW AS (SLIDE INTERVAL '1' ON '1048576')"
_SUBWINDOW = 1 << 20
_TRIGGERS = (_SUBWINDOW // 8, _SUBWINDOW // 2)
_SESSION = SessionOptions(memory="4g", quick_start=True)
"""Hosted operators leave the JVM little that is worth compiling."""


def main() -> None:
    """Run both operators over triggers of both sizes, and print the table."""
    query = parse_query(_EQUI)
    with tempfile.TemporaryDirectory() as name, spark_session(_SESSION) as spark:
        folder = Path(name)
        streams = _streams(folder)
        results = [
            result
            for rows in _TRIGGERS
            for result in _over_empty(query, streams, folder / str(rows), spark, rows)
        ]
    report("PanJoin inside Spark over an empty operator", results)


class _Discard(Actor):
    """The empty system: receives tuples, and does nothing with them."""

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        pass


def _streams(folder: Path) -> tuple[StreamFile, ...]:
    i = np.arange(2 * _SUBWINDOW)
    files = []
    for name, seed in (("R", 3), ("S", 4)):
        values = (mix((np.int64(seed) << 48) ^ i) % np.uint64(_SUBWINDOW)).astype(np.int64)
        rows = pa.table({"id": i, "ts": 1_000 * i, "v": values})
        schema = Schema(stream=name, fields={"v": "int64"})
        files.append(write_segments(schema, rows, folder / name, len(i)))
    return tuple(files)


def _over_empty(
    query: JoinQuery,
    streams: tuple[StreamFile, ...],
    folder: Path,
    spark: SparkSession,
    trigger_rows: int,
) -> list[Result]:
    """Run both over the same arrivals, each twice, and compare the second passes."""
    feeding = Feeding(batch_rows=trigger_rows)
    system = TOPOLOGIES["panjoin"]
    parameters = system.parameters_type(
        workers=1,  # all of them would be in one stage with the manager
        subwindow=_SUBWINDOW,
        batch_count=65_536,
    )
    panjoin = system.build(
        Job(query=query, files=streams, feeding=feeding, pairs=False), parameters
    )
    empty = ActorGraph()
    empty.add("source", "source", Source, files=streams, feeding=feeding)
    empty.add("discard", "discard", _Discard)
    empty.connect("source", "out", "discard")
    write_arrivals(streams, feeding, folder / "arrivals", rows=trigger_rows)

    def run(graph: ActorGraph, name: str) -> EngineResult:
        hosted = HostedQuery(
            text=str(query),
            schemas=tuple(file.schema for file in streams),
            specs=graph.specs,
            wiring=graph.wiring,
            pairs=False,
        )
        passes = [
            run_hosted(hosted, folder / "arrivals", folder / part, spark=spark)
            for part in (f"warm-{name}", name)
        ]
        return passes[-1]

    joined, discarded = run(panjoin, "panjoin"), run(empty, "empty")
    assert joined.steady_tps is not None
    assert discarded.steady_tps is not None
    triggers = f"triggers of {trigger_rows:,}"
    return [
        _rate(f"PanJoin, equi-join of S = 1, subwindows of 2^20, counted, {triggers}", joined),
        _rate(f"an empty operator in its place, {triggers}", discarded),
        Result.of(
            f"PanJoin over the empty operator, {triggers}",
            [joined.steady_tps / discarded.steady_tps],
            unit="",
            target=0.9,
        ),
    ]


def _rate(name: str, run: EngineResult) -> Result:
    """Return the tuples a second of each trigger after the first."""
    rates = [rows / seconds for rows, seconds in run.triggers[1:] if rows]
    shuffled_bytes = run.shuffled_bytes or 0
    return Result.of(name, rates, unit="tuples/s", note=f"{shuffled_bytes >> 20} MiB shuffled")


if __name__ == "__main__":
    # By its name: Spark's Python workers, which need `_Discard`, know modules, but no script.
    from benchmarks import spark_empty

    spark_empty.main()
