"""How long it takes to plan a join by semijoins (stream semijoin paper, section 4.1)."""

from __future__ import annotations

import time
from statistics import median

import numpy as np

from scenarios.surveys.survey import PlanningSpeedSurvey, Surveyed
from topologies.semijoins.costing import Costing, estimate_plan
from topologies.semijoins.random_queries import QueryValues, random_query
from topologies.semijoins.searches import SEARCHES


def take(survey: PlanningSpeedSurvey, seed: int) -> Surveyed:
    """Plan random queries of Table 2, timed in milliseconds of processor time.

    No plan may cost less than the one that an exhaustive search finds.
    """
    values = QueryValues(join_graph=survey.join_graph, streams=survey.streams)
    search, exhaustive = SEARCHES[survey.search], SEARCHES["exhaustive"]
    spent_ms, possible = [], True
    for number in range(survey.queries + 1):  # the first one compiles, and imports
        query = random_query(values, np.random.default_rng([seed, number]))
        started = time.thread_time()
        plan = search(Costing(query))
        spent_ms.append((time.thread_time() - started) * 1e3)
        if number == 0:
            least = estimate_plan(query, exhaustive(Costing(query))).seconds
            possible = estimate_plan(query, plan).seconds > least * (1 - 1e-9)
    return Surveyed(
        record={
            "plan_ms": {
                "median": median(spent_ms[1:]),
                "least": min(spent_ms[1:]),
                "most": max(spent_ms[1:]),
            },
            "queries": survey.queries,
            "clock": "processor time",
        },
        checked="a query is not planned at less than exhaustively",
        passed=bool(possible),
    )
