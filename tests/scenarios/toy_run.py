"""A run of a toy system, small but whole: real kernel, trace and results, a verdict by hand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.feed import StreamFile
from actors.hosting.inline import InlineHost
from actors.protocol import Actor, Context, Message
from actors.result_files import ResultWriter
from actors.results import Answers, Sink
from actors.source import Fed, Source
from joins.batch import Schema
from joins.matches import Matches
from joins.queries.parser import parse_query
from joins.work import Work
from netsim.cost import load_profile
from netsim.kernel import Kernel
from netsim.trace import Trace, trace_names
from scenarios import scenario_files
from scenarios.config import RunConfig, build_network
from scenarios.plan import Plan
from scenarios.result_readers import LatencyHistogram
from scenarios.run import FinishedRun
from scenarios.verdict import CheckResult, Offender, Verdict
from scenarios.wall_clock import WallClock
from topologies.actor_graph import ActorGraph
from topologies.topology import Job, Topology

QUERIES = {
    1: "SELECT * FROM T WHERE T.x1 < T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '10')",
    2: "SELECT * FROM R, S WHERE R.x < S.x WINDOW AS (SLIDE INTERVAL '1' ON '10')",
}


class Router(Actor):
    """Passes on what comes."""

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        context.send("work", message.payload)


class Joiner(Actor):
    """Claims ``id % 3`` matches for its share of the tuples."""

    state = ()

    def __init__(self, index: int, joiners: int) -> None:
        self.index, self.joiners = index, joiners

    def receive(self, message: Message, context: Context) -> None:
        fed: Fed = message.payload
        parts, births = [], []
        for stream, (part, born_ns) in enumerate(zip(fed.arrivals.parts, fed.born_ns, strict=True)):
            mine = part.id % self.joiners == self.index
            found = part.id[mine] % 3
            parts.append(
                Matches(
                    stream=stream,
                    probe_id=part.id[mine],
                    count=found,
                    fingerprint=found.astype(np.uint64),
                )
            )
            births.append(born_ns[mine])
        context.charge(Work(comparisons=1_000 * fed.rows * (self.index + 1)))
        context.send("found", Answers(tuple(parts), tuple(births), fed.span))


@dataclass(frozen=True, kw_only=True)
class ToyParameters:
    joiners: int = 3


class ToySystem(Topology[ToyParameters]):
    name = "toy"
    title = "A source, a router, some joiners, a sink"
    paper = "none"
    exact = True
    parameters_type = ToyParameters
    example_query = QUERIES[1]

    def assemble(self, job: Job, parameters: ToyParameters) -> ActorGraph:
        graph = ActorGraph()
        graph.add("source", "source", Source, files=job.files, feeding=job.feeding)
        graph.add("router", "router", Router)
        joiners = [
            graph.add("joiner", f"joiner.{index}", Joiner, index=index, joiners=parameters.joiners)
            for index in range(parameters.joiners)
        ]
        graph.add("sink", "sink", Sink)
        graph.connect("source", "out", "router")
        graph.connect("router", "work", *joiners)
        for joiner in joiners:
            graph.connect(joiner, "found", "sink")
        return graph


def stream_file(directory: Path, name: str, ts: Sequence[int]) -> StreamFile:
    """Write a prepared stream of one field and return what reads it."""
    directory.mkdir(parents=True)
    ids = np.arange(len(ts))
    columns = {"id": ids, "ts": np.array(ts, np.int64), "x": ids.astype(np.float64)}
    pq.write_table(pa.table(columns), directory / "part-00000.parquet")
    return StreamFile(schema=Schema(stream=name, fields={"x": "float64"}), directory=directory)


def toy_config(**settings: Any) -> RunConfig:
    """Return a configuration of the toy; *settings* as on the command line."""
    base = {"query": QUERIES[1], "name": "toy-run", "topology": "toy", "streams": []}
    return scenario_files.change(scenario_files.build(base, where="toy"), settings)


def toy_report(
    directory: Path,
    streams: Sequence[Sequence[int]],
    *,
    verdict: Verdict | None = None,
    parameters: ToyParameters | None = None,
    config: RunConfig | None = None,
) -> FinishedRun:
    """Run the toy over *streams*, given as their event times, and return its report."""
    config = config or toy_config()
    query = parse_query(QUERIES[len(streams)])
    files = tuple(
        stream_file(directory / "data" / name, name, ts)
        for name, ts in zip(query.streams, streams, strict=True)
    )
    prepared: Any = tuple(
        SimpleNamespace(
            name=name,
            path=file.directory,
            segments=file.directory,
            rows=len(ts),
            rejected=0,
            delays=None,
        )
        for name, file, ts in zip(query.streams, files, streams, strict=True)
    )
    plan = Plan(
        config=config,
        query=query,
        topology=ToySystem(),
        parameters=parameters or ToyParameters(),
        streams=prepared,
        files=files,
    )
    graph = plan.graph(pairs=False)
    latencies = LatencyHistogram()
    with (
        Trace(trace_names(graph.wiring), directory / "trace.parquet") as trace,
        ResultWriter(directory, streams=query.streams, actors=graph, pairs=False) as results,
    ):

        def collect(outputs: list[Any]) -> None:
            results.collect(outputs)
            for output in outputs:
                latencies.add(output.latency_ns)

        outcome = Kernel(
            wiring=graph.wiring,
            placement=graph.placement,
            network=build_network(config.network, graph.placement.values()),
            profile=load_profile(config.profile),
            host=InlineHost(graph.specs, graph.wiring, config.seed),
            seed=config.seed,
            trace=trace,
            collect=collect,
            inbox_messages=config.network.inbox_messages,
        ).run()
    return FinishedRun(
        plan=plan,
        directory=directory,
        outcome=outcome,
        verdict=verdict or passed_verdict(results.produced),
        latencies=latencies,
        clock=stopped_clock(),
        memory_bytes=123_456_789,
    )


def stopped_clock() -> WallClock:
    """Return the clock of a run that took a quarter of a second."""
    clock = WallClock(time.monotonic() - 0.25)
    clock.lap("run")
    clock.stop()
    return clock


def passed_verdict(pairs: int) -> Verdict:
    """Return a verdict without a fault; unknown when there was no pair."""
    checks = [
        CheckResult(name="oracle", passed=True if pairs else None, detail="0 missing"),
        CheckResult(name="watermarks", passed=None, detail="this run had none"),
    ]
    return Verdict(claims_exact=True, expected=pairs, produced=pairs, checks=checks)


def failed_verdict() -> Verdict:
    """Return a verdict with one missing pair, named."""
    checks = [CheckResult(name="oracle", passed=False, detail="5 expected, 4 produced: 1 missing")]
    offender = Offender(
        kind="missing",
        probe_stream=0,
        probe_id=77,
        match_id=41,
        arrivals_ms={"joiner.1": 2.5, "router": 1.25},
    )
    return Verdict(
        claims_exact=True, expected=5, produced=4, missing=1, checks=checks, offenders=[offender]
    )
