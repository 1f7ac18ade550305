"""The measured segment: what it answers, and that a wrong answer is seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from joins.indexes.immutable.po_join import PoJoinSegment
from joins.indexes.structures import SEGMENTS
from netsim.cost import load_profile
from scenarios.surveys.survey import SegmentSpeedSurvey, Surveyed
from scenarios.surveys.taking import take_survey


def take(**keys: Any) -> Surveyed:
    survey = SegmentSpeedSurvey.model_validate({"tuples": 2000, "probes": 150, "passes": 1} | keys)
    return take_survey(survey, seed=1, profile=load_profile())


@pytest.mark.parametrize("structure", list(SEGMENTS))
@pytest.mark.parametrize("share", [0.05, 0.2])
def test_a_probe_has_the_share_of_matches_asked_for(structure: str, share: float) -> None:
    found = take(structure=structure, match_share=share)
    assert found.passed
    assert found.record["match_rate"] == pytest.approx(2000 * share, rel=0.25)
    assert found.record["clock"] == "processor time"


def test_a_segment_that_loses_a_match_fails_the_survey(monkeypatch: pytest.MonkeyPatch) -> None:
    right = PoJoinSegment.probe

    def forgetful(self: PoJoinSegment, *args: Any, **options: Any) -> Any:
        found = right(self, *args, **options)
        return replace(found, count=found.count - 1)

    monkeypatch.setattr(PoJoinSegment, "probe", forgetful)
    assert not take().passed
