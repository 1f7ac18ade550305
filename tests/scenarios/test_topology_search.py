"""The search finds what running everything finds, runs less, and says what it left out."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import joinsim as js
from joinsim._calls import of_query
from scenarios.topology_search import (
    Candidate,
    Search,
    _HopelessError,
    _OverError,
    _WrongError,
    candidates,
)

QUERY = (
    "SELECT * FROM A, B WHERE A.k = B.k AND B.ts "
    "BETWEEN A.ts - INTERVAL '50 ms' AND A.ts + INTERVAL '50 ms'"
)
MS = 1_000_000
ROWS = 1_200


def data(seed: int = 1) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        name: {"ts": np.arange(ROWS) * MS, "k": rng.integers(0, 40, ROWS)} for name in ("A", "B")
    }


def search_of(scenario: Any, **how: Any) -> Search:
    defaults: dict[str, Any] = {
        "goals": ["throughput"], "rate_tps": None, "rows": ROWS, "budget_s": 1e6
    }  # fmt: skip
    return Search(config=scenario.config, prepare=lambda *_: scenario.streams, **defaults | how)


def kp_oij(scenario: Any) -> list[Candidate]:
    """Return the candidates of one system, on four machines."""
    return candidates(
        scenario.config, lambda *_: scenario.streams or (), machines=4, topologies=["kp_oij"]
    )[0]


def test_candidates_fit_on_the_machines() -> None:
    scenario = of_query(QUERY, data(), None)
    found, refused = candidates(scenario.config, lambda *_: scenario.streams or (), machines=3)
    assert {one.topology for one in found} >= {"kp_oij", "dp_oij", "hp_oij"}
    assert all(one.machines <= 3 for one in found)
    assert "window" in refused["spo_join"]
    labels = [one.label for one in found]
    assert len(set(labels)) == len(labels)


def test_candidates_of_a_kind_differ_in_their_pes_alone_most_come_first() -> None:
    scenario = of_query(QUERY, data(), None)
    found, _ = candidates(
        scenario.config, lambda *_: scenario.streams or (), machines=8, topologies=["kp_oij"]
    )
    assert len(found) > 1
    assert {one.kind for one in found} == {"kp_oij"}
    assert [one.pes for one in found] == sorted((one.pes for one in found), reverse=True)


def test_the_search_picks_the_best_of_all_and_runs_less() -> None:
    scenario = of_query(QUERY, data(), None)
    names = ["kp_oij", "dp_oij", "flink_oij", "split_oij"]
    found, _ = candidates(
        scenario.config, lambda *_: scenario.streams or (), machines=4, topologies=names
    )
    halving, everything = search_of(scenario), search_of(scenario, give_up=False)
    ranked = halving.run(found)
    alone = {one.label: one for one in everything.simulate_all(found, ROWS, "all")}
    goal = "throughput"
    best = max(one.values(goal)[0] for one in alone.values())
    assert ranked[0].values(goal)[0] >= 0.9 * best
    assert ranked[0].rows == ROWS
    assert halving.spent.tuples < 0.6 * everything.spent.tuples
    # What a search measures of a candidate is what a run of it alone measures.
    assert ranked[0].values(goal) == alone[ranked[0].label].values(goal)


def test_a_search_without_time_runs_one_and_says_what_it_left_out() -> None:
    scenario = of_query(QUERY, data(), None)
    names = ["kp_oij"]
    found, _ = candidates(
        scenario.config, lambda *_: scenario.streams or (), machines=4, topologies=names
    )
    search = search_of(scenario, budget_s=0.0)
    (one,) = search.run(found)
    assert (one.label, search.spent.runs, one.rows < ROWS) == (found[0].label, 1, True)
    left_out = search.spent.left_out
    assert left_out[0] == f"round 2 of 4: {len(found) - 1} of {len(found) - 1} candidates"
    assert left_out[-1] == "round 4 of 4: 1 of 1 candidates"
    advice = js.advise(QUERY, data(), topologies=names, machines=4, budget_s=0.0)
    assert advice.best.topology == "kp_oij"
    assert advice.summary["left_out"][: len(left_out)] == left_out


@pytest.mark.parametrize(("ended", "keeps_up"), [(_OverError, None), (_HopelessError, False)])
def test_a_rate_that_there_was_no_time_to_test_is_not_one_that_is_too_high(
    ended: type[Exception], keeps_up: bool | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = of_query(QUERY, data(), None)
    found = kp_oij(scenario)
    search = search_of(scenario, rate_tps=1_000)
    run_one = search._run_one

    def at_no_rate(one: Any, rate_tps: int | None, *rest: Any) -> Any:
        if rate_tps is not None:
            raise ended
        return run_one(one, rate_tps, *rest)

    monkeypatch.setattr(search, "_run_one", at_no_rate)
    (one,) = search.simulate_all(found[:1], ROWS, "all", last=True)
    assert one.saturated
    assert one.keeps_up is keeps_up


def test_one_that_takes_too_long_is_given_up_and_has_not_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = of_query(QUERY, data(), None)
    found = kp_oij(scenario)
    search = search_of(scenario)

    def too_slow(*_: Any) -> Any:
        raise _HopelessError("it takes too long")

    monkeypatch.setattr(search, "_run_one", too_slow)
    search.simulate_all(found[:1], ROWS, "all")
    assert search.spent.given_up == [f"{found[0].label}: it takes too long"]
    assert not search.spent.failed


def test_a_slow_rate_is_simulated_over_fewer_tuples() -> None:
    scenario = of_query(QUERY, data(), None)
    long = {"rows": 1_000_000}
    assert search_of(scenario, rate_tps=8, **long).fed_rows == 1_000  # one in each message
    assert search_of(scenario, rate_tps=20_000, **long).fed_rows == 100_000
    assert search_of(scenario, rate_tps=10**9, **long).fed_rows == 1_000_000


def ranked_labels(goals: list[str], values: dict[str, tuple[float, float]]) -> list[str]:
    """Return labels in order of rank, of throughput and bytes given by label."""
    made = [
        Candidate(
            topology=name,
            parameters={},
            kind=name,
            pes=1,
            machines=1,
            cores=1,
            rows=1,
            saturated=({"throughput_tps": tps, "network": {"each": nbytes}},),
        )
        for name, (tps, nbytes) in values.items()
    ]
    search = search_of(of_query(QUERY, data(), "kp_oij"), goals=goals)
    return [one.label for one in search.ranked(made)]


@pytest.mark.parametrize(
    ("goals", "order"),
    [
        (["throughput"], ["fast", "both", "worse", "lean"]),
        (["bytes"], ["lean", "both", "worse", "fast"]),
        # *worse* is behind *both* in both goals, so that it comes after all trade-offs.
        (["throughput", "bytes"], ["fast", "both", "lean", "worse"]),
    ],
)
def test_goals_rank_candidates(goals: list[str], order: list[str]) -> None:
    values = {"lean": (1.0, 10.0), "worse": (4.0, 60.0), "fast": (9.0, 90.0), "both": (5.0, 50.0)}
    assert ranked_labels(goals, values) == order


@pytest.mark.parametrize("at", [None, 1_000])
def test_one_whose_answer_was_wrong_is_not_ranked(
    at: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    scenario = of_query(QUERY, data(), None)
    found = kp_oij(scenario)
    search = search_of(scenario, rate_tps=1_000)
    run_one = search._run_one

    def wrong(one: Any, rate_tps: int | None, *rest: Any) -> Any:
        if rate_tps == at:
            raise _WrongError
        return run_one(one, rate_tps, *rest)

    monkeypatch.setattr(search, "_run_one", wrong)
    (one,) = search.simulate_all([replace(found[0], rows=100)], ROWS, "all", last=True)
    assert not one.rows
    assert search.spent.failed == [f"{found[0].label}: its answer was wrong"]
    monkeypatch.setattr(search, "simulate_all", lambda going, *_, **__: [replace(one, rows=0)])
    assert search.run(found[:1]) == []


def test_what_is_best_has_been_judged_where_others_were_wrong(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scenario = of_query(QUERY, data(), None)
    found = kp_oij(scenario)
    search = search_of(scenario)
    run_one, right = search._run_one, found[0].label

    def wrong(one: Candidate, *rest: Any) -> Any:
        if one.last and one.label != right:
            raise _WrongError
        return run_one(one, *rest)

    monkeypatch.setattr(search, "_run_one", wrong)
    best = search.run(found)[0]
    assert (best.label, best.last) == (right, True)
    right = "none of them"
    assert search.run(found) == []
    assert f"{found[0].label}: its answer was wrong" in search.spent.failed


def test_the_fewest_machines_that_a_system_needs_are_named() -> None:
    query = "SELECT * FROM A WHERE A.k1 < A.k2 WINDOW AS (SLIDE INTERVAL '5' ON '50')"
    scenario = of_query(query, {"A": data()["A"]}, None)

    def found(machines: int) -> tuple[list[Candidate], dict[str, str]]:
        return candidates(
            scenario.config,
            lambda *_: scenario.streams or (),
            machines=machines,
            topologies=["spo_join"],
        )

    few, refused = found(1)
    assert not few
    needed = re.search(r"it needs (\d+) machines at the least", refused["spo_join"])
    assert needed is not None
    assert not found(int(needed[1]) - 1)[0]
    assert found(int(needed[1]))[0]
