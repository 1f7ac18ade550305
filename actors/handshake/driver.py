"""The driver: feeds the two streams into the two ends of the chain."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from actors.handshake.payloads import LEFTWARD, RIGHTWARD, Flow
from actors.probes import Probes, give_windows
from actors.protocol import Actor, Context, Message
from actors.source import Fed
from joins.queries.windows import Window, WindowBounds
from joins.state import State


class Driver(Actor):
    """Gives every tuple its window and sends R to the first core and S to the last.

    The originals' driver watches the windows and sends a message for each tuple that expires, into
    the end opposite to the one where it came in. Here every message says from which position on
    the other stream can still be seen: it is behind all tuples that see more, so it says the same.

    A stream that is joined with itself goes in at both ends: what flows right probes, and what
    flows left is probed and sees nothing.

    Ports: ``first`` and ``last``, the two ends of the chain.
    """

    def __init__(self, *, windows: tuple[Window, ...], self_join: bool) -> None:
        self._bounds = WindowBounds(windows, self_join=self_join)
        self._self_join = self_join

    def receive(self, message: Message, context: Context) -> None:
        """Send the tuples of one `Fed` batch on their ways; to either end, though there be none."""
        fed: Fed = message.payload
        parts = give_windows(fed, self._bounds)
        if self._self_join:
            parts = (*parts, _blind(parts[0]))
        horizon = self._bounds.horizon
        for direction, port in ((RIGHTWARD, "first"), (LEFTWARD, "last")):
            flow = Flow(
                direction=direction,
                part=parts[direction],
                passed=0,
                horizon=horizon[0 if self._self_join else 1 - direction],
                last=fed.last,
                span=fed.arrivals.span,
            )
            context.send(port, flow)

    def snapshot(self) -> State:
        """Return the window state."""
        return {"bounds": self._bounds.snapshot()}

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._bounds.restore(state["bounds"])


def _blind(part: Probes) -> Probes:
    """Return the same tuples with windows that hold nothing."""
    nothing = np.zeros(len(part), np.int64)
    return replace(part, start=nothing, stop=nothing)
