"""A site of a join tree: its own stream, and the output streams that are made there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from actors.protocol import Context
from actors.semijoins.output_stream import OutputSpec, OutputStream
from actors.semijoins.part import Desk, Output
from actors.semijoins.payloads import NewTuples, Shipment
from actors.semijoins.site import Site
from joins.semijoins.joined import Joined
from joins.semijoins.operand import Operand
from joins.semijoins.operand_window import OperandWindow, newest_stream
from joins.state import State, plain, revive


class TreeSite(Site):
    """Joins by two-way joins, of which all but the last make output streams (section 4.2).

    The two operands of a two-way join send each interval's new tuples into each other's windows.
    What they find is an interval of the output stream, once both have: it comes into the site as an
    interval of the site's own stream does, and meets the other operand of the join above.

    Parameters
    ----------
    outputs
        The output streams of the tree.
    of_site
        As for a `Site`.
    """

    def __init__(self, *, outputs: Sequence[OutputSpec], **of_site: Any) -> None:
        super().__init__(**of_site)
        self._outputs = {
            spec.operand.number: OutputStream(spec)
            for spec in outputs
            if spec.site == self._own.stream
        }

    def _end_interval(self, new: NewTuples, desk: Desk, context: Context) -> None:
        """Take new tuples with their arrival numbers, by which tuples of a tree are compared."""
        super()._end_interval(replace(new, batch=replace(new.batch, key=new.seq)), desk, context)

    def _take(self, payload: Any, desk: Desk, context: Context) -> None:
        self._hear_early(desk)  # messages of one site are heard in their order
        super()._take(payload, desk, context)
        if self._early and self._early[-1] is payload:
            self._wake_for(payload, context)

    def _wake_for(self, payload: Shipment, context: Context) -> None:
        """Have the site look again when a payload that came early may be heard."""
        step = self._plans[0].parts[payload.step].step
        at = self._execution.ends_at(payload.tick, step.late_ns)
        if at is not None and at > context.now:
            context.set_timer(at, "output")

    def _has_all(self, stream: int, tick: int, now: int) -> bool:
        output = self._outputs.get(stream)
        if output is None:
            return super()._has_all(stream, tick, now)
        return output.has_all(tick, self._execution, now)

    def _settle(self, desk: Desk, context: Context) -> None:
        """Let everything go on that can, output streams from the bottom up included."""
        self._hear_early(desk)
        super()._settle(desk, context)
        while (found := self._next_interval(desk)) is not None:
            stream, new = found
            self._flow_in(self._outputs[stream].inflow, new, desk, context)
            super()._settle(desk, context)

    def _next_interval(self, desk: Desk) -> tuple[int, NewTuples] | None:
        for stream, output in self._outputs.items():
            new = output.next_interval(self._execution, desk.now)
            if new is not None:
                return stream, new
        return None

    def _hand_on(self, output: Output, context: Context) -> None:
        """Gather what a step found, or let it leave the system at the root."""
        stream = self._step_of(output).output
        if stream is None:
            super()._hand_on(output, context)
            return
        at = self._outputs[stream].gather(output, self._execution)
        if at is not None and at > context.now:
            context.set_timer(at, "output")

    def _by_head(self, output: Output) -> list[Joined]:
        window = self._step_of(output).window
        assert isinstance(window, OperandWindow)  # nothing else is in a tree
        heads = newest_stream(window.probe, output.joined)
        return [
            _by_streams(output.joined.take(heads == head), (window.probe, window.stored), head)
            for head in np.unique(heads)
        ]

    def snapshot(self) -> State:
        """Return the site's state, and its output streams."""
        outputs = [output.snapshot() for output in self._outputs.values()]
        return {"site": super().snapshot(), "outputs": plain(outputs)}

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        super().restore(state["site"])
        for output, kept in zip(self._outputs.values(), revive(state["outputs"]), strict=True):
            output.restore(kept)


def _by_streams(rows: Joined, operands: Sequence[Operand], head: int) -> Joined:
    """Return combinations of two operands as those of their streams, *head* first; ids only."""
    ids = {
        stream: operand.ids(part, stream)
        for operand, part in zip(operands, rows.parts, strict=True)
        for stream in operand.streams
    }
    order = (int(head), *sorted(ids.keys() - {head}))
    part = rows.newest.project([])
    return replace(
        rows, streams=order, parts=tuple(replace(part, id=ids[stream]) for stream in order)
    )
