"""`joinsim.scenario`: what it is given is checked there, and a run may be of another scale."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import joinsim as js


@pytest.mark.parametrize(
    ("name", "scale", "message"),
    [
        ("oij-w1", "tiny", "scale = 'tiny': there are smoke, laptop, paper"),
        ("oij-w1", "laptob", "scale = 'laptob': did you mean 'laptop'"),
        ("spo-fig71", "smoke", "no scenario is called 'spo-fig71': did you mean"),
        ("none.toml", "smoke", "there is no file none.toml"),
        (
            " select * from T",
            "smoke",
            "is a query, and without data .* pass the data of its streams",
        ),
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


def test_the_keys_of_a_scenario_may_have_scales() -> None:
    keys = {
        "query": "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')",
        "streams": [{"synthetic": {"rows": 60, "fields": {"x": "uniform(1, 9)"}}}],
        "scales": {"smoke": {"rows": 10}},
    }
    assert js.Scenario(keys, scale="paper").config.rows is None
    small = js.Scenario(keys, scale="smoke").run()
    assert isinstance(small, js.Run)
    assert small.summary["tuples"] == 10
    assert eval(small.replay, {"joinsim": js}).digest == small.digest


def test_an_empty_name_of_a_folder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(js.ConfigError, match="out = ''"):
        js.scenario("oij-w1", scale="smoke").run(out="", rows=100)
    assert not list(tmp_path.iterdir())


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


def test_an_engine_is_stopped_at_its_limit_in_the_main_thread_alone() -> None:
    query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    compare = partial(js.compare_engines, query, {"T": {"x": np.arange(60) % 7}}, engines="duckdb")
    failed = compare(limit_s=1e-6).failed
    assert failed == {"duckdb": "stopped: it had not ended after 1e-06 s"}
    with (
        ThreadPoolExecutor() as threads,
        pytest.raises(js.ConfigError, match="limit_s = 9: only in the main thread can an engine"),
    ):
        threads.submit(compare, limit_s=9).result()


def test_engines_may_be_named_by_a_tuple(spark: object, prepared_once: None) -> None:
    compared = js.scenario("oij-w1", scale="smoke").compare_engines(("duckdb", "polars"))
    assert "--engines duckdb,polars" in compared.replay


def test_a_run_takes_no_survey_in_its_place() -> None:
    with pytest.raises(js.ConfigError, match="oij-w1: survey is for a study or a sweep"):
        js.scenario("oij-w1", scale="smoke").run(survey={"of": "plans"})


def test_a_study_of_surveys_runs() -> None:
    study = js.scenario("semijoin-planning", scale="smoke").run()
    assert isinstance(study, js.StudyRun)
    assert "--scale smoke" in study.replay
    assert study.points.num_rows == len(study.result.study.points)
    assert repr(study) == f"semijoin-planning: {study.points.num_rows} runs"
