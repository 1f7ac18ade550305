"""The search finds what running everything finds, runs less, and says what it left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import joinsim as js
from joinsim._joining import of_query
from scenarios.advice.search import GOALS, Candidate, Search, Trial, candidates

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
    return Search(config=scenario.config, prepare=scenario._preparation, **defaults | how)


def test_candidates_fit_on_the_machines() -> None:
    scenario = of_query(QUERY, data(), None)
    found, refused = candidates(scenario.config, lambda *_: scenario.streams or (), machines=3)
    assert {one.topology for one in found} >= {"kp_oij", "dp_oij", "hp_oij"}
    assert all(one.machines <= 3 for one in found)
    assert "window" in refused["spo_join"]
    labels = [one.label for one in found]
    assert len(set(labels)) == len(labels)


def test_the_search_picks_the_best_of_all_and_runs_less() -> None:
    scenario = of_query(QUERY, data(), None)
    names = ["kp_oij", "dp_oij", "flink_oij", "split_oij"]
    found, _ = candidates(
        scenario.config, lambda *_: scenario.streams or (), machines=4, topologies=names
    )
    halving, everything = search_of(scenario), search_of(scenario, give_up=False)
    ranked = halving.run(found)
    trials: dict[str, Trial] = {}
    everything.measure_all(found, trials, ROWS, "all")
    goal = GOALS["throughput"]
    best = max(trial.values(goal)[0] for trial in trials.values())
    assert ranked[0][1].values(goal)[0] >= 0.9 * best
    assert ranked[0][1].rows == ROWS
    assert halving.tuples_run < 0.75 * everything.tuples_run
    # What a search measures of a candidate is what a run of it alone measures.
    assert ranked[0][1].values(goal) == trials[ranked[0][0].label].values(goal)


def test_a_search_without_time_runs_one_and_says_what_it_left_out() -> None:
    scenario = of_query(QUERY, data(), None)
    names = ["kp_oij"]
    found, _ = candidates(
        scenario.config, lambda *_: scenario.streams or (), machines=4, topologies=names
    )
    search = search_of(scenario, budget_s=0.0)
    ((one, trial),) = search.run(found)
    assert (one, search.runs, trial.rows < ROWS) == (found[0], 1, True)
    assert search.left_out[0] == f"round 1: {len(found) - 1} of {len(found)} candidates"
    assert len(search.left_out) == 3
    advice = js.advise(QUERY, data(), topologies=names, machines=4, budget_s=0.0)
    assert advice.best.topology == "kp_oij"
    assert advice.summary["left_out"][:3] == search.left_out


def ranked_labels(goals: list[str], values: dict[str, tuple[float, float]]) -> list[str]:
    """Return labels in order of rank, of throughput and bytes given by label."""
    made = [Candidate(topology=name, settings={}, pes=1, machines=1, cores=1) for name in values]
    trials = {
        name: Trial(rows=1, saturated=[{"throughput_tps": tps, "network": {"bytes": nbytes}}])
        for name, (tps, nbytes) in values.items()
    }
    scenario = of_query(QUERY, data(), "kp_oij")
    search = search_of(scenario, goals=goals)
    return [one.label for one in search.ranked(made, trials)]


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
