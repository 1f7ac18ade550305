"""Low-latency handshake join (Roy, Teubner and Gemulla, 2014): tuples are forwarded at once."""

from __future__ import annotations

from typing import Any

from actors.handshake.core import Core
from actors.handshake.payloads import LEFTWARD, RIGHTWARD, Flow
from actors.handshake.segment import END, Segment
from actors.probes import Probes
from actors.protocol import Context
from joins.state import State


class LowLatencyCore(Core):
    """Stores the tuples whose home it is, in turns, and forwards all of them at once.

    A rightward tuple meets what is stored at each core, a leftward one only the tuples that had
    been through the whole chain when it entered: with the others it is they that meet it, at its
    home, or in flight. In flight it is where it has left a core and not reached the next: a copy
    stays until the neighbour on the left has it, unless it has passed its home and is met there.
    (The original marks stored tuples as expedited until they have been through, and acknowledges
    each leftward tuple; here messages say how far the other flow had come.)
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__(**arguments)
        self._in_flight = self._segment(LEFTWARD, "nested_loop")

    def _met_by(self, flow: Flow, context: Context) -> list[tuple[Segment, int]]:
        if flow.direction == LEFTWARD:
            return [(self._segments[RIGHTWARD], self._passed(flow))]
        context.charge(self._in_flight.drop(flow.passed))
        return [(self._segments[LEFTWARD], END), (self._in_flight, END)]

    def _settle(self, flow: Flow, context: Context) -> Probes:
        way, part = flow.direction, flow.part
        home = part.batch.id % self._cores
        context.charge(self._segments[way].store(part.take(home == self._core)))
        context.charge(self._segments[1 - way].drop(flow.horizon))
        if way == LEFTWARD:
            context.charge(self._in_flight.store(part.take(home < self._core)))
        return part

    def snapshot(self) -> State:
        """Return what a core keeps, and what is in flight."""
        return super().snapshot() | {"in_flight": self._in_flight.snapshot()}

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        super().restore(state)
        self._in_flight.restore(state["in_flight"])
