"""Statistics of made-up joins, for tests of formulas and searches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
from hypothesis import strategies as st

from topologies.semijoins.join_statistics import (
    JoinAttribute,
    JoinStatistics,
    JoinStream,
    OtherPredicate,
    Prices,
)
from topologies.semijoins.random_queries import JOIN_GRAPHS


def alike(
    streams: int = 2,
    *,
    rate_tps: float = 300,
    window_rows: float = 900,
    full_bytes: float = 1250,
    distinct: int = 10,
    latency_s: float = 0.025,
    bandwidth_bps: float = 1e6,
    kind: str = "chain",
    prices: Prices | None = None,
) -> JoinStatistics:
    """Return streams that are all the same: by default those of Figure 7."""
    return JoinStatistics(
        streams=tuple(
            JoinStream(
                name="ABCDEFGHIJKL"[place],
                rate_tps=rate_tps,
                window_rows=window_rows,
                full_bytes=full_bytes,
            )
            for place in range(streams)
        ),
        attributes=(JoinAttribute.nested([distinct] * streams, 5),),
        graph=JOIN_GRAPHS[kind](streams),
        latency_s=np.full((streams, streams), latency_s),
        bandwidth_bps=np.full((streams, streams), bandwidth_bps),
        interval_s=0.1,
        delay_s=0.08,
        prices=prices or Prices(),
    )


def with_stream(statistics: JoinStatistics, at: int, **changed: Any) -> JoinStatistics:
    """Return *statistics* with the stream at position *at* changed."""
    streams = list(statistics.streams)
    streams[at] = replace(streams[at], **changed)
    return replace(statistics, streams=tuple(streams))


@st.composite
def joins(draw: st.DrawFn, streams: int) -> JoinStatistics:
    """Draw a join of so many unlike streams over unlike links."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    graph = JOIN_GRAPHS[draw(st.sampled_from(list(JOIN_GRAPHS)))](streams)
    everyone = range(streams)
    latency_s = rng.uniform(0.001, 0.05, (streams, streams))
    bandwidth_bps = rng.uniform(1e5, 1e7, (streams, streams))
    others: tuple[OtherPredicate, ...] = ()
    one = JoinAttribute.nested(rng.integers(2, 200, streams).tolist())
    attributes: tuple[JoinAttribute, ...] = (one,)
    if draw(st.booleans()):  # one predicate of another kind
        others = (
            OtherPredicate(distinct={0: 50.0, 1: 70.0}, selectivity=float(rng.uniform(1e-3, 1))),
        )
        graph.add_edge(0, 1)
    if draw(st.booleans()) and nx.is_tree(graph):  # an attribute per predicate
        attributes = tuple(
            JoinAttribute.nested(
                np.where(np.isin(everyone, edge), rng.integers(2, 90, streams), 0).tolist()
            )
            for edge in graph.edges
        )
    return JoinStatistics(
        streams=tuple(
            JoinStream(
                name=f"S{place}",
                rate_tps=float(rng.uniform(1, 300)),
                window_rows=float(rng.uniform(1, 900)),
                full_bytes=float(rng.uniform(30, 1500)),
            )
            for place in everyone
        ),
        attributes=attributes,
        others=others,
        graph=graph,
        latency_s=(latency_s + latency_s.T) / 2,
        bandwidth_bps=(bandwidth_bps + bandwidth_bps.T) / 2,
        interval_s=float(rng.uniform(0.01, 1)),
        delay_s=0.08,
    )
