"""What all surveys have in common."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from netsim.cost import CostProfile


@dataclass(frozen=True, kw_only=True)
class Surveyed:
    """The result of a survey.

    Attributes
    ----------
    record
        Figures, as of a run (see `scenarios.measures`).
    checked, passed
        A condition that must hold if they are right, in words, and whether it does.
    """

    record: dict[str, Any]
    checked: str
    passed: bool


class Survey(BaseModel):
    """What to measure without a run; the field ``of`` names the kind."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @abstractmethod
    def take(self, *, seed: int, profile: CostProfile) -> Surveyed:
        """Return the figures; *profile* is what work costs in virtual time."""
