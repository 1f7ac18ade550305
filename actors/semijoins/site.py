"""A site: what comes into it, and its halves of the one-way joins of a plan.

Its own stream comes in, and the output streams of a tree that are made there (`Inflow`).
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from actors.protocol import TIMER, Actor, Context, Message
from actors.results import Answers
from actors.semijoins.algorithms import HALVES
from actors.semijoins.one_way import (
    FOREVER,
    DestinationHalf,
    Execution,
    Half,
    OneWayStep,
    Shipment,
    SiteContext,
    SourceHalf,
)
from actors.semijoins.site_source import NewTuples
from joins.batch import Batch
from joins.queries.windows import Window
from joins.semijoins.combinations import Combinations
from joins.semijoins.operand import Operand, by_newest
from joins.semijoins.operand_windows import Horizon, OperandWindow
from joins.semijoins.value_sample import TupleSample
from joins.state import Stateful
from joins.work import Work


class Inflow(Stateful):
    """A stream that enters a site, interval by interval."""

    state: ClassVar[tuple[str, ...]] = ("horizon", "tick")

    def __init__(self, stream: int, horizon: Horizon) -> None:
        self.stream = stream
        """Its number: of a stream of the query its position."""
        self.horizon = horizon
        """Which of its tuples may still be seen."""
        self.tick = -1
        """End of the latest execution interval that it brought."""

    def has_all(self, tick: int, execution: Execution, now: int) -> bool:
        """Return whether the windows over it have all of an interval."""
        return self.tick >= tick


@dataclass(frozen=True, kw_only=True)
class OutputSpec:
    """What a site needs to make an output stream."""

    operand: Operand
    """What it is in the join above."""
    window: OperandWindow
    """Over it, as the other operand of that join sees it."""
    steps: tuple[int, int]
    """Numbers of the two one-way joins whose results it is of."""
    site: int
    """Where it is made, as the position of the stream that arrives there."""
    late_ns: int
    """How long after an interval's end it has all of it, in the paper's model."""


class OutputStream(Inflow):
    """An output stream where it is made, by two one-way joins (section 4.2).

    The two operands of a two-way join send each interval's new tuples into each other's windows.
    What matches is an interval of the output stream, once both have: it comes into the site as an
    interval of the site's own stream does, and meets the other operand of the join above. In the
    paper's model results that come later than a message can take are lost.
    """

    state = ("_complete", "_begun", "_results", "_made")

    def __init__(self, spec: OutputSpec) -> None:
        super().__init__(spec.operand.number, Horizon(spec.window))
        self._spec = spec
        self._complete = dict.fromkeys(spec.steps, -1)
        self._begun: list[int] = []
        self._results: list[Shipment[Combinations]] = []
        self._made = 0

    def gather(self, output: Shipment[Combinations], execution: Execution) -> int | None:
        """Add results; return when their interval is complete, if that needs a timer."""
        if output.final:
            self._complete[output.step] = output.tick
        if output.tick <= self.tick:
            return None
        self._results.append(output)
        if output.tick in self._begun:
            return None
        insort(self._begun, output.tick)
        return execution.complete_at(output.tick, self._spec.late_ns)

    def has_all(self, tick: int, execution: Execution, now: int) -> bool:
        """Return whether the windows over it have all of an interval."""
        waits = self._begun and self._begun[0] <= tick
        return not waits and self._is_made(tick, execution, now)

    def next_interval(self, execution: Execution, now: int) -> NewTuples | None:
        """Return and remove the next interval's tuples if it has all of them."""
        if not (self._begun and self._is_made(self._begun[0], execution, now)):
            return None
        tick = self._begun.pop(0)
        results = [output.content for output in self._results if output.tick == tick]
        self._results = [output for output in self._results if output.tick != tick]
        tuples = self._spec.operand.gathered(results, self._made)
        self._made += len(tuples)
        return NewTuples(tick, tuples)

    def _is_made(self, tick: int, execution: Execution, now: int) -> bool:
        return execution.is_complete(tick, self._spec.late_ns, min(self._complete.values()), now)


