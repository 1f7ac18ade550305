"""Sites and the links between them.

A link has a latency (a distribution, drawn per message) and a bandwidth; messages of one channel
never overtake each other. A site has one port out and one port in, each FIFO: a message occupies
the sender's port for its transmission time, crosses, and occupies the receiver's port for the same
time, so that many senders to one receiver queue there. Not modelled: frames and packets (a message
is one unit), routing inside the network, and the cost of the operating system's own copies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise, product, repeat
from math import isqrt

import networkx as nx
import numpy as np

from actors.protocol import NS_PER_S
from joins.errors import JoinsimError

BYTE_NS = 8 * NS_PER_S
"""What a byte takes at a bit a second: so many bytes take nbytes * BYTE_NS // bandwidth_bps."""


class NetworkError(JoinsimError, ValueError):
    """A network that is not possible; names the site, link or value and what is allowed.

    Examples
    --------
    >>> import joinsim as js
    >>> query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    >>> network = {"links": [{"a": "router", "b": "paris", "latency": "9 ms"}]}
    >>> try:
    ...     js.run(query, {"T": {"x": [3, 1, 2]}}, topology="split_join", network=network)
    ... except js.NetworkError as error:
    ...     print(str(error).partition(";")[0])
    network.links: there is no site 'paris'
    """


@dataclass(frozen=True, kw_only=True)
class Latency:
    """How long a link takes to carry a bit across, drawn anew for every message."""

    kind: str = "constant"
    """``constant``; ``uniform`` on mean_ns ± spread_ns; ``normal`` with standard deviation
    spread_ns; ``pareto``: mean_ns at the least, and a tail of scale spread_ns and shape 2.5. A
    drawn value below 0 counts as 0."""
    mean_ns: int
    spread_ns: int = 0
    """Nanoseconds, 0 or more."""

    def __post_init__(self) -> None:
        if self.kind not in _KINDS:
            raise NetworkError(f"latency kind {self.kind!r}: choose one of {', '.join(_KINDS)}")
        if self.mean_ns < 0 or self.spread_ns < 0:
            raise NetworkError(
                f"latency of {self.mean_ns} ns ± {self.spread_ns} ns: must be 0 or more"
            )

    @property
    def is_constant(self) -> bool:
        """Whether every message takes the same time."""
        return self.kind == "constant" or self.spread_ns == 0

    @property
    def least_ns(self) -> int:
        """The least that a message can take."""
        if self.is_constant or self.kind == "pareto":
            return self.mean_ns
        return max(0, self.mean_ns - self.spread_ns) if self.kind == "uniform" else 0

    def sampler(self, seed: int | Sequence[int]) -> Callable[[], int]:
        """Return a function that draws the next latency in nanoseconds."""
        if self.is_constant:
            return repeat(self.mean_ns).__next__
        return self._draws(seed).__next__

    def _draws(self, seed: int | Sequence[int]) -> Iterator[int]:
        """Yield latencies without end; numpy draws many as fast as one."""
        rng = np.random.default_rng(seed)
        draw = _DRAWS[self.kind]
        while True:
            for latency in draw(rng, self.mean_ns, self.spread_ns, _DRAWN_TOGETHER).tolist():
                yield max(0, int(latency))


