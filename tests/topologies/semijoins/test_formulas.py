"""Appendix B against figures worked out by hand and against draws from the assumed streams."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from joins.one_way_join import PAPER_ALGORITHMS, OneWayJoin
from tests.topologies.semijoins.random_statistics import alike, with_stream
from topologies.semijoins.costing import Costing, Frontier
from topologies.semijoins.estimate import StepEstimate, estimate
from topologies.semijoins.formulas import distinct_among
from topologies.semijoins.plan import uniform_plan
from topologies.semijoins.statistics import JoinStatistics, one_attribute


def step(statistics: JoinStatistics, algorithm: OneWayJoin) -> StepEstimate:
    """Return what the join of the first stream with the second costs."""
    plan = uniform_plan(statistics.names, statistics.graph, algorithm)
    return estimate(Costing(statistics), plan).steps[0]


@pytest.mark.parametrize("algorithm", [OneWayJoin.SP_S, OneWayJoin.SP_D])
def test_a_simple_join_ships_every_tuple_once(algorithm: OneWayJoin) -> None:
    found = step(alike(), algorithm)
    assert found.nbytes == pytest.approx(300 * 1250 + 10 * 32)
    # Ten shipments a second of 25 ms each, and the bytes at 1 Mb/s; processing hardly counts.
    assert found.seconds == pytest.approx(10 * 0.025 + found.nbytes * 8 / 1e6, rel=0.001)


def test_two_steps_at_the_destination_ship_three_times() -> None:
    found = step(alike(), OneWayJoin.SM_D2)
    values = 10 * (1 - 0.9**30)  # all ten values are in W_2, and nearly all in 30 tuples
    assert found.nbytes == pytest.approx(10 * (2 * values * 5 + 3 * 32) + 300 * 1250)
    assert found.seconds == pytest.approx(30 * 0.025 + found.nbytes * 8 / 1e6, rel=0.001)


def test_with_dense_windows_the_shares_are_those_printed() -> None:
    statistics = alike()
    few_1 = replace(statistics, attributes=one_attribute([10, 20], 5))
    few_2 = replace(statistics, attributes=one_attribute([20, 10], 5))
    # f_21 = 1/2 of what comes to N_2 is fetched; f_12 = 1/2 of B_1 finds a match.
    fetched = shipped(step(few_1, OneWayJoin.SM_S1), "ΔW'_2")
    assert fetched == pytest.approx(150 * 1250, rel=0.001)
    assert shipped(step(few_2, OneWayJoin.SM_D1), "B'_1") == pytest.approx(150 * 1250, rel=0.001)


def test_values_that_stay_are_told_of_once() -> None:
    found = step(alike(), OneWayJoin.SM_D1)
    assert shipped(found, "{v_C, v_J}") == pytest.approx(10 * 10 * 8, rel=0.001)  # counts alone


def test_nothing_is_shipped_where_nothing_comes() -> None:
    statistics = with_stream(alike(), 0, rate_tps=2.0)  # a fifth of a tuple in τ
    found = step(statistics, OneWayJoin.SP_D)
    assert [term.shipments for term in found.terms if term.shipments] == pytest.approx([2.0])
    told = step(replace(statistics, punctuated=True), OneWayJoin.SP_D)
    assert [term.shipments for term in told.terms if term.shipments] == pytest.approx([10.0])


@pytest.mark.parametrize(("values", "draws"), [(1, 5), (10, 3), (50, 400)])
def test_distinct_values_are_as_many_as_are_drawn(values: int, draws: int) -> None:
    rng = np.random.default_rng(1)
    seen = [len(np.unique(rng.integers(0, values, draws))) for _ in range(2000)]
    assert distinct_among(values, draws) == pytest.approx(np.mean(seen), rel=0.02)


def test_rates_are_those_of_the_join_of_all_streams() -> None:
    statistics = replace(
        alike(3, rate_tps=10, window_rows=50), attributes=one_attribute([5, 8, 20], 5)
    )
    costing = Costing(statistics)
    done = np.array([[True, True, True]])
    frontier = Frontier(head=np.array([0]), done=done, site=np.array([0]))
    rng = np.random.default_rng(2)
    # A tuple of the head sees 50 tuples of each of the others.
    matches = rng.binomial(50, 1 / 8, 20_000) * rng.binomial(50, 1 / 20, 20_000)
    assert costing.rates(frontier)[0] == pytest.approx(10 * matches.mean(), rel=0.03)


def test_the_terms_are_those_of_the_paper() -> None:
    shipments = {
        algorithm: [t.what for t in step(alike(), algorithm).terms if t.shipments is not None]
        for algorithm in PAPER_ALGORITHMS
    }
    assert shipments == {
        OneWayJoin.SP_S: ["ship[B_2]"],
        OneWayJoin.SP_D: ["ship[B_1]"],
        OneWayJoin.SM_S1: ["ship[K_1]", "ship[ΔW'_2]", "ship[k]"],
        OneWayJoin.SM_S2: ["ship[ΔV'_2]", "ship[ΔW'_2]", "ship[{v_C, v_J} ∪ s_F]"],
        OneWayJoin.SM_D1: ["ship[B'_1]", "ship[{v_C, v_J}]"],
        OneWayJoin.SM_D2: ["ship[K_1]", "ship[K'_1]", "ship[B'_1]"],
    }


def shipped(found: StepEstimate, what: str) -> float:
    """Return the bytes a second of one shipment."""
    (nbytes,) = (t.shipped_bytes for t in found.terms if t.what == f"ship[{what}]")
    return nbytes
