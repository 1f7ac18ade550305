"""Plans before they are run: what a system will do with a query, and what that should cost.

`SemijoinPlanner` costs orders of joins over sites by the stream semijoin paper's Appendix B,
`WindowJoinPlanner` the indexes of one machine's window join by PIM-Tree's equations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import groupby
from statistics import fmean
from typing import Any

import numpy as np
import pyarrow as pa

from actors.feed import open_feed
from actors.protocol import NS_PER_S
from joins.queries.query import JoinQuery
from joins.semijoins.one_way_join import OneWayJoin
from joins.window_join.cost_model import MODELLED, CostPrediction, predict, predict_all
from joins.window_join.rows import RowMaker
from joins.window_join.window_join_spec import WindowJoinSpec
from scenarios.calibration.window_workload import time_join, tuples_to_time
from scenarios.config import build_network
from scenarios.data_statistics import match_share
from scenarios.formatting import (
    NO_VALUE,
    TextTable,
    format_count,
    format_digits,
    format_many,
    notebook_html,
)
from scenarios.measures import measured_costs, record
from scenarios.plan import Plan
from scenarios.run import FinishedRun
from scenarios.run_directory import TRACE
from topologies import TopologyError
from topologies.semijoin import SemijoinTopology, plan_of, replanning_of, with_tuple_bytes
from topologies.semijoins.costing import Costing, PlanEstimate, estimate_plan
from topologies.semijoins.join_statistics import JoinStatistics
from topologies.semijoins.plans import JoinPlan, LinearPlan
from topologies.semijoins.replanning import GreedyPlans, predict_epochs
from topologies.semijoins.searches import EXHAUSTIVE_STREAMS, SEARCHES


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
        return name, format_digits(cost.estimated, 5), NO_VALUE, NO_VALUE
    ratio = f"{cost.estimated / cost.measured:.3f}"
    return name, format_digits(cost.estimated, 5), format_digits(cost.measured, 5), ratio


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
                format_digits(stream.rate_tps, 4),
                format_digits(stream.window_rows, 4),
                format_digits(stream.full_bytes, 4),
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
                format_digits(one.rate_in_tps, 4),
                f"{one.nbytes:,.0f}",
                *(format_digits(one.seconds_by[algorithm] * 1e3, 4) for algorithm in algorithms),
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
                format_digits(under[0].begins_ns / NS_PER_S, 4),
                format_digits(under[-1].ends_ns / NS_PER_S, 4),
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
    return format_digits(fmean(values), 4) if values else NO_VALUE


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
        rows=tuple((name, f"{c.nbytes:,.0f}", format_digits(c.seconds, 4)) for name, c in rows),
    )


_SAMPLE_ROWS = 4_096
_WORK = "work per tuple"
_OWN = "this run"


class WindowJoinPlanner(Planner):
    """Costs every index by equations 1 to 7, and the run's own parameters beside the best.

    Nothing is left to the system: what is best follows from the window.
    """

    def propose(self, plan: Plan) -> Proposal:
        """Return the settings that should cost least, and what those of the run should cost."""
        window, match_rate, costs = _costs(plan)
        cheapest = list(costs.values())[1]
        best = " ".join(f"--set {one}" for one in _settings(cheapest.spec))
        return Proposal(
            plan=(
                f"window of {window:,.0f} tuples, {match_rate:,.3g} matches each",
                f"cheapest: {best}",
            ),
            tables=(_alternatives(costs),),
            costs=(Cost(name=_WORK, unit="ns", estimated=costs[_OWN].tuple_ns),),
        )

    def measure(self, finished: FinishedRun, proposal: Proposal) -> Proposal:
        """Return *proposal* with the simulated machine's time, and this machine's.

        The time of several threads is not that of their work, so that nothing is said of it.
        """
        plan = finished.plan
        _, _, costs = _costs(plan)
        took_ns = _time_on_streams(plan, {name: one.spec for name, one in costs.items()})
        if took_ns:
            beside = TextTable(
                title="ns a tuple, and processor time on this machine",
                columns=("index", "estimated", "measured"),
                rows=tuple(
                    (name, format_count(one.tuple_ns), format_count(took_ns.get(name)))
                    for name, one in costs.items()
                ),
            )
            proposal = replace(proposal, tables=(*proposal.tables, beside))
        if threads := plan.parameters.threads:
            why = (
                f"the run has {format_many(threads, 'thread')}, whose time is not that of their "
                "work: it is not beside the estimate; --set threads=0 runs it on one"
            )
            return replace(proposal, plan=(*proposal.plan, why))
        busy_s = record(finished)["busy_seconds"]["total"]
        return proposal.with_measured({_WORK: busy_s * 1e9 / max(finished.outcome.tuples, 1)})


def _costs(plan: Plan) -> tuple[float, float, dict[str, CostPrediction]]:
    """Return the window and the match rate that the model was given, and what it says by index.

    The run's own join is first; after it every index at its best, the cheapest first.
    """
    lengths = [window.length for window in plan.query.windows if window.kind == "count"]
    if not lengths:
        raise TopologyError(
            f"the cost model counts tuples; the window {plan.query.window} is one of time"
        )
    own = plan.parameters
    if own.index_name not in MODELLED:
        raise TopologyError(
            f"index = {own.index_name}: the cost model has no equation for it; "
            f"plan for one of {', '.join(MODELLED)}"
        )
    window = float(np.mean(lengths))
    match_rate = _match_share(plan) * window

    def unit_ps(index: str) -> tuple[int, ...]:
        return plan.profile.units_of(f"ibwj_{index}.join", round(window))

    best = predict_all(window=window, match_rate=match_rate, unit_ps=unit_ps)
    mine = predict(own, window=window, match_rate=match_rate, unit_ps=unit_ps(own.index_name))
    return window, match_rate, {_OWN: mine} | {one.spec.index_name: one for one in best}


def _match_share(plan: Plan) -> float:
    """Return the share of the pairs of a sample of the streams that match."""
    sample = open_feed(plan.files, None).take(_SAMPLE_ROWS)
    if sample is None:
        return 0.0
    newer, older = (pa.table(dict(part.fields)) for part in (sample.parts[0], sample.parts[-1]))
    return match_share(plan.query, newer, older)


def _settings(spec: WindowJoinSpec) -> list[str]:
    """Return what to set for a join, as on the command line."""
    settings = [f"index={spec.index_name}"]
    if spec.index in ("pim_tree", "im_tree"):
        settings.append(f"merge_ratio={spec.ratio:g}")
    if spec.index == "pim_tree":
        settings.append(f"insertion_depth={spec.insertion_depth}")
    if spec.index in ("b_chain", "ib_chain"):
        settings.append(f"chain_length={spec.chain_length}")
    return settings


def _alternatives(costs: Mapping[str, CostPrediction]) -> TextTable:
    parts = ("search", "scan", "delete", "merge", "insert")
    return TextTable(
        title="every index at its best, ns a tuple by the terms of its equation",
        columns=("index", "settings", *parts, "together"),
        rows=tuple(
            (
                name,
                " ".join(_settings(one.spec)[1:]),
                *(f"{one.terms[part]:,.0f}" if part in one.terms else "" for part in parts),
                f"{one.tuple_ns:,.0f}",
            )
            for name, one in costs.items()
        ),
    )


def _time_on_streams(plan: Plan, specs: Mapping[str, WindowJoinSpec]) -> dict[str, float]:
    """Return what tuples of a run's own streams cost joins of one thread, processor ns, by name.

    Those of count windows that are full; none where the streams end before.
    """
    if any(window.kind != "count" for window in plan.query.windows):
        return {}
    filling = sum(window.length for window in plan.query.windows)
    self_join = plan.query.is_self_join
    timed = {name: spec for name, spec in specs.items() if not spec.threads}
    wanted = {
        name: tuples_to_time(spec.index_name, filling / (1 if self_join else 2))
        for name, spec in timed.items()
    }
    arrivals = open_feed(plan.files, None).take(filling + max(wanted.values()))
    if arrivals is None or len(arrivals) <= filling:
        return {}
    rows = RowMaker(plan.query, [file.schema for file in plan.files]).make(arrivals)
    return {
        name: time_join(
            spec.make(self_join=self_join, unit_ps=None),
            rows.part(0, filling + wanted[name]),
            filling,
        ).tuple_ns
        for name, spec in timed.items()
    }


PLANNERS: Mapping[str, Planner] = {"semijoin": SemijoinPlanner(), "ibwj": WindowJoinPlanner()}
"""By topology, what plans for it; the first plans a query that comes without a topology."""
