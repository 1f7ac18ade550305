"""Where tuples go: at which PEs each one is stored, and at which ones it probes.

A tuple alone decides, so the router and the PEs come to the same answer without a word between
them. For a join to be complete and without duplicates every tuple must meet every tuple of the
other stream at exactly one PE; each of these does so in its own way, and pays for it elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from joins.batch import Batch
from joins.hashing import partition
from joins.queries.conditions import Condition

Places = np.ndarray | range
"""The PE of each tuple of a batch (int64), or the PEs that all of its tuples go to."""


class Routing(Protocol):
    """The places of tuples among PEs numbered from 0."""

    def stored_at(self, stream: int, batch: Batch) -> Places:
        """Return where the tuples of *batch*, of stream *stream*, are stored."""

    def probes_at(self, stream: int, batch: Batch) -> Places:
        """Return where they look for their matches."""


def here(places: Places, pe: int, tuples: int) -> np.ndarray:
    """Return which of *tuples* tuples with these *places* go to *pe*, as a mask."""
    if isinstance(places, range):
        return np.full(tuples, pe in places)
    return places == pe


@dataclass(frozen=True, kw_only=True)
class RoundRobin:
    """Stored once, in turns; probes wherever the stream it is joined with is stored.

    Attributes
    ----------
    sides
        Per stream the PEs that store it.
    """

    sides: tuple[range, ...]

    def stored_at(self, stream: int, batch: Batch) -> Places:
        """Return one PE of the stream's own side, in the order of positions."""
        side = self.sides[stream]
        return side.start + batch.id % len(side)

    def probes_at(self, stream: int, batch: Batch) -> Places:
        """Return the other stream's side; in a self join there is but one."""
        return self.sides[len(self.sides) - 1 - stream]


@dataclass(frozen=True, kw_only=True)
class Replicated:
    """Stored at all of *pes* PEs; probes at the one that the hash of its id says."""

    pes: int

    def stored_at(self, stream: int, batch: Batch) -> Places:
        """Return all PEs."""
        return range(self.pes)

    def probes_at(self, stream: int, batch: Batch) -> Places:
        """Return one PE by hash of the tuple's position."""
        return partition(batch.id, self.pes)


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

    def _home(self, values: np.ndarray, equality: Condition) -> np.ndarray:
        keys = values.astype(equality.dtype, copy=False)
        if equality.dtype == "float64":
            keys = keys + 0.0  # -0.0 equals 0.0, but only one of them has its bits
        return partition(keys.view(np.int64), self.pes)
