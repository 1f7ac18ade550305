"""Random queries of the stream semijoin paper: how good their plans are, how soon they are made.

`take_plans` plans many twice and executes both plans in memory (Table 3 and Figure 8);
`take_planning_speed` times the searches (section 4.1).

The streams of a query are made to have the statistics that its plan was chosen by. What an executed
plan costs is the paper's measure (section 5.1): all processing and all transmissions of a run added
up, as if nothing overlapped; a transmission takes its link's latency, and its bytes over the
bandwidth. On the way themselves messages take next to no time. Over links of 1 Mb/s, the paper's,
most random queries ship more in a second than a link carries, so that queues would grow and no δ
would do; what is shipped, and so the cost, is the same.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa

from actors.feed import StreamTable
from actors.protocol import NS_PER_S
from actors.results import Output
from actors.source import Feeding
from joins.batch import Schema
from joins.matches import Matches
from joins.queries.parser import parse_query
from joins.semijoins.one_way_join import OneWayJoin
from netsim.cost import CostProfile
from netsim.network import Latency, Link, full_mesh
from scenarios.measures import ExecutionCost, measured_costs
from scenarios.rehearsal import run_inline
from scenarios.run_directory import TRACE
from scenarios.survey import PlanningSpeedSurvey, PlanSurvey, Surveyed
from topologies.semijoin import SemijoinParameters, SemijoinTopology
from topologies.semijoins.costing import Costing, estimate_plan
from topologies.semijoins.join_statistics import JoinStatistics, site_prices
from topologies.semijoins.plans import JoinPlan, uniform_plan
from topologies.semijoins.random_queries import QueryValues, random_query
from topologies.semijoins.searches import SEARCHES, exhaustive_plan, greedy_plan
from topologies.topology import Job

_ROUNDING = 1e-9
_AT_ONCE = Link(latency=Latency(mean_ns=1_000), bandwidth_bps=10**15)
_FIELD = "x"
_LONGER_PERCENT = range(-50, 210, 10)
"""By how much a greedy plan takes longer, as `PlanSurvey` counts them."""


def query_values(survey: PlanSurvey, profile: CostProfile) -> QueryValues:
    """Return what random queries are drawn from."""
    drawn = survey.model_dump(exclude={"of", "queries", "runs"}, exclude_none=True)
    return QueryValues(prices=site_prices(profile), **drawn)


def take_plans(survey: PlanSurvey, seed: int, profile: CostProfile) -> Surveyed:
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
        executor = Executor(statistics, seconds=survey.runs, profile=profile, rng=rng)
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
            for percent in _LONGER_PERCENT
        },
    }


def take_planning_speed(survey: PlanningSpeedSurvey, seed: int, profile: CostProfile) -> Surveyed:
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


@dataclass(frozen=True, kw_only=True)
class Executed:
    """What came of a plan."""

    costs: tuple[ExecutionCost, ...]
    """Of every second that was measured."""
    found: np.ndarray
    """Results by newest tuple: its stream, position, their count and their fingerprint; columns,
    all uint64, a row per tuple that has any."""

    @property
    def seconds(self) -> float:
        """Mean execution time of a second of arrivals."""
        return float(np.mean([cost.seconds for cost in self.costs]))


class Executor:
    """Executes plans on streams of given statistics, whose only attribute has uniform values.

    Tuples come at a steady rate from a random moment on, for as long as windows take to fill and
    every value to have been asked for, and then *seconds* more, which are measured one by one.
    """

    def __init__(
        self,
        statistics: JoinStatistics,
        *,
        seconds: int,
        profile: CostProfile,
        rng: np.random.Generator,
    ) -> None:
        longest_s = max(stream.window_rows / stream.rate_tps for stream in statistics.streams)
        before_s = ceil(longest_s + 2 * statistics.delay_s + statistics.interval_s)
        (attribute,) = statistics.attributes
        files = []
        for stream, values in zip(statistics.streams, attribute.distinct, strict=True):
            rows = int(stream.rate_tps * (before_s + seconds))
            ts = (np.arange(rows) + rng.random()) / stream.rate_tps * NS_PER_S
            columns = {"ts": ts.astype(np.int64), _FIELD: rng.integers(0, round(values), rows)}
            schema = Schema(stream=stream.name, fields={_FIELD: "int64"})
            files.append(StreamTable(schema=schema, table=pa.table(columns)))
        query = parse_query(_text(statistics))
        self.job = Job(query=query, files=tuple(files), feeding=Feeding(), profile=profile)
        self._parameters = SemijoinParameters(
            execution="delayed",
            tau=round(statistics.interval_s * NS_PER_S),
            delta=round(statistics.delay_s * NS_PER_S),
            tuple_bytes={s.name: round(s.full_bytes) for s in statistics.streams},
        )
        self._network = _network(statistics)
        self._edges_ns = (before_s + np.arange(seconds + 1)) * NS_PER_S

    def execute(self, plan: JoinPlan) -> Executed:
        """Return what *plan* costs and finds."""
        parameters = replace(self._parameters, plan=plan.one_line)
        graph = SemijoinTopology().build(self.job, parameters)
        found: list[Matches] = []

        def collect(outputs: list[Output]) -> None:
            found.extend(output.matches for output in outputs)

        with TemporaryDirectory() as folder:
            path = Path(folder) / TRACE
            run_inline(graph, _AT_ONCE, self.job.profile, trace=path, collect=collect)
            costs = measured_costs(path, graph, self._network, {"site"}, self._edges_ns)
        return Executed(costs=tuple(costs), found=_by_tuple(found))


def _text(statistics: JoinStatistics) -> str:
    """Return the query: every two streams that share an edge of the join graph are compared."""
    names = statistics.names
    predicates = " AND ".join(
        f"{names[a]}.{_FIELD} = {names[b]}.{_FIELD}" for a, b in sorted(statistics.graph.edges)
    )
    windows = ", ".join(
        f"{stream.name} AS (SLIDE INTERVAL '1 ns' ON "
        f"'{round(stream.window_rows / stream.rate_tps * 1000)} ms' PRECISE)"
        for stream in statistics.streams
    )
    return f"SELECT * FROM {', '.join(names)} WHERE {predicates} WINDOW {windows}"


def _network(statistics: JoinStatistics) -> nx.Graph:
    """Return the sites' network, whose links are all equal."""
    latency_s = float(statistics.latency_s.max())
    bandwidth_bps = int(statistics.bandwidth_bps.min())
    link = Link(latency=Latency(mean_ns=round(latency_s * NS_PER_S)), bandwidth_bps=bandwidth_bps)
    return full_mesh(statistics.names, link)


def _by_tuple(found: Sequence[Matches]) -> np.ndarray:
    """Return results by newest tuple, as `Executed` has them; parts of one tuple's add up."""
    if not found:
        return np.empty((4, 0), np.uint64)
    columns = {"stream": np.concatenate([np.full(len(part), part.stream) for part in found])}
    for name in ("probe_id", "count", "fingerprint"):
        columns[name] = np.concatenate([getattr(part, name) for part in found])
    parts = pa.table(columns).group_by(["stream", "probe_id"], use_threads=False)
    summed = parts.aggregate([("count", "sum"), ("fingerprint", "sum")])
    ordered = summed.sort_by([("stream", "ascending"), ("probe_id", "ascending")])
    return np.stack([column.to_numpy().astype(np.uint64) for column in ordered.columns])
