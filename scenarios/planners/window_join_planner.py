"""Plans of one machine's window joins: which index, how often to merge, how deep, how many trees.

PIM-Tree's equations (`joins.window_join.cost_model`) say what each index costs a tuple, given
the window and the match rate, at the run's own prices of that index; the rate is that of a sample
of the streams' first tuples. With the run, every index joins the streams once in real time: what it
took is shown beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from actors.feed import open_feed
from joins.window_join.cost_model import MODELLED, CostPrediction, predict, predict_all
from joins.window_join.rows import RowMaker
from joins.window_join.window_joins import WindowJoinSpec
from scenarios.calibration.window_workload import time_join, tuples_to_time
from scenarios.data_statistics import match_share
from scenarios.formatting import TextTable, format_count
from scenarios.measures import record
from scenarios.plan import Plan
from scenarios.planners.planner import Cost, Planner, Proposal
from scenarios.run import FinishedRun
from topologies import TopologyError

_SAMPLE_ROWS = 4_096
_WORK = "work per tuple"
_OWN = "this run"


class WindowJoinPlanner(Planner):
    """Costs every index by equations 1 to 7, and the run's own parameters beside the best.

    Nothing is left to the system: what is best follows from the window.
    """

    def propose(self, plan: Plan) -> Proposal:
        """Return the settings that should cost least, and what those of the run should cost."""
        costs = _costs(plan)
        best = " ".join(f"--set {one}" for one in _settings(costs.ranked[0].spec))
        return Proposal(
            plan=(
                f"window of {costs.window:,.0f} tuples, {costs.match_rate:,.3g} matches each",
                f"cheapest: {best}",
            ),
            tables=(_alternatives(costs),),
            costs=(Cost(name=_WORK, unit="ns", estimated=costs.own.tuple_ns),),
        )

    def measure(self, finished: FinishedRun, proposal: Proposal) -> Proposal:
        """Return *proposal* with the simulated machine's time, and this machine's.

        The time of several threads is not that of their work, so that nothing is said of it.
        """
        plan, costs = finished.plan, _costs(finished.plan)
        took_ns = _time_on_streams(plan, {name: one.spec for name, one in costs.named.items()})
        proposal = replace(
            proposal, tables=(_alternatives(costs), *_on_this_machine(costs, took_ns))
        )
        if plan.parameters.threads:
            return proposal
        busy_s = record(finished)["busy_seconds"]["total"]
        return proposal.with_measured({_WORK: busy_s * 1e9 / max(finished.outcome.tuples, 1)})


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
        return {_OWN: self.own} | {one.spec.index_name: one for one in self.ranked}


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
    newer, older = (pa.table(dict(part.fields)) for part in (sample.parts[0], sample.parts[-1]))
    return match_share(plan.query, newer, older) * float(np.mean(lengths))


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


def _alternatives(costs: _Costs) -> TextTable:
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
