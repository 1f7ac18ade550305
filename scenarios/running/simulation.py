"""Runs a plan's actors over its network, on the host it asks for."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from actors.hosting.inline import InlineHost
from actors.hosting.packing import pack
from actors.hosting.process_host import ProcessHost
from actors.protocol import Host
from netsim.cost import load_profile
from netsim.kernel import Kernel
from netsim.operator_cost import operator_profiles
from netsim.outcome import Outcome, Progress
from netsim.trace import Trace, trace_names
from scenarios.configuration.networks import build_network
from scenarios.output.results import ResultWriter
from scenarios.running.plan import Plan
from scenarios.running.rehearsal import rehearse
from scenarios.running.timed_host import TimedHost
from topologies.actor_graph import ActorGraph

OnRun = Callable[[Progress, float], None]
"""Is told how far a run is, and the real seconds since its sources began to send."""


@dataclass(frozen=True, kw_only=True)
class Simulated:
    """What was counted and measured while a plan ran.

    Attributes
    ----------
    outcome
        The kernel's counts.
    wall_seconds
        Real time from the first event to the last.
    memory_bytes
        Peak resident memory of all processes that ran actors.
    kernel_seconds, state_bytes
        Actor name to the real time spent in it (live, the processor's), and to the bytes of the
        arrays it held at the end; empty where they lived in other processes in virtual time.
    """

    outcome: Outcome
    wall_seconds: float
    memory_bytes: int
    kernel_seconds: dict[str, float] = field(default_factory=dict)
    state_bytes: dict[str, int] = field(default_factory=dict)


def simulate(plan: Plan, directory: Path, *, pairs: bool, on_run: OnRun | None = None) -> Simulated:
    """Run *plan* once, its trace and results into *directory*."""
    config = plan.config
    graph = plan.graph(pairs=pairs)
    wiring = graph.wiring
    sites = dict.fromkeys(graph.placement.values())
    profiles = operator_profiles(config.profile, plan.topology.name)
    trace = Trace(trace_names(wiring), directory / "trace.parquet")
    with (
        _host(plan, graph) as (host, peak_bytes),
        ResultWriter(directory, streams=plan.query.streams, pairs=pairs) as results,
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
            operators={
                name: profiles[role] for name, role in graph.nodes(data="role") if role in profiles
            },
        )
        start = time.perf_counter()

        def progress(at: Progress) -> None:
            if on_run:
                on_run(at, time.perf_counter() - start)

        outcome = kernel.run(progress=progress)
        wall_seconds = time.perf_counter() - start
        memory_bytes = peak_bytes()
        return Simulated(
            outcome=outcome,
            wall_seconds=wall_seconds,
            memory_bytes=memory_bytes,
            kernel_seconds=host.seconds if isinstance(host, TimedHost) else {},
            state_bytes=host.state_bytes() if isinstance(host, TimedHost) else {},
        )


@contextmanager
def _host(plan: Plan, graph: ActorGraph) -> Iterator[tuple[Host, Callable[[], int]]]:
    """Give the host the configuration asks for, and a function that tells its peak memory."""
    config = plan.config
    if config.backend == "inline":
        yield TimedHost(InlineHost(graph.specs, graph.wiring, config.seed)), own_peak_bytes
        return
    # Only here: importing Ray takes a second that inline runs need not spend.
    from actors.hosting.ray_cluster import ray_cluster
    from actors.hosting.ray_processes import RayProcesses

    count = min(config.processes, len(graph))
    homes = pack(dict(graph.nodes(data="role")), graph.placement, count)
    with ray_cluster(plan.address, processes=count), RayProcesses(count) as processes:
        processes.everywhere(rehearse, *plan.rehearsal)
        host = ProcessHost(processes, graph.specs, graph.wiring, config.seed, homes=homes)
        yield host, lambda: own_peak_bytes() + sum(host.peak_bytes())


def own_peak_bytes() -> int:
    """Return the most memory that this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
