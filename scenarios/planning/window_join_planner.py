"""Plans of one machine's window joins: which index, how often to merge, how deep, how many trees.

PIM-Tree's equations (`joins.window_join.cost_model`) say what each index costs a tuple, given
the window and the match rate, at the run's own prices of that index; the rate is that of a sample
of the streams' first tuples. With the run, every index joins the streams once in real time: what it
took is shown beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from actors.feed import open_feed
from joins.window_join.cost_model import MODELLED, CostPrediction, predict, predict_all
from joins.window_join.registry import Making
from joins.window_join.rows import RowMaker
from scenarios.calibration.window_workload import time_join, tuples_to_time
from scenarios.formatting import format_count
from scenarios.measures import record
from scenarios.plan import Plan
from scenarios.planning.planner import Cost, Planner, Proposal
from scenarios.report.text_table import TextTable
from scenarios.run import Report
from topologies import TopologyError

_SAMPLE_ROWS = 4_096
_TIME = "work per tuple"
_OWN = "this run"


class WindowJoinPlanner(Planner):
    """Costs every index by equations 1 to 7, and the run's own parameters beside the best."""

    def left_to_it(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return nothing: what is best follows from the window, and is proposed."""
        return {}

    def propose(self, plan: Plan) -> Proposal:
        """Return the settings that should cost least, and what those of the run should cost."""
        costs = _costs(plan)
        best = " ".join(f"--set {one}" for one in _settings(costs.ranked[0].making))
        return Proposal(
            plan=(
                f"window of {costs.window:,.0f} tuples, {costs.match_rate:,.3g} matches each",
                f"cheapest: {best}",
            ),
            tables=(_alternatives(costs),),
            costs=(Cost(name=_TIME, unit="ns", estimated=costs.own.tuple_ns),),
        )

    def measure(self, report: Report, proposal: Proposal) -> Proposal:
        """Return *proposal* with the simulated machine's time, and this machine's.

        The time of several threads is not that of their work, so that nothing is said of it.
        """
        plan, costs = report.plan, _costs(report.plan)
        took_ns = _time_on_streams(plan, {name: one.making for name, one in costs.named.items()})
        proposal = replace(
            proposal, tables=(_alternatives(costs), *_on_this_machine(costs, took_ns))
        )
        if plan.parameters.threads:
            return proposal
        busy_s = record(report)["busy_seconds"]["total"]
        measured = busy_s * 1e9 / max(report.outcome.tuples, 1)
        return replace(
            proposal, costs=tuple(replace(cost, measured=measured) for cost in proposal.costs)
        )


@dataclass(frozen=True, kw_only=True)
class _Costs:
    """What the model says of a query.

    Attributes
    ----------
    window, match_rate
        The window and the match rate that the model was given.
    own
        The run's own join.
    ranked
        Every index at its best, the cheapest first.
    """

    window: float
    match_rate: float
    own: CostPrediction
    ranked: list[CostPrediction]

    @property
    def named(self) -> dict[str, CostPrediction]:
        """The rows of a table."""
        return {_OWN: self.own} | {one.making.index_name: one for one in self.ranked}


def _costs(plan: Plan) -> _Costs:
    lengths = [window.length for window in plan.query.windows if window.kind == "count"]
    if not lengths:
        raise TopologyError(
            f"the cost model counts tuples; the window {plan.query.window} is one of time"
        )
    if plan.parameters.index_name not in MODELLED:
        raise TopologyError(
            f"index = {plan.parameters.index_name}: the cost model has no equation for it; "
            f"plan for one of {', '.join(MODELLED)}"
        )
    window, match_rate = float(np.mean(lengths)), _match_rate(plan, lengths)

    def unit_ps(index: str) -> tuple[int, ...]:
        return plan.profile.units_of(f"ibwj_{index}.join", round(window))

    own, load = plan.parameters, {"window": window, "match_rate": match_rate}
    return _Costs(
        **load,
        own=predict(own, **load, unit_ps=unit_ps(own.index_name)),
        ranked=predict_all(**load, unit_ps=unit_ps),
    )


def _match_rate(plan: Plan, lengths: list[int]) -> float:
    """Return the matches of a tuple: the share of a sample's pairs that match, times the window."""
    sample = open_feed(plan.files, None).take(_SAMPLE_ROWS)
    if sample is None:
        return 0.0
    probing, stored = sample.parts[0], sample.parts[-1]
    holds = np.ones((len(probing), len(stored)), bool)
    for condition in plan.query.conditions(0, [file.schema for file in plan.files]):
        probe = probing.fields[condition.probe_field][:, np.newaxis]
        holds &= condition.holds(probe, stored.fields[condition.stored_field])
    return float(holds.mean()) * float(np.mean(lengths)) if holds.size else 0.0


def _settings(making: Making) -> list[str]:
    """Return what to set for a join, as on the command line."""
    settings = [f"index={making.index_name}"]
    if making.index in ("pim_tree", "im_tree"):
        settings.append(f"merge_ratio={making.ratio:g}")
    if making.index == "pim_tree":
        settings.append(f"insertion_depth={making.insertion_depth}")
    if making.index in ("b_chain", "ib_chain"):
        settings.append(f"chain_length={making.chain_length}")
    return settings


def _alternatives(costs: _Costs) -> TextTable:
    parts = ("search", "scan", "delete", "merge", "insert")
    return TextTable(
        title="every index at its best, ns a tuple by the terms of its equation",
        columns=("index", "settings", *parts, "together"),
        rows=tuple(
            (
                name,
                " ".join(_settings(one.making)[1:]),
                *(f"{one.terms[part]:,.0f}" if part in one.terms else "" for part in parts),
                f"{one.tuple_ns:,.0f}",
            )
            for name, one in costs.named.items()
        ),
    )


def _on_this_machine(costs: _Costs, took_ns: Mapping[str, float]) -> tuple[TextTable, ...]:
    """Return what tuples took this machine beside the estimate; nothing where none were timed."""
    if not took_ns:
        return ()
    return (
        TextTable(
            title="ns a tuple, and processor time on this machine",
            columns=("index", "estimated", "measured"),
            rows=tuple(
                (name, format_count(one.tuple_ns), format_count(took_ns.get(name)))
                for name, one in costs.named.items()
            ),
        ),
    )


def _time_on_streams(plan: Plan, makings: Mapping[str, Making]) -> dict[str, float]:
    """Return what tuples of a run's own streams cost joins of one thread, processor ns, by name.

    Those of count windows that are full; none where the streams end before.
    """
    if any(window.kind != "count" for window in plan.query.windows):
        return {}
    filling = sum(window.length for window in plan.query.windows)
    self_join = plan.query.is_self_join
    timed = {name: making for name, making in makings.items() if not making.threads}
    wanted = {
        name: tuples_to_time(making.index_name, filling / (1 if self_join else 2))
        for name, making in timed.items()
    }
    arrivals = open_feed(plan.files, None).take(filling + max(wanted.values()))
    if arrivals is None or len(arrivals) <= filling:
        return {}
    rows = RowMaker(plan.query, [file.schema for file in plan.files]).make(arrivals)
    return {
        name: time_join(
            making.make(self_join=self_join, unit_ps=None),
            rows.part(0, filling + wanted[name]),
            filling,
        ).tuple_ns
        for name, making in timed.items()
    }
