"""What sites ship to each other, and sources to their sites.

Every message of a one-way join names its step and the execution interval it belongs to, as the time
*tick* at which that ends. The last one of a step and interval is *final*.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.protocol import HEADER_BYTES, NO_SPAN
from joins.batch import Batch
from joins.semijoins.bloom_filter import BloomFilter
from joins.semijoins.distinct_values import ValueChanges
from joins.semijoins.joined import Joined


@dataclass(frozen=True, slots=True)
class NewTuples:
    """B_i: the tuples that came to a site in one execution interval, none or more.

    Attributes
    ----------
    tick
        End of the interval, virtual nanoseconds.
    batch
        The tuples.
    seq, born_ns
        int64, arrival number and virtual birth of each.
    """

    tick: int
    batch: Batch
    seq: np.ndarray
    born_ns: np.ndarray

    def take(self, rows: np.ndarray) -> NewTuples:
        """Return the given rows (a mask), copied."""
        return NewTuples(self.tick, self.batch.take(rows), self.seq[rows], self.born_ns[rows])

    @property
    def nbytes(self) -> int:
        """Size in bytes; a source is at its site, so that they cross no wire."""
        return self.batch.nbytes

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return len(self.batch)

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival number."""
        return (int(self.seq[0]), int(self.seq[-1])) if len(self.seq) else NO_SPAN


@dataclass(frozen=True, slots=True, kw_only=True)
class Shipment:
    """What is common to the messages of a one-way join.

    Attributes
    ----------
    step
        Number of the one-way join in the plan.
    tick
        End of the execution interval it belongs to, virtual nanoseconds.
    final
        Whether the step ships no more for this interval in this direction.
    """

    step: int
    tick: int
    final: bool = True

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES

    @property
    def rows(self) -> int:
        """Number of tuples, full or partial."""
        return 0

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival number of the newest tuples, where those are shipped."""
        return NO_SPAN


@dataclass(frozen=True, slots=True, kw_only=True)
class Combinations(Shipment):
    """Full tuples of the streams joined so far: B_1, or B'_1 where a semijoin reduced it."""

    joined: Joined

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + self.joined.nbytes

    @property
    def rows(self) -> int:
        """Number of combinations."""
        return len(self.joined)

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival number of the newest tuples."""
        seq = self.joined.seq
        return (int(seq.min()), int(seq.max())) if len(seq) else NO_SPAN


@dataclass(frozen=True, slots=True, kw_only=True)
class PartialTuples(Shipment):
    """Distinct join attribute values, a column per attribute: K_1, K'_1 or ΔV'_2."""

    values: tuple[np.ndarray, ...]

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + sum(column.nbytes for column in self.values)

    @property
    def rows(self) -> int:
        """Number of values."""
        return len(self.values[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class FullTuples(Shipment):
    """Tuples of the next stream: B_2, or ΔW'_2."""

    batch: Batch

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + self.batch.nbytes

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return len(self.batch)


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowUpdate(Shipment):
    """What happened to the next stream's window, for whoever keeps a part of it.

    Attributes
    ----------
    expired
        k, tuples removed that had been shipped (Algorithm 8).
    values
        v_J and v_C (Algorithm 9).
    tuples
        s_F, new tuples of values that were shipped before.
    keep_from
        Positions below it are gone.
    ids, ts
        int64, positions and event times of all new tuples, for count windows only: how many tuples
        precede a probing one cannot be told from a part of the window, which the paper's
        section 3.3 overlooks.
    """

    expired: int = 0
    values: ValueChanges | None = None
    tuples: Batch | None = None
    keep_from: int
    ids: np.ndarray
    ts: np.ndarray

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes; positions are consecutive, so that they need no bytes."""
        values = self.values.nbytes if self.values else 0
        tuples = self.tuples.nbytes if self.tuples else 0
        return HEADER_BYTES + values + tuples + self.ts.nbytes

    @property
    def rows(self) -> int:
        """Number of tuples and values."""
        values = len(self.values.counts) if self.values else 0
        return values + (len(self.tuples) if self.tuples else 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter(Shipment):
    """A Bloom filter of join attribute values, in place of partial tuples.

    Attributes
    ----------
    bloom
        The filter; None when there is no value.
    values
        How many values are in it.
    """

    bloom: BloomFilter | None
    values: int

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + (self.bloom.nbytes if self.bloom else 0)

    @property
    def rows(self) -> int:
        """Number of values."""
        return self.values
