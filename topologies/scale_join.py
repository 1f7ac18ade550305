"""ScaleJoin (Gulisano et al.): deterministic, every PE compares its share of all comparisons.

Each stream has a source of its own. A ScaleGate merges them into one order that depends on the
streams alone, every PE gets all tuples in it, and each stores one in turns::

    source.R -+-> gate -> router -+-> joiner.0 -+-> sink
    source.S -+                   +-> joiner.1 -+
                                  +-> ...      -+

Where SplitJoin has one input whose order is the order of arrival, here tuples wait until all
streams have come past their event time; from there on messages are SplitJoin's, without trees.
The router is the gate's other half: on its machine it gives tuples their windows. The original
merges results through a second gate, in the order of event times; a result names its tuples here
and goes straight to the sink. It counts tuples of all streams to take turns in storing them; here
each stream is counted by itself, which shares out either window as evenly.
"""

from __future__ import annotations

from collections.abc import Callable

from actors.window_join.scale_gate import ScaleGate
from topologies.actor_graph import ActorGraph
from topologies.split_join import StoringInTurns
from topologies.stream_sources import add_stream_sources
from topologies.topology import Job
from topologies.window_join import Layout, WindowJoin


class ScaleJoin(WindowJoin[StoringInTurns]):
    """Streams merged deterministically, stored in turns, probed by all tuples."""

    name = "scale_join"
    title = "ScaleJoin: streams merged by event time, then stored in turns and probed at all PEs"
    paper = (
        "ScaleJoin: A Deterministic, Disjoint-Parallel and Skew-Resilient Stream Join "
        "(Gulisano et al., IEEE Transactions on Big Data 2016)"
    )
    parameters_type = StoringInTurns

    def lay_out(self, job: Job, parameters: StoringInTurns) -> Layout:
        """Return PEs that all store both streams."""
        return parameters.layout(job)

    def add_entrance(self, graph: ActorGraph, job: Job, add: Callable[..., str]) -> str:
        """Add a source for each stream, and the gate that merges them."""
        sources = add_stream_sources(job, add)
        schemas = tuple(file.schema for file in job.files)
        gate = add("gate", "gate", ScaleGate, schemas=schemas, sources=tuple(sources))
        for source in sources:
            graph.connect(source, "out", gate)
        return gate
