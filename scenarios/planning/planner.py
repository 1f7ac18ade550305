"""What a planner is: it says how a system will go about a query, and what that should cost."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from scenarios.running.plan import Plan
from scenarios.running.run import Report


@dataclass(frozen=True, kw_only=True)
class Table:
    """A part of an explanation: figures as text, a row each."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Something that is estimated and can be measured in a run; None where it was not measured."""

    name: str
    unit: str
    estimated: float
    measured: float | None = None


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """How a system will go about a query.

    Attributes
    ----------
    plan
        As people write it, a line each.
    tables
        Why: what it was costed with, and what every part of it costs.
    costs
        What the whole should cost.
    """

    plan: tuple[str, ...]
    tables: tuple[Table, ...]
    costs: tuple[Cost, ...]

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        return asdict(self)


class Planner(ABC):
    """Proposes for one system; one per topology that chooses parameters by a cost model."""

    @abstractmethod
    def left_to_it(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what to set, beside the parameters *given*, so that the system does the planning.

        Nothing where they say what is to be done.
        """

    @abstractmethod
    def propose(self, plan: Plan) -> Proposal:
        """Return what the system will do in the run *plan*, and what that should cost.

        Raise :exc:`topologies.TopologyError` for what the cost model does not cover.
        """

    @abstractmethod
    def measure(self, report: Report, proposal: Proposal) -> Proposal:
        """Return the *proposal* with what the run of it cost."""
