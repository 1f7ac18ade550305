"""Networks: presets, paths, latencies, and what is refused."""

from __future__ import annotations

import time
import tracemalloc
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.protocol import ActorSpec, Wiring
from netsim.network import (
    PRESETS,
    Latency,
    Link,
    NetworkError,
    full_mesh,
    link_between,
    link_matrices,
    sites_without_links,
)
from tests.netsim.simulate import link, simulate
from tests.toys import Recorder, Sender, Worker


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [("constant", 1_000, 1_000), ("uniform", 800, 1_200), ("pareto", 1_000, 10**9)],
)
def test_drawn_latencies_stay_in_their_range(kind: str, low: int, high: int) -> None:
    draw = Latency(kind=kind, mean_ns=1_000, spread_ns=200).sampler(1)
    drawn = [draw() for _ in range(2_000)]
    assert low <= min(drawn) <= max(drawn) <= high
    assert all(isinstance(value, int) for value in drawn)


def test_a_normal_latency_is_never_negative_and_has_the_mean() -> None:
    draw = Latency(kind="normal", mean_ns=1_000, spread_ns=400).sampler(1)
    drawn = np.array([draw() for _ in range(5_000)])
    assert drawn.min() >= 0
    assert drawn.mean() == pytest.approx(1_000, rel=0.05)


def test_latencies_drawn_together_are_those_drawn_one_by_one() -> None:
    draw = Latency(kind="uniform", mean_ns=1_000, spread_ns=200).sampler([1, 2])
    rng = np.random.default_rng([1, 2])
    assert [draw() for _ in range(100)] == [int(rng.uniform(800, 1_200)) for _ in range(100)]


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


@pytest.mark.parametrize(("kind", "spread_ns"), [("uniform", 7), ("normal", 5)])
def test_spreads_of_a_path_add_up_as_those_of_independent_draws(kind: Any, spread_ns: int) -> None:
    """The ends of a uniform latency add up, and the squares of standard deviations do."""
    network = nx.Graph()
    network.add_nodes_from("abc", cores=1)
    for ends, spread in (("ab", 3), ("bc", 4)):
        latency = Latency(kind=kind, mean_ns=100, spread_ns=spread)
        network.add_edge(*ends, link=Link(latency=latency, bandwidth_bps=10))
    link = link_between(network, "a", "c")
    assert link
    assert link.latency == Latency(kind=kind, mean_ns=200, spread_ns=spread_ns)


def test_sites_that_no_link_joins_are_named() -> None:
    network = nx.Graph()
    network.add_nodes_from("ab", cores=1)
    with pytest.raises(NetworkError, match="no link leads from site 'a' to site 'b'"):
        link_between(network, "a", "b")


def test_a_site_that_is_not_there_is_named_in_a_full_mesh_too() -> None:
    with pytest.raises(NetworkError, match="there is no site 'c' in this network"):
        link_between(full_mesh("ab", PRESETS["rack"]), "a", "c")


def test_matrices_have_the_link_between_every_two_sites() -> None:
    network = full_mesh("ABC", Link(latency=Latency(mean_ns=25_000_000), bandwidth_bps=1_000_000))
    network.add_edge("A", "C", link=Link(latency=Latency(mean_ns=5_000_000), bandwidth_bps=999))
    latency_s, bandwidth_bps = link_matrices(network, "CAB")
    assert latency_s.tolist() == [[0, 0.005, 0.025], [0.005, 0, 0.025], [0.025, 0.025, 0]]
    assert bandwidth_bps[0, 1] == bandwidth_bps[1, 0] == 999
    assert np.isinf(np.diagonal(bandwidth_bps)).all()


def test_ten_thousand_sites_have_a_link_between_every_two() -> None:
    sites = [f"site.{i}" for i in range(10_000)]
    tracemalloc.start()
    start = time.process_time()
    network = full_mesh(sites, PRESETS["rack"])
    network.add_edge(sites[0], sites[-1], link=PRESETS["wan"])
    seconds = time.process_time() - start
    _, most_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert link_between(network, sites[-1], sites[1]) == PRESETS["rack"]
    assert link_between(network, sites[-1], sites[0]) == PRESETS["wan"]
    assert seconds < 10
    assert most_bytes < 50_000_000


LINKS = st.builds(
    link,
    st.integers(0, 2_000),
    st.sampled_from([8_000_000, 800_000_000, 8_000_000_000]),
    kind=st.sampled_from(["constant", "uniform"]),
    spread_ns=st.integers(0, 500),
)
SITES = ("w", "x", "y", "z")
PAIRS = tuple(combinations(SITES, 2))


@settings(max_examples=40)
@given(
    base=LINKS,
    others=st.dictionaries(st.sampled_from(PAIRS), LINKS, max_size=4),
    cores=st.integers(1, 2),
    placement=st.fixed_dictionaries({name: st.sampled_from(SITES) for name in "abcdef"}),
)
def test_a_full_mesh_gives_the_run_of_a_graph_with_every_edge(
    tmp_path_factory: pytest.TempPathFactory,
    base: Link,
    others: dict[tuple[str, str], Link],
    cores: int,
    placement: dict[str, str],
) -> None:
    mesh, explicit = full_mesh(SITES, base, cores=cores), sites_without_links(SITES, cores=cores)
    for a, b in PAIRS:
        explicit.add_edge(a, b, link=others.get((a, b), base))
    for (a, b), other in others.items():
        mesh.add_edge(b, a, link=other)

    specs = {
        "a": ActorSpec(actor=Sender, arguments={"count": 12, "gap_ns": 200}),
        "b": ActorSpec(actor=Sender, arguments={"count": 9, "gap_ns": 300}),
        "c": ActorSpec(actor=Worker, arguments={"comparisons": 300, "port": "on"}),
        "d": ActorSpec(actor=Worker, arguments={"comparisons": 100, "port": "on"}),
        "e": ActorSpec(actor=Recorder),
        "f": ActorSpec(actor=Recorder),
    }
    to_workers: dict[str, tuple[str, ...]] = {"out": ("c", "d")}
    to_recorders: dict[str, tuple[str, ...]] = {"on": ("e", "f")}
    wiring: Wiring = {
        "a": to_workers, "b": to_workers, "c": to_recorders, "d": to_recorders, "e": {}, "f": {},
    }  # fmt: skip
    path = tmp_path_factory.mktemp("mesh") / "trace.parquet"
    runs = [
        simulate(specs, wiring, path=path, network=network, placement=placement, inbox_messages=2)
        for network in (mesh, explicit)
    ]
    assert runs[0].outcome == runs[1].outcome
    assert runs[0].emitted == runs[1].emitted
