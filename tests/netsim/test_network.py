"""Networks: presets, paths, latencies, and what is refused."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from netsim.network import (
    PRESETS,
    Latency,
    Link,
    NetworkError,
    full_mesh,
    link_between,
    link_matrices,
)


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("constant", 1_000, 1_000), ("uniform", 800, 1_200), ("pareto", 1_000, 10**9)],
)
def test_drawn_latencies_stay_in_their_range(kind: str, low: int, high: int) -> None:
    draw = Latency(kind=kind, mean_ns=1_000, spread_ns=200).sampler(np.random.default_rng(1))
    drawn = [draw() for _ in range(2_000)]
    assert low <= min(drawn) <= max(drawn) <= high
    assert all(isinstance(value, int) for value in drawn)


def test_a_normal_latency_is_never_negative_and_has_the_mean() -> None:
    draw = Latency(kind="normal", mean_ns=1_000, spread_ns=400).sampler(np.random.default_rng(1))
    drawn = np.array([draw() for _ in range(5_000)])
    assert drawn.min() >= 0
    assert drawn.mean() == pytest.approx(1_000, rel=0.05)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"mean_ns": -1}, "must be 0 or more"),
        ({"mean_ns": 1, "spread_ns": -1}, "must be 0 or more"),
        ({"mean_ns": 1, "kind": "often"}, "choose one of constant, uniform, normal, pareto"),
    ],
)
def test_a_latency_that_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(NetworkError, match=message):
        Latency(**arguments)


def test_a_link_without_bandwidth_and_a_site_without_cores_are_refused() -> None:
    with pytest.raises(NetworkError, match="must be at least 1"):
        Link(latency=Latency(mean_ns=1), bandwidth_bps=0)
    with pytest.raises(NetworkError, match="0 cores a site"):
        full_mesh(["a"], PRESETS["rack"], cores=0)


def test_a_path_adds_latencies_and_takes_the_narrowest_bandwidth() -> None:
    network = nx.Graph()
    network.add_nodes_from("abc", cores=1)
    network.add_edge("a", "b", link=Link(latency=Latency(mean_ns=5), bandwidth_bps=100))
    network.add_edge("b", "c", link=Link(latency=Latency(mean_ns=7), bandwidth_bps=10))
    assert link_between(network, "a", "c") == Link(latency=Latency(mean_ns=12), bandwidth_bps=10)
    assert link_between(network, "a", "a") is None


def test_sites_that_no_link_joins_are_named() -> None:
    network = nx.Graph()
    network.add_nodes_from("ab", cores=1)
    with pytest.raises(NetworkError, match="no link leads from site 'a' to site 'b'"):
        link_between(network, "a", "b")


def test_matrices_have_the_link_between_every_two_sites() -> None:
    network = full_mesh("ABC", Link(latency=Latency(mean_ns=25_000_000), bandwidth_bps=1_000_000))
    network.edges["A", "C"]["link"] = Link(latency=Latency(mean_ns=5_000_000), bandwidth_bps=999)
    latency_s, bandwidth_bps = link_matrices(network, "CAB")
    assert latency_s.tolist() == [[0, 0.005, 0.025], [0.005, 0, 0.025], [0.025, 0.025, 0]]
    assert bandwidth_bps[0, 1] == bandwidth_bps[1, 0] == 999
    assert np.isinf(np.diagonal(bandwidth_bps)).all()
