"""The graph that systems share whose joiner PEs each store a share of the whole window.

They differ in where a tuple is stored and where it probes (`actors.window_join.routing`), in the
structure of the local windows (`joins.indexes.windows.window_indexes`), and in how messages reach
the PEs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from annotated_types import Interval
from pydantic.dataclasses import dataclass as validated

from actors.results import Sink
from actors.source import Source
from actors.window_join.joiner import Joiner
from actors.window_join.router import Relay, Router
from actors.window_join.routing import RoundRobin, Routing
from joins.queries.query import JoinQuery
from topologies.actor_graph import ActorGraph
from topologies.topology import STRICT, Job, P, Pes, Topology

Fanout = Annotated[int, Interval(ge=2, le=1000)]
"""For ``Parameters``: most branches of a node in the trees around PEs (`grow_tree`)."""

_MOST_LINKS = 16
"""Every link of a chain is probed by every tuple: a window that slides tuple by tuple must not be
a chain of single tuples."""


@validated(frozen=True, kw_only=True, config=STRICT)
class NoParameters:
    """Nothing can be set."""


@validated(frozen=True, kw_only=True, config=STRICT)
class PeParameters:
    """What a person may set of a system of equal joiner PEs.

    Attributes
    ----------
    pes
        Joiner PEs.
    nodes
        Machines that the PEs share in turns; None gives each a machine of its own.
    """

    pes: Pes = 4
    nodes: Pes | None = None


@dataclass(frozen=True, kw_only=True)
class Layout:
    """What one of these systems is made of.

    Attributes
    ----------
    routing
        Where tuples are stored and where they probe.
    joiners
        Role of joiner PEs to their number; *routing* numbers them through in this order.
    index, options
        Structure of the local windows, and what is set of it.
    nodes
        Machines that all but the sink share in turns; None gives each actor a machine of its own.
    fanout
        Most receivers of the router, and of each relay in a tree between it and the PEs; the same
        applies to a tree that gathers results on their way to the sink. None connects directly.
    """

    routing: Routing
    joiners: Mapping[str, int]
    index: str
    options: Mapping[str, Any] = field(default_factory=dict)
    nodes: int | None = None
    fanout: int | None = None


def at_one_pe(index: str) -> Layout:
    """Return the layout of one PE that stores all tuples and probes with all of them."""
    return Layout(routing=RoundRobin(sides=(range(1),) * 2), joiners={"joiner": 1}, index=index)


def chain_options(query: JoinQuery, units: int, sub_index: int | None = None) -> dict[str, int]:
    """Return the options of a chain index at each of *units* PEs that share a stream.

    A sub-index has *sub_index* tuples; None takes a unit's share of a slide, so that sub-indexes
    expire as windows do, but of a window at the least one part in `_MOST_LINKS`. The tuples of a
    slide by time are not known beforehand: the index's own default then applies.
    """
    if sub_index is not None:
        return {"length": sub_index}
    tuples = [max(w.slide, w.length // _MOST_LINKS) for w in query.windows if w.kind == "count"]
    return {"length": -(-min(tuples) // units)} if tuples else {}


class WindowJoin(Topology[P]):
    """Source, router, joiner PEs, sink."""

    exact = True

    @abstractmethod
    def lay_out(self, job: Job, parameters: P) -> Layout:
        """Return what the system is made of.

        Raise :exc:`TopologyError` when the query is not one it can evaluate.
        """

    def assemble(self, job: Job, parameters: P) -> ActorGraph:
        """Return the graph of `lay_out`.

        Raise what `lay_out` raises; :exc:`joins.queries.query.QueryError` for a window that cannot
        be.
        """
        layout = self.lay_out(job, parameters)
        schemas = tuple(file.schema for file in job.files)
        names = [(role, f"{role}.{i}") for role, pes in layout.joiners.items() for i in range(pes)]
        graph = ActorGraph()

        def add(role: str, name: str, actor: type, **arguments: Any) -> str:
            site = f"node.{len(graph) % layout.nodes}" if layout.nodes else None
            return graph.add(role, name, actor, site=site, **arguments)

        def relay(role: str) -> Callable[[str], str]:
            return lambda place: add(role, f"{role}.{place}", Relay)

        entrance = self.add_entrance(graph, job, add)
        router = add(
            "router",
            "router",
            Router,
            windows=job.query.windows,
            self_join=job.query.is_self_join,
            routing=layout.routing,
            pes=len(names),
        )
        joiners = [
            add(
                role,
                name,
                Joiner,
                query=job.query,
                schemas=schemas,
                routing=layout.routing,
                pe=pe,
                index=layout.index,
                options=layout.options,
                pairs=job.pairs,
            )
            for pe, (role, name) in enumerate(names)
        ]
        heads, spread = grow_tree(joiners, layout.fanout, relay("distributor"))
        tails, gather = grow_tree(joiners, layout.fanout, relay("collector"))
        sink = graph.add("sink", "sink", Sink, only_emits=True)

        graph.connect(entrance, "out", router)
        graph.connect(router, "joiner", *heads)
        for parent, children in spread.items():
            graph.connect(parent, "out", *children)
        for parent, children in [*gather.items(), (sink, tails)]:
            for child in children:
                graph.connect(child, "sink" if child in joiners else "out", parent)
        return graph

    def add_entrance(self, graph: ActorGraph, job: Job, add: Callable[..., str]) -> str:
        """Add what feeds the router in the order of arrival; return the actor that does.

        *add* takes a role, a name, a class and its arguments.
        """
        return add("source", "source", Source, files=job.files, feeding=job.feeding)


def grow_tree(
    leaves: list[str], fanout: int | None, add: Callable[[str], str]
) -> tuple[list[str], dict[str, list[str]]]:
    """Put a tree on *leaves*; return its topmost nodes, and the children of each that *add* made.

    Only a node that would be alone in its group goes up without a parent of its own.
    """
    level, top, children = 0, leaves, dict[str, list[str]]()
    while fanout is not None and len(top) > fanout:
        groups = [top[begin : begin + fanout] for begin in range(0, len(top), fanout)]
        top = []
        for place, group in enumerate(groups):
            if len(group) > 1:
                parent = add(f"{level}.{place}")
                children[parent] = group
            top.append(parent if len(group) > 1 else group[0])
        level += 1
    return top, children
