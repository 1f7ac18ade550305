"""When a plan gives way to another: greedy plans by what sites last saw of their streams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from actors.hosting.inline import RecordingContext
from actors.protocol import NS_PER_S, START, TIMER, Message
from actors.semijoins.adaptive_site import (
    LEAD,
    SAMPLE_ROWS,
    Decision,
    Observed,
    Replanning,
    SiteView,
    observed_bytes,
)
from actors.semijoins.one_way import OneWayStep
from actors.semijoins.site_source import NewTuples, SiteSource
from joins.semijoins.one_way_join import PAPER_ALGORITHMS, OneWayJoin
from joins.semijoins.operand_windows import Horizon
from joins.semijoins.value_sample import TupleSample
from topologies.semijoins.costing import Costing, PlanEstimate, estimate_plan
from topologies.semijoins.join_statistics import JoinStatistics, JoinStream, Measuring
from topologies.semijoins.plan_steps import plan_steps
from topologies.semijoins.plans import JoinPlan, parse_plan
from topologies.semijoins.searches import greedy_plan
from topologies.topology import Job

WORTH_A_CHANGE = 0.9
"""Of the present plan's estimated time, what another's must be below. A change ships windows."""

_LEAST_ROWS = 2
"""A rate of event time needs two tuples."""


@dataclass(frozen=True, kw_only=True)
class GreedyPlans:
    """Algorithm 10 under statistics that change."""

    measuring: Measuring
    """What does not change."""
    budgeted: bool = False
    """Whether links have a byte budget: a plan then gives way to none that ships more on one link
    than it does itself on its busiest."""
    algorithms: tuple[OneWayJoin, ...] = PAPER_ALGORITHMS
    """Those that a plan may have."""

    def steps(self, plan: str) -> Sequence[OneWayStep]:
        """Return the one-way joins of a plan, numbered from 0."""
        measuring = self.measuring
        return plan_steps(measuring.query, self._parse(plan), measuring.schemas, 0).steps

    def better(self, plan: str, observed: Sequence[Observed]) -> str:
        """Return the greedy plan for what was *observed* if it is worth a change, else *plan*."""
        estimates = self.estimates(plan, observed)
        if estimates is None:
            return plan
        present, greedy = estimates
        if greedy.seconds >= WORTH_A_CHANGE * present.seconds:
            return plan
        if self.budgeted and _busiest(greedy) > _busiest(present):
            return plan
        return greedy.plan.one_line

    def estimates(
        self, plan: str, observed: Sequence[Observed]
    ) -> tuple[PlanEstimate, PlanEstimate] | None:
        """Return what *plan* and the greedy one cost by what was *observed*; None if too little."""
        if any(len(one.sample) < _LEAST_ROWS or not one.tuples for one in observed):
            return None
        statistics = self._statistics(observed)
        greedy = greedy_plan(Costing(statistics, self.algorithms))
        return estimate_plan(statistics, self._parse(plan)), estimate_plan(statistics, greedy)

    def _parse(self, plan: str) -> JoinPlan:
        return parse_plan(plan, self.measuring.query.streams)

    def _statistics(self, observed: Sequence[Observed]) -> JoinStatistics:
        """Return what was observed as statistics, at the rates of virtual time."""
        statistics = self.measuring.statistics([one.sample for one in observed])
        streams = tuple(
            replace(stream, rate_tps=one.tuples * NS_PER_S / one.span_ns)
            for stream, one in zip(statistics.streams, observed, strict=True)
        )
        return replace(statistics, streams=streams)


def _busiest(estimated: PlanEstimate) -> float:
    return max(estimated.link_bytes().values())


def control_bytes(
    replanning: Replanning, measuring: Measuring, streams: Sequence[JoinStream]
) -> dict[tuple[int, int], float]:
    """Return the bytes a second of reports and decisions, by link, at most.

    The coordinator is at the first site, whose own report crosses no link. The windows that a
    change ships are not among them.
    """
    epoch_s = replanning.intervals * measuring.setting.interval_s
    decision = Decision(epoch=0, plan=replanning.plan).nbytes
    carried = {}
    for place in range(1, len(streams)):
        rows = min(SAMPLE_ROWS, streams[place].window_rows)
        report = observed_bytes(rows, len(measuring.schemas[place].fields))
        carried[0, place] = (report + decision) / epoch_s
    return carried


@dataclass(frozen=True, kw_only=True)
class Epoch:
    """An epoch: so many execution intervals under one plan."""

    begins_ns: int
    ends_ns: int
    """Virtual time."""
    plan: str
    """In force, as people write it."""
    observed: tuple[Observed, ...]
    """What the sites see of their streams in it."""


def predict_epochs(
    replanning: Replanning, job: Job, interval_ns: int, kept: Sequence[TupleSample] = ()
) -> Iterator[Epoch]:
    """Yield the epochs of *job*'s streams without running anything.

    They are as sites see them whose messages take less than τ. Slower ones keep what expired a
    little longer, and may show a few more tuples. *kept* is what sites do not shed of their
    streams; by default all.
    """
    streams = range(len(job.query.streams))
    sources = [
        _intervals(
            SiteSource(files=job.files, stream=s, feeding=job.feeding, interval_ns=interval_ns)
        )
        for s in streams
    ]
    views = [SiteView(s, job.files[s].schema) for s in streams]
    horizons = [Horizon(job.query.windows[s]) for s in streams]
    planned = [replanning.plan] * LEAD
    arrivals = zip(*sources, strict=True)  # all sources send for the same intervals
    begins_ns, ends_ns = 0, -1
    while True:
        for new in islice(arrivals, replanning.intervals):
            for s, interval in enumerate(new):
                batch = interval.tuples.newest
                batch = batch.take(kept[s].of(batch)) if kept else batch
                horizons[s].insert(interval.tick, batch)
                views[s].insert(batch, horizons[s].passed(ends_ns))
            ends_ns = new[0].tick
        if ends_ns <= begins_ns:  # nothing more came
            return
        observed = tuple(view.end_epoch(ends_ns) for view in views)
        plan = planned[observed[0].epoch]
        yield Epoch(begins_ns=begins_ns, ends_ns=ends_ns, plan=plan, observed=observed)
        planned.append(replanning.book.better(planned[-1], observed))
        begins_ns = ends_ns


def _intervals(source: SiteSource) -> Iterator[NewTuples]:
    """Yield the intervals that a source sends."""
    context = RecordingContext("source", {"out": ("site",)}, 0)
    port, waits = START, True
    while waits:
        source.receive(Message("source", port, None), context)
        reply = context.take()
        yield from (sent.handle for sent in reply.sends)
        port, waits = f"{TIMER}interval", bool(reply.timers)
