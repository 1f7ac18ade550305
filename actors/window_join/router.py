"""The router of whole windows: finds the window of every tuple and sends it where it is needed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.probes import Probes, give_windows
from actors.protocol import Actor, Context, Message, Payload
from actors.source import Fed
from actors.window_join.routing import Routing
from joins.queries.windows import Window, WindowBounds


@dataclass(frozen=True, slots=True)
class Share(Payload):
    """The arrivals that concern a PE: to be stored there, to probe there, or both.

    Attributes
    ----------
    parts
        One per stream of the query.
    horizon
        Per stream the least position that any later probe can see.
    span
        First and last arrival number of the batch they were part of.
    """

    parts: tuple[Probes, ...]
    horizon: tuple[int, ...]
    span: tuple[int, int]

    bytes_of = ("parts", "horizon")
    rows_of = ("parts",)


class Router(Actor):
    """Sends each of *pes* PEs the tuples that *routing* wants there.

    A batch that every PE needs whole is sent once, to all that is wired: to the PEs, or to the
    root of a tree that ends in them.

    Port: ``joiner``.
    """

    state = ("_bounds",)

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
            [stored.at(pe) | probing.at(pe) for stored, probing in places]
            for pe in range(self._pes)
        ]


class Relay(Actor):
    """An inner node of a tree that spreads messages to many actors, or gathers them from many.

    Port: ``out``.
    """

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        """Send the payload to everybody downstream."""
        context.send("out", message.payload)
