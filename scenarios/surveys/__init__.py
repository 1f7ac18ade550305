"""Surveys: figures of a paper that need no query, no network and no run."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from scenarios.surveys.index_surveys import (
    IndexStepsSurvey,
    InsertSpreadSurvey,
    MemoryTrafficSurvey,
)
from scenarios.surveys.plan_survey import PlanSurvey

AnySurvey = Annotated[
    PlanSurvey | IndexStepsSurvey | MemoryTrafficSurvey | InsertSpreadSurvey,
    Field(discriminator="of"),
]
