"""Systems whose PEs each store a share of the whole window in one index and probe it.

A `WindowRouter` finds what each tuple sees and sends it to the PEs where it is stored or probes,
which a `Routing` says; a `Joiner` is a PE. A tuple alone decides, so router and PEs come to the
same answer without exchanging a word. For a join to be complete and without duplicates, a tuple
must meet every tuple of the other stream at exactly one PE: the PEs where one probes and those
where the other is stored have one in common. Each routing achieves that in its own way, and pays
for it elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from actors.protocol import Actor, Context, Message, Payload
from actors.results import Answers
from actors.source import Fed, Probes, as_probes
from joins.batch import Batch, Schema
from joins.hashing import partition
from joins.indexes.index import Index, codes_of, ranges_of
from joins.indexes.structures import make_window_index
from joins.matches import Matches
from joins.queries.conditions import Condition
from joins.queries.query import JoinQuery, JoinSides
from joins.queries.windows import Window, WindowBounds
from joins.work import NO_WORK, Step, structure_name


@dataclass(frozen=True, slots=True)
class Places:
    """The PEs that each tuple of a batch goes to: those of its group."""

    group: np.ndarray
    """int64, a row per tuple."""
    group_of: np.ndarray
    """int64, a row per PE: its group, -1 for one that is in none."""

    def at(self, pe: int) -> np.ndarray:
        """Return which of the tuples go to *pe*, as a mask."""
        goes: np.ndarray = self.group == self.group_of[pe]
        return goes

    @property
    def reached(self) -> np.ndarray:
        """Which PEs any of the tuples go to, as a mask."""
        groups = max(self.group_of.max(), self.group.max(initial=0)) + 1
        goes_to = np.zeros(groups + 1, np.bool_)  # the last, at -1, is no group
        goes_to[self.group] = True
        reached: np.ndarray = goes_to[self.group_of]
        return reached

    @property
    def everywhere(self) -> bool:
        """Whether all PEs are one group, so that every tuple goes to each of them."""
        return not self.group_of.any()


class Routing(Protocol):
    """The places of tuples among PEs numbered from 0."""

    def stored_at(self, stream: int, batch: Batch) -> Places:
        """Return where the tuples of *batch*, of stream *stream*, are stored."""

    def probes_at(self, stream: int, batch: Batch) -> Places:
        """Return where they look for their matches."""


@dataclass(frozen=True, kw_only=True)
class RoundRobinRouting:
    """Stored once, in turns; probes wherever the stream it is joined with is stored."""

    sides: tuple[range, ...]
    """Per stream the PEs that store it."""

    def stored_at(self, stream: int, batch: Batch) -> Places:
        """Return one PE of the stream's own side, in the order of positions."""
        side = self.sides[stream]
        return Places(side.start + batch.id % len(side), self._numbers)

    def probes_at(self, stream: int, batch: Batch) -> Places:
        """Return the other stream's side; in a self join there is but one."""
        return Places(np.zeros_like(batch.id), self._others[stream])

    @cached_property
    def _numbers(self) -> np.ndarray:
        """Of PEs that are each a group of their own."""
        return np.arange(max(self.sides[0].stop, self.sides[-1].stop))

    @cached_property
    def _others(self) -> list[np.ndarray]:
        """For each stream the groups where the PEs of the other stream's side are one."""
        groups = [np.full(len(self._numbers), -1) for _ in self.sides]
        for group, side in zip(groups, reversed(self.sides), strict=True):
            group[side] = 0
        return groups


@dataclass(frozen=True, kw_only=True)
class ReplicatedRouting:
    """Stored at all of *pes* PEs; probes at one, which the hash of its id chooses."""

    pes: int

    def stored_at(self, stream: int, batch: Batch) -> Places:
        """Return all PEs."""
        return Places(np.zeros_like(batch.id), self._as_one)

    def probes_at(self, stream: int, batch: Batch) -> Places:
        """Return one PE by hash of the tuple's position."""
        return Places(partition(batch.id, self.pes), self._numbers)

    @cached_property
    def _as_one(self) -> np.ndarray:
        return np.zeros(self.pes, np.int64)

    @cached_property
    def _numbers(self) -> np.ndarray:
        return np.arange(self.pes)


