"""How long a tuple may be on its way through a plan, against δ (section 2.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import networkx as nx

from joins.semijoins.one_way_join import OneWayJoin
from netsim.network import link_between
from topologies.semijoins.reading import JoinPlan
from topologies.semijoins.trees.plan import TreePlan, joins_of, site_of

_CROSSINGS = {
    OneWayJoin.SP_S: 0,
    OneWayJoin.SP_D: 1,
    OneWayJoin.SM_S1: 2,
    OneWayJoin.SM_S2: 2,
    OneWayJoin.SM_D1: 1,
    OneWayJoin.SM_D2: 3,
    OneWayJoin.BLOOM_S: 2,
    OneWayJoin.BLOOM_D: 1,
}
"""Messages between the two sites, one after the other, from a tuple's coming to its results."""


def longest_path(
    plan: JoinPlan, network: nx.Graph, sites: Sequence[str]
) -> tuple[int, tuple[str, ...]]:
    """Return the largest accumulated latency in nanoseconds, and the path of sites that has it.

    What lies between a link's latency and the time a message takes (its bytes, queues at ports, the
    tail of a distribution beyond one spread) is not in it.

    Parameters
    ----------
    plan
        The join sequences, or the tree.
    network, sites
        The network, and the sites' names there in the order of the streams.
    """
    return max(
        (sum(_latency_ns(network, a, b) for a, b in pairwise(path)), path)
        for path in _paths(plan, sites)
    )


def _paths(plan: JoinPlan, sites: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Give the ways of tuples through sequences, and of new tuples to copies of their window."""
    if isinstance(plan, TreePlan):
        yield from _tree_paths(plan, sites)
        return
    for sequence in plan.sequences:
        path = [sites[sequence.head]]
        for source, step in zip(sequence.sites, sequence.steps, strict=False):
            ends = sites[step.stream], sites[source]
            path += [ends[crossing % 2] for crossing in range(_CROSSINGS[step.algorithm])]
            yield ends
        yield tuple(path)


def _tree_paths(plan: TreePlan, sites: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Give the ways through one-way joins: an output stream waits until its interval is whole."""
    for join in joins_of(plan.root):
        a, b = sites[site_of(join.left)], sites[site_of(join.right)]
        for source, destination, algorithm in ((a, b, join.down), (b, a, join.up)):
            ends = destination, source
            yield ends
            yield (source, *(ends[crossing % 2] for crossing in range(_CROSSINGS[algorithm])))


def _latency_ns(network: nx.Graph, a: str, b: str) -> int:
    link = link_between(network, a, b)
    return link.latency.mean_ns + link.latency.spread_ns if link else 0
