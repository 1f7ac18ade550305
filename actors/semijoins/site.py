"""A site: its stream's window, and its halves of the one-way joins of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from actors.protocol import TIMER, Actor, Context, Message
from actors.results import Answers
from actors.semijoins.algorithms import HALVES
from actors.semijoins.execution import FOREVER, Execution
from actors.semijoins.one_way import (
    DestinationHalf,
    Half,
    OneWayStep,
    Shipment,
    SiteContext,
    SourceHalf,
    StepOutput,
)
from actors.semijoins.site_source import NewTuples
from joins.batch import Batch
from joins.queries.windows import Window
from joins.semijoins.combinations import Combinations
from joins.semijoins.value_sample import TupleSample
from joins.semijoins.windows import Horizon
from joins.state import Stateful
from joins.work import Work


class Inflow(Stateful):
    """What comes into a site interval by interval: its own stream, or an output stream made there.

    Attributes
    ----------
    stream
        Its number: of a stream of the query its position.
    horizon
        Which of its tuples may still be seen.
    tick
        End of the latest execution interval that it brought.
    """

    state = ("horizon", "tick")

    def __init__(self, stream: int, horizon: Horizon) -> None:
        self.stream = stream
        self.horizon = horizon
        self.tick = -1


class PlanHalves(Stateful):
    """A site's halves of the one-way joins of one plan, by the numbers of their steps.

    Parameters
    ----------
    stream
        Position of the stream that arrives at the site.
    steps
        All of the plan.

    Attributes
    ----------
    first
        Of the sequence that the stream heads, the number of the first step; in a tree also of the
        one-way join that each output stream at the site goes through. By the stream's number.
    last
        The last execution interval whose tuples go by this plan; None while that is not known.
    """

    state = ("sources", "destinations", "last", "_begun")

    def __init__(self, stream: int, steps: Iterable[OneWayStep]) -> None:
        steps = tuple(steps)
        self.first = {
            step.streams[0]: step.number
            for step in steps
            if step.source == stream and len(step.streams) == 1
        }
        self.sources: dict[int, SourceHalf] = {
            step.number: HALVES[step.algorithm][0](step) for step in steps if step.source == stream
        }
        self.destinations: dict[int, DestinationHalf] = {
            step.number: HALVES[step.algorithm][1](step)
            for step in steps
            if step.destination == stream
        }
        self.halves: dict[int, Half] = {**self.sources, **self.destinations}
        self.last: int | None = None
        self._begun = dict.fromkeys(self.sources, -1)

    def looking_into(self, stream: int) -> list[DestinationHalf]:
        """Return the halves that store a window over a stream at the site."""
        return [half for half in self.destinations.values() if half.step.stored == stream]

    def start(self, waiting: StepOutput, context: SiteContext) -> None:
        """Begin a step with combinations."""
        self.sources[waiting.step].start(waiting, context)
        if waiting.final:
            self._begun[waiting.step] = waiting.tick

    @property
    def is_over(self) -> bool:
        """Whether all of its intervals are done at this site, as punctuations announce."""
        last = self.last
        return (
            last is not None
            and all(half.done >= last for half in self.destinations.values())
            and all(
                self._begun[number] >= last and not half.waits
                for number, half in self.sources.items()
            )
        )


class Site(Actor):
    """Handles an execution interval's tuples at a time, and what other sites ship.

    Each interval's new tuples go through the join sequence that they head: from step to step, where
    needed from site to site, until nothing is left of them or all streams are joined.

    Ports: ``feedback`` to all other sites in the order of their streams, ``sink``.

    Parameters
    ----------
    stream, streams
        Position of the stream that arrives here, and number of streams.
    window
        Over it.
    steps
        All one-way joins of the plan.
    execution
        How sites learn that intervals are complete.
    pairs
        Whether results come with their ids.
    kept
        Which new tuples are not shed on arrival; None keeps all.
    """

    state: ClassVar[tuple[str, ...]] = ("_own", "_early", "_waiting", "_plans")

    def __init__(
        self,
        *,
        stream: int,
        streams: int,
        window: Window,
        steps: Sequence[OneWayStep],
        execution: Execution,
        pairs: bool,
        kept: TupleSample | None = None,
    ) -> None:
        self._streams = streams
        self._execution = execution
        self._pairs = pairs
        self._kept = kept
        self._plans = [PlanHalves(stream, steps)]
        self._own = Inflow(stream, Horizon(window))
        self._early: list[Shipment] = []
        """Payloads of a plan, or about tuples, that this site has yet to get."""
        self._waiting: list[StepOutput] = []
        """Combinations before the step they are to go through."""

    def receive(self, message: Message, context: Context) -> None:
        """Handle new tuples, a shipment, or the time at which something may go on."""
        of_site = SiteContext(context, self._own.stream, self._execution, self._own.horizon)
        if not message.port.startswith(TIMER):
            self._handle(message.payload, of_site)
        self._resume(of_site)

    def _resume(self, context: SiteContext) -> None:
        """Resume every step whose input is complete."""
        self._start_waiting(context)
        while context.outputs:
            self._pass_on(context.outputs.pop(0), context)
            self._start_waiting(context)

    def _handle(self, payload: Any, context: SiteContext) -> None:
        if isinstance(payload, NewTuples):
            self._end_interval(payload, context)
        else:
            self._on_shipment(payload, context)

    def _on_shipment(self, payload: Shipment, context: SiteContext) -> None:
        plan = self._plan_with(payload.step)
        if plan is None or (
            payload.step in plan.destinations
            and not self._has_all(plan.halves[payload.step].step.stored, payload.tick, context.now)
        ):
            self._early.append(payload)
        else:
            plan.halves[payload.step].on_shipment(payload, context)

    def _has_all(self, stream: int, tick: int, now: int) -> bool:
        """Return whether a stream at this site has all of an interval."""
        return self._own.tick >= tick

    def _end_interval(self, new: NewTuples, context: SiteContext) -> None:
        if self._kept is not None:
            context.charge(Work(comparisons=len(new.batch)))
            new = new.take(self._kept.of(new.batch))
        self._flow_in(self._own, new, context)

    def _flow_in(self, inflow: Inflow, new: NewTuples, context: SiteContext) -> None:
        """Take an interval of a stream: into its windows, and to its first one-way join."""
        inflow.horizon.insert(new.tick, new.batch.id, new.batch.ts)
        done = self._execution.may_remove(new.tick, self._done(inflow.stream))
        self._insert(inflow.stream, new.batch, new.tick, inflow.horizon.passed(done), context)
        inflow.tick = new.tick
        self._retry_early(context)
        combinations = Combinations(
            streams=(inflow.stream,), parts=(new.batch,), seq=new.seq, born_ns=new.born_ns
        )
        first = self._plans[-1].first[inflow.stream]
        output = StepOutput(step=first, tick=new.tick, final=True, combinations=combinations)
        self._begin(output, context)

    def _retry_early(self, context: SiteContext) -> None:
        early, self._early = self._early, []
        for payload in early:
            self._on_shipment(payload, context)

    def _done(self, stream: int) -> int:
        """Return the latest interval of which all that looks into a stream's windows has come."""
        return min(
            (half.done for plan in self._plans for half in plan.looking_into(stream)),
            default=FOREVER,
        )

    def _insert(
        self, stream: int, batch: Batch, tick: int, keep_from: int, context: SiteContext
    ) -> None:
        """Insert an interval's tuples into the windows of the plan in force."""
        for half in self._plans[-1].looking_into(stream):
            half.insert(batch, tick, keep_from, context)

    def _plan_with(self, step: int) -> PlanHalves | None:
        """Return the plan that has a step of this number here."""
        return next((plan for plan in self._plans if step in plan.halves), None)

    def _plan_of(self, output: StepOutput) -> PlanHalves:
        plan = self._plan_with(output.step)
        assert plan is not None  # what has output is not over
        return plan

    def _step_of(self, output: StepOutput) -> OneWayStep:
        return self._plan_of(output).halves[output.step].step

    def _pass_on(self, output: StepOutput, context: SiteContext) -> None:
        """Send what a step made to the next one, or out of the system."""
        following = self._step_of(output).following
        if following is None:
            self._report(self._by_head(output), context)
        else:
            self._begin(replace(output, step=following), context)

    def _begin(self, output: StepOutput, context: SiteContext) -> None:
        """Queue combinations before the step they are to go through."""
        if not len(output.combinations) and not self._execution.punctuated:
            return
        self._waiting.append(output)
        step = self._step_of(output)
        if step.algorithm.delayed:
            late_ns = step.late_ns + self._execution.delta_ns
            context.wake_at(self._execution.complete_at(output.tick, late_ns), "probe")

    def _start_waiting(self, context: SiteContext) -> None:
        """Start steps on what has waited long enough, in the order of its coming.

        A copy of another site's window must be complete up to the interval.
        """
        waiting, self._waiting = self._waiting, []
        for item in waiting:
            plan = self._plan_of(item)
            half = plan.sources[item.step]
            late_ns = half.step.late_ns + self._execution.delta_ns
            if not half.step.algorithm.delayed or self._execution.is_complete(
                item.tick, late_ns, half.heard, context.now
            ):
                plan.start(item, context)
            else:
                self._waiting.append(item)

    def _by_head(self, output: StepOutput) -> list[Combinations]:
        """Return results, those of each head stream apart; there are some."""
        return [output.combinations] if len(output.combinations) else []

    def _report(self, results: Sequence[Combinations], context: SiteContext) -> None:
        if not results:
            return
        matches, born_ns, seqs = zip(
            *(rows.matches(pairs=self._pairs) for rows in results), strict=True
        )
        seq = np.concatenate(seqs)
        span = (int(seq.min()), int(seq.max()))
        context.send("sink", Answers(matches, born_ns, span, streams=self._streams))
