"""Joins measured while values drift: what they join. Never how fast it is."""

from __future__ import annotations

from typing import Any

import pytest

from joins.indexes.index import decode
from joins.window_join.registry import Making
from netsim.cost import load_profile
from scenarios.surveys import drift_speed
from scenarios.surveys.survey import DriftSpeedSurvey, Surveyed
from scenarios.surveys.taking import take_survey
from tests.scenarios.surveys.test_window_join_speed import Forgetful


def take(**keys: Any) -> Surveyed:
    survey = DriftSpeedSurvey.model_validate({"window_bits": 8, "passes": 2} | keys)
    return take_survey(survey, seed=1, profile=load_profile())


@pytest.mark.parametrize(("threads", "clock"), [(0, "processor time"), (2, "wall time")])
@pytest.mark.parametrize("shift", [0.0, 30.0])
def test_every_window_of_tuples_is_timed(threads: int, clock: str, shift: float) -> None:
    found = take(threads=threads, shift=shift)
    assert found.passed
    assert list(found.record["pace_tps"]) == [str(number) for number in range(1, 21)]
    assert min(found.record["pace_tps"].values()) > 0
    assert (found.record["clock"], found.record["threads"]) == (clock, threads)


def test_a_wrong_join_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Making.make
    monkeypatch.setattr(Making, "make", lambda *args, **keys: Forgetful(right(*args, **keys)))
    assert not take().passed


def test_values_drift_in_the_second_phase_alone() -> None:
    survey = DriftSpeedSurvey(window_bits=10, shift=100.0)
    begins = [window << survey.window_bits for window in (0, 3, 4, 9, 13, 14, 19)]
    keys = [drift_speed._rows(survey, at, at + (1 << survey.window_bits)).key for at in begins]
    means = [float(decode(key, "float64").mean()) for key in keys]
    assert means[:2] == pytest.approx([0, 0], abs=0.2)
    assert means[2:5] == pytest.approx([5, 55, 95], abs=0.2), "ten windows, evenly"
    assert means[5:] == pytest.approx([100, 100], abs=0.2)
