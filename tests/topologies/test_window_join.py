"""Topologies of whole windows: trees of relays, and queries that are refused."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.queries.parser import parse_query
from topologies import TOPOLOGIES, TopologyError
from topologies.window_join import (
    JoinMatrixParameters,
    JoinMatrixTopology,
    SplitJoinParameters,
    SplitJoinTopology,
)

WINDOW = "WINDOW AS (SLIDE INTERVAL '1' ON '2')"


@given(pes=st.integers(1, 40), fanout=st.integers(2, 9))
def test_trees_reach_every_pe_once_with_no_more_branches_than_allowed(
    pes: int, fanout: int
) -> None:
    topology = SplitJoinTopology()
    graph = topology.build(topology.example(), SplitJoinParameters(pes=pes, fanout=fanout))
    joiners, sinks = (
        [name for name, role in graph.nodes(data="role") if role == wanted]
        for wanted in ("joiner", "sink")
    )
    assert len(joiners) == pes
    assert len(sinks) == (pes if pes <= fanout else 1)
    for joiner in joiners:
        assert len(list(nx.all_simple_paths(graph, "router", joiner))) == 1
        assert len(list(nx.all_simple_paths(graph, joiner, sinks))) == 1
    for name, role in graph.nodes(data="role"):
        branches = (
            graph.in_degree(name) if role in ("collector", "sink") else graph.out_degree(name)
        )
        assert branches <= fanout
        assert role not in ("collector", "distributor") or branches > 1


def test_a_hash_join_without_an_equality_is_refused() -> None:
    topology = TOPOLOGIES["hash_join"]
    query = parse_query(f"SELECT * FROM R, S WHERE R.a < S.b AND ABS(R.c - S.c) < 2 {WINDOW}")
    with pytest.raises(TopologyError, match=r"predicate with =.*R\.a < S\.b, ABS\(R\.c - S\.c\)"):
        topology.build(topology.sketch(query), topology.parameters_type())


def test_a_grid_of_more_pes_than_a_run_may_have_is_refused() -> None:
    topology = JoinMatrixTopology()
    with pytest.raises(TopologyError, match="a grid of 10,100 PEs; it may have 10,000 at the most"):
        topology.build(topology.example(), JoinMatrixParameters(grid_rows=100, grid_columns=101))


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (f"SELECT * FROM A, B, C WHERE A.x = B.x AND B.y = C.y {WINDOW}", "3: A, B, C"),
        (
            "SELECT * FROM R, S WHERE R.x = S.x "
            "AND S.ts BETWEEN R.ts - INTERVAL '1 s' AND R.ts + INTERVAL '1 s'",
            "over windows; the query has an interval: S.ts BETWEEN R.ts",
        ),
    ],
)
@pytest.mark.parametrize(
    "name",
    [name for name, one in TOPOLOGIES.items() if not one.within_interval and not one.multiway],
)
def test_a_query_that_is_no_window_join_of_two_streams_is_refused(
    name: str, query: str, says: str
) -> None:
    topology = TOPOLOGIES[name]
    with pytest.raises(TopologyError, match=f"^{name} joins .*{says}"):
        topology.build(topology.sketch(parse_query(query)), topology.parameters_type())


@pytest.mark.parametrize(
    "name", [name for name, topology in TOPOLOGIES.items() if topology.within_interval]
)
def test_a_window_join_is_refused_where_intervals_are_joined(name: str) -> None:
    topology = TOPOLOGIES[name]
    query = parse_query(f"SELECT * FROM R, S WHERE R.x = S.x {WINDOW}")
    with pytest.raises(TopologyError, match=f"^{name} joins within an interval .*a window instead"):
        topology.build(topology.sketch(query), topology.parameters_type())
