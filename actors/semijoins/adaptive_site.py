"""Adaptive re-planning: sites whose plan changes from epoch to epoch, and their coordinator.

The stream semijoin paper leaves it to future work. Execution intervals are counted, so many to an
epoch. From what all sites saw in one epoch the coordinator decides by which plan they handle the
tuples of the next but one, so that a decision has an epoch's time to arrive. The sites wait for one
that takes longer: that costs time, never results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from actors.protocol import FEEDBACK, HEADER_BYTES, Actor, Context, Message, Payload
from actors.semijoins.one_way import OneWayStep, Shipment, SiteContext
from actors.semijoins.site import PlanHalves, Site
from actors.semijoins.site_source import NewTuples
from joins.batch import Batch, Schema
from joins.sliding_column import SlidingBatch
from joins.state import State, Stateful, revive

LEAD = 2
"""Epochs from what was seen to the one that is planned by it."""

SAMPLE_ROWS = 1_024
"""Most tuples of a stream that its site shows the coordinator in an epoch."""

_FIELD_BYTES, _TIMES_BYTES = 8, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed(Payload):
    """What a site saw of its stream in an epoch."""

    epoch: int
    stream: int
    """Number of the epoch, and position of the stream."""
    tuples: int
    """Tuples that came in it."""
    span_ns: int
    """Virtual time that it took."""
    sample: Batch
    """Join fields of the latest tuples in the window, at most `SAMPLE_ROWS`."""

    rows_of = ("sample",)

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return int(observed_bytes(len(self.sample), len(self.sample.fields)))


def observed_bytes(rows: float, fields: int) -> float:
    """Return the size of what a site saw: join fields, and the first and the last event time."""
    return HEADER_BYTES + rows * fields * _FIELD_BYTES + _TIMES_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Payload):
    """The plan of an epoch, as people write it."""

    epoch: int
    plan: str

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + len(self.plan)


class PlanBook(Protocol):
    """The available plans, and how to choose one of them."""

    def steps(self, plan: str) -> Sequence[OneWayStep]:
        """Return the one-way joins of a plan, numbered from 0."""

    def better(self, plan: str, observed: Sequence[Observed]) -> str:
        """Return the plan to change to from *plan*, or *plan* itself.

        *observed* is what was seen of each stream in one epoch, in the order of the query.
        """


@dataclass(frozen=True, kw_only=True)
class Replanning:
    """How plans change."""

    book: PlanBook
    """The plans."""
    plan: str
    """The first one."""
    intervals: int
    """Execution intervals in an epoch."""


class Coordinator(Actor):
    """Sends all sites the plan of an epoch when all have reported the epoch `LEAD` before it.

    Choosing a plan is assumed to cost no time: it is done beside the join, once an epoch.

    Ports: ``feedback`` to all sites.
    """

    state = ("_plan", "_observed")

    def __init__(self, *, book: PlanBook, plan: str, streams: int) -> None:
        self._book = book
        self._plan = plan
        self._streams = streams
        self._observed: list[Observed] = []

    def receive(self, message: Message, context: Context) -> None:
        """Store what a site saw; decide when it is the last one's."""
        latest: Observed = message.payload
        self._observed.append(latest)
        observed = [other for other in self._observed if other.epoch == latest.epoch]
        if len(observed) < self._streams:
            return
        self._observed = [other for other in self._observed if other.epoch != latest.epoch]
        observed.sort(key=lambda one: one.stream)
        self._plan = self._book.better(self._plan, observed)
        context.send(FEEDBACK, Decision(epoch=latest.epoch + LEAD, plan=self._plan))


class SiteView(Stateful):
    """What a site sees of its stream: the window, and how many tuples came in an epoch.

    Attributes
    ----------
    epoch
        Number of the epoch that the next interval belongs to.
    intervals
        Of that epoch that have ended.
    """

    state = ("_stored", "epoch", "intervals", "_new", "_from_ns")

    def __init__(self, stream: int, schema: Schema) -> None:
        self._stream = stream
        self._stored = SlidingBatch(schema)
        self.epoch = self.intervals = self._new = self._from_ns = 0

    @property
    def tuples(self) -> Batch:
        """Those in the window, as views."""
        return self._stored.tuples

    def insert(self, batch: Batch, keep_from: int) -> None:
        """Add new tuples, and remove positions below *keep_from*."""
        self._stored.append(batch)
        self._stored.drop(int(np.searchsorted(self.tuples.id, keep_from)))
        self._new += len(batch)

    def end_epoch(self, tick: int) -> Observed:
        """Return what was seen in the epoch that ends at *tick*, with the latest tuples."""
        latest = self.tuples.slice(max(0, len(self.tuples) - SAMPLE_ROWS), len(self.tuples))
        observed = Observed(
            epoch=self.epoch,
            stream=self._stream,
            tuples=self._new,
            span_ns=tick - self._from_ns,
            sample=latest.project(list(latest.fields)),
        )
        self.epoch += 1
        self.intervals = self._new = 0
        self._from_ns = tick
        return observed


