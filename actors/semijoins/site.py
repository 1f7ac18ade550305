"""A site: its stream's window, and its parts in the one-way joins of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from actors.protocol import TIMER, Actor, Context, Message
from actors.results import Answers
from actors.semijoins.execution import FOREVER, Execution
from actors.semijoins.inflow import Inflow
from actors.semijoins.part import Desk, OneWayStep, Output
from actors.semijoins.payloads import NewTuples, Shipment
from actors.semijoins.plan_parts import PlanParts
from joins.batch import Batch
from joins.queries.windows import Window
from joins.semijoins.horizon import Horizon
from joins.semijoins.joined import Joined
from joins.semijoins.kept_values import KeptTuples
from joins.state import State, plain, revive
from joins.work import Work


class Site(Actor):
    """Takes an execution interval's tuples at a time, and what other sites ship.

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
        How sites know that they have heard everything.
    pairs
        Whether results come with their ids.
    kept
        Which new tuples are not shed on arrival; None keeps all.
    """

    def __init__(
        self,
        *,
        stream: int,
        streams: int,
        window: Window,
        steps: Sequence[OneWayStep],
        execution: Execution,
        pairs: bool,
        kept: KeptTuples | None = None,
    ) -> None:
        self._streams = streams
        self._execution = execution
        self._pairs = pairs
        self._kept = kept
        self._plans = [PlanParts(stream, steps)]
        self._own = Inflow(stream, Horizon(window))
        self._early: list[Shipment] = []
        self._waiting: list[Output] = []

    def receive(self, message: Message, context: Context) -> None:
        """Take new tuples, a shipment, or the time at which something may go on."""
        desk = Desk(context, self._own.stream, self._execution, self._own.horizon)
        if not message.port.startswith(TIMER):
            self._take(message.payload, desk, context)
        self._settle(desk, context)

    def _settle(self, desk: Desk, context: Context) -> None:
        """Let everything go on that can."""
        self._start_waiting(desk)
        while desk.outputs:
            self._hand_on(desk.outputs.pop(0), context)
            self._start_waiting(desk)

    def _take(self, payload: Any, desk: Desk, context: Context) -> None:
        if isinstance(payload, NewTuples):
            self._end_interval(payload, desk, context)
        else:
            self._hear(payload, desk)

    def _hear(self, payload: Shipment, desk: Desk) -> None:
        plan = self._plan_with(payload.step)
        if plan is None or (
            payload.step in plan.destinations
            and not self._has_all(plan.parts[payload.step].step.stored, payload.tick, desk.now)
        ):
            # It is of a plan, or looks for tuples, that this site has yet to get.
            self._early.append(payload)
        else:
            plan.parts[payload.step].hear(payload, desk)

    def _has_all(self, stream: int, tick: int, now: int) -> bool:
        """Return whether a stream at this site has all of an interval."""
        return self._own.tick >= tick

    def _end_interval(self, new: NewTuples, desk: Desk, context: Context) -> None:
        if self._kept is not None:
            desk.charge(Work(comparisons=len(new.batch)))
            new = new.take(self._kept.of(new.batch))
        self._flow_in(self._own, new, desk, context)

    def _flow_in(self, inflow: Inflow, new: NewTuples, desk: Desk, context: Context) -> None:
        """Take an interval of a stream: into its windows, and to its first one-way join."""
        inflow.horizon.insert(new.tick, new.batch.id, new.batch.ts)
        done = self._execution.may_remove(new.tick, self._done(inflow.stream))
        self._insert(inflow.stream, new.batch, new.tick, inflow.horizon.passed(done), desk)
        inflow.tick = new.tick
        self._hear_early(desk)
        joined = Joined(
            streams=(inflow.stream,), parts=(new.batch,), seq=new.seq, born_ns=new.born_ns
        )
        first = self._plans[-1].first[inflow.stream]
        self._begin(Output(first, new.tick, True, joined), context)

    def _hear_early(self, desk: Desk) -> None:
        early, self._early = self._early, []
        for payload in early:
            self._hear(payload, desk)

    def _done(self, stream: int) -> int:
        """Return the latest interval of which all that looks into a stream's windows has come."""
        return min(
            (part.done for plan in self._plans for part in plan.looking_into(stream)),
            default=FOREVER,
        )

    def _insert(self, stream: int, batch: Batch, tick: int, keep_from: int, desk: Desk) -> None:
        """Take an interval's tuples into the windows of the plan in force."""
        for part in self._plans[-1].looking_into(stream):
            part.insert(batch, tick, keep_from, desk)

    def _plan_with(self, step: int) -> PlanParts | None:
        """Return the plan that has a step of this number here."""
        return next((plan for plan in self._plans if step in plan.parts), None)

    def _plan_of(self, output: Output) -> PlanParts:
        plan = self._plan_with(output.step)
        assert plan is not None  # what has output is not over
        return plan

    def _hand_on(self, output: Output, context: Context) -> None:
        """Let what a step made go on to the next, or leave the system."""
        following = self._step_of(output).following
        if following is None:
            self._report(self._by_head(output), context)
        else:
            self._begin(replace(output, step=following), context)

    def _step_of(self, output: Output) -> OneWayStep:
        return self._plan_of(output).parts[output.step].step

    def _begin(self, output: Output, context: Context) -> None:
        """Put combinations before the step they are to go through."""
        if not len(output.joined) and not self._execution.ships_nothing:
            return
        self._waiting.append(output)
        at = self._execution.wakes_at(output.tick, self._step_of(output).late_ns)
        if (
            self._plan_of(output).sources[output.step].delayed
            and at is not None
            and at > context.now
        ):
            context.set_timer(at, "probe")

    def _start_waiting(self, desk: Desk) -> None:
        """Start steps on what has waited long enough, in the order of its coming."""
        waiting, self._waiting = self._waiting, []
        for item in waiting:
            plan = self._plan_of(item)
            part = plan.sources[item.step]
            if not part.delayed or self._execution.may_probe(
                item.tick, part.step.late_ns, part.heard, desk.now
            ):
                plan.start(item, desk)
            else:
                self._waiting.append(item)

    def _by_head(self, output: Output) -> list[Joined]:
        """Return results, those of each head stream apart; there are some."""
        return [output.joined] if len(output.joined) else []

    def _report(self, results: Sequence[Joined], context: Context) -> None:
        if not results:
            return
        matches, born_ns, seqs = zip(
            *(joined.matches(pairs=self._pairs) for joined in results), strict=True
        )
        seq = np.concatenate(seqs)
        span = (int(seq.min()), int(seq.max()))
        context.send("sink", Answers(matches, born_ns, span, streams=self._streams))

    def snapshot(self) -> State:
        """Return the parts, and what waits."""
        return plain(
            {
                "own": self._own.snapshot(),
                "early": self._early,
                "waiting": self._waiting,
                "plans": [plan.snapshot() for plan in self._plans],
            }
        )

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        state = revive(state)
        self._own.restore(state["own"])
        self._early, self._waiting = state["early"], state["waiting"]
        for plan, kept in zip(self._plans, state["plans"], strict=True):
            plan.restore(kept)
