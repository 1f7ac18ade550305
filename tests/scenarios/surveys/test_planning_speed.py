"""Planning measured: which plans are made. Never how fast it is."""

from __future__ import annotations

import pytest

from netsim.cost import load_profile
from scenarios.surveys.survey import PlanningSpeedSurvey
from scenarios.surveys.taking import take_survey
from topologies.semijoins import searches


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
