"""Takes a survey: finds what measures a survey of its kind."""

from __future__ import annotations

from netsim.cost import CostProfile
from scenarios.surveys import survey as kinds
from scenarios.surveys.drift_speed import take as take_drift_speed
from scenarios.surveys.index_surveys import (
    take_index_steps,
    take_insert_spread,
    take_memory_traffic,
)
from scenarios.surveys.plan_survey import take as take_plans
from scenarios.surveys.plan_survey import take_planning_speed
from scenarios.surveys.segment_speed import take as take_segment_speed
from scenarios.surveys.subwindow_speed import take as take_subwindow_speed
from scenarios.surveys.window_join_speed import take as take_window_join_speed


def take_survey(survey: kinds.AnySurvey, *, seed: int, profile: CostProfile) -> kinds.Surveyed:
    """Return the figures of *survey*.

    *profile* is what work costs in virtual time. Surveys that time this machine join the same keys
    for every *seed*.
    """
    match survey:
        case kinds.PlanSurvey():
            return take_plans(survey, seed, profile)
        case kinds.IndexStepsSurvey():
            return take_index_steps(survey, seed, profile)
        case kinds.InsertSpreadSurvey():
            return take_insert_spread(survey, seed, profile)
        case kinds.MemoryTrafficSurvey():
            return take_memory_traffic(survey, seed, profile)
        case kinds.WindowJoinSpeedSurvey():
            return take_window_join_speed(survey)
        case kinds.DriftSpeedSurvey():
            return take_drift_speed(survey)
        case kinds.PlanningSpeedSurvey():
            return take_planning_speed(survey, seed)
        case kinds.SubwindowSpeedSurvey():
            return take_subwindow_speed(survey)
        case kinds.SegmentSpeedSurvey():
            return take_segment_speed(survey)
