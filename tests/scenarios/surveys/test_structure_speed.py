"""The measured subwindow and segment: what they answer, and that a wrong answer is seen."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from joins.indexes.immutable.po_join import PoJoinSegment
from joins.indexes.panjoin.subwindow import STRUCTURES
from joins.indexes.structures import SEGMENTS
from netsim.cost import load_profile
from scenarios.surveys import structure_speed, take_survey
from scenarios.surveys.survey import SegmentSpeedSurvey, SubwindowSpeedSurvey, Surveyed

KINDS = (*STRUCTURES, "b_plus_tree")


def take(**keys: Any) -> Surveyed:
    small = {"tuples": 4096, "partitions": 32, "batch": 1024, "passes": 1, "probes": 512}
    survey = SubwindowSpeedSurvey.model_validate(small | keys)
    return take_survey(survey, seed=1, profile=load_profile())


@pytest.mark.parametrize("structure", KINDS)
def test_insertion_stores_every_tuple(structure: str) -> None:
    found = take(structure=structure)
    assert found.passed
    assert found.record["tuples"] == 4096
    assert found.record["tuples_s"]["least"] > 0


@pytest.mark.parametrize("structure", KINDS)
@pytest.mark.parametrize("join", ["band", "equi"])
@pytest.mark.parametrize("selectivity", [1, 16])
def test_a_probe_has_as_many_matches_as_asked_for(
    structure: str, join: str, selectivity: int
) -> None:
    found = take(structure=structure, join=join, selectivity=selectivity)
    assert found.passed
    assert found.record["match_rate"] == pytest.approx(selectivity, rel=0.2)


def test_a_structure_that_loses_tuples_fails_the_survey(monkeypatch: pytest.MonkeyPatch) -> None:
    right = structure_speed._fill

    def fill_half(survey: SubwindowSpeedSurvey) -> Any:
        return right(survey.model_copy(update={"tuples": survey.tuples // 2}))

    monkeypatch.setattr(structure_speed, "_fill", fill_half)
    structure_speed._filled.cache_clear()
    assert not take().passed
    assert not take(selectivity=16).passed
    structure_speed._filled.cache_clear()


def test_one_subwindow_at_a_time_is_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    made: weakref.WeakSet[Any] = weakref.WeakSet()
    make = structure_speed._make

    def make_next(survey: SubwindowSpeedSurvey) -> Any:
        gc.collect()
        assert not made
        made.add(full := make(survey))
        return full

    monkeypatch.setattr(structure_speed, "_make", make_next)
    assert take(passes=3).passed


def test_more_partitions_than_tuples_are_refused() -> None:
    with pytest.raises(ValidationError, match="partitions = 8192: at most 4096, the tuples"):
        take(partitions=8192)


def take_segment(**keys: Any) -> Surveyed:
    survey = SegmentSpeedSurvey.model_validate({"tuples": 2000, "probes": 150, "passes": 1} | keys)
    return take_survey(survey, seed=1, profile=load_profile())


@pytest.mark.parametrize("structure", list(SEGMENTS))
@pytest.mark.parametrize("share", [0.05, 0.2])
def test_a_probe_has_the_share_of_matches_asked_for(structure: str, share: float) -> None:
    found = take_segment(structure=structure, match_share=share)
    assert found.passed
    assert found.record["match_rate"] == pytest.approx(2000 * share, rel=0.25)
    assert found.record["clock"] == "processor time"


def test_a_segment_that_loses_a_match_fails_the_survey(monkeypatch: pytest.MonkeyPatch) -> None:
    right = PoJoinSegment.probe

    def forgetful(self: PoJoinSegment, *args: Any, **options: Any) -> Any:
        found = right(self, *args, **options)
        return replace(found, count=found.count - 1)

    monkeypatch.setattr(PoJoinSegment, "probe", forgetful)
    assert not take_segment().passed
