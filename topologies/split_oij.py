"""SplitJoin as an interval join: one ordered input, and trees to the replicas and back.

PPOIJ (section 6) names what sets it apart from DP-OIJ, which also sends every tuple to all replicas
and stores it at one: both streams come in as one physical stream, strictly in order, and nodes of
their own distribute the tuples and collect the results::

    source -+-> sequencer -> (distributors) -+-> oij -+-> (collectors) -> sink
    source -+                                +-> oij -+

The original's input is in order to begin with. Here the sequencer puts it in order, by delaying
tuples until the watermark has passed them; it reports late ones to the sink itself. The original
stores tuples in turns; here, as in DP-OIJ, a hash of a tuple's position chooses the replica.
"""

from __future__ import annotations

from pydantic.dataclasses import dataclass

from actors.interval_join.sequencer import Sequencer
from actors.results import Sink
from actors.window_join.router import Relay
from topologies.actor_graph import ActorGraph
from topologies.interval_join import BatchRows, IntervalJoinTopology, add_replicas
from topologies.split_join import SplitJoin
from topologies.stream_sources import add_stream_sources
from topologies.topology import STRICT, Job, Pes
from topologies.window_join import Fanout, grow_tree


@dataclass(frozen=True, kw_only=True, config=STRICT)
class SplitOijParameters:
    """What a person may set.

    Attributes
    ----------
    replicas
        Replicas of the join.
    fanout
        Most branches of a node in the two trees.
    batch_rows
        Tuples of one message at the most.
    """

    replicas: Pes = 4
    fanout: Fanout = 2
    batch_rows: BatchRows = 32


class SplitOij(IntervalJoinTopology[SplitOijParameters]):
    """One sequencer, two trees, and replicas between them."""

    name = "split_oij"
    title = "SplitJoin as an interval join: one ordered input, every tuple to all down a tree"
    paper = SplitJoin.paper
    parameters_type = SplitOijParameters

    def assemble(self, job: Job, parameters: SplitOijParameters) -> ActorGraph:
        """Return sources, sequencer, trees and replicas for *job*."""
        p = parameters
        graph = ActorGraph()

        sources = add_stream_sources(job, graph.add)
        sequencer = graph.add(
            "sequencer",
            "sequencer",
            Sequencer,
            query=job.query,
            schemas=tuple(file.schema for file in job.files),
            sources=tuple(sources),
            replicas=p.replicas,
            batch_rows=p.batch_rows,
        )
        replicas = add_replicas(graph, job, p.replicas, channels=1, collector="naive")
        heads, spread = grow_tree(
            replicas,
            p.fanout,
            lambda place: graph.add("distributor", f"distributor.{place}", Relay),
        )
        tails, gather = grow_tree(
            replicas, p.fanout, lambda place: graph.add("collector", f"collector.{place}", Relay)
        )
        sink = graph.add("sink", "sink", Sink, only_emits=True)
        for source in sources:
            graph.connect(source, "out", sequencer)
        graph.connect(sequencer, "replicas", *heads)
        graph.connect(sequencer, "sink", sink)
        for parent, children in spread.items():
            graph.connect(parent, "out", *children)
        for parent, children in [*gather.items(), (sink, tails)]:
            for child in children:
                graph.connect(child, "sink" if child in replicas else "out", parent)
        return graph
