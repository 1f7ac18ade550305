"""Cuts a graph of actors into the stages of a Spark query.

A stage is one stateful operator of Spark; its shards are what the topology itself partitions its
work over. Actors that only pass on to each other are chained into one shard, as engines do: a
source with the router or emitter that nobody else feeds. An actor that only emits, the sink, runs
beside each of those that send to it.

Data flows one way through Spark's plan. A graph with a cycle (a manager that hears from its
workers) is therefore folded: all of it runs as one shard of one stage, and the messages on the
cycle are exchanged in there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import networkx as nx

from actors.protocol import ActorSpec, Wiring

Home = tuple[int, int]
"""Number of a stage, and of a shard in it."""


@dataclass(frozen=True, kw_only=True)
class Stages:
    """Where each actor of a graph runs.

    Attributes
    ----------
    actors
        Per stage and shard the names of its actors, in the order of the graph.
    folded
        Why there is one stage with one shard; None when the graph was cut.
    """

    actors: tuple[tuple[tuple[str, ...], ...], ...]
    folded: str | None = None

    @property
    def homes(self) -> dict[str, Home]:
        """Actor name to where it runs; sinks have no home of their own."""
        return {
            name: (stage, shard)
            for stage, shards in enumerate(self.actors)
            for shard, names in enumerate(shards)
            for name in names
        }

    @property
    def partitions(self) -> int:
        """Most shards of a stage."""
        return max(len(shards) for shards in self.actors)


def cut(specs: Mapping[str, ActorSpec], wiring: Wiring, *, fold: bool = False) -> Stages:
    """Return the stages of a graph; with *fold* one stage even where it could be cut."""
    graph = _graph_without_sinks(specs, wiring)
    if fold:
        return Stages(actors=((tuple(graph),),), folded="one stage was asked for")
    if not nx.is_directed_acyclic_graph(graph):
        cycle = " -> ".join(sender for sender, _ in nx.find_cycle(graph))
        return Stages(
            actors=((tuple(graph),),),
            folded=f"messages go in a circle ({cycle}), which no plan of Spark's can: the exchange "
            "runs inside one stage",
        )
    head = _heads(graph)
    chains: dict[str, list[str]] = {}
    for name in graph:
        chains.setdefault(head[name], []).append(name)
    chained = nx.DiGraph()
    chained.add_nodes_from(chains)
    chained.add_edges_from((head[a], head[b]) for a, b in graph.edges if head[a] != head[b])
    levels = nx.topological_generations(chained)
    rank = {name: place for place, name in enumerate(chains)}
    return Stages(
        actors=tuple(
            tuple(tuple(chains[name]) for name in sorted(level, key=rank.__getitem__))
            for level in levels
        )
    )


def _graph_without_sinks(specs: Mapping[str, ActorSpec], wiring: Wiring) -> nx.DiGraph:
    graph = nx.DiGraph()
    graph.add_nodes_from(name for name, spec in specs.items() if not spec.only_emits)
    for sender, ports in wiring.items():
        for receivers in ports.values():
            graph.add_edges_from((sender, receiver) for receiver in receivers if receiver in graph)
    return graph


def _heads(graph: nx.DiGraph) -> dict[str, str]:
    """Return the first actor of each actor's chain."""
    head: dict[str, str] = {}
    for name in nx.topological_sort(graph):
        senders = list(graph.predecessors(name))
        alone = len(senders) == 1 and graph.out_degree(senders[0]) == 1
        head[name] = head[senders[0]] if alone else name
    return head
