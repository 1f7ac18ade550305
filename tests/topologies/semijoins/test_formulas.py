"""Appendix B against figures worked out by hand and against draws from the assumed streams."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from joins.semijoins.one_way_join import PAPER_ALGORITHMS, OneWayJoin
from tests.topologies.semijoins.random_statistics import alike, with_stream
from topologies.semijoins.costing import Costing, JoinEstimate, estimate_plan
from topologies.semijoins.formulas import Term, distinct_among
from topologies.semijoins.join_statistics import JoinAttribute, JoinStatistics
from topologies.semijoins.plans import uniform_plan


@dataclass(frozen=True, kw_only=True)
class FirstStep:
    """What the join of the first stream with the second costs by one algorithm."""

    estimate: JoinEstimate
    terms: list[Term]


def step(statistics: JoinStatistics, algorithm: OneWayJoin) -> FirstStep:
    plan = uniform_plan(statistics.names, statistics.graph, algorithm)
    costing = Costing(statistics, (algorithm,))
    first = costing.outputs(np.array([[True, False]]), np.array([[True, False]]))
    (terms,) = costing.terms(first, costing.alone)

    def figure(value: object) -> float:
        return float(np.broadcast_to(np.asarray(value, np.float64), (1, 2))[0, 1])

    return FirstStep(
        estimate=estimate_plan(statistics, plan).joins[0],
        terms=[
            Term(
                term.what,
                figure(term.seconds),
                None if term.shipments is None else figure(term.shipments),
                figure(term.shipped_bytes),
            )
            for term in terms
        ],
    )


@pytest.mark.parametrize("algorithm", [OneWayJoin.SP_S, OneWayJoin.SP_D])
def test_a_simple_join_ships_every_tuple_once(algorithm: OneWayJoin) -> None:
    found = step(alike(), algorithm).estimate
    assert found.nbytes == pytest.approx(300 * 1250 + 10 * 32)
    # Ten shipments a second of 25 ms each, and the bytes at 1 Mb/s; processing hardly counts.
    assert found.seconds == pytest.approx(10 * 0.025 + found.nbytes * 8 / 1e6, rel=0.001)


def test_two_steps_at_the_destination_ship_three_times() -> None:
    found = step(alike(), OneWayJoin.SM_D2).estimate
    values = 10 * (1 - 0.9**30)  # all ten values are in W_2, and nearly all in 30 tuples
    assert found.nbytes == pytest.approx(10 * (2 * values * 5 + 3 * 32) + 300 * 1250)
    assert found.seconds == pytest.approx(30 * 0.025 + found.nbytes * 8 / 1e6, rel=0.001)


def test_with_dense_windows_the_shares_are_those_printed() -> None:
    statistics = alike()
    few_1 = replace(statistics, attributes=(JoinAttribute.nested([10, 20], 5),))
    few_2 = replace(statistics, attributes=(JoinAttribute.nested([20, 10], 5),))
    # f_21 = 1/2 of what comes to N_2 is fetched; f_12 = 1/2 of B_1 finds a match.
    fetched = shipped(step(few_1, OneWayJoin.SM_S1), "ΔW'_2")
    assert fetched == pytest.approx(150 * 1250, rel=0.001)
    assert shipped(step(few_2, OneWayJoin.SM_D1), "B'_1") == pytest.approx(150 * 1250, rel=0.001)


def test_values_that_stay_are_announced_once() -> None:
    found = step(alike(), OneWayJoin.SM_D1)
    assert shipped(found, "{v_C, v_J}") == pytest.approx(10 * 10 * 8, rel=0.001)  # counts alone


def test_nothing_is_shipped_where_nothing_comes() -> None:
    statistics = with_stream(alike(), 0, rate_tps=2.0)  # a fifth of a tuple in τ
    found = step(statistics, OneWayJoin.SP_D)
    assert [term.shipments for term in found.terms if term.shipments] == pytest.approx([2.0])
    announced = step(replace(statistics, punctuated=True), OneWayJoin.SP_D)
    assert [term.shipments for term in announced.terms if term.shipments] == pytest.approx([10.0])


@pytest.mark.parametrize(("values", "draws"), [(1, 5), (10, 3), (50, 400)])
def test_distinct_values_are_as_many_as_are_drawn(values: int, draws: int) -> None:
    rng = np.random.default_rng(1)
    seen = [len(np.unique(rng.integers(0, values, draws))) for _ in range(2000)]
    assert distinct_among(values, draws) == pytest.approx(np.mean(seen), rel=0.02)


@pytest.mark.parametrize(
    ("rate_1", "rate_2", "window_s"), [(10.0, 100.0, 0.6), (40.0, 100.0, 0.2), (20.0, 50.0, 1.0)]
)
def test_a_value_asked_for_is_shipped_until_it_leaves_the_window(
    rate_1: float, rate_2: float, window_s: float
) -> None:
    """SM-S2's tuples and questions, against a window that is followed tuple by tuple."""
    values, seconds = 25, 3000
    statistics = with_stream(
        with_stream(alike(distinct=values), 0, rate_tps=rate_1, window_rows=rate_1),
        1,
        rate_tps=rate_2,
        window_rows=rate_2 * window_s,
    )
    found = step(statistics, OneWayJoin.SM_S2)
    asked, at_once, later = followed(rate_1, rate_2, values, window_s, seconds)
    assert shipped(found, "ΔV'_2") == pytest.approx(asked / seconds * 5, rel=0.07)
    assert shipped(found, "ΔW'_2") == pytest.approx(at_once / seconds * 1250, rel=0.07)
    update = shipped(found, "{v_C, v_J} ∪ s_F")
    vectors = update - shipped(step(statistics, OneWayJoin.SM_D1), "{v_C, v_J}")
    assert vectors == pytest.approx(later / seconds * 1250, rel=0.07)