@dataclass(frozen=True, kw_only=True)
class GridRouting:
    """PEs in *rows* rows of *columns*, numbered row by row; each stream has one of the two axes.

    A tuple of the first stream is stored at all PEs of a row, one of the second at all of a column;
    a row and a column have one PE in common. In a self join a tuple is stored at a row and probes
    at a column.
    """

    rows: int
    columns: int
    self_join: bool

    def stored_at(self, stream: int, batch: Batch) -> Places:
        """Return a row for the first stream, a column for the second."""
        return self._line(stream, batch)

    def probes_at(self, stream: int, batch: Batch) -> Places:
        """Return where the tuples are stored; in a self join a column."""
        return self._line(1 if self.self_join else stream, batch)

    def _line(self, axis: int, batch: Batch) -> Places:
        """Return one row (axis 0) or column (axis 1) for each tuple, by hash of its position."""
        lines = (self.rows, self.columns)[axis]
        return Places(partition(batch.id, lines), self._lines[axis])

    @cached_property
    def _lines(self) -> np.ndarray:
        """The row and the column of each PE."""
        return np.indices((self.rows, self.columns)).reshape(2, -1)


@dataclass(frozen=True, kw_only=True)
class HashRouting:
    """Stored once and probes once, where the hash of the value compared for equality says.

    In a self join the two may differ: ``T.a1 = T.b2`` stores by b and probes by a.
    """

    pes: int
    """Number of PEs."""
    equalities: tuple[Condition, ...]
    """Per probing stream the condition with operator ``=``."""

    def stored_at(self, stream: int, batch: Batch) -> Places:
        """Return one PE by hash of the value that others compare themselves with."""
        equality = self.equalities[len(self.equalities) - 1 - stream]
        return self._home(batch.fields[equality.stored_field], equality)

    def probes_at(self, stream: int, batch: Batch) -> Places:
        """Return one PE by hash of the value that the tuple compares with others."""
        equality = self.equalities[stream]
        return self._home(batch.fields[equality.probe_field], equality)

    def _home(self, values: np.ndarray, equality: Condition) -> Places:
        keys = values.astype(equality.dtype, copy=False)
        if equality.dtype == "float64":
            keys = keys + 0.0  # -0.0 equals 0.0, but only one of them has its bits
        return Places(partition(keys.view(np.int64), self.pes), self._numbers)

    @cached_property
    def _numbers(self) -> np.ndarray:
        return np.arange(self.pes)


@dataclass(frozen=True, slots=True)
class Share(Payload):
    """The arrivals that concern a PE: to be stored there, to probe there, or both."""

    parts: tuple[Probes, ...]
    """One per stream of the query."""
    horizon: tuple[int, ...]
    """Per stream the least position that any later probe can see."""
    span: tuple[int, int]
    """First and last arrival number of the batch they were part of."""

    bytes_of = ("parts", "horizon")
    rows_of = ("parts",)


class WindowRouter(Actor):
    """Sends each PE the tuples that *routing* wants there.

    A batch that every PE needs whole is sent once, to all that is wired: to the PEs, or to the
    root of a tree that ends in them.

    Port: ``joiner``.
    """

    state = ("_bounds",)

    def __init__(self, *, windows: tuple[Window, ...], routing: Routing) -> None:
        self._bounds = WindowBounds(windows)
        self._routing = routing

    def receive(self, message: Message, context: Context) -> None:
        """Route one `Fed` batch."""
        fed: Fed = message.payload
        parts = as_probes(fed, self._bounds)
        horizon, span = self._bounds.horizon, fed.arrivals.span
        places, everywhere = [], True
        for stream, part in enumerate(parts):
            stored = self._routing.stored_at(stream, part.batch)
            probing = self._routing.probes_at(stream, part.batch)
            places.append((stored, probing))
            everywhere &= stored.everywhere or probing.everywhere
        if everywhere:
            context.send("joiner", Share(parts, horizon, span))
            return
        reached = np.logical_or.reduce([one.reached for both in places for one in both])
        for pe in np.flatnonzero(reached).tolist():
            share = tuple(
                part.take(stored.at(pe) | probing.at(pe))
                for part, (stored, probing) in zip(parts, places, strict=True)
            )
            context.send("joiner", Share(share, horizon, span), to=pe)


class Relay(Actor):
    """An inner node of a tree that spreads messages to many actors, or gathers them from many.

    Port: ``out``.
    """

    state = ()

    def receive(self, message: Message, context: Context) -> None:
        """Send the payload to everybody downstream."""
        context.send("out", message.payload)


