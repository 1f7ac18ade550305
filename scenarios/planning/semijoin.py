"""Plans of distributed joins by semijoins: which stream is joined when, how, and at which site."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from actors.source import NS_PER_S
from scenarios.networks import build_network
from scenarios.plan import Plan
from scenarios.planning.measured import measured_cost
from scenarios.planning.planner import Cost, Planner, Proposal, Table
from scenarios.run import Report
from topologies.semijoin import Semijoin, plan_of
from topologies.semijoins.choosing import EXHAUSTIVE_STREAMS, SEARCHES
from topologies.semijoins.costing import Costing
from topologies.semijoins.estimate import Estimate, estimate
from topologies.semijoins.plan import JoinSequence, LinearPlan, Step
from topologies.semijoins.statistics import JoinStatistics

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
        cost = estimate(costing, chosen)
        return Proposal(
            plan=tuple(str(chosen).splitlines()),
            tables=(
                _streams(costing.statistics),
                _steps(costing, cost),
                _searches(costing, cost),
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
    return Costing(plan.topology.statistics(plan.job(pairs=False), plan.parameters, network))


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
                names[step.step.stream],
                str(step.step.algorithm),
                names[step.site if step.step.algorithm.at_source else step.step.stream],
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


def _searches(costing: Costing, cost: Estimate) -> Table:
    few = len(cost.plan.streams) <= EXHAUSTIVE_STREAMS
    searches = ("greedy", "exhaustive") if few else ("greedy",)
    rows = [
        ("this plan", cost),
        *((name, estimate(costing, SEARCHES[name](costing))) for name in searches),
    ]
    return Table(
        title="this plan beside what the searches find",
        columns=("plan", "bytes/s", "s a second"),
        rows=tuple((name, f"{c.nbytes:,.0f}", f"{c.seconds:,.4g}") for name, c in rows),
    )
