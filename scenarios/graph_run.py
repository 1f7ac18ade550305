"""A run of a graph of actors, in virtual time: without a plan, files of results or a verdict."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from actors.hosting.inline import InlineHost
from netsim.cost import CostProfile
from netsim.kernel import Kernel
from netsim.network import Link, full_mesh
from netsim.trace import Trace, trace_names
from topologies.actor_graph import ActorGraph


def run_inline(
    graph: ActorGraph,
    link: Link,
    profile: CostProfile,
    *,
    trace: Path | None = None,
    collect: Callable[[list[Any]], None] = lambda results: None,
) -> None:
    """Run the actors of *graph* in this process, with *link* between any two of their sites.

    Parameters
    ----------
    profile
        What work costs.
    trace
        Parquet file for the trace; None writes none.
    collect
        Called with what actors emit; by default that is dropped.

    Raise :exc:`ActorError` when an actor raised.
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
