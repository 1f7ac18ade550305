"""Adaptive re-planning: what sites tell of their streams, and what a coordinator decides from it.

The stream semijoin paper leaves it to future work. Execution intervals are counted, so many to an
epoch. From what all sites saw in one epoch the coordinator decides by which plan they answer the
tuples of the next but one, so that a decision has an epoch's time to arrive. The sites wait for one
that takes longer: that costs time, never results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from actors.protocol import HEADER_BYTES, NO_SPAN
from actors.semijoins.part import OneWayStep
from joins.batch import Batch

LEAD = 2
"""Epochs from what was seen to the one that is planned by it."""

SAMPLE_ROWS = 1_024
"""Most tuples of a stream that its site shows the coordinator in an epoch."""

_FIELD_BYTES, _TIMES_BYTES = 8, 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """What a site saw of its stream in an epoch.

    Attributes
    ----------
    epoch, stream
        Number of the epoch, and position of the stream.
    tuples
        Tuples that came in it.
    span_ns
        Virtual time that it took.
    sample
        Join fields of the latest tuples in the window, at most `SAMPLE_ROWS`.
    """

    epoch: int
    stream: int
    tuples: int
    span_ns: int
    sample: Batch

    span = NO_SPAN  # its tuples are shown, not joined

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return int(observed_bytes(len(self.sample), len(self.sample.fields)))

    @property
    def rows(self) -> int:
        """Number of tuples shown."""
        return len(self.sample)


def observed_bytes(rows: float, fields: int) -> float:
    """Return the size of what a site saw: join fields, and the first and the last event time."""
    return HEADER_BYTES + rows * fields * _FIELD_BYTES + _TIMES_BYTES


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The plan of an epoch, as people write it."""

    epoch: int
    plan: str

    rows = 0
    span = NO_SPAN

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + len(self.plan)


class PlanBook(Protocol):
    """What plans there are, and when another is better."""

    def steps(self, plan: str) -> Sequence[OneWayStep]:
        """Return the one-way joins of a plan, numbered from 0."""

    def better(self, plan: str, seen: Sequence[Observed]) -> str:
        """Return the plan to go over to from *plan*, or *plan* itself.

        *seen* is what was seen of each stream in one epoch, in the order of the query.
        """


@dataclass(frozen=True, kw_only=True)
class Replanning:
    """How plans change.

    Attributes
    ----------
    book
        The plans.
    plan
        The first one.
    intervals
        Execution intervals in an epoch.
    """

    book: PlanBook
    plan: str
    intervals: int
