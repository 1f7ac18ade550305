"""The greedy and the exhaustive searches against every plan and every tree there is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.semijoins.one_way_join import PAPER_ALGORITHMS, OneWayJoin
from tests.topologies.semijoins.random_statistics import alike, joins
from topologies.semijoins.costing import Costing, estimate_plan
from topologies.semijoins.join_statistics import (
    JoinAttribute,
    JoinStatistics,
    OtherPredicate,
)
from topologies.semijoins.plans import (
    JoinStep,
    LinearPlan,
    TreePlan,
    TwoWayJoin,
    joins_of,
    leaves,
)
from topologies.semijoins.random_queries import JOIN_GRAPHS
from topologies.semijoins.searches import exhaustive_plan, exhaustive_tree, greedy_plan, greedy_tree
from topologies.topology import TopologyError

FEW = (OneWayJoin.SP_S, OneWayJoin.SP_D, OneWayJoin.SM_D1)


def all_plans_seconds(costing: Costing, head: int) -> list[float]:
    """Return what every join sequence of a head costs, one after the other."""
    statistics = costing.statistics
    rest = [s for s in range(len(statistics.streams)) if s != head]
    fixed = greedy_plan(costing).sequences
    found = []
    for order in permutations(rest):
        for algorithms in product(PAPER_ALGORITHMS, repeat=len(rest)):
            steps = tuple(
                JoinStep(stream=s, algorithm=a) for s, a in zip(order, algorithms, strict=True)
            )
            sequences = (*fixed[:head], steps, *fixed[head + 1 :])
            plan = LinearPlan(streams=statistics.names, sequences=sequences)
            try:
                plan.check(statistics.graph)
            except TopologyError:
                continue
            found.append(head_seconds(costing, plan, head))
    return found


def head_seconds(costing: Costing, plan: LinearPlan, head: int) -> float:
    estimates = estimate_plan(costing.statistics, plan).joins
    return sum(one.seconds for one in estimates if one.join.probe[0] == head)


@settings(max_examples=6, deadline=None)
@given(statistics=joins(3), head=st.integers(0, 2))
def test_no_plan_is_cheaper_than_the_exhaustive_one(statistics: JoinStatistics, head: int) -> None:
    costing = Costing(statistics)
    best = head_seconds(costing, exhaustive_plan(costing), head)
    assert best == pytest.approx(min(all_plans_seconds(costing, head)), rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(statistics=st.integers(2, 5).flatmap(joins))
def test_both_plans_can_be_carried_out_and_greedy_is_no_cheaper(
    statistics: JoinStatistics,
) -> None:
    costing = Costing(statistics)
    greedy, exhaustive = greedy_plan(costing), exhaustive_plan(costing)
    greedy.check(statistics.graph)
    exhaustive.check(statistics.graph)
    spent = estimate_plan(costing.statistics, greedy).seconds
    assert spent >= estimate_plan(costing.statistics, exhaustive).seconds * (1 - 1e-9)


@settings(max_examples=10, deadline=None)
@given(statistics=st.integers(3, 4).flatmap(joins))
def test_greedy_takes_the_cheapest_first_step(statistics: JoinStatistics) -> None:
    costing = Costing(statistics)
    plan = greedy_plan(costing)
    for head, (first, *_) in enumerate(plan.sequences):
        offers = {
            (other, algorithm): first_step_seconds(costing, plan, head, other, algorithm)
            for other in statistics.graph.neighbors(head)
            for algorithm in PAPER_ALGORITHMS
        }
        assert offers[first.stream, first.algorithm] == pytest.approx(min(offers.values()))


def first_step_seconds(
    costing: Costing, plan: LinearPlan, head: int, other: int, algorithm: OneWayJoin
) -> float:
    """Return what the head's first step costs if it is to join *other* by *algorithm*."""
    rest = [step.stream for step in plan.sequences[head] if step.stream != other]
    steps = tuple(JoinStep(stream=stream, algorithm=algorithm) for stream in (other, *rest))
    sequences = list(plan.sequences)
    sequences[head] = steps
    changed = LinearPlan(streams=plan.streams, sequences=tuple(sequences))
    estimates = estimate_plan(costing.statistics, changed).joins
    return next(one.seconds for one in estimates if one.join.probe[0] == head)


@pytest.mark.parametrize("kind", JOIN_GRAPHS)
def test_greedy_is_optimal_for_streams_that_are_all_the_same(kind: str) -> None:
    """As the paper says and Figure 9 shows."""
    costing = Costing(
        alike(4, kind=kind, rate_tps=100, window_rows=120, full_bytes=500, distinct=round(1 / 0.06))
    )
    greedy = estimate_plan(costing.statistics, greedy_plan(costing)).seconds
    assert greedy == pytest.approx(
        estimate_plan(costing.statistics, exhaustive_plan(costing)).seconds
    )


def test_bloom_semijoins_are_chosen_where_they_are_allowed_and_cost_least() -> None:
    """Few tuples match one of many long values: a filter says so in a fraction of their bytes."""
    statistics = replace(
        alike(window_rows=900, distinct=1000),
        attributes=(JoinAttribute.nested([20_000, 1000], 100),),
    )
    allowed = Costing(statistics, tuple(OneWayJoin))
    for search in (greedy_plan, exhaustive_plan):
        chosen = {step.algorithm for steps in search(allowed).sequences for step in steps}
        assert any(algorithm.startswith("BLOOM") for algorithm in chosen)
        assert estimate_plan(statistics, search(allowed)).seconds < (
            estimate_plan(statistics, search(Costing(statistics))).seconds
        )


def test_a_filter_is_not_chosen_where_nothing_is_compared_for_equality() -> None:
    other = OtherPredicate(distinct={0: 50.0, 1: 70.0}, selectivity=0.01, partial_bytes=1000)
    statistics = replace(alike(), attributes=(), others=(other,))
    plan = exhaustive_plan(Costing(statistics, tuple(OneWayJoin)))
    assert not any(step.algorithm.startswith("BLOOM") for steps in plan.sequences for step in steps)


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
