"""Where tuples go: at which PEs each one is stored, and at which ones it probes.

A tuple alone decides, so the router and the PEs come to the same answer without exchanging a word.
For a join to be complete and without duplicates, a tuple must meet every tuple of the other stream
at exactly one PE: the PEs where one probes and those where the other is stored have one in common.
Each routing achieves that in its own way, and pays for it elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from joins.batch import Batch
from joins.hashing import partition
from joins.queries.conditions import Condition


@dataclass(frozen=True, slots=True)
class Places:
    """The PEs that each tuple of a batch goes to: those of its group.

    Attributes
    ----------
    group
        int64, a row per tuple.
    members
        bool, shape (groups, PEs): which PEs are in each group.
    """

    group: np.ndarray
    members: np.ndarray

    def at(self, pe: int) -> np.ndarray:
        """Return which of the tuples go to *pe*, as a mask."""
        here: np.ndarray = self.members[:, pe][self.group]
        return here

    @property
    def copies(self) -> np.ndarray:
        """To how many PEs each tuple goes, int64."""
        copies: np.ndarray = self.members.sum(axis=1)[self.group]
        return copies


def at_all(batch: Batch, members: np.ndarray) -> Places:
    """Return places where every tuple of *batch* goes to the PEs flagged in *members*."""
    return Places(np.zeros(len(batch), np.int64), members[None, :])


class Routing(Protocol):
    """The places of tuples among PEs numbered from 0."""

    def stored_at(self, stream: int, batch: Batch) -> Places:
        """Return where the tuples of *batch*, of stream *stream*, are stored."""

    def probes_at(self, stream: int, batch: Batch) -> Places:
        """Return where they look for their matches."""


@dataclass(frozen=True, kw_only=True)
class RoundRobin:
    """Stored once, in turns; probes wherever the stream it is joined with is stored.

    Attributes
    ----------
    sides
        Per stream the PEs that store it.
    """

    sides: tuple[range, ...]

    @property
    def _pes(self) -> int:
        return max(self.sides[0].stop, self.sides[-1].stop)

    def stored_at(self, stream: int, batch: Batch) -> Places:
        """Return one PE of the stream's own side, in the order of positions."""
        side = self.sides[stream]
        return Places(batch.id % len(side), np.eye(self._pes, dtype=np.bool_)[side])

    def probes_at(self, stream: int, batch: Batch) -> Places:
        """Return the other stream's side; in a self join there is but one."""
        other = self.sides[len(self.sides) - 1 - stream]
        return at_all(batch, np.isin(np.arange(self._pes), other))


@dataclass(frozen=True, kw_only=True)
class Replicated:
    """Stored at all of *pes* PEs; probes at one, which the hash of its id chooses."""

    pes: int

    def stored_at(self, stream: int, batch: Batch) -> Places:
        """Return all PEs."""
        return at_all(batch, np.ones(self.pes, np.bool_))

    def probes_at(self, stream: int, batch: Batch) -> Places:
        """Return one PE by hash of the tuple's position."""
        return Places(partition(batch.id, self.pes), np.eye(self.pes, dtype=np.bool_))


@dataclass(frozen=True, kw_only=True)
class Grid:
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
        line_of = np.indices((self.rows, self.columns))[axis].ravel()
        return Places(partition(batch.id, lines), np.arange(lines)[:, None] == line_of)


@dataclass(frozen=True, kw_only=True)
class ByKey:
    """Stored once and probes once, where the hash of the value compared for equality says.

    In a self join the two may differ: ``T.a1 = T.b2`` stores by b and probes by a.

    Attributes
    ----------
    pes
        Number of PEs.
    equalities
        Per probing stream the condition with operator ``=``.
    """

    pes: int
    equalities: tuple[Condition, ...]

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
        return Places(partition(keys.view(np.int64), self.pes), np.eye(self.pes, dtype=np.bool_))
