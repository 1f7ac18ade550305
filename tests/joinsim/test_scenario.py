"""`joinsim.scenario`: what it is given is checked there, and a run may be of another scale."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import joinsim as js


@pytest.mark.parametrize(
    ("name", "scale", "message"),
    [
        ("oij-w1", "tiny", "scale = 'tiny': there are smoke, laptop, paper"),
        ("oij-w1", "laptob", "scale = 'laptob': did you mean 'laptop'"),
        ("spo-fig71", "smoke", "no scenario is called 'spo-fig71': did you mean"),
        ("none.toml", "smoke", "there is no file none.toml"),
    ],
)
def test_a_scenario_or_scale_that_is_not_there_is_refused_where_it_is_named(
    name: str, scale: str, message: str
) -> None:
    with pytest.raises(js.ConfigError, match=message):
        js.scenario(name, scale=scale)


def test_a_file_that_is_wrong_is_refused_where_it_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text('extends = "oij-w1"\nrows = -1\n')
    with pytest.raises(js.ConfigError, match="rows = -1"):
        js.scenario(file)


def test_a_run_may_be_of_another_scale(spark: object, prepared_once: None) -> None:
    scenario = js.scenario("oij-w1")
    small, same = scenario.run(scale="smoke"), js.scenario("oij-w1", scale="smoke").run()
    assert isinstance(small, js.Run)
    assert isinstance(same, js.Run)
    assert small.digest == same.digest
    assert "--scale smoke" in small.replay
    with pytest.raises(js.ConfigError, match="scale = 'tiny'"):
        scenario.run(scale="tiny")


def test_a_study_may_be_of_another_scale(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(js.Scenario, "_run_study", lambda _, study, out: study)
    study: Any = js.scenario("spo-fig17").run(scale="smoke")
    smoke: Any = js.scenario("spo-fig17", scale="smoke").study
    assert study.scale == "smoke"
    assert len(study.points) == len(smoke.points)


@pytest.mark.parametrize(
    ("call", "purpose"),
    [
        (js.Scenario.plan, "plan for"),
        (js.Scenario.compare, "compare systems on"),
        (js.Scenario.compare_engines, "compare engines on"),
    ],
)
def test_a_survey_is_refused_where_a_query_is_needed(call: Any, purpose: str) -> None:
    with pytest.raises(js.ConfigError, match=f"is a survey, which has no query to {purpose}"):
        call(js.scenario("semijoin-planning", scale="smoke"))


def test_a_run_takes_no_survey_in_its_place() -> None:
    with pytest.raises(js.ConfigError, match="oij-w1: survey is for a study or a sweep"):
        js.scenario("oij-w1", scale="smoke").run(survey={"of": "plans"})


def test_a_study_of_surveys_runs() -> None:
    study = js.scenario("semijoin-planning", scale="smoke").run()
    assert isinstance(study, js.StudyRun)
    assert "--scale smoke" in study.replay
    assert study.points.num_rows == len(study.result.study.points)
    assert repr(study) == f"semijoin-planning: {study.points.num_rows} runs"
