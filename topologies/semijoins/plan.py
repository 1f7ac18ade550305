"""Join execution plans: in which order, by which algorithm and at which site streams are joined.

Streams are positions in the query, and each has the site it arrives at to itself, so that a site is
named by its stream's position (stream semijoin paper, section 2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx

from joins.queries.query import JoinQuery
from joins.semijoins.one_way_join import OneWayJoin
from topologies.topology import TopologyError


@dataclass(frozen=True, kw_only=True)
class Step:
    """A pair ⟨S_ij, A_ij⟩ of a join sequence: the stream joined next, and how."""

    stream: int
    algorithm: OneWayJoin


@dataclass(frozen=True, kw_only=True)
class JoinSequence:
    """P_i: what a new tuple of the head stream S_i is joined with, one stream after the other."""

    head: int
    steps: tuple[Step, ...]

    @property
    def order(self) -> tuple[int, ...]:
        """The streams in the order they are joined, the head first."""
        return (self.head, *(step.stream for step in self.steps))

    @property
    def sites(self) -> tuple[int, ...]:
        """Where the intermediate result is: before the first step, and after each.

        An algorithm at the source leaves it where it is, one at the destination moves it to the
        site of the stream just joined.
        """
        sites = [self.head]
        for step in self.steps:
            sites.append(sites[-1] if step.algorithm.at_source else step.stream)
        return tuple(sites)


@dataclass(frozen=True, kw_only=True)
class LinearPlan:
    """Linear ordering: a join sequence per head stream (Definition 1).

    Attributes
    ----------
    streams
        Names, in the order of the query.
    sequences
        One per stream, in that order.
    """

    streams: tuple[str, ...]
    sequences: tuple[JoinSequence, ...]

    def __post_init__(self) -> None:
        heads = [sequence.head for sequence in self.sequences]
        if heads != list(range(len(self.streams))):
            named = ", ".join(self.streams[head] for head in heads)
            raise TopologyError(
                f"a plan has one join sequence for each of {', '.join(self.streams)}, in this "
                f"order; it has them for {named or 'none'}"
            )
        for sequence in self.sequences:
            check_order(sequence.order, self.streams)

    def check(self, graph: nx.Graph) -> None:
        """Raise :exc:`TopologyError` where a stream would be joined by no predicate."""
        for sequence in self.sequences:
            _check_connected(sequence.order, graph, self.streams)

    def __str__(self) -> str:
        return "\n".join(self._line(sequence) for sequence in self.sequences)

    def _line(self, sequence: JoinSequence) -> str:
        steps = (f"{self.streams[step.stream]} {step.algorithm}" for step in sequence.steps)
        return f"{self.streams[sequence.head]}: {', '.join(steps)}"


def join_graph(query: JoinQuery) -> nx.Graph:
    """Return the join graph G: streams as positions, an edge where a predicate compares two.

    Raise :exc:`TopologyError` naming the streams that no predicate connects to the others.
    """
    graph = nx.Graph()
    graph.add_nodes_from(range(len(query.streams)))
    graph.add_edges_from((p.left.stream, p.right.stream) for p in query.predicates)
    parts = [sorted(part) for part in nx.connected_components(graph)]
    if len(parts) > 1:
        named = "; ".join(", ".join(query.streams[s] for s in part) for part in parts)
        raise TopologyError(
            f"the join graph falls into {len(parts)} parts: {named}; every stream needs a "
            "predicate that connects it to the others"
        )
    return graph


def uniform_plan(
    streams: Sequence[str], graph: nx.Graph, algorithm: OneWayJoin = OneWayJoin.SP_D
) -> LinearPlan:
    """Return the plan that joins breadth first along *graph*, by one algorithm everywhere."""
    sequences = [
        JoinSequence(
            head=head,
            steps=tuple(
                Step(stream=stream, algorithm=algorithm)
                for _, stream in nx.bfs_edges(graph, head, sort_neighbors=sorted)
            ),
        )
        for head in range(len(streams))
    ]
    return LinearPlan(streams=tuple(streams), sequences=tuple(sequences))


def check_order(order: Sequence[int], streams: Sequence[str]) -> None:
    """Raise :exc:`TopologyError` unless each of *streams* is in *order* once."""
    if sorted(order) != list(range(len(streams))):
        named = ", ".join(streams[stream] for stream in order)
        raise TopologyError(f"a plan joins each of {', '.join(streams)} once; it joins {named}")


def _check_connected(order: Sequence[int], graph: nx.Graph, streams: Sequence[str]) -> None:
    for place, stream in enumerate(order[1:], start=1):
        if not any(graph.has_edge(stream, done) for done in order[:place]):
            named = ", ".join(streams[done] for done in order[:place])
            raise TopologyError(
                f"the plan joins {streams[stream]} to {named}, with which it shares no predicate"
            )
