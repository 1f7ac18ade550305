"""Runs a plan's actors live: in real processes at full speed, with nothing simulated."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from actors.hosting.live.parcels import Count, Measured
from actors.hosting.live.run import LiveRun
from actors.hosting.packing import pack
from netsim.outcome import Outcome, Progress
from netsim.trace import Trace, trace_names
from scenarios.output.results import ResultWriter
from scenarios.running.plan import Plan
from scenarios.running.rehearsal import rehearse
from scenarios.running.simulation import OnRun, Simulated, own_peak_bytes
from topologies.actor_graph import ActorGraph

if TYPE_CHECKING:
    from actors.hosting.ray_processes import RayProcesses


def run_live(plan: Plan, directory: Path, *, pairs: bool, on_run: OnRun | None = None) -> Simulated:
    """Run *plan* once, its trace and results into *directory*; all times are measured.

    Raise whatever an actor raised, as :exc:`actors.protocol.ActorError`.
    """
    # Only here: importing Ray takes a second that inline runs need not spend.
    from actors.hosting.ray_cluster import ray_cluster
    from actors.hosting.ray_processes import RayProcesses

    graph = plan.graph(pairs=pairs)
    count = min(plan.config.processes, len(graph))
    with ray_cluster(plan.address, processes=count), RayProcesses(count) as processes:
        run = prepare_live(plan, graph, processes)
        measured = run.run(_telling(on_run))
        names = trace_names(graph.wiring)
        _write_down(run, names, directory, streams=plan.query.streams, pairs=pairs)
    return Simulated(
        outcome=_outcome(measured),
        wall_seconds=measured.ended_ns / 1e9,
        memory_bytes=measured.peak_bytes + own_peak_bytes(),
        kernel_seconds={name: one.worked_ns / 1e9 for name, one in measured.served.items()},
        state_bytes=measured.held_bytes,
    )


def prepare_live(plan: Plan, graph: ActorGraph, processes: RayProcesses) -> LiveRun:
    """Return a live run of *graph*, made from *plan*, in *processes* that have been rehearsed."""
    processes.everywhere(rehearse, *plan.rehearsal)
    names = trace_names(graph.wiring)
    return LiveRun(
        processes,
        graph.specs,
        graph.wiring,
        plan.config.seed,
        homes=homes(graph, processes.count),
        room=plan.config.network.inbox_messages,
        codes={name: code for code, name in enumerate(names) if code >= len(graph)},
    )


def homes(graph: ActorGraph, processes: int) -> dict[str, int]:
    """Return which of *processes* each actor of *graph* lives in."""
    return pack(dict(graph.nodes(data="role")), graph.placement, processes)


def _telling(on_run: OnRun | None) -> Callable[[Count], None]:
    def on_count(count: Count) -> None:
        if on_run:
            at = Progress(virtual_ns=count.now_ns, tuples=count.tuples, messages=count.messages)
            on_run(at, count.now_ns / 1e9)

    return on_count


def _write_down(
    run: LiveRun, names: list[str], directory: Path, *, streams: tuple[str, ...], pairs: bool
) -> None:
    """Fetch what the processes wrote down: results, and the trace process by process."""
    trace = Trace(names, directory / "trace.parquet")
    with ResultWriter(directory, streams=streams, pairs=pairs) as results:
        for entry in run.entries():
            if isinstance(entry, np.ndarray):
                for row in entry.tolist():
                    trace.record(tuple(row))
                trace.flush_if_full()
            else:
                results.collect(entry)
    trace.close()


def _outcome(measured: Measured) -> Outcome:
    return Outcome(
        virtual_ns=measured.ended_ns,
        tuples=measured.tuples,
        messages=measured.messages,
        nbytes=measured.nbytes,
        in_flight=measured.messages - measured.received,
        digest=None,
    )
