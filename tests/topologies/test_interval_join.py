"""Interval joins in several processes: what has much to do is spread over them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from actors.feed import StreamTable
from joins.batch import Schema
from joins.hashing import partition
from joins.queries.parser import parse_query
from topologies import find_topology
from topologies.actor_graph import ActorGraph
from topologies.interval_join import (
    HpOijParameters,
    HpOijTopology,
    KpOijParameters,
    KpOijTopology,
)
from topologies.topology import Job

QUERY = (
    "SELECT * FROM A, B WHERE A.key = B.key "
    "AND B.ts BETWEEN A.ts - INTERVAL '1 ms' AND A.ts + INTERVAL '1 ms'"
)


def key_of(replica: int) -> int:
    """Return a key whose home is this one of four replicas."""
    return int(np.flatnonzero(partition(np.arange(100), 4) == replica)[0])


def stream(name: str, keys: list[int]) -> StreamTable:
    table = pa.table({"ts": np.arange(len(keys)), "key": np.array(keys, np.int64)})
    return StreamTable(schema=Schema(stream=name, fields={"key": "int64"}), table=table)


def graph_of(frequent: int, other: int, topology: str, *, live: bool) -> ActorGraph:
    """Return four replicas, most tuples at two of them, and far more tuples in B than in A."""
    keys = 6 * [key_of(frequent)] + 3 * [key_of(other)] + [key_of(0)]
    system = find_topology(topology)
    files = stream("A", keys), stream("B", 10 * keys)
    job: Job = replace(system.sketch(parse_query(QUERY)), files=files, live=live)
    return system.build(job, system.parameters_type())


@pytest.mark.parametrize("topology", ["kp_oij", "flink_oij"])
@pytest.mark.parametrize(("frequent", "other"), [(1, 3), (3, 1), (2, 0), (1, 2)])
def test_replicas_of_frequent_keys_are_apart_in_a_live_run(
    frequent: int, other: int, topology: str
) -> None:
    homes = graph_of(frequent, other, topology, live=True).homes(2)
    assert homes[f"oij.{frequent}"] != homes[f"oij.{other}"]
    # The most frequent ones are not where the source of most tuples is.
    assert homes["source.A.0"] != homes["source.B.0"] != homes[f"oij.{frequent}"]
    assert all(homes[f"sink.oij.{i}"] == homes[f"oij.{i}"] for i in range(4))


def test_in_virtual_time_actors_are_spread_alike_whatever_the_data() -> None:
    graphs = [graph_of(*replicas, "kp_oij", live=False) for replicas in ((1, 3), (2, 0))]
    assert graphs[0].homes(2) == graphs[1].homes(2)
    assert [graphs[0].homes(2)[f"oij.{i}"] for i in range(4)] == [0, 1, 0, 1]


def test_a_live_run_of_no_tuples_is_spread_evenly() -> None:
    system = KpOijTopology()
    job = replace(system.sketch(parse_query(QUERY)), files=(stream("A", []), stream("B", [])))
    homes = system.build(replace(job, live=True), KpOijParameters()).homes(2)
    assert [homes[f"oij.{i}"] for i in range(4)] == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("parameters", "notes"),
    [
        ({"splitting": 4}, ()),
        ({"heuristic": "busiest_first", "threshold": 1.5, "max_splitting": 2}, ()),
        (
            {"splitting": 2, "heuristic": "busiest_first", "recalibration_turns": 8},
            (
                "heuristic = 'busiest_first': a splitting that is set does not depend on it",
                "recalibration_turns = 8: a splitting that is set does not depend on it",
            ),
        ),
        (
            {"splitting": 9},
            ("splitting = 9: cut to the number of replicas, 4",),
        ),
    ],
)
def test_what_a_set_splitting_leaves_without_effect_is_noted(
    parameters: dict[str, Any], notes: tuple[str, ...]
) -> None:
    system = HpOijTopology()
    assert system.notes(system.example(), HpOijParameters(**parameters)) == notes
