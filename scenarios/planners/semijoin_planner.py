"""Plans of distributed joins by semijoins: which stream is joined when, how, and at which site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from statistics import fmean
from typing import Any

from actors.protocol import NS_PER_S
from joins.queries.query import JoinQuery
from joins.semijoins.one_way_join import OneWayJoin
from scenarios.config import build_network
from scenarios.formatting import NO_VALUE, TextTable
from scenarios.measures import measured_costs
from scenarios.plan import Plan
from scenarios.planners.planner import Cost, Planner, Proposal
from scenarios.run import FinishedRun
from scenarios.run_directory import TRACE
from topologies.semijoin import SemijoinTopology, plan_of, replanning_of, with_tuple_bytes
from topologies.semijoins.costing import Costing, PlanEstimate, estimate_plan
from topologies.semijoins.join_statistics import JoinStatistics
from topologies.semijoins.plans import JoinPlan, LinearPlan
from topologies.semijoins.replanning import GreedyPlans, predict_epochs
from topologies.semijoins.searches import EXHAUSTIVE_STREAMS, SEARCHES

_SITE = "site"
_BYTES, _TIME = "bytes shipped", "execution time"


class SemijoinPlanner(Planner):
    """Costs plans by Appendix B's formulas."""

    def left_to_it(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return that a plan is to be searched for, unless there is one."""
        return {} if given.keys() & {"plan", "algorithm"} else {"plan": "auto"}

    def propose(self, plan: Plan) -> Proposal:
        """Return the run's plan of joins, with every step's alternatives."""
        statistics = _statistics(plan)
        chosen = plan_of(plan.query, plan.parameters)
        cost = estimate_plan(statistics, chosen)
        algorithms = plan.parameters.algorithms
        return Proposal(
            plan=tuple(str(chosen).splitlines()),
            tables=(
                _streams(statistics),
                _joins(statistics.names, cost, algorithms),
                _searches(Costing(statistics, algorithms), cost, plan.query),
                *_changes(plan, chosen),
            ),
            costs=(
                Cost(name=_BYTES, unit="bytes a second", estimated=cost.nbytes),
                Cost(name=_TIME, unit="s a second", estimated=cost.seconds),
            ),
        )

    def measure(self, finished: FinishedRun, proposal: Proposal) -> Proposal:
        """Return *proposal* with bytes and time as the trace has them."""
        plan = finished.plan
        trace = finished.directory / TRACE
        (measured,) = measured_costs(trace, plan.graph(), plan.network, {_SITE})
        span_s = _arrivals_s(plan)
        return proposal.with_measured(
            {_BYTES: measured.nbytes / span_s, _TIME: measured.seconds / span_s}
        )


def _statistics(plan: Plan) -> JoinStatistics:
    assert isinstance(plan.topology, SemijoinTopology)  # whose planner this is
    network = build_network(plan.config.network, plan.query.streams)
    return plan.topology.statistics(plan.job(pairs=False), plan.parameters, network)


def _arrivals_s(plan: Plan) -> float:
    """Return how long tuples arrived, seconds of virtual time."""
    if plan.config.feeding.rate_tps:
        return sum(plan.rows) / plan.config.feeding.rate_tps
    spans_ns = [
        (stream.last_ts - stream.first_ts) * taken / stream.rows
        for stream, taken in zip(plan.streams, plan.rows, strict=True)
    ]
    return max(*spans_ns, 1.0) / NS_PER_S


def _streams(statistics: JoinStatistics) -> TextTable:
    distinct = [attribute.distinct for attribute in statistics.attributes]
    return TextTable(
        title="streams, as measured",
        columns=("stream", "tuples/s", "window (tuples)", "tuple (bytes)", "distinct values"),
        rows=tuple(
            (
                stream.name,
                f"{stream.rate_tps:,.4g}",
                f"{stream.window_rows:,.4g}",
                f"{stream.full_bytes:,.4g}",
                " / ".join(f"{values[place]:,.0f}" for values in distinct if values[place]),
            )
            for place, stream in enumerate(statistics.streams)
        ),
    )


def _joins(names: Sequence[str], cost: PlanEstimate, algorithms: Sequence[OneWayJoin]) -> TextTable:
    """Return the one-way joins with what each algorithm would take there, ms a second."""
    linear = isinstance(cost.plan, LinearPlan)

    def named(streams: tuple[int, ...]) -> str:
        return " ⋈ ".join(names[stream] for stream in streams)

    rows = []
    for one in cost.joins:
        join = one.join
        rows.append(
            (
                named(join.probe[:1] if linear else join.probe),
                named(join.stored),
                str(join.algorithm),
                names[join.source if join.algorithm.at_source else join.destination],
                f"{one.rate_in_tps:,.4g}",
                f"{one.nbytes:,.0f}",
                *(f"{one.seconds_by[algorithm] * 1e3:,.4g}" for algorithm in algorithms),
            )
        )
    what = (
        "steps of each head's join sequence"
        if linear
        else "one-way joins of the tree, from the bottom up"
    )
    return TextTable(
        title=f"{what}; time by algorithm in ms a second",
        columns=(
            "head" if linear else "new tuples of",
            "joined with",
            "by",
            "at site of",
            "tuples/s",
            "bytes/s",
            *algorithms,
        ),
        rows=tuple(rows),
    )


def _changes(plan: Plan, chosen: JoinPlan) -> list[TextTable]:
    """Return which plan is in force when, where sites change it while the streams drift."""
    parameters = plan.parameters
    job = with_tuple_bytes(plan.job(pairs=False), parameters.tuple_bytes)
    replanning = replanning_of(job, chosen, parameters)
    if replanning is None:
        return []
    assert isinstance(replanning.book, GreedyPlans)  # there are no others
    approximation = plan.topology.approximation(plan.query, parameters)
    kept = approximation.kept if approximation else ()
    epochs = predict_epochs(replanning, job, parameters.tau, kept)
    rows = []
    for name, epochs_under in groupby(epochs, key=lambda epoch: epoch.plan):
        under = list(epochs_under)
        costs = [replanning.book.estimates(name, epoch.observed) for epoch in under]
        rows.append(
            (
                f"{under[0].begins_ns / NS_PER_S:,.4g}",
                f"{under[-1].ends_ns / NS_PER_S:,.4g}",
                name.replace("; ", "\n"),
                _mean([own.nbytes for own, _ in filter(None, costs)]),
                _mean([own.seconds for own, _ in filter(None, costs)]),
                _mean([best.seconds for _, best in filter(None, costs)]),
            )
        )
    return [
        TextTable(
            title=f"plans in force, looked at anew every {parameters.replan_every} intervals",
            columns=(
                "from (s)", "to (s)", "plan", "bytes/s", "s a second", "greedy then, s a second",
            ),
            rows=tuple(rows),
        )
    ]  # fmt: skip


def _mean(values: list[float]) -> str:
    return f"{fmean(values):,.4g}" if values else NO_VALUE


def _searches(costing: Costing, cost: PlanEstimate, query: JoinQuery) -> TextTable:
    """Return what the searches find; trees where the query's windows are of time."""
    searches = ["greedy"]
    if all(window.kind == "time" for window in query.windows):
        searches.append("greedy-tree")
    if len(cost.plan.streams) <= EXHAUSTIVE_STREAMS:
        searches += [name.replace("greedy", "exhaustive") for name in searches]
    rows = [
        ("this plan", cost),
        *((name, estimate_plan(costing.statistics, SEARCHES[name](costing))) for name in searches),
    ]
    return TextTable(
        title="this plan beside what the searches find",
        columns=("plan", "bytes/s", "s a second"),
        rows=tuple((name, f"{c.nbytes:,.0f}", f"{c.seconds:,.4g}") for name, c in rows),
    )
