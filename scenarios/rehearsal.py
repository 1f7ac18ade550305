"""Rehearsal: the run in miniature, before it, which compiles the kernels that it needs.

numba compiles a kernel when it is first called in a process, or loads its stored machine code;
without a rehearsal the first messages of a run would pay for that, in every process.

Processes of Ray import this module when they start: it knows no scenario and no data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from actors.hosting.inline import InlineHost
from actors.source import Feeding
from joins.queries.windows import WindowClause
from netsim.cost import CostProfile, load_profile
from netsim.kernel import Kernel
from netsim.network import PRESETS, Link, full_mesh
from netsim.trace import Trace, trace_names
from topologies.actor_graph import ActorGraph
from topologies.topology import Job, Topology

REHEARSED_ROWS = 96
_WINDOW = WindowClause(slide="8", length="32")
_FEEDING = Feeding(batch_rows=12, rate_tps=1_000)
"""At a rate, for event times may be too far apart for any clock."""

_REHEARSED: set[tuple[Topology[Any], str]] = set()
"""What has been rehearsed in this process: systems, and all that their kernels depend on."""


def run_inline(
    graph: ActorGraph,
    link: Link,
    profile: CostProfile,
    *,
    trace: Path | None = None,
    collect: Callable[[list[Any]], None] = lambda results: None,
) -> None:
    """Run the actors of *graph* in this process, with *link* between any two of their sites.

    *trace* is the Parquet file for the trace, if one is to be written; *collect* is called with
    what actors emit. Raise :exc:`ActorError` when an actor raised.
    """
    wiring = graph.wiring
    with Trace(trace_names(wiring), trace) as rows:
        Kernel(
            wiring=wiring,
            placement=graph.placement,
            network=full_mesh(dict.fromkeys(graph.placement.values()), link),
            profile=profile,
            host=InlineHost(graph.specs, wiring, 0),
            seed=0,
            trace=rows,
            collect=collect,
            only_emit=graph.only_emit,
        ).run()


def rehearse(topology: Topology[Any], parameters: Any, job: Job) -> None:
    """Run the first tuples of *job* in this process, windows made small, and forget the result.

    What has been rehearsed here before is warm, and is not run again: the points of a study differ
    mostly in what no kernel depends on.
    """
    small = replace(
        job,
        query=replace(job.query, window=_WINDOW) if job.query.window else job.query,
        files=tuple(replace(file, rows=REHEARSED_ROWS) for file in job.files),
        feeding=_FEEDING,
    )
    with topology.naming_faults():
        few = topology.in_miniature(parameters)
    kernels = repr((few, small.query, small.schemas, small.pairs, small.live, small.sink))
    if (topology, kernels) in _REHEARSED:
        return
    run_inline(topology.build(small, few), PRESETS["same-host"], load_profile())
    _REHEARSED.add((topology, kernels))
