"""The surveys there are."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from scenarios.surveys.index_steps import IndexStepsSurvey
from scenarios.surveys.insert_spread import InsertSpreadSurvey
from scenarios.surveys.memory_traffic import MemoryTrafficSurvey
from scenarios.surveys.plans import PlanSurvey

AnySurvey = Annotated[
    PlanSurvey | IndexStepsSurvey | MemoryTrafficSurvey | InsertSpreadSurvey,
    Field(discriminator="of"),
]
