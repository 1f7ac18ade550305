"""From a network's configuration to its graph of sites and links."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import networkx as nx

from netsim.network import PRESETS, Link, NetworkError, full_mesh
from scenarios.configuration.run_config import LinkConfig, NetworkConfig
from topologies.actor_graph import ActorGraph


def build_network(config: NetworkConfig, sites: Iterable[str]) -> nx.Graph:
    """Return the network of *config* over *sites*.

    Raise :exc:`NetworkError` naming a link between sites that are not there.
    """
    preset = PRESETS[config.preset]
    kind = config.latency_kind or ("uniform" if config.jitter else preset.latency.kind)
    base = _changed(
        replace(preset, latency=replace(preset.latency, kind=kind)),
        config.latency,
        config.jitter,
        config.bandwidth,
    )
    network = full_mesh(sites, base, cores=config.cores)
    for link in config.links:
        _check_sites(link, network)
    if not config.mesh:
        named = nx.Graph([(link.a, link.b) for link in config.links])
        network.remove_edges_from([ends for ends in network.edges if not named.has_edge(*ends)])
    for link in config.links:
        edge = network.edges[link.a, link.b]
        edge["link"] = _changed(edge["link"], link.latency, link.jitter, link.bandwidth)
    return network


def check_links(network: nx.Graph, graph: ActorGraph) -> None:
    """Raise :exc:`NetworkError` where an actor would send to a site that no links lead to."""
    parts = list(nx.connected_components(network))
    part_of = {site: place for place, part in enumerate(parts) for site in part}
    placement = graph.placement
    for sender, receiver in graph.edges():
        here, there = placement[sender], placement[receiver]
        if part_of[here] != part_of[there]:
            links = ", ".join(f"{a} - {b}" for a, b in network.edges)
            raise NetworkError(
                f"network.links: {sender} at site {here!r} sends to {receiver} at site {there!r}, "
                f"and no links lead there; there are {links or 'none'}"
            )


def _changed(
    link: Link, latency_ns: int | None, jitter_ns: int | None, bandwidth_bps: int | None
) -> Link:
    latency = link.latency
    if latency_ns is not None:
        # A latency given alone is the whole story: the preset's jitter does not belong to it.
        latency = replace(latency, mean_ns=latency_ns, spread_ns=0)
    if jitter_ns is not None:
        latency = replace(latency, spread_ns=jitter_ns)
    return replace(link, latency=latency, bandwidth_bps=bandwidth_bps or link.bandwidth_bps)


def _check_sites(link: LinkConfig, network: nx.Graph) -> None:
    for site in (link.a, link.b):
        if site not in network:
            raise NetworkError(
                f"network.links: there is no site {site!r}; there are {', '.join(network)}"
            )
    if link.a == link.b:
        raise NetworkError(f"network.links: {link.a!r} to itself is not a link")
