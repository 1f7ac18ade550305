"""Where results go: each PE's own sink, or the one that all share."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import joinsim
from actors.hosting.processes import EACH
from joinsim import ConfigError
from topologies import TOPOLOGIES
from topologies.actor_graph import ActorGraph
from topologies.topology import SinkPlace

TREES = {"split_join": {"fanout": 2, "pes": 5}, "split_oij": {"fanout": 2, "replicas": 5}}


def graph_of(name: str, sink: SinkPlace, **parameters: Any) -> ActorGraph:
    topology = TOPOLOGIES[name]
    job = replace(topology.example(), sink=sink)
    return topology.build(job, topology.parameters_type(**parameters))


def channels_to_sinks(graph: ActorGraph) -> list[tuple[str, str]]:
    sinks = {name for name, role in graph.nodes(data="role") if role == "sink"}
    return [(sender, receiver) for sender, receiver in graph.edges() if receiver in sinks]


def others(graph: ActorGraph) -> tuple[list[tuple[str, Any]], list[tuple[str, str, str]]]:
    """Return everything but sinks, in the order of rank, and the channels between them."""
    sinks = {receiver for _, receiver in channels_to_sinks(graph)}
    actors = [(name, site) for name, site in graph.nodes(data="site") if name not in sinks]
    return actors, [edge for edge in graph.edges(data="port") if edge[1] not in sinks]


@pytest.mark.parametrize("name", list(TOPOLOGIES))
def test_partitioned_results_cross_no_network_and_nothing_else_changes(name: str) -> None:
    single, partitioned = graph_of(name, "single"), graph_of(name, "partitioned")
    assert others(single) == others(partitioned)
    senders = [sender for sender, _ in channels_to_sinks(single)]
    assert [sender for sender, _ in channels_to_sinks(partitioned)] == senders
    if name not in TREES:
        sites = partitioned.placement
        assert all(sites[a] == sites[b] for a, b in channels_to_sinks(partitioned))
        assert len({sink for _, sink in channels_to_sinks(partitioned)}) == len(set(senders))


@pytest.mark.parametrize("name", TREES)
def test_a_tree_of_collectors_ends_in_one_sink_whatever_the_run_chooses(name: str) -> None:
    places: tuple[SinkPlace, ...] = ("single", "partitioned")
    for place in places:
        graph = graph_of(name, place, **TREES[name])
        assert {sink for _, sink in channels_to_sinks(graph)} == {"sink"}
        assert not graph.partitions


def test_a_semijoins_results_stay_at_the_sites_that_its_plan_names() -> None:
    single, partitioned = graph_of("semijoin", "single"), graph_of("semijoin", "partitioned")
    assert single.wiring == partitioned.wiring
    assert channels_to_sinks(partitioned)[0] == ("site.S1", "sink.S1")


@pytest.mark.parametrize("processes", [1, 3, EACH])
def test_a_partition_is_in_the_process_of_its_pe(processes: Any) -> None:
    graph = graph_of("spo_join", "partitioned", po_join_pes=7)
    homes = graph.homes(processes)
    assert len(graph.partitions) == 9
    assert all(homes[sink] == homes[owner] for sink, owner in graph.partitions.items())
    assert set(homes) == set(graph)


def test_a_place_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match="sink = 'both': pass 'partitioned' or 'single'"):
        joinsim.show("ibwj", sink="both")  # type: ignore[arg-type]


WINDOW = "WINDOW AS (SLIDE INTERVAL '20' ON '100')"
INTERVAL = "AND B.ts BETWEEN A.ts - INTERVAL '40 ns' AND A.ts + INTERVAL '40 ns'"
QUERIES = {
    "spo_join": f"SELECT * FROM A, B WHERE A.v < B.v AND A.w > B.w {WINDOW}",
    "split_join": f"SELECT * FROM A, B WHERE A.v < B.v {WINDOW}",
    "handshake_join": f"SELECT * FROM A, B WHERE A.v < B.v {WINDOW}",
    "panjoin": f"SELECT * FROM A, B WHERE ABS(A.v - B.v) <= 3 {WINDOW}",
    "hp_oij": f"SELECT * FROM A, B WHERE A.k = B.k {INTERVAL}",
    "split_oij": f"SELECT * FROM A, B WHERE A.k = B.k {INTERVAL}",
}


@pytest.mark.parametrize("name", QUERIES)
def test_a_run_finds_the_same_wherever_its_results_go(name: str, tmp_path: Path) -> None:
    """Pairs, per-probe sums and late lists are the same rows; only who carries them differs."""
    rng = np.random.default_rng(7)
    streams = {
        stream: {"ts": np.sort(rng.integers(0, 900, 300))}
        | {field: rng.integers(0, 60, 300) for field in ("v", "w", "k")}
        for stream in "AB"
    }
    feeding: dict[str, Any] = {"batch_rows": 25}
    if "oij" in name:  # some tuples come behind the watermark
        feeding |= {"disorder": "60 ns", "watermark_lag": "10 ns"}
    rows: dict[str, list[Counter[Any]]] = {}
    nbytes: dict[str, int] = {}
    places: tuple[SinkPlace, ...] = ("single", "partitioned")
    for place in places:
        run = joinsim.run(
            QUERIES[name],
            streams,
            topology=name,
            feeding=feeding,
            sink=place,
            out=tmp_path / place,
        )
        assert run.verdict.exact
        rows[place] = [
            rows_of(tmp_path / place / file, columns)
            for file, columns in (
                ("results.parquet", ["probe_stream", "probe_id", "match_id"]),
                ("late.parquet", ["stream", "id", "ts", "watermark"]),
                ("probes-0.parquet", ["probe_id", "count", "fingerprint"]),
            )
        ]
        nbytes[place] = run.summary["network"]["bytes"]
        to_sinks = sent_to_sinks(tmp_path / place / "trace.parquet")
        assert (place == "partitioned" and name != "split_oij") == (to_sinks != {"sink"})
    assert rows["single"][0].total() > 50
    assert rows["single"][0] == rows["partitioned"][0]
    if "oij" in name:
        assert rows["single"][1].total() > 0
        assert rows["single"][1] == rows["partitioned"][1]
    else:
        assert nbytes["partitioned"] < nbytes["single"]


def rows_of(path: Path, columns: list[str]) -> Counter[tuple[Any, ...]]:
    table: pa.Table = pq.read_table(path, columns=columns)
    return Counter(zip(*(table[name].to_pylist() for name in columns), strict=True))


def sent_to_sinks(trace: Path) -> set[str]:
    receivers = pq.read_table(trace, columns=["receiver"])["receiver"].to_pylist()
    return {name for name in receivers if name.split(".")[0] == "sink"}
