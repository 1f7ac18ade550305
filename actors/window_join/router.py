"""The router: gives every tuple its window, and sends it where it is stored and where it probes."""

from __future__ import annotations

import numpy as np

from actors.probes import Probes, give_windows
from actors.protocol import Actor, Context, Message
from actors.source import Fed
from actors.window_join.payloads import Share
from actors.window_join.routing import Routing, here
from joins.queries.windows import Window, WindowBounds
from joins.state import State


class Router(Actor):
    """Sends each of *pes* PEs the tuples that *routing* wants there.

    A batch that every PE needs whole is sent once, to all that is wired: to the PEs, or to the
    root of a tree that ends in them.

    Port: ``joiner``.
    """

    def __init__(
        self, *, windows: tuple[Window, ...], self_join: bool, routing: Routing, pes: int
    ) -> None:
        self._bounds = WindowBounds(windows, self_join=self_join)
        self._routing = routing
        self._pes = pes

    def receive(self, message: Message, context: Context) -> None:
        """Route one `Fed` batch."""
        fed: Fed = message.payload
        parts = give_windows(fed, self._bounds)
        horizon, span = self._bounds.horizon, fed.arrivals.span
        wanted = self._wanted(parts)
        if all(rows.all() for masks in wanted for rows in masks):
            context.send("joiner", Share(parts, horizon, span))
            return
        for pe, masks in enumerate(wanted):
            share = tuple(part.take(rows) for part, rows in zip(parts, masks, strict=True))
            if any(len(part) for part in share):
                context.send("joiner", Share(share, horizon, span), to=pe)

    def _wanted(self, parts: tuple[Probes, ...]) -> list[list[np.ndarray]]:
        """Return for each PE and stream a mask of the tuples that it stores or that probe there."""
        places = [
            (
                self._routing.stored_at(stream, part.batch),
                self._routing.probes_at(stream, part.batch),
            )
            for stream, part in enumerate(parts)
        ]
        return [
            [
                here(stored, pe, len(part)) | here(probing, pe, len(part))
                for part, (stored, probing) in zip(parts, places, strict=True)
            ]
            for pe in range(self._pes)
        ]

    def snapshot(self) -> State:
        """Return the window state."""
        return {"bounds": self._bounds.snapshot()}

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        self._bounds.restore(state["bounds"])
