from __future__ import annotations

from pathlib import Path

import pytest

from netsim.cost import load_profile
from scenarios.many_runs import Preparation
from scenarios.scenario_files import ConfigError
from scenarios.study.findings import Findings, plan_points, run_points
from scenarios.study.study import load_study
from scenarios.surveys.plan_survey import query_values
from scenarios.surveys.survey import PlanSurvey


def test_a_survey_is_the_same_for_the_same_seed() -> None:
    survey, profile = PlanSurvey(join_graph="star", queries=3), load_profile()
    assert survey.take(seed=7, profile=profile) == survey.take(seed=7, profile=profile)
    assert survey.take(seed=7, profile=profile) != survey.take(seed=8, profile=profile)


def test_a_single_value_is_a_choice_of_one() -> None:
    values = query_values(PlanSurvey.model_validate({"rate_tps": [10], "fields": 100}))
    assert values.rate_tps == (10,)
    assert values.fields == (100,)
    assert len(values.selectivity) == 5  # Table 2's


def test_a_study_of_surveys_compares_with_the_paper(tmp_path: Path) -> None:
    study = load_study("semijoin-table3", scale="smoke")
    assert study is not None
    plans = plan_points(study, Preparation())
    assert plans == {}
    findings = run_points(
        study, plans, tmp_path, on_point=lambda number, label: None, replay=lambda point: ""
    )
    told = findings.as_json("")
    assert told["charts"][0]["x"] == ["star", "chain", "cycle", "fully connected"]
    assert told["charts"][0]["paper"][0]["values"] == [1.02, 1.06, 1.08, 1.14]
    assert all(value >= 1 for value in told["charts"][0]["variants"][0]["values"])
    assert isinstance(findings, Findings)
    assert all(result.passed for result in findings.results.values())


def test_a_survey_cannot_be_run_as_a_point_alone(tmp_path: Path) -> None:
    from joinsim import scenario

    with pytest.raises(ConfigError, match="point 1: it is a survey"):
        scenario("semijoin-table3").point(1)
