"""Many random queries that are planned, not run (stream semijoin paper, Table 3)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field

from netsim.cost import CostProfile
from scenarios.surveys.survey import Survey, Surveyed
from topologies.semijoins.costing import Costing, estimate_plan
from topologies.semijoins.random_queries import JOIN_GRAPHS, QueryValues, random_query
from topologies.semijoins.searches import exhaustive_plan, greedy_plan

_ROUNDING = 1e-9


def _several(value: Any) -> Any:
    """Take a single value as a choice of one."""
    return value if isinstance(value, (list, tuple)) or value is None else (value,)


Choice = Annotated[tuple[float, ...] | None, BeforeValidator(_several)]


class PlanSurvey(Survey):
    """How much greedy plans of random queries cost beside the best.

    ``greedy_s`` and ``exhaustive_s`` are the means of the plans' estimated execution times per
    second of arrivals; ``ratio`` has mean, median, deviation and max of the first over the second.

    Attributes
    ----------
    join_graph, streams
        Kind of the join graph, and how many streams it has.
    queries
        How many, each drawn anew.
    fields, selectivity, rate_tps, window_s
        What every stream draws from, several values or one; None takes Table 2's (see
        `QueryValues`).
    """

    of: Literal["plans"] = "plans"
    join_graph: Literal[JOIN_GRAPHS] = "chain"  # type: ignore[valid-type]
    streams: int = Field(default=4, ge=2, le=8)
    queries: int = Field(default=100, ge=1)
    fields: Choice = None
    selectivity: Choice = None
    rate_tps: Choice = None
    window_s: Choice = None

    @property
    def values(self) -> QueryValues:
        """What random queries are drawn from."""
        values = self.model_dump(exclude={"of", "queries"}, exclude_none=True)
        return QueryValues(**values)

    def take(self, *, seed: int, profile: CostProfile) -> Surveyed:
        """Plan all queries twice; no plan may cost less than the one found exhaustively."""
        rng = np.random.default_rng(seed)
        greedy, exhaustive = [], []
        for _ in range(self.queries):
            costing = Costing(random_query(self.values, rng))
            greedy.append(estimate_plan(costing.statistics, greedy_plan(costing)).seconds)
            exhaustive.append(estimate_plan(costing.statistics, exhaustive_plan(costing)).seconds)
        ratio = np.array(greedy) / np.array(exhaustive)
        record = {
            "greedy_s": float(np.mean(greedy)),
            "exhaustive_s": float(np.mean(exhaustive)),
            "ratio": {
                "mean": float(ratio.mean()),
                "median": float(np.median(ratio)),
                "deviation": float(ratio.std()),
                "max": float(ratio.max()),
            },
        }
        return Surveyed(
            record=record,
            checked=f"{self.queries:,} queries planned, none cheaper than exhaustively",
            passed=bool((ratio > 1 - _ROUNDING).all()),
        )
