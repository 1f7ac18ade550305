"""A rehearsal: the run in miniature, so that kernels are compiled before anything is measured.

numba compiles a kernel when it is first called in a process, and keeps what it compiled on disk.
Without a rehearsal the first messages of a run would pay for that, in every process anew.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from actors.hosting.inline import InlineHost
from actors.source import Feeding
from joins.queries.window_clause import WindowClause
from netsim.cost import load_profile
from netsim.kernel import Kernel
from netsim.network import PRESETS, full_mesh
from netsim.trace import Trace, trace_names
from topologies.topology import Job, Topology

_ROWS = 96
_WINDOW = WindowClause(slide="8", length="32")
_FEEDING = Feeding(batch_rows=12)


def rehearse(topology: Topology, parameters: Any, job: Job) -> None:
    """Run the first tuples of *job* in this process, windows made small, and forget the result."""
    small = replace(
        job,
        query=replace(job.query, window=_WINDOW) if job.query.window else job.query,
        files=tuple(replace(file, rows=_ROWS) for file in job.files),
        feeding=_FEEDING,
    )
    graph = topology.build(small, topology.in_miniature(parameters))
    wiring = graph.wiring
    Kernel(
        wiring=wiring,
        placement=graph.placement,
        network=full_mesh(dict.fromkeys(graph.placement.values()), PRESETS["same-host"]),
        profile=load_profile(),
        host=InlineHost(graph.specs, wiring, 0),
        seed=0,
        trace=Trace(trace_names(wiring)),
        collect=lambda results: None,
        only_emit=graph.only_emit,
    ).run()
