"""One run from configuration to verdict."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from actors.feed import StreamFile
from actors.hosting.inline import InlineHost
from actors.protocol import Host
from actors.source import Feeding
from joins.parser import parse_query
from joins.query import JoinQuery
from netsim.cost import load_profile
from netsim.kernel import Kernel, Outcome, Progress
from netsim.trace import Trace
from scenarios.config import ConfigError, RunConfig, explain
from scenarios.datasets import prepare_streams
from scenarios.histogram import Histogram
from scenarios.networks import build_network
from scenarios.rehearsal import rehearse
from scenarios.results import ResultWriter
from scenarios.verdict import Verdict, judge
from spark_bridge.prepared import PreparedStream
from topologies import Topology, find_topology
from topologies.topology import ActorGraph, Job


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A configuration with everything looked up: what is left to go wrong is the run itself.

    Attributes
    ----------
    config, query, topology, parameters
        What is to run.
    streams, files
        The prepared streams, and what is read of them.
    address
        Of a running Ray cluster; None starts one here when the backend is Ray.
    """

    config: RunConfig
    query: JoinQuery
    topology: Topology
    parameters: Any
    streams: tuple[PreparedStream, ...]
    files: tuple[StreamFile, ...]
    address: str | None = None

    def job(self, *, pairs: bool) -> Job:
        """Return what the topology is to be built for."""
        feeding = Feeding(**self.config.feeding.model_dump())
        return Job(query=self.query, files=self.files, feeding=feeding, pairs=pairs)

    @property
    def rehearsal(self) -> tuple[Topology, Any, Job]:
        """The arguments of a rehearsal of this run."""
        return self.topology, self.parameters, self.job(pairs=self.config.pairs)

    def graph(self, *, pairs: bool) -> ActorGraph:
        """Return the actors of the run."""
        return self.topology.build(self.job(pairs=pairs), self.parameters)


@dataclass(frozen=True, kw_only=True)
class Report:
    """A finished run: what was planned, counted, measured and judged.

    Attributes
    ----------
    latencies
        Of every tuple, nanoseconds of virtual time from its birth to the last report of it.
    wall_seconds
        Real time from the first event to the last.
    memory_bytes
        Peak resident memory of all processes that ran actors.
    """

    plan: Plan
    directory: Path
    outcome: Outcome
    verdict: Verdict
    latencies: Histogram
    wall_seconds: float
    memory_bytes: int


def make_plan(
    config: RunConfig,
    *,
    address: str | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Plan:
    """Look everything up that *config* names, and prepare its streams.

    Raises
    ------
    ConfigError, TopologyError, QueryError, DataError
        Naming the key, query part, file or row that is wrong, before anything runs.
    """
    topology = find_topology(config.topology)
    parameters = make_parameters(topology, config.parameters)
    query = parse_query(config.query).bind(**{k: str(v) for k, v in config.bind.items()})
    # Before the data, because preparing them can take minutes.
    sketch = topology.build(topology.sketch(query), parameters)
    _check_profile(config.profile)
    build_network(config.network, sketch.placement.values())
    streams = prepare_streams(config, query, progress=progress)
    files = tuple(
        StreamFile(schema=stream.schema, directory=stream.path.resolve(), rows=config.rows)
        for stream in streams
    )
    plan = Plan(
        config=config,
        query=query,
        topology=topology,
        parameters=parameters,
        streams=streams,
        files=files,
        address=address,
    )
    # Now with the fields that the streams have.
    for probing in range(len(streams)):
        query.conditions(probing, [stream.schema for stream in streams])
    plan.graph(pairs=False)
    return plan


def _check_profile(name: str) -> None:
    try:
        load_profile(name)
    except ValueError as error:
        raise ConfigError(f"profile: {error}") from None


def make_parameters(topology: Topology, values: dict[str, Any]) -> Any:
    """Return the topology's parameters; raise :exc:`ConfigError` naming a wrong one."""
    try:
        return TypeAdapter(topology.parameters_type).validate_python(values)
    except ValidationError as error:
        mistakes = explain(error, topology.parameters_type)
        raise ConfigError(f"parameters of {topology.name}: {mistakes}") from None


def execute(
    plan: Plan,
    directory: Path,
    *,
    on_run: Callable[[Progress], None] | None = None,
    on_judge: Callable[[], None] | None = None,
    rehearsal: bool = True,
) -> Report:
    """Run *plan* into *directory* and judge it, by default after a `rehearsal.rehearse`.

    Raise whatever an actor raised, as :exc:`actors.protocol.ActorError`.
    """
    if rehearsal:
        rehearse(*plan.rehearsal)
    outcome, wall_seconds, memory_bytes = _simulate(plan, directory, plan.config.pairs, on_run)
    if on_judge:
        on_judge()
    verdict, latencies = judge(
        query=plan.query,
        files=plan.files,
        directory=directory,
        outcome=outcome,
        claims_exact=plan.topology.claims_exact(plan.parameters),
        pairs_directory=lambda: _with_pairs(plan, directory),
    )
    return Report(
        plan=plan,
        directory=directory,
        outcome=outcome,
        verdict=verdict,
        latencies=latencies,
        wall_seconds=wall_seconds,
        memory_bytes=memory_bytes,
    )


def _with_pairs(plan: Plan, directory: Path) -> Path:
    """Return where the run's pairs are, replaying it from its seed if it did not keep them."""
    if plan.config.pairs:
        return directory
    replayed = directory / "replay"
    replayed.mkdir(exist_ok=True)
    _simulate(plan, replayed, True, None)
    return replayed


def _simulate(
    plan: Plan, directory: Path, pairs: bool, on_run: Callable[[Progress], None] | None
) -> tuple[Outcome, float, int]:
    config = plan.config
    graph = plan.graph(pairs=pairs)
    wiring = graph.wiring
    sites = dict.fromkeys(graph.placement.values())
    trace = Trace(Kernel.trace_names(wiring), directory / "trace.parquet")
    with (
        _host(plan, graph) as (host, peak_bytes),
        ResultWriter(directory, streams=len(plan.files), pairs=pairs) as results,
    ):
        kernel = Kernel(
            wiring=wiring,
            placement=graph.placement,
            network=build_network(config.network, sites),
            profile=load_profile(config.profile),
            host=host,
            seed=config.seed,
            trace=trace,
            collect=results.collect,
            inbox_messages=config.network.inbox_messages,
            only_emit=graph.only_emit,
        )
        start = time.perf_counter()
        outcome = kernel.run(progress=on_run)
        wall_seconds = time.perf_counter() - start
        memory_bytes = peak_bytes()
    return outcome, wall_seconds, memory_bytes


@contextmanager
def _host(plan: Plan, graph: ActorGraph) -> Iterator[tuple[Host, Callable[[], int]]]:
    """Give the host the configuration asks for, and a function that tells its peak memory."""
    config = plan.config
    if config.backend == "inline":
        yield InlineHost(graph.specs, graph.wiring, config.seed), _own_peak_bytes
        return
    # Only here: importing Ray takes a second that inline runs need not spend.
    from actors.hosting.ray_cluster import ray_cluster
    from actors.hosting.ray_host import RayHost, pack

    processes = min(config.processes, len(graph))
    homes = pack(dict(graph.nodes(data="role")), processes)
    with (
        ray_cluster(plan.address, processes=processes),
        RayHost(graph.specs, graph.wiring, config.seed, homes=homes) as host,
    ):
        host.everywhere(rehearse, *plan.rehearsal)
        yield host, lambda: _own_peak_bytes() + sum(host.peak_bytes())


def _own_peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
