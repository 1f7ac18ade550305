"""The index-based window join of one machine, whose cores may share its indexes (PIM-Tree).

The machine has both windows, and one core or several look tuples up in them. A window is indexed by
one predicate; what the index finds is checked against the others (`Residual`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.protocol import Actor, Context, Message
from actors.results import Answers
from actors.source import Fed
from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.matches import Matches, ProbeResult, listed_ids
from joins.queries.query import JoinQuery, JoinSides
from joins.sliding_column import SlidingColumn
from joins.state import Stateful
from joins.window_join.rows import KernelRows, RowMaker
from joins.window_join.window_join_spec import WindowJoinSpec
from joins.work import Step, Work

_PAIR_BYTES = 16
"""Bytes copied to compare two values, which are gathered from all over both streams."""


class Residual(Stateful):
    """Keeps the fields of the windows that the other predicates compare, and checks matches.

    The predicate *indexed* needs no check; with None all do.
    """

    state = ("_first", "_columns")

    def __init__(self, query: JoinQuery, schemas: tuple[Schema, ...], indexed: int | None) -> None:
        others = [place for place in range(len(query.predicates)) if place != indexed]
        self._sides = JoinSides(query, schemas, others)
        self._first = [0] * len(query.streams)
        self._columns = [
            [SlidingColumn(condition.dtype) for condition in conditions]
            for conditions in self._sides.storing
        ]

    def __bool__(self) -> bool:
        return bool(self._sides.probing[0])

    def store(self, arrivals: Arrivals) -> None:
        """Store the fields of the next arrivals."""
        for stream, part in enumerate(arrivals.parts):
            for column, one in zip(self._columns[stream], self._sides.storing[stream], strict=True):
                column.append(part.fields[one.stored_field])

    def check(self, probing: Batch, found: Matches) -> tuple[Matches, Work]:
        """Return the matches of *found* that hold of all predicates; it has their ids."""
        match_id = listed_ids(found)
        row = np.repeat(np.arange(len(found)), found.count)
        stored = self._sides.stored_stream[found.stream]
        holds = np.ones(len(row), bool)
        conditions = self._sides.probing[found.stream]
        for one, column in zip(conditions, self._columns[stored], strict=True):
            probe = probing.fields[one.probe_field][row]
            holds &= one.holds(probe, column.values[match_id - self._first[stored]])
        pairs = row[holds], match_id[holds]
        checked = Matches.of_pairs(found.stream, found.probe_id, *pairs, enumerate=True)
        compared = len(row) * len(conditions)
        return checked, Work(comparisons=compared, bytes_copied=compared * _PAIR_BYTES)

    def expire(self, horizon: tuple[int, ...]) -> None:
        """Drop positions below the *horizon* of each stream."""
        for stream, least in enumerate(horizon):
            gone = max(0, least - self._first[stream])
            self._first[stream] += gone
            for column in self._columns[stream]:
                column.drop(gone)


@dataclass(kw_only=True, eq=False)
class Machine(Actor):
    """Joins every batch as it comes; its results leave together, in arrival order.

    Port: ``sink``.
    """

    query: JoinQuery
    schemas: tuple[Schema, ...]
    spec: WindowJoinSpec
    """The window join."""
    unit_ps: tuple[int, ...] | None
    """What a unit of each counter of work takes: the join's simulated cores wait for each other for
    as long as that. None has its threads be real."""
    pairs: bool

    state = ("_rows", "_residual", "_join")

    def __post_init__(self) -> None:
        self._rows = RowMaker(self.query, self.schemas)
        self._residual = Residual(self.query, self.schemas, self._rows.indexed)
        self._index = self.spec.index_name
        self._join = self.spec.make(self_join=self.query.is_self_join, unit_ps=self.unit_ps)

    def receive(self, message: Message, context: Context) -> None:
        """Join a batch and send its matches on."""
        fed: Fed = message.payload
        rows = self._rows.make(fed.arrivals)
        found = self._join.join(rows, enumerate=self.pairs or bool(self._residual))
        overdue = enumerate(self._rows.overdue)
        work = sum((self._join.expire(side, before) for side, before in overdue), found.work)
        if work.elapsed_ns:  # of cores side by side only how long they took counts
            context.charge(Work(elapsed_ns=work.elapsed_ns))
        else:
            window = int((rows.stop - rows.start).max(initial=0))
            context.charge(work, Step(f"ibwj_{self._index}.join", len(rows.side), window))
        parts = [self._matches(stream, rows, found) for stream in range(len(fed.arrivals.parts))]
        if self._residual:
            parts = self._check(fed, parts, context)
        context.send("sink", Answers(tuple(parts), fed.born_ns, fed.span))

    def _matches(self, stream: int, rows: KernelRows, found: ProbeResult) -> Matches:
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
