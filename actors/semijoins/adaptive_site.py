"""A site whose plan may change from one epoch to the next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from actors.protocol import Context
from actors.semijoins.part import Desk, OneWayStep
from actors.semijoins.payloads import NewTuples, Shipment
from actors.semijoins.plan_parts import PlanParts
from actors.semijoins.replanning import LEAD, SAMPLE_ROWS, Decision, Observed, Replanning
from actors.semijoins.site import Site
from joins.batch import Batch, Schema
from joins.state import State, plain, revive


class AdaptiveSite(Site):
    """Answers the tuples of an epoch's intervals by the plan that was decided for it.

    A change loses and repeats nothing. Tuples of earlier intervals go on by the old plan, whose
    windows need no more tuples: none sees what came after it. The windows of the new plan begin
    with all that the site's own window holds, inserted as if it had come in the first interval, so
    that other sites' copies of it are filled by what algorithms ship anyway. When all of the old
    plan's intervals are done its parts are let go. Punctuated execution tells when that is.

    Ports: those of a site, and ``report`` to the coordinator.

    Parameters
    ----------
    replanning
        How plans change.
    schema
        Of the stream that arrives here.
    of_site
        As for a `Site`, without its steps.
    """

    def __init__(self, *, replanning: Replanning, schema: Schema, **of_site: Any) -> None:
        super().__init__(steps=replanning.book.steps(replanning.plan), **of_site)
        self._replanning = replanning
        self._names = [replanning.plan]
        self._changes = [0]
        self._held: list[NewTuples] = []
        self._decisions: list[Decision] = []
        self._window = Batch.empty(schema)
        self._intervals = self._tuples = self._epoch_from = 0

    def _take(self, payload: Any, desk: Desk, context: Context) -> None:
        """Take new tuples, in turn when the plan for them is known; or what others ship."""
        if isinstance(payload, NewTuples):
            self._held.append(payload)
        elif isinstance(payload, Decision):
            self._decisions.append(payload)
        else:
            self._hear(payload, desk)
        while self._held and self._plan() is not None:
            self._end_interval(self._held.pop(0), desk, context)
            self._settle(desk, context)

    def _hear(self, payload: Shipment, desk: Desk) -> None:
        """Take what another site ships, unless it is of a plan that is over: nothing waits then."""
        if payload.step >= self._number(self._changes[-1]) or self._plan_with(payload.step):
            super()._hear(payload, desk)

    def _end_interval(self, new: NewTuples, desk: Desk, context: Context) -> None:
        super()._end_interval(new, desk, context)
        self._intervals += 1
        epoch, rest = divmod(self._intervals, self._replanning.intervals)
        if rest:
            return
        held = self._window
        sample = held.slice(max(0, len(held) - SAMPLE_ROWS), len(held))
        context.send(
            "report",
            Observed(
                epoch=epoch - 1,
                stream=self._own.stream,
                tuples=self._tuples,
                span_ns=new.tick - self._epoch_from,
                sample=sample.project(list(sample.fields)),
            ),
        )
        self._tuples, self._epoch_from = 0, new.tick

    def _done(self, stream: int) -> int:
        """Return no later interval than the one before: the next may begin another plan's windows.

        Where all copies of the window are elsewhere, by SP-S, nothing else holds it back.
        """
        return min(super()._done(stream), self._own.tick)

    def _insert(self, stream: int, batch: Batch, tick: int, keep_from: int, desk: Desk) -> None:
        """Take an interval's tuples; where the plan changes, all of the window with them."""
        self._tuples += len(batch)
        held = Batch.concat([self._window, batch])
        self._window = held.slice(int(np.searchsorted(held.id, keep_from)), len(held))
        name = self._plan()
        assert name is not None  # else the interval would be held
        self._decisions = [d for d in self._decisions if d.epoch > self._epoch]
        self._let_go()
        if name != self._names[-1]:
            self._plans[-1].last = self._own.tick
            self._add(name, self._changes[-1] + 1)
            batch = self._window
        super()._insert(stream, batch, tick, keep_from, desk)

    @property
    def _epoch(self) -> int:
        """Number of the epoch that the next interval belongs to."""
        return self._intervals // self._replanning.intervals

    def _plan(self) -> str | None:
        """Return the plan of the next interval; None before it is known."""
        if self._epoch < LEAD or self._intervals % self._replanning.intervals:
            return self._names[-1]
        return next((d.plan for d in self._decisions if d.epoch == self._epoch), None)

    def _let_go(self) -> None:
        kept = [place for place, plan in enumerate(self._plans) if not plan.is_over]
        self._plans = [self._plans[place] for place in kept]
        self._names = [self._names[place] for place in kept]
        self._changes = [self._changes[place] for place in kept]

    def _add(self, name: str, change: int) -> None:
        """Put in force the plan called *name*, after so many changes."""
        self._plans.append(PlanParts(self._own.stream, self._numbered(name, self._number(change))))
        self._names.append(name)
        self._changes.append(change)

    def _number(self, change: int) -> int:
        """Return the number of the first step of the plan after so many changes."""
        return change * self._streams * (self._streams - 1)

    def _numbered(self, name: str, first: int) -> Sequence[OneWayStep]:
        return [
            replace(
                step,
                number=step.number + first,
                following=None if step.following is None else step.following + first,
            )
            for step in self._replanning.book.steps(name)
        ]

    def snapshot(self) -> State:
        """Return the site's state, its plans, and where in an epoch it is."""
        return {
            "site": super().snapshot(),
            **plain(
                {
                    "names": self._names,
                    "changes": self._changes,
                    "held": self._held,
                    "decisions": self._decisions,
                    "window": self._window,
                    "counts": [self._intervals, self._tuples, self._epoch_from],
                }
            ),
        }

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        site, own = state["site"], revive({k: v for k, v in state.items() if k != "site"})
        self._plans, self._names, self._changes = [], [], []
        for name, change in zip(own["names"], own["changes"], strict=True):
            self._add(name, change)
        super().restore(site)
        self._held, self._decisions, self._window = own["held"], own["decisions"], own["window"]
        self._intervals, self._tuples, self._epoch_from = own["counts"]
