"""The searches for join trees against every tree there is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.semijoins.one_way_join import OneWayJoin
from tests.topologies.semijoins.random_statistics import joins
from topologies.semijoins.costing import Costing, estimate_plan
from topologies.semijoins.plans import TreePlan, TwoWayJoin, joins_of, leaves
from topologies.semijoins.searches import exhaustive_plan, exhaustive_tree, greedy_tree
from topologies.semijoins.statistics import JoinStatistics
from topologies.topology import TopologyError

FEW = (OneWayJoin.SP_S, OneWayJoin.SP_D, OneWayJoin.SM_D1)


def trees_of_three(statistics: JoinStatistics) -> Iterator[TreePlan]:
    """Give every tree of three streams by `FEW` algorithms that can be carried out."""
    for (a, b, c), below, above in product(
        [(0, 1, 2), (0, 2, 1), (1, 2, 0)], product(FEW, repeat=2), product(FEW, repeat=2)
    ):
        first = TwoWayJoin(left=a, right=b, up=below[0], down=below[1])
        root = TwoWayJoin(left=first, right=c, up=above[0], down=above[1])
        try:
            plan = TreePlan(streams=statistics.names, root=root)
            plan.check(statistics.graph)
        except TopologyError:
            continue
        yield plan


@settings(max_examples=6, deadline=None)
@given(statistics=joins(3))
def test_no_tree_is_cheaper_than_the_exhaustive_one(statistics: JoinStatistics) -> None:
    costing = Costing(statistics, FEW)
    best = estimate_plan(costing.statistics, exhaustive_tree(costing)).seconds
    every = [estimate_plan(costing.statistics, plan).seconds for plan in trees_of_three(statistics)]
    assert best == pytest.approx(min(every), rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(statistics=st.integers(2, 5).flatmap(joins))
def test_both_trees_can_be_carried_out_and_greedy_is_no_cheaper(
    statistics: JoinStatistics,
) -> None:
    costing = Costing(statistics)
    greedy, exhaustive = greedy_tree(costing), exhaustive_tree(costing)
    greedy.check(statistics.graph)
    exhaustive.check(statistics.graph)
    assert all(isinstance(join.right, int) for join in joins_of(greedy.root))
    assert len(leaves(greedy.root)) == len(statistics.streams)
    spent = estimate_plan(costing.statistics, greedy).seconds
    assert spent >= estimate_plan(costing.statistics, exhaustive).seconds * (1 - 1e-9)


@settings(max_examples=20, deadline=None)
@given(statistics=joins(2))
def test_of_two_streams_a_tree_costs_what_two_sequences_do(statistics: JoinStatistics) -> None:
    costing = Costing(statistics)
    tree = estimate_plan(costing.statistics, exhaustive_tree(costing))
    linear = estimate_plan(costing.statistics, exhaustive_plan(costing))
    assert tree.seconds == pytest.approx(linear.seconds, rel=1e-9)
    assert tree.nbytes == pytest.approx(linear.nbytes, rel=1e-9)
