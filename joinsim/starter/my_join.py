"""my_join: a window join of nested loops over joiner PEs that share the window.

Each tuple is stored at one PE, in turns, and probes at all of them. Change the routing to send
tuples elsewhere, and the joiner to store and probe them otherwise::

    source -> router -+-> joiner.0 -+-> sink
                      +-> joiner.1 -+
"""

from __future__ import annotations

import numpy as np

from actors.protocol import Actor, Context, Message
from actors.results import Answers
from actors.source import Probes, Source
from actors.window_join import RoundRobinRouting, Routing, Share, WindowRouter
from joins.batch import Batch, Schema
from joins.hashing import mix
from joins.matches import Matches
from joins.queries.query import JoinQuery
from joins.work import Work
from topologies.actor_graph import ActorGraph
from topologies.topology import Job, Topology
from topologies.window_join import PeParameters


class NestedLoopJoiner(Actor):
    """Stores its share of the window, and compares every tuple that probes with all of it.

    Port: ``sink``.
    """

    state = ("_stored",)  # what a snapshot contains; the rest comes from the constructor

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        routing: Routing,
        pe: int,
        pairs: bool,
    ) -> None:
        streams = range(len(query.streams))
        self._conditions = [query.conditions(stream, schemas) for stream in streams]
        self._probed = [query.stored_stream(stream) for stream in streams]
        self._routing, self._pe, self._pairs = routing, pe, pairs
        self._stored: list[list[Batch]] = [[] for _ in streams]

    def receive(self, message: Message, context: Context) -> None:
        """Store, probe, answer, and drop what no later tuple can see."""
        share: Share = message.payload
        for stream, part in enumerate(share.parts):
            here = self._routing.stored_at(stream, part.batch).at(self._pe)
            self._stored[stream].append(part.batch.take(here))
        matches, born_ns = [], []
        for stream, part in enumerate(share.parts):
            probing = part.take(self._routing.probes_at(stream, part.batch).at(self._pe))
            matches.append(self._probe(stream, probing, context))
            born_ns.append(probing.born_ns)
        context.send("sink", Answers(tuple(matches), tuple(born_ns), share.span))
        for stream, horizon in enumerate(share.horizon):
            stored = Batch.concat(self._stored[stream])
            self._stored[stream] = [stored.take(stored.id >= horizon)]

    def _probe(self, stream: int, probing: Probes, context: Context) -> Matches:
        stored = Batch.concat(self._stored[self._probed[stream]])
        # A row per probing tuple, a column per stored one; the window is a range of positions.
        meet = (probing.start[:, None] <= stored.id) & (stored.id < probing.stop[:, None])
        for condition in self._conditions[stream]:
            values = probing.batch.fields[condition.probe_field]
            meet &= condition.holds(values[:, None], stored.fields[condition.stored_field][None])
        # Virtual time: what the work costs is the profile's to say.
        context.charge(Work(comparisons=meet.size, matches=int(meet.sum())))
        return Matches(
            stream=stream,
            probe_id=probing.batch.id,
            count=meet.sum(axis=1),
            fingerprint=np.where(meet, mix(stored.id), np.uint64(0)).sum(axis=1, dtype=np.uint64),
            match_id=stored.id[np.nonzero(meet)[1]] if self._pairs else None,
        )


class MyJoin(Topology[PeParameters]):
    """Who sends to whom."""

    name = "my_join"
    title = "Nested loops at PEs that share the window"
    paper = "Unpublished"
    exact = True
    parameters_type = PeParameters

    def assemble(self, job: Job, parameters: PeParameters) -> ActorGraph:
        """Return the graph of actors for *job*."""
        pes = parameters.pes
        routing = RoundRobinRouting(sides=(range(pes),) * 2)
        graph = ActorGraph(machines=parameters.nodes)
        source = graph.add("source", "source", Source, **job.input)
        router = graph.add("router", "router", WindowRouter, **job.windows, routing=routing)
        settings = {**job.join, "routing": routing, "pairs": job.pairs}
        joiners = graph.add_each("joiner", pes, NestedLoopJoiner, number="pe", **settings)
        graph.connect(source, "out", router)
        graph.connect(router, "joiner", *joiners)
        graph.add_sink(*joiners)
        return graph
