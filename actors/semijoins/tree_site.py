"""A site of a join tree: its own stream, and the output streams that are made there."""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from actors.semijoins.execution import Execution
from actors.semijoins.one_way import SiteContext, StepOutput
from actors.semijoins.site import Inflow, Site
from actors.semijoins.site_source import NewTuples
from joins.semijoins.combinations import Combinations, Operand
from joins.semijoins.windows import Horizon, OperandWindow
from joins.state import Stateful


@dataclass(frozen=True, kw_only=True)
class OutputSpec:
    """What a site needs to make an output stream.

    Attributes
    ----------
    operand
        What it is in the join above.
    window
        Over it, as the other operand of that join sees it.
    steps
        Numbers of the two one-way joins whose results it is of.
    site
        Where it is made, as the position of the stream that arrives there.
    late_ns
        How long after an interval's end it has all of it, in the paper's model.
    """

    operand: Operand
    window: OperandWindow
    steps: tuple[int, int]
    site: int
    late_ns: int


class OutputStream(Stateful):
    """An output stream where it is made, by two one-way joins (section 4.2).

    It gathers an execution interval's results, and turns them into an interval of new tuples. In
    the paper's model results that come later than a message can take are lost.

    Attributes
    ----------
    inflow
        What it is to its site.
    """

    state = ("inflow", "_heard", "_begun", "_results", "_made")

    def __init__(self, spec: OutputSpec) -> None:
        self.inflow = Inflow(spec.operand.number, Horizon(spec.window))
        self._spec = spec
        self._heard = dict.fromkeys(spec.steps, -1)
        self._begun: list[int] = []
        self._results: list[StepOutput] = []
        self._made = 0

    def gather(self, output: StepOutput, execution: Execution) -> int | None:
        """Add results; return when their interval is complete, if that needs a timer."""
        if output.final:
            self._heard[output.step] = output.tick
        if output.tick <= self.inflow.tick:
            return None
        self._results.append(output)
        if output.tick in self._begun:
            return None
        insort(self._begun, output.tick)
        return execution.complete_at(output.tick, self._spec.late_ns)

    def has_all(self, tick: int, execution: Execution, now: int) -> bool:
        """Return whether its windows have all of an interval."""
        waits = self._begun and self._begun[0] <= tick
        return not waits and self._is_made(tick, execution, now)

    def next_interval(self, execution: Execution, now: int) -> NewTuples | None:
        """Return and remove the next interval's tuples if it has all of them."""
        if not (self._begun and self._is_made(self._begun[0], execution, now)):
            return None
        tick = self._begun.pop(0)
        results = [output.combinations for output in self._results if output.tick == tick]
        self._results = [output for output in self._results if output.tick != tick]
        tuples = self._spec.operand.gathered(results, self._made)
        self._made += len(tuples)
        return NewTuples(tick, tuples.newest, tuples.seq, tuples.born_ns)

    def _is_made(self, tick: int, execution: Execution, now: int) -> bool:
        return execution.is_complete(tick, self._spec.late_ns, min(self._heard.values()), now)


class TreeSite(Site):
    """Joins by two-way joins, of which all but the last make output streams (section 4.2).

    The two operands of a two-way join send each interval's new tuples into each other's windows.
    What matches is an interval of the output stream, once both have: it comes into the site as an
    interval of the site's own stream does, and meets the other operand of the join above.

    Parameters
    ----------
    outputs
        The output streams of the tree.
    of_site
        As for a `Site`.
    """

    state = ("_outputs",)

    def __init__(self, *, outputs: Sequence[OutputSpec], **of_site: Any) -> None:
        super().__init__(**of_site)
        self._outputs = {
            spec.operand.number: OutputStream(spec)
            for spec in outputs
            if spec.site == self._own.stream
        }

    def _end_interval(self, new: NewTuples, context: SiteContext) -> None:
        """Take new tuples with their arrival numbers, by which tuples of a tree are compared."""
        super()._end_interval(replace(new, batch=replace(new.batch, key=new.seq)), context)

    def _handle(self, payload: Any, context: SiteContext) -> None:
        self._retry_early(context)  # messages of one site are handled in their order
        super()._handle(payload, context)
        if self._early and self._early[-1] is payload:
            # Look again when the payload may be handled.
            late_ns = self._plans[0].halves[payload.step].step.late_ns
            context.wake_at(self._execution.complete_at(payload.tick, late_ns), "output")

    def _has_all(self, stream: int, tick: int, now: int) -> bool:
        output = self._outputs.get(stream)
        if output is None:
            return super()._has_all(stream, tick, now)
        return output.has_all(tick, self._execution, now)

    def _resume(self, context: SiteContext) -> None:
        """Resume every step whose input is complete, output streams from the bottom up included."""
        self._retry_early(context)
        super()._resume(context)
        while (interval := self._next_interval(context)) is not None:
            output, new = interval
            self._flow_in(output.inflow, new, context)
            super()._resume(context)

    def _next_interval(self, context: SiteContext) -> tuple[OutputStream, NewTuples] | None:
        for output in self._outputs.values():
            new = output.next_interval(self._execution, context.now)
            if new is not None:
                return output, new
        return None

    def _pass_on(self, output: StepOutput, context: SiteContext) -> None:
        """Gather what a step made, or send it out of the system at the root."""
        stream = self._step_of(output).output
        if stream is None:
            super()._pass_on(output, context)
        else:
            context.wake_at(self._outputs[stream].gather(output, self._execution), "output")

    def _by_head(self, output: StepOutput) -> list[Combinations]:
        window, rows = self._step_of(output).window, output.combinations
        assert isinstance(window, OperandWindow)  # nothing else is in a tree
        heads = window.probe.newest_stream(rows.newest)
        return [
            _by_streams(rows.take(heads == head), (window.probe, window.stored), int(head))
            for head in np.unique(heads)
        ]


def _by_streams(rows: Combinations, operands: Sequence[Operand], head: int) -> Combinations:
    """Return combinations of two operands as those of their streams, *head* first; ids only."""
    ids = {
        stream: operand.ids(part, stream)
        for operand, part in zip(operands, rows.parts, strict=True)
        for stream in operand.streams
    }
    order = (head, *sorted(ids.keys() - {head}))
    part = rows.newest.project([])
    return replace(
        rows, streams=order, parts=tuple(replace(part, id=ids[stream]) for stream in order)
    )
