"""Random queries, for experiments with plans alone (stream semijoin paper, Table 2, Figure 6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import networkx as nx
import numpy as np

from actors.protocol import HEADER_BYTES
from topologies.semijoins.join_statistics import (
    JoinAttribute,
    JoinStatistics,
    JoinStream,
    Prices,
)

JOIN_GRAPHS: dict[str, Callable[[int], nx.Graph]] = {
    "chain": nx.path_graph,
    "star": lambda streams: nx.star_graph(streams - 1),
    "cycle": nx.cycle_graph,
    "fully connected": nx.complete_graph,
}
"""Topologies of a join graph (Figure 6), over so many streams."""

FIELD_BYTES = 5.0
"""Size of an attribute: the paper has 250 of them in 1,250 bytes."""

KEY_BYTES = 8.0
"""Size of the one that is joined on, which is a number here."""


@dataclass(frozen=True, kw_only=True)
class QueryValues:
    """What each stream of a random query draws its parameters from; by default Table 2."""

    join_graph: str
    streams: int
    """Kind of the join graph (Figure 6), and the number of streams."""
    fields: tuple[float, ...] = (10, 50, 100, 150, 200)
    """Tuple sizes, in attributes."""
    selectivity: tuple[float, ...] = (0.02, 0.04, 0.06, 0.08, 0.1)
    """Selectivity factors f = 1/d; d is rounded to a whole number of values."""
    rate_tps: tuple[float, ...] = (10, 50, 100, 150, 200)
    window_s: tuple[float, ...] = (0.4, 0.8, 1.2, 1.6, 2.0)
    """Stream rates, and window sizes."""
    latency_s: float = 0.025
    bandwidth_bps: float = 1_024_000
    interval_s: float = 0.1
    delay_s: float = 0.08
    """The network's, τ and δ."""
    prices: Prices = field(default_factory=Prices)
    """What a site's work costs."""


def random_query(values: QueryValues, rng: np.random.Generator) -> JoinStatistics:
    """Return a query whose streams have each drawn theirs, uniformly, from *values*."""
    count = values.streams
    fields, selectivity, rate_tps, window_s = (
        rng.choice(of, count)
        for of in (values.fields, values.selectivity, values.rate_tps, values.window_s)
    )
    return JoinStatistics(
        streams=tuple(
            JoinStream(
                name=f"S{place + 1}",
                rate_tps=float(rate_tps[place]),
                window_rows=float(rate_tps[place] * window_s[place]),
                full_bytes=float(fields[place] * FIELD_BYTES),
            )
            for place in range(count)
        ),
        attributes=(JoinAttribute.nested([round(1 / f) for f in selectivity], KEY_BYTES),),
        graph=JOIN_GRAPHS[values.join_graph](count),
        latency_s=np.full((count, count), values.latency_s),
        bandwidth_bps=np.full((count, count), values.bandwidth_bps),
        interval_s=values.interval_s,
        delay_s=values.delay_s,
        header_bytes=HEADER_BYTES,
        prices=values.prices,
    )
