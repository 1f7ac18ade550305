"""What kernels of window joins read: arrivals, a row per tuple, and the keys of the windows.

Rows are in arrival order. A window's keys are stored by position, for structures that must find
what expires or scan it all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from joins.arrivals import Arrivals
from joins.batch import Schema
from joins.codes import GREATEST, LEAST
from joins.indexes.index import as_column, codes_of
from joins.machine.compiling import inlined
from joins.queries.query import JoinQuery, JoinSides
from joins.queries.windows import WindowBounds
from joins.state import Stateful, storable

_FIRST_KEYS = 64


class KernelRows(NamedTuple):
    """Columns of int64, one row per arriving tuple; keys are codes (`joins.indexes.index`)."""

    side: np.ndarray
    """The stream it is of, 0 or 1; all 0 in a self join."""
    position: np.ndarray
    """Its position in its stream; consecutive within a side."""
    key: np.ndarray
    """What it is stored under."""
    low: np.ndarray
    high: np.ndarray
    """The keys it looks for in the other stream (a self join: its own), both ends included; low >
    high is empty."""
    start: np.ndarray
    stop: np.ndarray
    """The positions there that it sees: *start* to *stop* - 1. Neither descends within a side, and
    *stop* is not beyond what has arrived."""

    def part(self, begin: int, end: int | None) -> KernelRows:
        """Return rows *begin* to *end* - 1, or all from *begin* on, as views."""
        return KernelRows(*(values[begin:end] for values in self))


@inlined
def probed_side(sides: int, side: int) -> int:
    """Return the side whose window a tuple of *side* sees: the other one, but in a self join."""
    return side if sides == 1 else 1 - side


def make_rows(**columns: np.ndarray) -> KernelRows:
    """Return arrivals as rows, given all columns of `KernelRows`.

    Raise :exc:`TypeError` when a column is not int64, :exc:`ValueError` when positions or bounds do
    not ascend within a side.
    """
    n = len(columns["key"])
    rows = KernelRows(**{name: as_column(columns[name], np.int64, name, n) for name in columns})
    for stream in (0, 1):
        mine = np.flatnonzero(rows.side == stream)
        if (np.diff(rows.position[mine]) != 1).any():
            raise ValueError(f"side {stream}: positions are not consecutive")
        for name in ("start", "stop"):
            bounds = getattr(rows, name)[mine]
            if (np.diff(bounds) < 0).any():
                at = int((np.diff(bounds) < 0).argmax()) + 1
                raise ValueError(
                    f"row {mine[at]}, side {stream}: {name} {bounds[at]} follows "
                    f"{bounds[at - 1]}; windows only slide forward"
                )
    return rows


class RowMaker(Stateful):
    """Turns the arrivals of a query into rows, chunk by chunk.

    The rows are those of one predicate, the first that is a range of keys. The join has
    to check the others.
    """

    state = ("_bounds", "_last")

    def __init__(self, query: JoinQuery, schemas: Sequence[Schema]) -> None:
        self._last = -1
        predicates = enumerate(query.predicates)
        ranges = [place for place, one in predicates if not one.operator.negated]
        self.indexed = ranges[0] if ranges else None
        """Which predicate; None when all of them are ``!=``: the rows then look for every key."""
        self._sides = JoinSides(query, schemas, [self.indexed or 0])
        self._bounds = WindowBounds(query.windows)

    def make(self, arrivals: Arrivals) -> KernelRows:
        """Return the rows of the next *arrivals*.

        Raise :exc:`ValueError` for a key that is NaN, and for arrivals that do not follow those
        before at once: the indexes of a window join find tuples by how many came before, and would
        take one for another.
        """
        first, last = arrivals.span
        if first != self._last + 1:
            raise ValueError(
                f"arrival {first} follows {self._last}; a window join's indexes need all of them, "
                "in order"
            )
        self._last = last
        parts = arrivals.parts
        bounds = self._bounds.advance(arrivals)
        columns = []
        for stream, (part, (start, stop)) in enumerate(zip(parts, bounds, strict=True)):
            (probing,), (storing,) = self._sides.probing[stream], self._sides.storing[stream]
            if self.indexed is None:
                low, high = np.full(len(part), LEAST), np.full(len(part), GREATEST)
            else:
                low, high = probing.bounds(part.fields[probing.probe_field])
            (key,) = codes_of([storing], part)
            side = np.full(len(part), stream)
            columns.append((side, part.id, key, low, high, start, stop))
        order = np.argsort(np.concatenate(arrivals.seq), kind="stable")
        return KernelRows(*(np.concatenate(parts)[order] for parts in zip(*columns, strict=True)))

    @property
    def horizon(self) -> tuple[int, ...]:
        """Per side the least position that any later arrival can see."""
        return self._bounds.horizon

    @property
    def overdue(self) -> tuple[int, ...]:
        """Per side the position below which to expire it, though no row shows that it has."""
        return self._bounds.overdue


SPAN = np.dtype([("first", "i8"), ("end", "i8")])
"""Positions of a window, or rows of a batch: the first, and the one after the last."""


@storable
class Rings(NamedTuple):
    """Per side a ring of keys: that of position p is at ``keys[side, p & (length - 1)]``."""

    keys: np.ndarray
    """int64, shape (sides, length); the length is a power of two."""
    spans: np.ndarray
    """`SPAN`, one for each side: the positions whose keys are there."""


class WindowKeys(Stateful):
    """The keys of each side's window by position, as many as there are."""

    state = ("rings",)

    def __init__(self, sides: int) -> None:
        self.rings = Rings(np.zeros((sides, _FIRST_KEYS), np.int64), np.zeros(sides, SPAN))
        """What kernels read and write."""

    def append(self, side: int, keys: np.ndarray) -> None:
        """Store the keys of the next positions of a side."""
        first, begin = self.rings.spans[side].tolist()
        end = begin + len(keys)
        while end - first > self.rings.keys.shape[1]:
            self.grow()
        ring = self.rings.keys[side]
        ring[np.arange(begin, end) & (len(ring) - 1)] = keys
        self.rings.spans["end"][side] = end

    def grow(self) -> None:
        """Double the rings."""
        keys, spans = self.rings
        length = keys.shape[1]
        grown = np.zeros((len(keys), 2 * length), np.int64)
        for side, (first, end) in enumerate(spans.tolist()):
            positions = np.arange(first, end)
            grown[side, positions & (2 * length - 1)] = keys[side, positions & (length - 1)]
        self.rings = Rings(grown, spans)


@inlined
def key_at(rings: Rings, side: int, position: int) -> int:
    """Return the key of a position."""
    return int(rings.keys[side, position & (rings.keys.shape[1] - 1)])


@inlined
def is_full(rings: Rings, side: int) -> bool:
    """Return whether a side has no room for another key."""
    span = rings.spans[side]
    return bool(span["end"] - span["first"] == rings.keys.shape[1])


@inlined
def append_key(rings: Rings, side: int, key: int, position: int) -> None:
    """Store the key of a side's next position, or of its first one, which may be any."""
    span = rings.spans[side]
    if span.end == 0 and span.first == 0:
        span.first = position
    rings.keys[side, position & (rings.keys.shape[1] - 1)] = key
    span.end = position + 1
