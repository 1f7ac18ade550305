"""Handshake join (Teubner and Mueller, 2011): tuples rest in segments and push each other on."""

from __future__ import annotations

from typing import Any

import numpy as np

from actors.handshake.core import Core
from actors.handshake.payloads import LEFTWARD, RIGHTWARD, Flow
from actors.handshake.segment import END, Segment
from actors.probes import Probes
from actors.protocol import Context
from joins.queries.query import JoinQuery
from joins.state import State


class RestingCore(Core):
    """Holds an equal share of either window; what is more goes on to the neighbour.

    Every tuple comes by every core in the end, and meets each tuple of the other stream once, where
    the two come by each other. As they may do so between two cores, leftward tuples stay here as a
    copy until the neighbour on the left has them: what comes from there and has not met them meets
    the copy (the original's acknowledgements, on one side only as there; here each message from the
    left says what has arrived). At its end of the chain a tuple stays until no tuple that is still
    to enter at that end can see it.

    Where the original leaves open how long segments are, a window of time gives each core the same
    stretch of it. Tuples move only as others follow, so with the last of all rightward ones go
    through to the end: else the pairs between cores would wait for ever.
    """

    def __init__(self, *, query: JoinQuery, cores: int, **arguments: Any) -> None:
        super().__init__(query=query, cores=cores, **arguments)
        self._window = query.windows[0]  # the same over every stream
        self._share = -(-self._window.length // cores)
        self._sent = [0, 0]

    def _met_by(self, flow: Flow, context: Context) -> list[tuple[Segment, int]]:
        if flow.direction == RIGHTWARD:
            context.charge(self._segments[LEFTWARD].drop(flow.passed))
        return [(self._segments[1 - flow.direction], END)]

    def _settle(self, flow: Flow, context: Context) -> Probes:
        way, here = flow.direction, self._segments[flow.direction]
        context.charge(here.store(flow.part))
        if self._is_end[1 - way]:
            context.charge(self._segments[1 - way].drop(flow.horizon))
        if self._is_end[way]:
            return here.between(0, 0)
        sent, self._sent[way] = self._sent[way], max(self._sent[way], self._leaves_before(flow))
        leaving = here.between(sent, self._sent[way])
        if way == RIGHTWARD:
            context.charge(here.drop(self._sent[way]))
        return leaving

    def _leaves_before(self, flow: Flow) -> int:
        """Return the position before which tuples have no place here any more."""
        reached = self._reached[flow.direction]
        if flow.last and flow.direction == RIGHTWARD:
            return reached
        if self._window.kind == "count":
            return reached - self._share
        batch = self._segments[flow.direction].tuples.batch
        old = int(np.searchsorted(batch.ts, batch.ts[-1:] - self._share)[0]) if len(batch) else 0
        return reached - (len(batch) - old)

    def snapshot(self) -> State:
        """Return what a core keeps, and how far it has sent either flow on."""
        return super().snapshot() | {"sent": list(self._sent)}

    def restore(self, state: State) -> None:
        """Take over a snapshot."""
        super().restore(state)
        self._sent = list(state["sent"])
