"""What a plan is costed with: streams, join attributes, links (stream semijoin paper, Table 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import networkx as nx
import numpy as np

from topologies.semijoins.costs.attributes import JoinAttribute, NestedAttribute
from topologies.topology import TopologyError


@dataclass(frozen=True, kw_only=True)
class StreamStatistics:
    """One stream.

    Attributes
    ----------
    name
        As the query spells it.
    rate_tps
        r_i, tuples a second.
    window_rows
        w_i, tuples in its window.
    full_bytes
        F_Si, size of a tuple.
    """

    name: str
    rate_tps: float
    window_rows: float
    full_bytes: float

    def __post_init__(self) -> None:
        if min(self.rate_tps, self.window_rows, self.full_bytes) <= 0:
            raise TopologyError(
                f"stream {self.name}: {self.rate_tps:g} tuples/s, a window of "
                f"{self.window_rows:g} tuples of {self.full_bytes:g} bytes: all must be above 0"
            )


@dataclass(frozen=True, kw_only=True)
class OtherPredicate:
    """A predicate that is no equality.

    Attributes
    ----------
    distinct
        Its two streams, and the number of distinct values of the field of each.
    selectivity
        ρ, the share of all pairs of tuples that satisfies it.
    partial_bytes
        P, size of a value.
    """

    distinct: dict[int, float]
    selectivity: float
    partial_bytes: float = 8.0


@dataclass(frozen=True, kw_only=True)
class Prices:
    """What a site's work costs, in seconds: c_p, c_u and c_h.

    Attributes
    ----------
    probe_s, update_s, hash_s
        Comparing a tuple with another, inserting or removing one, hashing one.
    nested_loops
        Whether a probe compares with every tuple, as in the paper's prototype; else it hashes and
        compares with the tuples of equal value, as the sites here do.
    """

    probe_s: float = 1.5e-9
    update_s: float = 1.2e-7
    hash_s: float = 1.5e-9
    nested_loops: bool = False


@dataclass(frozen=True, kw_only=True)
class JoinStatistics:
    """All a plan is costed with; matrices and sequences go by the streams' positions.

    Attributes
    ----------
    streams
        In the order of the query.
    attributes, others
        Equalities as attributes, and the other predicates.
    graph
        The join graph.
    latency_s, bandwidth_bps
        Matrices over sites, of the link from one to another: seconds, and bits a second.
    interval_s
        τ, the execution interval.
    delay_s
        δ, by which removals are delayed.
    punctuated
        Whether a site tells in every interval that it has nothing to ship.
    header_bytes
        What frames a message; the constant c of S(c).
    prices
        What work costs.
    """

    streams: tuple[StreamStatistics, ...]
    attributes: tuple[JoinAttribute, ...]
    graph: nx.Graph
    latency_s: np.ndarray
    bandwidth_bps: np.ndarray
    interval_s: float
    delay_s: float = 0.0
    punctuated: bool = False
    others: tuple[OtherPredicate, ...] = ()
    header_bytes: float = 32.0
    prices: Prices = Prices()

    def __post_init__(self) -> None:
        if self.interval_s <= 0 or self.delay_s < 0:
            raise TopologyError(
                f"τ of {self.interval_s:g} s and δ of {self.delay_s:g} s: τ must be above 0, and "
                "δ 0 or more"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The streams' names."""
        return tuple(stream.name for stream in self.streams)


def one_attribute(distinct: Sequence[float], partial_bytes: float) -> tuple[JoinAttribute, ...]:
    """Return the one join attribute of the paper's queries, for the d_i of every stream."""
    return (NestedAttribute(distinct=np.asarray(distinct, float), partial_bytes=partial_bytes),)


def same_links(
    sites: int, *, latency_s: float, bandwidth_bps: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the matrices of a network whose links are all equal."""
    return np.full((sites, sites), latency_s), np.full((sites, sites), bandwidth_bps)


JOIN_GRAPHS = ("chain", "star", "cycle", "fully connected")
"""Topologies of a join graph (Figure 6)."""


def graph_of(kind: str, streams: int) -> nx.Graph:
    """Return the join graph of a *kind* of `JOIN_GRAPHS` over so many streams."""
    everyone = range(streams)
    graph = nx.Graph()
    graph.add_nodes_from(everyone)
    if kind == "star":
        graph.add_edges_from((0, stream) for stream in everyone[1:])
    elif kind == "fully connected":
        graph.add_edges_from((a, b) for a in everyone for b in everyone[a + 1 :])
    else:
        graph.add_edges_from(pairwise(everyone))
    if kind == "cycle":
        graph.add_edge(0, streams - 1)
    return graph
