"""What a whole linear plan is estimated to cost, step by step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topologies.semijoins.costs.bloom_formulas import FORMULAS
from topologies.semijoins.costs.costing import Costing, Frontier, probes_late
from topologies.semijoins.costs.operands import Term
from topologies.semijoins.costs.plan_estimate import OneWayEstimate, PlanEstimate
from topologies.semijoins.plan import JoinSequence, LinearPlan, Step


@dataclass(frozen=True, kw_only=True)
class StepEstimate(OneWayEstimate):
    """One step of one join sequence.

    Attributes
    ----------
    head
        The sequence's.
    terms
        Of the algorithm's cost formula.
    """

    head: int
    terms: tuple[Term, ...]


@dataclass(frozen=True, kw_only=True)
class Estimate(PlanEstimate):
    """A linear plan and what it is estimated to cost."""

    plan: LinearPlan
    steps: tuple[StepEstimate, ...]


def estimate(costing: Costing, plan: LinearPlan) -> Estimate:
    """Return what *plan* costs."""
    steps = [step for sequence in plan.sequences for step in _sequence(costing, sequence)]
    return Estimate(plan=plan, steps=tuple(steps))


def _sequence(costing: Costing, sequence: JoinSequence) -> list[StepEstimate]:
    found = []
    start = np.array([sequence.head])
    frontier = Frontier.of_heads(len(costing.statistics.streams)).take(start)
    for step in sequence.steps:
        found.append(_step(costing, frontier, step))
        frontier = frontier.joined(np.array([step.stream]), np.array([step.algorithm.at_source]))
    return found


def _step(costing: Costing, frontier: Frontier, step: Step) -> StepEstimate:
    statistics = costing.statistics
    source = int(frontier.site[0])
    shape = frontier.done.shape

    def figure(value: object) -> float:
        return float(np.broadcast_to(np.asarray(value, np.float64), shape)[0, step.stream])

    operands = costing.operands(frontier, late_probes=probes_late(step.algorithm))
    terms = tuple(
        Term(
            term.what,
            figure(term.seconds),
            None if term.shipments is None else figure(term.shipments),
            figure(term.shipped_bytes),
        )
        for term in FORMULAS[step.algorithm](operands)
    )
    link = source, step.stream
    headers = sum(term.shipments or 0.0 for term in terms) * statistics.header_bytes
    return StepEstimate(
        head=int(frontier.head[0]),
        source=source,
        destination=step.stream,
        algorithm=step.algorithm,
        terms=terms,
        seconds=float(
            costing.time(terms, statistics.latency_s[link], statistics.bandwidth_bps[link])
        ),
        nbytes=sum(term.shipped_bytes for term in terms) + headers,
        rate_in_tps=float(costing.rates(frontier)[0]),
    )