_DRAWN_TOGETHER = 32
"""Latencies of a link: few, as a run may have ten thousand links with few messages each."""
_DRAWS: dict[str, Callable[[np.random.Generator, int, int, int], np.ndarray]] = {
    "uniform": lambda rng, mean, spread, count: rng.uniform(mean - spread, mean + spread, count),
    "normal": lambda rng, mean, spread, count: rng.normal(mean, spread, count),
    "pareto": lambda rng, mean, spread, count: mean + spread * rng.pareto(2.5, count),
}
_KINDS = ("constant", *_DRAWS)


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link between two sites, the same in both directions."""

    latency: Latency
    """Propagation time."""
    bandwidth_bps: int
    """Bits per second of each of the two ports, at least 1."""

    def __post_init__(self) -> None:
        if self.bandwidth_bps < 1:
            raise NetworkError(f"bandwidth of {self.bandwidth_bps} bit/s: must be at least 1")


PRESETS: dict[str, Link] = {
    "same-host": Link(latency=Latency(mean_ns=1_000), bandwidth_bps=100_000_000_000),
    "rack": Link(latency=Latency(mean_ns=25_000), bandwidth_bps=25_000_000_000),
    "data-centre": Link(
        latency=Latency(kind="uniform", mean_ns=250_000, spread_ns=50_000),
        bandwidth_bps=10_000_000_000,
    ),
    # The stream semijoin paper's: 1 Mb/s and 25 ms.
    "wan": Link(latency=Latency(mean_ns=25_000_000), bandwidth_bps=1_000_000),
    # PanJoin's cluster: 100 Gb/s.
    "infiniband": Link(latency=Latency(mean_ns=2_000), bandwidth_bps=100_000_000_000),
}
"""Link of every pair of sites, by name of the kind of network."""


def full_mesh(sites: Iterable[str], link: Link, *, cores: int = 1) -> nx.Graph:
    """Return a network in which *link* joins every two of *sites*, each with *cores* cores.

    The graph has *link* once, as its attribute ``link``, and no edges: with n sites there would be
    n² / 2. Add an edge with another ``link``, or change a node's ``cores``, to make one link or
    site different. Raise :exc:`NetworkError` when a site would have no core.
    """
    network = sites_without_links(sites, cores=cores)
    network.graph["link"] = link
    return network


def sites_without_links(sites: Iterable[str], *, cores: int = 1) -> nx.Graph:
    """Return a network of *sites* that only the edges added to it join, each with a ``link``.

    Raise :exc:`NetworkError` when a site would have no core.
    """
    if cores < 1:
        raise NetworkError(f"{cores} cores a site: must be at least 1")
    network = nx.Graph()
    network.add_nodes_from(sites, cores=cores)
    return network


def is_full_mesh(network: nx.Graph) -> bool:
    """Whether a link joins every two sites, with or without an edge of its own."""
    return "link" in network.graph


def link_between(network: nx.Graph, a: str, b: str) -> Link | None:
    """Return the link that carries messages from site *a* to *b*; None within one site.

    Sites that are not neighbours send along the path of the fewest links: latencies add up, and the
    narrowest bandwidth counts. Raise :exc:`NetworkError` when there is no path, or no such site.
    """
    if a == b:
        return None
    for site in (a, b):
        if site not in network:
            raise NetworkError(f"there is no site {site!r} in this network")
    neighbours = network.adj[a]
    if b in neighbours:
        link: Link = neighbours[b]["link"]
        return link
    if is_full_mesh(network):
        link = network.graph["link"]
        return link
    return _link_along_path(network, a, b)


def _link_along_path(network: nx.Graph, a: str, b: str) -> Link:
    try:
        path = nx.shortest_path(network, a, b)
    except nx.NetworkXNoPath:
        raise NetworkError(f"no link leads from site {a!r} to site {b!r}") from None
    links: list[Link] = [network.edges[edge]["link"] for edge in pairwise(path)]
    latencies = [link.latency for link in links]
    kinds = {latency.kind for latency in latencies if not latency.is_constant}
    if len(kinds) > 1:
        raise NetworkError(
            f"the path {' - '.join(path)} mixes latencies of the kinds {', '.join(sorted(kinds))}: "
            "add a link between the two sites"
        )
    kind = kinds.pop() if kinds else "constant"
    mean_ns = sum(latency.mean_ns for latency in latencies)
    spread_ns = sum(latency.spread_ns for latency in latencies)
    if kind == "normal":  # of independent draws the squares of standard deviations add up
        spread_ns = isqrt(sum(latency.spread_ns**2 for latency in latencies))
    return Link(
        latency=Latency(kind=kind, mean_ns=mean_ns, spread_ns=spread_ns),
        bandwidth_bps=min(link.bandwidth_bps for link in links),
    )


def link_matrices(network: nx.Graph, sites: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return mean latencies (s) and bandwidths (bits/s) between *sites*, (sites, sites) each.

    Within a site they are 0 and infinite.
    """
    latency_s = np.zeros((len(sites), len(sites)))
    bandwidth_bps = np.full((len(sites), len(sites)), np.inf)
    for a, b in product(range(len(sites)), repeat=2):
        link = link_between(network, sites[a], sites[b])
        if link is not None:
            latency_s[a, b] = link.latency.mean_ns / 1e9
            bandwidth_bps[a, b] = link.bandwidth_bps
    return latency_s, bandwidth_bps
