"""What a planner proposes for a query, with its costs, estimated and measured."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from scenarios.formatting import NO_VALUE, TextTable, notebook_html
from scenarios.plan import Plan
from scenarios.run import FinishedRun


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
    tables: tuple[TextTable, ...]
    costs: tuple[Cost, ...]

    @property
    def costs_table(self) -> TextTable:
        """What it was estimated to cost, and what it did in a run where there was one."""
        columns = ("", "estimated", "simulated", "estimate over simulation")
        return TextTable(columns=columns, rows=list(map(_cost_row, self.costs)), text_columns=1)

    def with_measured(self, values: Mapping[str, float]) -> Proposal:
        """Return it with what a run cost, by the costs' names."""
        costs = tuple(replace(cost, measured=values[cost.name]) for cost in self.costs)
        return replace(self, costs=costs)

    def as_json(self) -> dict[str, Any]:
        """Return it as one JSON object."""
        keys = ("title", "columns", "rows")
        tables = [{key: vars(table)[key] for key in keys} for table in self.tables]
        costs = [asdict(cost) for cost in self.costs]
        return {"plan": self.plan, "tables": tables, "costs": costs}

    def __repr__(self) -> str:
        costs = [
            f"{name}: {estimated} estimated, {simulated} simulated"
            for name, estimated, simulated, _ in self.costs_table.rows
        ]
        return "\n".join([*self.plan, *costs])

    def _repr_html_(self) -> str:
        return notebook_html("\n".join(self.plan), [*self.tables, self.costs_table])


def _cost_row(cost: Cost) -> tuple[str, str, str, str]:
    name = f"{cost.name}, {cost.unit}"
    if not cost.measured:
        return name, _five_digits(cost.estimated), NO_VALUE, NO_VALUE
    ratio = f"{cost.estimated / cost.measured:.3f}"
    return name, _five_digits(cost.estimated), _five_digits(cost.measured), ratio


def _five_digits(value: float) -> str:
    """Return a number to five digits, never with an exponent."""
    return f"{value:,.0f}" if value >= 10_000 else f"{value:,.5g}"


class Planner(ABC):
    """Proposes for one system; one per topology that chooses parameters by a cost model."""

    def left_to_it(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what to set, beside the parameters *given*, so that the system does the planning.

        Nothing where they say what is to be done, or where what is best is only proposed.
        """
        return {}

    @abstractmethod
    def propose(self, plan: Plan) -> Proposal:
        """Return what the system will do in the run *plan*, and what that should cost.

        Raise :exc:`topologies.TopologyError` for what the cost model does not cover.
        """

    @abstractmethod
    def measure(self, finished: FinishedRun, proposal: Proposal) -> Proposal:
        """Return the *proposal* with what the run of it cost."""