class PlanHalves(Stateful):
    """The halves of a plan's *steps* at the site where the stream at position *stream* arrives."""

    state = ("halves", "last")

    def __init__(self, stream: int, steps: Iterable[OneWayStep]) -> None:
        self.halves: dict[int, Half] = {}
        """By the numbers of their steps."""
        self.first: dict[int, int] = {}
        """Of the sequence that the stream heads, the number of the first step; in a tree also of
        the one-way join that each output stream at the site goes through. By the stream's
        number."""
        self.last: int | None = None
        """The last execution interval whose tuples go by this plan; None while that is not
        known."""
        for step in steps:
            at_source, at_destination = HALVES[step.algorithm]
            if step.source == stream:
                self.halves[step.number] = at_source(step)
                if len(step.streams) == 1:
                    self.first[step.streams[0]] = step.number
            elif step.destination == stream:
                self.halves[step.number] = at_destination(step)

    def looking_into(self, stream: int) -> list[DestinationHalf]:
        """Return the halves that store a window over a stream at the site."""
        return [
            half
            for half in self.halves.values()
            if isinstance(half, DestinationHalf) and half.step.stored == stream
        ]

    @property
    def is_over(self) -> bool:
        """Whether all of its intervals are done at this site, as punctuations announce."""
        last = self.last
        return last is not None and all(half.is_done(last) for half in self.halves.values())


