"""Many random queries that are planned, not run (stream semijoin paper, Table 3)."""

from __future__ import annotations

import numpy as np

from scenarios.surveys.survey import PlanSurvey, Surveyed
from topologies.semijoins.costing import Costing, estimate_plan
from topologies.semijoins.random_queries import QueryValues, random_query
from topologies.semijoins.searches import exhaustive_plan, greedy_plan

_ROUNDING = 1e-9


def query_values(survey: PlanSurvey) -> QueryValues:
    """Return what random queries are drawn from."""
    return QueryValues(**survey.model_dump(exclude={"of", "queries"}, exclude_none=True))


def take(survey: PlanSurvey, seed: int) -> Surveyed:
    """Plan all queries twice; no plan may cost less than the one found exhaustively."""
    values = query_values(survey)
    rng = np.random.default_rng(seed)
    greedy, exhaustive = [], []
    for _ in range(survey.queries):
        costing = Costing(random_query(values, rng))
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
        checked=f"{survey.queries:,} queries planned, none cheaper than exhaustively",
        passed=bool((ratio > 1 - _ROUNDING).all()),
    )
