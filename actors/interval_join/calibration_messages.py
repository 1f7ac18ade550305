"""What emitters and master send each other while HP-OIJ is calibrated."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.interval_join.distribution import Assignment
from actors.protocol import HEADER_BYTES, NO_SPAN

_REPLICA_BYTES = 2


@dataclass(frozen=True, slots=True)
class KeyCounts:
    """How many tuples of each key an emitter saw in one round of measuring (emitter to master)."""

    round: int
    keys: np.ndarray
    counts: np.ndarray

    span = NO_SPAN

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + self.keys.nbytes + self.counts.nbytes

    @property
    def rows(self) -> int:
        """Number of keys."""
        return len(self.keys)


@dataclass(frozen=True, slots=True)
class Assigned:
    """The replicas of each key from now on, its home alone where none are named."""

    assignment: Assignment

    span = NO_SPAN

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        replicas = sum(len(among) for among in self.assignment.values())
        return HEADER_BYTES + 8 * len(self.assignment) + _REPLICA_BYTES * replicas

    @property
    def rows(self) -> int:
        """Number of keys."""
        return len(self.assignment)


@dataclass(frozen=True, slots=True)
class Reached:
    """An emitter has taken a step of the change, at this turn or time (emitter to master)."""

    value: int

    span = NO_SPAN
    nbytes = HEADER_BYTES + 8
    rows = 0


@dataclass(frozen=True, slots=True)
class AllReached:
    """All emitters have taken the step, the last at this turn or time (master to emitters)."""

    value: int

    span = NO_SPAN
    nbytes = HEADER_BYTES + 8
    rows = 0
