"""Plans of one machine's window joins: which index, how often to merge, how deep, how many trees.

PIM-Tree's equations (`joins.cost_model`) say what each index costs a tuple, given the window and
the match rate; the rate is that of a sample of the streams' first tuples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from actors.disorder import open_feed
from joins.window_join.drivers import Making
from joins.window_join.prediction import Prediction, predict, predict_all
from netsim.cost import load_profile
from scenarios.measures import record
from scenarios.plan import Plan
from scenarios.planning.planner import Cost, Planner, Proposal, Table
from scenarios.run import Report
from topologies import TopologyError
from topologies.ibwj import making_of

_SAMPLE_ROWS = 4_096
_TIME = "work per tuple"


class WindowJoinPlanner(Planner):
    """Costs every index by equations 1 to 7, and the run's own parameters beside the best."""

    def left_to_it(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return nothing: what is best follows from the window, and is proposed."""
        return {}

    def propose(self, plan: Plan) -> Proposal:
        """Return the settings that should cost least, and what those of the run should cost."""
        lengths = [window.length for window in plan.query.windows if window.kind == "count"]
        if not lengths:
            raise TopologyError(
                f"the cost model counts tuples; the window {plan.query.window} is one of time"
            )
        load = {"window": float(np.mean(lengths)), "match_rate": _match_rate(plan, lengths)}
        unit_ps = load_profile(plan.config.profile).unit_ps
        own = predict(making_of(plan.parameters), unit_ps=unit_ps, **load)
        ranked = predict_all(unit_ps=unit_ps, **load)
        return Proposal(
            plan=(
                f"window of {load['window']:,.0f} tuples, {load['match_rate']:,.3g} matches each",
                f"cheapest: {' '.join(f'--set {one}' for one in _settings(ranked[0].making))}",
            ),
            tables=(_alternatives(own, ranked),),
            costs=(Cost(name=_TIME, unit="ns", estimated=own.tuple_ns),),
        )

    def measure(self, report: Report, proposal: Proposal) -> Proposal:
        """Return *proposal* with the machine's time; several threads' is not that of their work."""
        if report.plan.parameters.threads:
            return proposal
        busy_s = record(report)["busy_seconds"]["total"]
        measured = busy_s * 1e9 / max(report.outcome.tuples, 1)
        return replace(
            proposal, costs=tuple(replace(cost, measured=measured) for cost in proposal.costs)
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
    settings = [f"index={making.index}"]
    if making.index in ("pim_tree", "im_tree"):
        settings.append(f"merge_ratio={making.merge_ratio:g}")
    if making.index == "pim_tree":
        settings.append(f"insertion_depth={making.insertion_depth}")
    if making.index in ("b_chain", "ib_chain"):
        settings.append(f"chain_length={making.chain_length}")
    return settings


def _alternatives(own: Prediction, ranked: list[Prediction]) -> Table:
    parts = ("search", "scan", "delete", "merge", "insert")
    rows = [("this run", own), *((one.making.index, one) for one in ranked)]
    return Table(
        title="every index at its best, ns a tuple by the terms of its equation",
        columns=("index", "settings", *parts, "together"),
        rows=tuple(
            (
                name,
                " ".join(_settings(one.making)[1:]),
                *(f"{one.terms[part]:,.0f}" if part in one.terms else "" for part in parts),
                f"{one.tuple_ns:,.0f}",
            )
            for name, one in rows
        ),
    )
