"""Cuts a graph of actors into the stages of a plan.

Apart from the shards, because only Spark's driver cuts: its Python workers need not wait until
networkx is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping

import networkx as nx

from actors.protocol import ActorSpec, Wiring
from spark_bridge.hosted.shard import Stages, actors_with_a_place


def cut_into_stages(
    specs: Mapping[str, ActorSpec], wiring: Wiring, *, fold: str | None = None
) -> Stages:
    """Return the stages of a graph; with *fold*, a reason, one even where it could be cut."""
    if fold:
        return Stages.one(specs, fold)
    graph = _graph_without_sinks(specs, wiring)
    if not nx.is_directed_acyclic_graph(graph):
        cycle = " -> ".join(sender for sender, _ in nx.find_cycle(graph))
        return Stages.one(
            specs,
            f"messages go in a circle ({cycle}), which is impossible in Spark's plans: the "
            "exchange runs inside one stage",
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
    graph.add_nodes_from(actors_with_a_place(specs))
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
