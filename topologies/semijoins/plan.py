"""Join execution plans: in which order, by which algorithm and at which site streams are joined.

Streams are positions in the query, and each has the site it arrives at to itself, so that a site is
named by its stream's position (stream semijoin paper, section 2.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx

from joins.one_way_join import OneWayJoin
from joins.query import JoinQuery
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
            _check_order(sequence.order, self.streams)

    def check(self, graph: nx.Graph) -> None:
        """Raise :exc:`TopologyError` where a stream would be joined by no predicate."""
        for sequence in self.sequences:
            _check_connected(sequence.order, graph, self.streams)

    def __str__(self) -> str:
        return "\n".join(self._line(sequence) for sequence in self.sequences)

    def _line(self, sequence: JoinSequence) -> str:
        steps = (f"{self.streams[step.stream]} {step.algorithm}" for step in sequence.steps)
        return f"{self.streams[sequence.head]}: {', '.join(steps)}"


@dataclass(frozen=True, kw_only=True)
class TwoWayJoin:
    """A node of a join tree: stream S_i with the output S_{1…i-1} of the tree below it.

    Attributes
    ----------
    stream
        S_i.
    up
        A_i1, the one-way join from the stream to the output below.
    down
        A_i2, the one-way join from the output below to the stream.
    """

    stream: int
    up: OneWayJoin
    down: OneWayJoin


@dataclass(frozen=True, kw_only=True)
class TreePlan:
    """Tree ordering: one left-deep order of two-way joins for all streams (section 4.2).

    Both one-way joins of a two-way join must make their output at one site unless it is the last,
    for the next join looks into one window of it. The paper leaves this out.

    Attributes
    ----------
    streams
        Names, in the order of the query.
    first
        The stream at the bottom of the tree.
    joins
        Two-way joins from the bottom up.
    """

    streams: tuple[str, ...]
    first: int
    joins: tuple[TwoWayJoin, ...]

    def __post_init__(self) -> None:
        _check_order(self.order, self.streams)
        for join in self.joins[:-1]:
            if join.up.at_source == join.down.at_source:
                raise TopologyError(
                    f"the join tree makes the output of its join with {self.streams[join.stream]} "
                    f"at two sites, {join.up}/{join.down}: one of the two algorithms must work at "
                    "its source and the other at its destination"
                )

    @property
    def order(self) -> tuple[int, ...]:
        """The streams from the bottom up."""
        return (self.first, *(join.stream for join in self.joins))

    @property
    def sites(self) -> tuple[int, ...]:
        """Where the output below each two-way join is."""
        sites = [self.first]
        for join in self.joins[:-1]:
            sites.append(sites[-1] if join.down.at_source else join.stream)
        return tuple(sites)

    def check(self, graph: nx.Graph) -> None:
        """Raise :exc:`TopologyError` where a stream would be joined by no predicate."""
        _check_connected(self.order, graph, self.streams)

    def __str__(self) -> str:
        joins = (f", {self.streams[join.stream]} {join.up}/{join.down}" for join in self.joins)
        return f"({self.streams[self.first]}{''.join(joins)})"


JoinPlan = LinearPlan | TreePlan


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


def _check_order(order: Sequence[int], streams: Sequence[str]) -> None:
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
