"""Plans of distributed joins by semijoins: which stream is joined when, how, and at which site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import groupby
from statistics import fmean
from typing import Any

from actors.source import NS_PER_S
from joins.queries.query import JoinQuery
from scenarios.config import build_network
from scenarios.plan import Plan
from scenarios.planning.planner import Cost, Planner, Proposal, Table, measured_cost
from scenarios.run import Report
from topologies.semijoin import Semijoin, plan_of, replanning_of
from topologies.semijoins.choosing import EXHAUSTIVE_STREAMS, SEARCHES
from topologies.semijoins.costs.costing import Costing
from topologies.semijoins.costs.estimate import Estimate, estimate
from topologies.semijoins.costs.sizes import sized
from topologies.semijoins.costs.statistics import JoinStatistics
from topologies.semijoins.estimating import estimate_plan
from topologies.semijoins.foreseen import foreseen
from topologies.semijoins.plan import JoinSequence, LinearPlan, Step
from topologies.semijoins.reading import JoinPlan
from topologies.semijoins.replanning import GreedyPlans
from topologies.semijoins.trees.estimate import TreeEstimate

_SITE = "site"
_BYTES, _TIME = "bytes shipped", "execution time"


class SemijoinPlanner(Planner):
    """Costs plans by Appendix B's formulas."""

    def left_to_it(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return that a plan is to be searched for, unless there is one."""
        return {} if given.keys() & {"plan", "algorithm"} else {"plan": "auto"}

    def propose(self, plan: Plan) -> Proposal:
        """Return the run's plan of joins, with every step's alternatives."""
        costing = _costing(plan)
        chosen = plan_of(plan.query, plan.parameters)
        cost = estimate_plan(costing, chosen)
        return Proposal(
            plan=tuple(str(chosen).splitlines()),
            tables=(
                _streams(costing.statistics),
                _steps(costing, cost) if isinstance(cost, Estimate) else _joins(costing, cost),
                _searches(costing, cost, plan.query),
                *_changes(plan, chosen),
            ),
            costs=(
                Cost(name=_BYTES, unit="bytes a second", estimated=cost.nbytes),
                Cost(name=_TIME, unit="s a second", estimated=cost.seconds),
            ),
        )

    def measure(self, report: Report, proposal: Proposal) -> Proposal:
        """Return *proposal* with bytes and time as the trace has them."""
        plan = report.plan
        graph = plan.graph(pairs=False)
        network = build_network(plan.config.network, graph.placement.values())
        measured = measured_cost(report.directory / "trace.parquet", graph, network, {_SITE})
        span_s = _arrivals_s(plan)
        values = {_BYTES: measured.nbytes / span_s, _TIME: measured.seconds / span_s}
        return replace(
            proposal,
            costs=tuple(replace(cost, measured=values[cost.name]) for cost in proposal.costs),
        )


def _costing(plan: Plan) -> Costing:
    assert isinstance(plan.topology, Semijoin)  # whose planner this is
    network = build_network(plan.config.network, plan.query.streams)
    statistics = plan.topology.statistics(plan.job(pairs=False), plan.parameters, network)
    return Costing(statistics, plan.parameters.algorithms)


def _arrivals_s(plan: Plan) -> float:
    """Return how long tuples arrived, seconds of virtual time."""
    rows = [min(stream.rows, plan.config.rows or stream.rows) for stream in plan.streams]
    if plan.config.feeding.rate_tps:
        return sum(rows) / plan.config.feeding.rate_tps
    spans_ns = [
        (stream.last_ts - stream.first_ts) * taken / stream.rows
        for stream, taken in zip(plan.streams, rows, strict=True)
    ]
    return max(*spans_ns, 1.0) / NS_PER_S


def _streams(statistics: JoinStatistics) -> Table:
    distinct = [attribute.distinct for attribute in statistics.attributes]
    return Table(
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


def _steps(costing: Costing, cost: Estimate) -> Table:
    """Return the steps with what each algorithm would take there, ms a second."""
    names = costing.statistics.names
    rows = []
    for at, step in enumerate(cost.steps):
        times = [
            estimate(costing, _with_step(cost.plan, at, algorithm)).steps[at].seconds
            for algorithm in costing.algorithms
        ]
        rows.append(
            (
                names[step.head],
                names[step.destination],
                str(step.algorithm),
                names[step.source if step.algorithm.at_source else step.destination],
                f"{step.rate_in_tps:,.4g}",
                f"{step.nbytes:,.0f}",
                *(f"{seconds * 1e3:,.4g}" for seconds in times),
            )
        )
    return Table(
        title="steps of each head's join sequence; time by algorithm in ms a second",
        columns=(
            "head",
            "joined with",
            "by",
            "at site of",
            "tuples/s",
            "bytes/s",
            *costing.algorithms,
        ),
        rows=tuple(rows),
    )


def _with_step(plan: LinearPlan, at: int, algorithm: object) -> LinearPlan:
    """Return *plan* with another algorithm at step number *at* of all."""
    head, place = divmod(at, len(plan.streams) - 1)
    sequence = plan.sequences[head]
    steps = list(sequence.steps)
    steps[place] = Step(stream=steps[place].stream, algorithm=algorithm)  # type: ignore[arg-type]
    sequences = list(plan.sequences)
    sequences[head] = JoinSequence(head=head, steps=tuple(steps))
    return LinearPlan(streams=plan.streams, sequences=tuple(sequences))


def _joins(costing: Costing, cost: TreeEstimate) -> Table:
    """Return both one-way joins of every two-way join, with what each algorithm would take."""

    def named(streams: tuple[int, ...]) -> str:
        return " ⋈ ".join(costing.statistics.names[stream] for stream in streams)

    return Table(
        title="one-way joins of the tree, from the bottom up; time by algorithm in ms a second",
        columns=(
            "new tuples of",
            "joined with",
            "by",
            "at site of",
            "tuples/s",
            "bytes/s",
            *costing.algorithms,
        ),
        rows=tuple(
            (
                named(step.one),
                named(step.two),
                str(step.algorithm),
                named((step.source if step.algorithm.at_source else step.destination,)),
                f"{step.rate_in_tps:,.4g}",
                f"{step.nbytes:,.0f}",
                *(f"{step.seconds_by[a] * 1e3:,.4g}" for a in costing.algorithms),
            )
            for step in cost.steps
        ),
    )


def _changes(plan: Plan, chosen: JoinPlan) -> list[Table]:
    """Return which plan is in force when, where sites change it while the streams drift."""
    parameters = plan.parameters
    job = sized(plan.job(pairs=False), parameters.tuple_bytes)
    replanning = replanning_of(job, chosen, parameters)
    if replanning is None:
        return []
    assert isinstance(replanning.book, GreedyPlans)  # there are no others
    approximation = plan.topology.approximation(plan.query, parameters)
    kept = approximation.kept if approximation else ()
    epochs = foreseen(replanning, job, parameters.tau, kept)
    rows = []
    for name, under in groupby(epochs, key=lambda epoch: epoch.plan):
        held = list(under)
        costs = [replanning.book.estimates(name, epoch.seen) for epoch in held]
        rows.append(
            (
                f"{held[0].begins_ns / NS_PER_S:,.4g}",
                f"{held[-1].ends_ns / NS_PER_S:,.4g}",
                name.replace("; ", "\n"),
                _mean([own.nbytes for own, _ in filter(None, costs)]),
                _mean([own.seconds for own, _ in filter(None, costs)]),
                _mean([best.seconds for _, best in filter(None, costs)]),
            )
        )
    return [
        Table(
            title=f"plans in force, looked at anew every {parameters.replan_every} intervals",
            columns=(
                "from (s)", "to (s)", "plan", "bytes/s", "s a second", "greedy then, s a second",
            ),
            rows=tuple(rows),
        )
    ]  # fmt: skip


def _mean(values: list[float]) -> str:
    return f"{fmean(values):,.4g}" if values else "-"


def _searches(costing: Costing, cost: Estimate | TreeEstimate, query: JoinQuery) -> Table:
    """Return what the searches find; trees where the query's windows are of time."""
    searches = ["greedy"]
    if all(window.kind == "time" for window in query.windows):
        searches.append("greedy-tree")
    if len(cost.plan.streams) <= EXHAUSTIVE_STREAMS:
        searches += [name.replace("greedy", "exhaustive") for name in searches]
    rows = [
        ("this plan", cost),
        *((name, estimate_plan(costing, SEARCHES[name](costing))) for name in searches),
    ]
    return Table(
        title="this plan beside what the searches find",
        columns=("plan", "bytes/s", "s a second"),
        rows=tuple((name, f"{c.nbytes:,.0f}", f"{c.seconds:,.4g}") for name, c in rows),
    )
