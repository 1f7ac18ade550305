"""When a plan gives way to another: greedy plans by what sites last saw of their streams."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from actors.semijoins.part import OneWayStep
from actors.semijoins.replanning import (
    SAMPLE_ROWS,
    Decision,
    Observed,
    Replanning,
    observed_bytes,
)
from actors.source import NS_PER_S
from topologies.semijoins.costs.costing import Costing
from topologies.semijoins.costs.estimate import Estimate, estimate
from topologies.semijoins.costs.measuring import Measuring
from topologies.semijoins.costs.statistics import JoinStatistics, StreamStatistics
from topologies.semijoins.greedy import greedy_plan
from topologies.semijoins.plan import LinearPlan
from topologies.semijoins.reading import read_plan
from topologies.semijoins.steps import one_way_steps

WORTH_A_CHANGE = 0.9
"""Of the present plan's estimated time, what another's must be below. A change ships windows."""

_LEAST_ROWS = 2
"""A rate of event time needs two tuples."""


@dataclass(frozen=True, kw_only=True)
class GreedyPlans:
    """Algorithm 10 under statistics that change.

    Attributes
    ----------
    measuring
        What does not change.
    budgeted
        Whether links have a byte budget: a plan then gives way to none that ships more on one link
        than it does itself on its busiest.
    """

    measuring: Measuring
    budgeted: bool = False

    def steps(self, plan: str) -> Sequence[OneWayStep]:
        """Return the one-way joins of a plan, numbered from 0."""
        return one_way_steps(self.measuring.query, self._read(plan), self.measuring.schemas)

    def better(self, plan: str, seen: Sequence[Observed]) -> str:
        """Return the greedy plan for what was *seen* where it is worth a change, else *plan*."""
        costing = self._costing(seen)
        if costing is None:
            return plan
        present, found = self._estimates(plan, costing)
        if found.seconds >= WORTH_A_CHANGE * present.seconds:
            return plan
        if self.budgeted and _busiest(found) > _busiest(present):
            return plan
        return str(found.plan).replace("\n", "; ")

    def estimates(self, plan: str, seen: Sequence[Observed]) -> tuple[Estimate, Estimate] | None:
        """Return what *plan* and the greedy one cost by what was *seen*; None for too little."""
        costing = self._costing(seen)
        return None if costing is None else self._estimates(plan, costing)

    def _estimates(self, plan: str, costing: Costing) -> tuple[Estimate, Estimate]:
        return estimate(costing, self._read(plan)), estimate(costing, greedy_plan(costing))

    def _costing(self, seen: Sequence[Observed]) -> Costing | None:
        if any(len(one.sample) < _LEAST_ROWS or not one.tuples for one in seen):
            return None
        return Costing(self._statistics(seen))

    def _read(self, plan: str) -> LinearPlan:
        read = read_plan(plan, self.measuring.query.streams)
        assert isinstance(read, LinearPlan)  # nothing else is ever proposed
        return read

    def _statistics(self, seen: Sequence[Observed]) -> JoinStatistics:
        """Return what was seen as statistics, at the rates of virtual time."""
        found = self.measuring.statistics([one.sample for one in seen])
        streams = tuple(
            replace(stream, rate_tps=one.tuples * NS_PER_S / one.span_ns)
            for stream, one in zip(found.streams, seen, strict=True)
        )
        return replace(found, streams=streams)


def told_bytes(
    replanning: Replanning, measuring: Measuring, streams: Sequence[StreamStatistics]
) -> dict[tuple[int, int], float]:
    """Return the bytes a second of what sites and coordinator tell each other, by link, at most.

    The coordinator is at the first site, whose own report crosses no link. The windows that a
    change ships are not among them.
    """
    epoch_s = replanning.intervals * measuring.interval_s
    decision = Decision(epoch=0, plan=replanning.plan).nbytes
    told = {}
    for place in range(1, len(streams)):
        rows = min(SAMPLE_ROWS, streams[place].window_rows)
        report = observed_bytes(rows, len(measuring.schemas[place].fields))
        told[0, place] = (report + decision) / epoch_s
    return told


def _busiest(estimated: Estimate) -> float:
    return max(estimated.link_bytes().values())
