"""What a survey is: something to be found out that needs no query, no network and no run."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from netsim.cost import CostProfile


@dataclass(frozen=True, kw_only=True)
class Surveyed:
    """What a survey found.

    Attributes
    ----------
    record
        Figures, as of a run (see `scenarios.measures`).
    checked, passed
        What must be so if they are right, in words, and whether it is.
    """

    record: dict[str, Any]
    checked: str
    passed: bool


class Survey(BaseModel):
    """What to find out; ``of`` says which kind it is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    @abstractmethod
    def take(self, *, seed: int, profile: CostProfile) -> Surveyed:
        """Find it out; *profile* says what work costs in virtual time."""
