"""A machine that joins: it holds both windows, and one core or several look tuples up in them."""

from __future__ import annotations

import numpy as np

from actors.ibwj.residual import Residual
from actors.protocol import Actor, Context, Message
from actors.results import Answers
from actors.source import Fed
from joins.batch import Schema
from joins.matches import Matches, ProbeResult
from joins.queries.query import JoinQuery
from joins.window_join.registry import Making
from joins.window_join.rows import RowMaker, Rows
from joins.work import Work


class Machine(Actor):
    """Joins every batch as it comes; its results leave together, in arrival order.

    Port: ``sink``.

    Parameters
    ----------
    making
        The window join.
    unit_ps
        What a unit of each counter of work takes: the join's simulated cores wait for each other
        for as long as that. None has its threads be real.
    """

    state = ("_rows", "_residual", "_join")

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        making: Making,
        unit_ps: tuple[int, ...] | None,
        pairs: bool,
    ) -> None:
        self._rows = RowMaker(query, schemas)
        self._residual = Residual(query, schemas, self._rows.indexed)
        self._join = making.make(self_join=query.is_self_join, unit_ps=unit_ps)
        self._pairs = pairs

    def receive(self, message: Message, context: Context) -> None:
        """Join a batch and send its matches on."""
        fed: Fed = message.payload
        rows = self._rows.make(fed.arrivals)
        found = self._join.join(rows, enumerate=self._pairs or bool(self._residual))
        context.charge(_spent(found.work))
        parts = [self._matches(stream, rows, found) for stream in range(len(fed.arrivals.parts))]
        if self._residual:
            parts = self._check(fed, parts, context)
        context.send("sink", Answers(tuple(parts), fed.born_ns, fed.span))

    def _matches(self, stream: int, rows: Rows, found: ProbeResult) -> Matches:
        mine = rows.side == stream
        listed = found.match_id
        return Matches(
            stream=stream,
            probe_id=rows.position[mine],
            count=found.count[mine],
            fingerprint=found.fingerprint[mine],
            match_id=None if listed is None else listed[np.repeat(mine, found.count)],
        )

    def _check(self, fed: Fed, parts: list[Matches], context: Context) -> list[Matches]:
        self._residual.store(fed.arrivals)
        checked = []
        for part, found in zip(fed.arrivals.parts, parts, strict=True):
            matches, work = self._residual.check(part, found)
            context.charge(work)
            checked.append(matches)
        self._residual.expire(self._rows.horizon)
        return checked


def _spent(work: Work) -> Work:
    """Return what to charge: of cores side by side only how long they took."""
    return Work(elapsed_ns=work.elapsed_ns) if work.elapsed_ns else work
