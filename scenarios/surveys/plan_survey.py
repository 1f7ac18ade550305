"""Random queries of the stream semijoin paper: how good their plans are, how soon they are made.

`take` plans many twice and executes both plans (Table 3 and Figure 8); `take_planning_speed` times
the searches (section 4.1).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import Any

import numpy as np

from joins.semijoins.one_way_join import OneWayJoin
from netsim.cost import CostProfile
from scenarios.surveys.executed_plans import Executor
from scenarios.surveys.survey import LONGER_PERCENT, PlanningSpeedSurvey, PlanSurvey, Surveyed
from topologies.semijoins.costing import Costing, estimate_plan
from topologies.semijoins.join_statistics import QueryValues, random_query, site_prices
from topologies.semijoins.plans import uniform_plan
from topologies.semijoins.searches import SEARCHES, exhaustive_plan, greedy_plan

_ROUNDING = 1e-9


def query_values(survey: PlanSurvey, profile: CostProfile) -> QueryValues:
    """Return what random queries are drawn from."""
    drawn = survey.model_dump(exclude={"of", "queries", "runs"}, exclude_none=True)
    return QueryValues(prices=site_prices(profile), **drawn)


def take(survey: PlanSurvey, seed: int, profile: CostProfile) -> Surveyed:
    """Plan all queries twice, and execute the plans on the same streams.

    By estimate no plan may cost less than the one found exhaustively, and both must find the same;
    where they are one plan, the same as a plan of simple joins.
    """
    values = query_values(survey, profile)
    estimated, executed = [], []
    cheapest = agreed = True
    for number in range(survey.queries):
        rng = np.random.default_rng([seed, number])
        costing = Costing(random_query(values, rng))
        statistics = costing.statistics
        plans = [greedy_plan(costing), exhaustive_plan(costing)]
        greedy_s, exhaustive_s = (estimate_plan(statistics, plan).seconds for plan in plans)
        cheapest &= greedy_s > exhaustive_s * (1 - _ROUNDING)
        estimated.append((greedy_s, exhaustive_s))
        executor = Executor.of_statistics(statistics, seconds=survey.runs, profile=profile, rng=rng)
        greedy = executor.execute(plans[0])
        if plans[0] == plans[1]:
            exhaustive = greedy
            other = executor.execute(
                uniform_plan(statistics.names, statistics.graph, OneWayJoin.SP_D)
            )
        else:
            exhaustive = other = executor.execute(plans[1])
        agreed &= np.array_equal(greedy.found, other.found)
        executed.append((greedy.seconds, exhaustive.seconds))
    return Surveyed(
        record={"executed": _record(executed), "estimated": _record(estimated)},
        checked=f"{survey.queries:,} queries: none is planned at less than exhaustively, and all "
        "that both plans find is the same",
        passed=bool(cheapest and agreed),
    )


def _record(seconds: Sequence[tuple[float, float]]) -> dict[str, Any]:
    """Return figures of the times of greedy and exhaustive plans."""
    greedy, exhaustive = np.array(seconds).T
    ratio = greedy / exhaustive
    tens = np.round(ratio, 1)
    return {
        "greedy_s": float(greedy.mean()),
        "exhaustive_s": float(exhaustive.mean()),
        "ratio": {
            "mean": float(ratio.mean()),
            "median": float(np.median(ratio)),
            "deviation": float(ratio.std(ddof=1)) if len(ratio) > 1 else 0.0,
            "max": float(ratio.max()),
            "min": float(ratio.min()),
        },
        "share": {
            str(percent): 100 * float(np.mean(np.isclose(tens, 1 + percent / 100)))
            for percent in LONGER_PERCENT
        },
    }


def take_planning_speed(survey: PlanningSpeedSurvey, seed: int) -> Surveyed:
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
            possible = estimate_plan(query, plan).seconds > least * (1 - _ROUNDING)
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
