"""Surveys of plans: what they cost and find, and which are made. Never how fast planning is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from joins.arrivals import Arrivals
from joins.batch import Batch
from joins.oracle.evaluation import expected
from joins.semijoins.one_way_join import PAPER_ALGORITHMS, OneWayJoin
from netsim.cost import load_profile
from scenarios.plan_surveys import Executed, Executor, query_values
from scenarios.preparation import Preparation
from scenarios.scenario_files import ConfigError
from scenarios.study.findings import Findings
from scenarios.study.point_runs import plan_points, run_points
from scenarios.study.study import load_study
from scenarios.survey import PlanningSpeedSurvey, PlanSurvey, take_survey
from topologies.semijoins import searches
from topologies.semijoins.join_statistics import JoinStatistics
from topologies.semijoins.plans import JoinPlan, uniform_plan
from topologies.semijoins.random_queries import QueryValues, random_query


def small_query() -> JoinStatistics:
    values = QueryValues(
        join_graph="chain", streams=3, fields=(50,), rate_tps=(20,), window_s=(0.8,)
    )
    return random_query(values, np.random.default_rng(1))


def light_survey() -> PlanSurvey:
    return PlanSurvey(queries=1, runs=1, streams=3, rate_tps=(10, 20), window_s=(0.4, 0.8))


def executor(statistics: JoinStatistics, seconds: int = 2) -> Executor:
    rng = np.random.default_rng(2)
    return Executor(statistics, seconds=seconds, profile=load_profile(), rng=rng)


def test_a_survey_is_the_same_for_the_same_seed() -> None:
    survey, profile = light_survey(), load_profile()
    first = take_survey(survey, seed=7, profile=profile)
    assert first.passed
    assert take_survey(survey, seed=7, profile=profile) == first
    assert take_survey(survey, seed=8, profile=profile) != first


def test_a_single_value_is_a_choice_of_one() -> None:
    survey = PlanSurvey.model_validate({"rate_tps": [10], "fields": 100})
    values = query_values(survey, load_profile())
    assert values.rate_tps == (10,)
    assert values.fields == (100,)
    assert len(values.selectivity) == 5  # Table 2's


def test_what_is_executed_ships_what_simple_joins_ship() -> None:
    """Each of two sequences of one step ships the head's tuples, and a header every τ."""
    statistics = random_query(
        QueryValues(join_graph="chain", streams=2, fields=(50,), rate_tps=(20,), window_s=(0.8,)),
        np.random.default_rng(1),
    )
    plan = uniform_plan(statistics.names, statistics.graph, OneWayJoin.SP_D)
    executed = executor(statistics).execute(plan)
    nbytes = 2 * (20 * 250 + 10 * 32)
    assert [cost.nbytes for cost in executed.costs] == [nbytes] * 2
    transmitted_s = 20 * 0.025 + 8 * nbytes / 1_024_000
    assert executed.seconds == pytest.approx(transmitted_s, rel=0.005)


def test_every_algorithm_finds_what_the_oracle_expects() -> None:
    statistics = small_query()
    running = executor(statistics)
    parts, tuples = [], []
    for file in running.job.files:
        parts.append(Batch.concat(list(file.batches())))
        tuples.append(len(parts[-1]))
    stream = np.repeat(np.arange(3), tuples)
    order = np.lexsort((stream, np.concatenate([part.ts for part in parts])))
    seq = np.argsort(order, kind="stable")
    arrivals = Arrivals(tuple(parts), tuple(np.split(seq, np.cumsum(tuples)[:-1])))
    rows = [
        (matches.stream, probe, count, fingerprint)
        for matches in expected(running.job.query, running.job.schemas, [arrivals])
        for probe, count, fingerprint in zip(
            matches.probe_id.tolist(),
            matches.count.tolist(),
            matches.fingerprint.tolist(),
            strict=True,
        )
        if count
    ]
    assert len(rows) > 20
    for algorithm in PAPER_ALGORITHMS:
        plan = uniform_plan(statistics.names, statistics.graph, algorithm)
        found = running.execute(plan).found
        assert list(zip(*found.tolist(), strict=True)) == sorted(rows)


def test_a_plan_that_loses_a_result_fails_the_survey(monkeypatch: pytest.MonkeyPatch) -> None:
    survey = light_survey().model_copy(update={"rate_tps": (50.0,)})
    profile = load_profile()
    assert take_survey(survey, seed=1, profile=profile).passed
    whole, calls = Executor.execute, []

    def losing(self: Executor, plan: JoinPlan) -> Executed:
        calls.append(plan)
        executed = whole(self, plan)
        return executed if len(calls) == 1 else replace(executed, found=executed.found[:, 1:])

    monkeypatch.setattr(Executor, "execute", losing)
    assert not take_survey(survey, seed=1, profile=profile).passed


def test_a_study_of_surveys_compares_with_the_paper(tmp_path: Path) -> None:
    study = load_study("semijoin-table3", scale="smoke")
    assert study is not None
    plans = plan_points(study, Preparation())
    assert plans == {}
    assert len(study.points) == 4  # Figure 8 is drawn of the queries of Table 3
    findings = run_points(
        study, plans, tmp_path, on_point=lambda number, label: None, replay=lambda point: ""
    )
    record = findings.as_json("")
    table, *figures = record["charts"]
    assert table["x"] == ["star", "chain", "cycle", "fully connected"]
    assert table["paper"][0]["values"] == [1.02, 1.06, 1.08, 1.14]
    figure_8 = {variant["name"]: variant["values"] for variant in figures[0]["variants"]}
    assert sum(figure_8["queries, executed"]) == pytest.approx(100)
    assert isinstance(findings, Findings)
    assert all(result.passed for result in findings.results.values())


def test_a_survey_cannot_be_run_as_a_point_alone(tmp_path: Path) -> None:
    from joinsim import scenario

    with pytest.raises(ConfigError, match="point 1: it is a survey"):
        scenario("semijoin-table3").point(1)


@pytest.mark.parametrize("search", ["greedy", "exhaustive"])
def test_every_query_is_planned_and_timed(search: str) -> None:
    survey = PlanningSpeedSurvey.model_validate({"search": search, "streams": 3, "queries": 2})
    found = take_survey(survey, seed=1, profile=load_profile())
    assert found.passed
    ms = found.record["plan_ms"]
    assert 0 < ms["least"] <= ms["median"] <= ms["most"]
    assert (found.record["queries"], found.record["clock"]) == (2, "processor time")


def test_an_exhaustive_search_that_is_not_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The greedy plan of this query is dearer than the cheapest."""
    greedy = searches.SEARCHES["greedy"]
    exhaustive = searches.SEARCHES["exhaustive"]
    monkeypatch.setitem(searches.SEARCHES, "exhaustive", greedy)
    monkeypatch.setitem(searches.SEARCHES, "greedy", exhaustive)
    survey = PlanningSpeedSurvey(streams=5, queries=1)
    passed = [take_survey(survey, seed=seed, profile=load_profile()).passed for seed in range(1, 6)]
    assert not all(passed)
