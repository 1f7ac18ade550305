"""Surveys: figures of a paper that need no query, no network and no run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scenarios.surveys import survey as kinds

if TYPE_CHECKING:
    from netsim.cost import CostProfile


def take_survey(survey: kinds.AnySurvey, *, seed: int, profile: CostProfile) -> kinds.Surveyed:
    """Return the figures of *survey*.

    *profile* is what work costs in virtual time. Surveys that time this machine join the same keys
    for every *seed*.
    """
    # Only here: they load all indexes, which runs need not.
    from scenarios.surveys import index_surveys, plan_surveys, structure_speed, window_join_speed

    match survey:
        case kinds.PlanSurvey():
            return plan_surveys.take_plans(survey, seed, profile)
        case kinds.PlanningSpeedSurvey():
            return plan_surveys.take_planning_speed(survey, seed)
        case kinds.IndexStepsSurvey():
            return index_surveys.take_index_steps(survey, seed, profile)
        case kinds.InsertSpreadSurvey():
            return index_surveys.take_insert_spread(survey, seed, profile)
        case kinds.MemoryTrafficSurvey():
            return index_surveys.take_memory_traffic(survey, seed, profile)
        case kinds.WindowJoinSpeedSurvey():
            return window_join_speed.take_window_join_speed(survey)
        case kinds.DriftSpeedSurvey():
            return window_join_speed.take_drift_speed(survey)
        case kinds.SubwindowSpeedSurvey():
            return structure_speed.take_subwindow_speed(survey)
        case kinds.SegmentSpeedSurvey():
            return structure_speed.take_segment_speed(survey)