@dataclass(kw_only=True, eq=False)
class Joiner(Actor):
    """Stores the tuples that are to be stored at it, and probes with those that probe here.

    Within a message all tuples are stored before any probes; a probe carries the positions it may
    see, so it finds its predecessors and nothing else. What no later probe can see, expires.

    Port: ``sink``.
    """

    query: JoinQuery
    schemas: tuple[Schema, ...]
    routing: Routing
    pe: int
    """Where tuples are stored and probe, and which of the PEs this is."""
    index: str | type[Index]
    options: Mapping[str, Any]
    """Structure of the local windows (`make_window_index`), and what is set of it."""
    pairs: bool

    state = ("_indexes",)

    def __post_init__(self) -> None:
        self._sides = JoinSides(self.query, self.schemas)
        self._index = structure_name(self.index)
        self._indexes: list[Index] = [
            make_window_index(self.index, conditions, **self.options)
            for conditions in self._sides.storing
        ]
        # An index of the caller's own need not say.
        self._searches_all = any(getattr(one, "searches_all", False) for one in self._indexes)

    def receive(self, message: Message, context: Context) -> None:
        """Store, probe, answer and expire, in steps where a message is longer than the window."""
        share: Share = message.payload
        first, *others = self._cut(share)
        found = self._join(first.parts, context)
        for step in others:
            self._expire(step.horizon, context)
            found += self._join(step.parts, context)
        if found:
            matches, born_ns = zip(*found, strict=True)
            context.send("sink", Answers(matches, born_ns, share.span))
        self._expire(share.horizon, context)

    def _cut(self, share: Share) -> list[Share]:
        """Return *share* in steps, where its tuples would else search far more than they see."""
        if not self._searches_all:
            return [share]
        stored = [
            self.routing.stored_at(stream, part.batch).at(self.pe).sum()
            for stream, part in enumerate(share.parts)
        ]
        return cut_by_window(share, int(sum(stored)))

    def _join(
        self, parts: tuple[Probes, ...], context: Context
    ) -> list[tuple[Matches, np.ndarray]]:
        """Store and probe; return the matches by stream, and when their tuples came into being."""
        for stream, part in enumerate(parts):
            batch, index = part.batch, self._indexes[stream]
            stored = self.routing.stored_at(stream, batch).at(self.pe)
            ids = batch.id[stored]
            work = index.insert(codes_of(self._sides.storing[stream], batch, stored), ids)
            context.charge(work, Step(f"{self._index}.insert", len(ids), len(index)))
        matches = []
        for stream, part in enumerate(parts):
            rows = self.routing.probes_at(stream, part.batch).at(self.pe)
            if rows.any():
                batch, conditions = part.batch, self._sides.probing[stream]
                ranges = ranges_of(conditions, batch, part.start[rows], part.stop[rows], rows)
                index = self._indexes[self._sides.stored_stream[stream]]
                found = index.probe(ranges, enumerate=self.pairs)
                step = Step(f"{self._index}.probe", len(found.count), len(index))
                context.charge(found.work, step)
                matches.append((found.of(stream, batch.id[rows]), part.born_ns[rows]))
        return matches

    def _expire(self, horizon: tuple[int, ...], context: Context) -> None:
        for index, before in zip(self._indexes, horizon, strict=True):
            expire(context, self._index, index, before)


_LEAST_STORED = 1024
"""Tuples that a step stores at the least: what it costs by itself is paid once in so many."""

_STEPS_A_WINDOW = 4
"""With steps as long as the window, twice what a tuple sees is stored: chain indexes took a third
longer, in windows of 3,000."""


def cut_by_window(share: Share, stored: int) -> list[Share]:
    """Return a *share* longer than a window as shorter steps, each with the *horizon* before it.

    All of a step is stored before its tuples probe, *stored* tuples in the whole share. Messages
    grow while a joiner is behind, to many times the tuples of a short window; an index that
    searches all that is stored would then search far more than any tuple sees.
    """
    parts = share.parts
    seen = max(int((part.stop - part.start).max(initial=0)) for part in parts)
    length = max([int(np.ptp(part.batch.id)) for part in parts if len(part)], default=0)
    steps = min(_STEPS_A_WINDOW * length // max(seen, 1), stored // _LEAST_STORED)
    filling = not any(part.start[-1:].any() for part in parts)  # no tuple has left a window yet
    if filling or length <= seen or steps < 2:
        return [share]
    first, last = share.span
    cuts = np.linspace(first, last + 1, steps, endpoint=False, dtype=np.int64)[1:]
    # How many tuples came before each: of its own stream, and of the other.
    orders = [part.batch.id if len(parts) == 1 else part.batch.id + part.stop for part in parts]
    shares, begins = [], [0] * len(parts)
    places = [[*np.searchsorted(order, cuts).tolist(), len(order)] for order in orders]
    for ends in zip(*places, strict=True):
        step = [part.slice(*rows) for part, *rows in zip(parts, begins, ends, strict=True)]
        left = zip(parts[::-1], begins[::-1], share.horizon, strict=True)
        horizon = (
            int(part.start[begin]) if begin < len(part) else beyond for part, begin, beyond in left
        )
        shares.append(Share(tuple(step), tuple(horizon), share.span))
        begins = list(ends)
    return shares


def expire(context: Context, name: str, index: Index, horizon: int) -> None:
    """Drop positions below the *horizon* from an *index*, and charge it if any were there."""
    before = len(index)
    work = index.expire(horizon)
    left = len(index)
    if left < before or work != NO_WORK:
        context.charge(work, Step(f"{name}.expire", before - left, left))