def followed(
    rate_1: float, rate_2: float, values: int, window_s: float, seconds: int
) -> tuple[int, int, int]:
    """Return values asked for, tuples shipped with the answers, and tuples shipped as they came.

    At the ends of intervals of 100 ms; removals wait for two of them, twice δ at the least.
    """
    rng = np.random.default_rng(3)
    comes, asks = draws(rng, rate_2, values, seconds), draws(rng, rate_1, values, seconds)
    known: set[int] = set()
    asked = at_once = later = 0
    for tick in range(20, 10 * seconds):
        came, past, end = (round(rate_2 * at / 10) for at in (tick - 1, tick - 2, tick))
        held = comes[past - 1 - round(rate_2 * window_s) : end]
        later += sum(value in known for value in comes[came:end])
        known &= set(held)
        wanted = set(asks[round(rate_1 * (tick - 1) / 10) : round(rate_1 * tick / 10)])
        wanted &= set(held) - known
        known |= wanted
        asked += len(wanted)
        at_once += sum(value in wanted for value in held)
    return asked, at_once, later


def draws(rng: np.random.Generator, rate_tps: float, values: int, seconds: int) -> list[int]:
    """Return uniform values, as many as come in so many seconds."""
    return rng.integers(0, values, int(rate_tps * seconds)).tolist()


@pytest.mark.parametrize("algorithm", OneWayJoin)
def test_delta_matters_only_without_punctuations(algorithm: OneWayJoin) -> None:
    punctuated = replace(alike(distinct=100), punctuated=True)
    assert step(replace(punctuated, delay_s=9.0), algorithm) == step(punctuated, algorithm)


@pytest.mark.parametrize("algorithm", [OneWayJoin.SM_S1, OneWayJoin.SM_S2])
def test_punctuated_removals_wait_for_the_probes_of_the_slowest_link(algorithm: OneWayJoin) -> None:
    """They come in the third interval of 100 ms; delayed ones, twice as far, in the sixth."""
    sparse = with_stream(alike(distinct=100), 0, rate_tps=10, window_rows=30)
    latency_s = np.array([[0, 0.05], [0.25, 0]])
    punctuated = replace(sparse, punctuated=True, latency_s=latency_s)
    by_delta = step(replace(sparse, delay_s=0.3), algorithm)
    assert shipped(step(punctuated, algorithm), "ΔW'_2") == shipped(by_delta, "ΔW'_2")


def test_rates_are_those_of_the_join_of_all_streams() -> None:
    statistics = replace(
        alike(3, rate_tps=10, window_rows=50), attributes=(JoinAttribute.nested([5, 8, 20], 5),)
    )
    costing = Costing(statistics)
    done = np.array([[True, True, True]])
    outputs = costing.outputs(done, costing.alone.done[:1])
    rng = np.random.default_rng(2)
    # A tuple of the head sees 50 tuples of each of the others.
    matches = rng.binomial(50, 1 / 8, 20_000) * rng.binomial(50, 1 / 20, 20_000)
    assert costing.rates(outputs).sum() == pytest.approx(10 * matches.mean(), rel=0.03)


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


def shipped(found: FirstStep, what: str) -> float:
    """Return the bytes a second of one shipment."""
    (nbytes,) = (t.shipped_bytes for t in found.terms if t.what == f"ship[{what}]")
    return nbytes