@dataclass(kw_only=True, eq=False)
class AdaptiveSite(Site):
    """Handles the tuples of an epoch's intervals by the plan that was decided for it.

    A change loses and repeats nothing. Tuples of earlier intervals go on by the old plan, whose
    windows need no more tuples: none sees what came after it. The windows of the new plan begin
    with all of the site's own window, inserted as if it had come in the first interval, so that
    other sites' copies of it are filled by what algorithms ship anyway. When all of the old plan's
    intervals are done its halves are dropped; punctuated execution shows when that is.

    Ports: those of a site, and ``report`` to the coordinator.
    """

    replanning: Replanning
    """How plans change."""
    schema: Schema
    """Of the stream that arrives here."""
    steps: Sequence[OneWayStep] = field(init=False)

    state = ("_in_force", "_unplanned", "_decisions", "_own_view")

    def __post_init__(self) -> None:
        self.steps = self.replanning.book.steps(self.replanning.plan)
        super().__post_init__()
        self._in_force = [(self.replanning.plan, 0)]
        """The plans in ``_plans``, and after how many changes each was put in force."""
        self._unplanned: list[NewTuples] = []
        """Intervals whose plan is not decided yet."""
        self._decisions: list[Decision] = []
        self._own_view = SiteView(self._own.stream, self.schema)

    def _handle(self, payload: Any, context: SiteContext) -> None:
        """Handle new tuples, in turn when the plan for them is known; or what others ship."""
        if isinstance(payload, NewTuples):
            self._unplanned.append(payload)
        elif isinstance(payload, Decision):
            self._decisions.append(payload)
        else:
            super()._handle(payload, context)
        while self._unplanned and self._plan() is not None:
            self._end_interval(self._unplanned.pop(0), context)
            self._resume(context)

    def _deliver(self, payload: Shipment[Any], context: SiteContext) -> bool:
        """Hand on a shipment, unless it is of a plan that is over: nothing waits for it then."""
        over = payload.step < self._first_step(self._in_force[-1][1])
        return (over and self._half(payload.step) is None) or super()._deliver(payload, context)

    def _end_interval(self, new: NewTuples, context: SiteContext) -> None:
        super()._end_interval(new, context)
        self._own_view.intervals += 1
        if self._own_view.intervals == self.replanning.intervals:
            context.send("report", self._own_view.end_epoch(new.tick))

    def _done(self, stream: int) -> int:
        """Return no later interval than the one before: the next may begin another plan's windows.

        Where all copies of the window are elsewhere, by SP-S, nothing else delays removals.
        """
        return min(super()._done(stream), self._own.tick)

    def _insert(
        self, stream: int, batch: Batch, tick: int, keep_from: int, context: SiteContext
    ) -> None:
        """Insert an interval's tuples; where the plan changes, all of the window with them."""
        self._own_view.insert(batch, keep_from)
        name = self._plan()
        assert name is not None  # else the interval would wait
        self._decisions = [d for d in self._decisions if d.epoch > self._own_view.epoch]
        self._drop_plans_over()
        latest, change = self._in_force[-1]
        if name != latest:
            self._plans[-1].last = self._own.tick
            self._add(name, change + 1)
            batch = self._own_view.tuples
        super()._insert(stream, batch, tick, keep_from, context)

    def _plan(self) -> str | None:
        """Return the plan of the next interval; None before it is known."""
        epoch = self._own_view.epoch
        if epoch < LEAD or self._own_view.intervals:
            return self._in_force[-1][0]
        return next((d.plan for d in self._decisions if d.epoch == epoch), None)

    def _drop_plans_over(self) -> None:
        places = [place for place, plan in enumerate(self._plans) if not plan.is_over]
        self._plans = [self._plans[place] for place in places]
        self._in_force = [self._in_force[place] for place in places]

    def _add(self, name: str, change: int) -> None:
        """Put in force the plan called *name*, after so many changes."""
        first = self._first_step(change)
        steps = [
            replace(
                step,
                number=step.number + first,
                following=None if step.following is None else step.following + first,
            )
            for step in self.replanning.book.steps(name)
        ]
        self._plans.append(PlanHalves(self._own.stream, steps))
        self._in_force.append((name, change))

    def _first_step(self, change: int) -> int:
        """Return the number of the first step of the plan after so many changes."""
        return change * self.streams * (self.streams - 1)

    def restore(self, state: State) -> None:
        """Go back to a snapshot, after making the halves of its plans."""
        in_force: list[tuple[str, int]] = revive(state["_in_force"])
        self._plans, self._in_force = [], []
        for name, change in in_force:
            self._add(name, change)
        super().restore(state)