@dataclass(kw_only=True, eq=False)
class Site(Actor):
    """Handles an execution interval's tuples at a time, and what other sites ship.

    Each interval's new tuples go through the join sequence that they head: from step to step, where
    needed from site to site, until nothing is left of them or all streams are joined. In a tree
    they go through one two-way join, into an output stream, and with that on to the join above.

    Ports: ``feedback`` to all other sites in the order of their streams, ``sink``.
    """

    stream: int
    streams: int
    """Position of the stream that arrives here, and number of streams."""
    window: Window
    """Over it."""
    steps: Sequence[OneWayStep]
    outputs: Sequence[OutputSpec] = ()
    """All one-way joins of the plan, and the output streams of a tree."""
    execution: Execution
    """How sites learn that intervals are complete."""
    pairs: bool
    """Whether results come with their ids."""
    kept: TupleSample | None = None
    """Which new tuples are not shed on arrival; None keeps all."""

    state: ClassVar[tuple[str, ...]] = ("_own", "_outputs", "_early", "_waiting", "_plans")

    def __post_init__(self) -> None:
        self._plans = [PlanHalves(self.stream, self.steps)]
        self._own = Inflow(self.stream, Horizon(self.window))
        self._outputs = {
            spec.operand.number: OutputStream(spec)
            for spec in self.outputs
            if spec.site == self.stream
        }
        self._early: list[Shipment[Any]] = []
        """Payloads of a plan, or about tuples, that this site has yet to get."""
        self._waiting: list[Shipment[Combinations]] = []
        """Combinations before the step they are to go through."""

    def receive(self, message: Message, context: Context) -> None:
        """Handle new tuples, a shipment, or the time at which something may go on."""
        here = SiteContext(context, self._own.stream, self.execution, self._own.horizon)
        if not message.port.startswith(TIMER):
            self._retry_early(here)  # messages of one site are handled in their order
            self._handle(message.payload, here)
        self._resume(here)

    def _handle(self, payload: Any, context: SiteContext) -> None:
        if isinstance(payload, NewTuples):
            self._end_interval(payload, context)
        elif not self._deliver(payload, context):
            self._early.append(payload)
            if (half := self._half(payload.step)) is not None:
                late_ns = half.step.late_ns
                context.wake_at(self.execution.complete_at(payload.tick, late_ns), "output")

    def _deliver(self, payload: Shipment[Any], context: SiteContext) -> bool:
        """Hand a shipment to its half; return False where it is early."""
        half = self._half(payload.step)
        if half is None:
            return False
        if isinstance(half, DestinationHalf):
            stored = self._outputs.get(half.step.stored, self._own)
            if not stored.has_all(payload.tick, self.execution, context.now):
                return False
        half.receive(payload, context)
        return True

    def _retry_early(self, context: SiteContext) -> None:
        self._early = [payload for payload in self._early if not self._deliver(payload, context)]

    def _end_interval(self, new: NewTuples, context: SiteContext) -> None:
        """Take new tuples with their arrival numbers, by which tuples of a tree are compared."""
        tuples = new.tuples
        if self.kept is not None:
            context.charge(Work(comparisons=len(tuples)))
            tuples = tuples.take(self.kept.of(tuples.newest))
        numbered = replace(tuples, parts=(replace(tuples.newest, key=tuples.seq),))
        self._flow_in(self._own, NewTuples(new.tick, numbered), context)

    def _flow_in(self, inflow: Inflow, new: NewTuples, context: SiteContext) -> None:
        """Take an interval of a stream: into its windows, and to its first one-way join."""
        batch = new.tuples.newest
        inflow.horizon.insert(new.tick, batch)
        done = self.execution.may_remove(new.tick, self._done(inflow.stream))
        self._insert(inflow.stream, batch, new.tick, inflow.horizon.passed(done), context)
        inflow.tick = new.tick
        self._retry_early(context)
        first = self._plans[-1].first[inflow.stream]
        self._queue(Shipment(step=first, tick=new.tick, final=True, content=new.tuples), context)

    def _done(self, stream: int) -> int:
        """Return the latest interval whose probes of a stream's windows have all arrived."""
        return min(
            (half.complete for plan in self._plans for half in plan.looking_into(stream)),
            default=FOREVER,
        )

    def _insert(
        self, stream: int, batch: Batch, tick: int, keep_from: int, context: SiteContext
    ) -> None:
        """Insert an interval's tuples into the windows of the plan in force."""
        for half in self._plans[-1].looking_into(stream):
            half.insert(batch, tick, keep_from, context)

    def _half(self, step: int) -> Half | None:
        """Return the half of a step here, of whichever plan; None where there is none yet."""
        return next((plan.halves[step] for plan in self._plans if step in plan.halves), None)

    def _resume(self, context: SiteContext) -> None:
        """Resume every step whose input is complete, output streams from the bottom up included."""
        self._retry_early(context)
        self._go_on(context)
        while (interval := self._next_interval(context)) is not None:
            self._flow_in(*interval, context)
            self._go_on(context)

    def _next_interval(self, context: SiteContext) -> tuple[OutputStream, NewTuples] | None:
        for output in self._outputs.values():
            new = output.next_interval(self.execution, context.now)
            if new is not None:
                return output, new
        return None

    def _go_on(self, context: SiteContext) -> None:
        """Start steps and pass on what they make, until nothing more can start."""
        self._start_waiting(context)
        while context.outputs:
            self._pass_on(context.outputs.pop(0), context)
            self._start_waiting(context)

    def _start_waiting(self, context: SiteContext) -> None:
        """Start steps on what has waited long enough, in the order of its coming.

        A copy of another site's window must be complete up to the interval.
        """
        waiting, self._waiting = self._waiting, []
        for new in waiting:
            half = self._half(new.step)
            assert isinstance(half, SourceHalf)  # what waits for it is here
            late_ns = half.step.late_ns + self.execution.delta_ns
            if not half.step.algorithm.delayed or self.execution.is_complete(
                new.tick, late_ns, half.complete, context.now
            ):
                half.begin(new, context)
            else:
                self._waiting.append(new)

    def _pass_on(self, output: Shipment[Combinations], context: SiteContext) -> None:
        """Send what a step made to the next one, into an output stream, or out of the system."""
        step = self._step(output)
        if step.following is not None:
            self._queue(replace(output, step=step.following), context)
        elif step.output is not None:
            gathered = self._outputs[step.output].gather(output, self.execution)
            context.wake_at(gathered, "output")
        else:
            self._report(output.content, step, context)

    def _queue(self, output: Shipment[Combinations], context: SiteContext) -> None:
        """Queue combinations before the step they are to go through."""
        if not len(output.content) and not self.execution.punctuated:
            return
        self._waiting.append(output)
        step = self._step(output)
        if step.algorithm.delayed:
            late_ns = step.late_ns + self.execution.delta_ns
            context.wake_at(self.execution.complete_at(output.tick, late_ns), "probe")

    def _step(self, output: Shipment[Combinations]) -> OneWayStep:
        half = self._half(output.step)
        assert half is not None  # what has output is not over
        return half.step

    def _report(self, rows: Combinations, step: OneWayStep, context: SiteContext) -> None:
        """Send results out, those of each head stream apart, if there are any."""
        if not len(rows):
            return
        window, results = step.window, [rows]
        if isinstance(window, OperandWindow):
            results = by_newest(rows, (window.probe, window.stored))
        matches, born_ns = zip(*(part.matches(pairs=self.pairs) for part in results), strict=True)
        span = (int(rows.seq.min()), int(rows.seq.max()))
        context.send("sink", Answers(matches, born_ns, span, streams=self.streams))
