"""What the operators of an interval join send each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from actors.protocol import HEADER_BYTES, NO_SPAN
from joins.batch import Batch

BEGINNING = int(np.iinfo(np.int64).min)
END = int(np.iinfo(np.int64).max)
"""Watermarks before anything is known, and after the last tuple."""

_REPLICA_BYTES = 2


@dataclass(frozen=True, slots=True)
class Rows:
    """Tuples of one stream with what is known of each.

    Attributes
    ----------
    batch
        The tuples.
    born_ns
        int64, when each came into being, virtual nanoseconds.
    seq
        int64, its arrival number.
    """

    batch: Batch
    born_ns: np.ndarray
    seq: np.ndarray

    def __len__(self) -> int:
        return len(self.seq)

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival number."""
        return (int(self.seq.min()), int(self.seq.max())) if len(self.seq) else NO_SPAN

    def slice(self, start: int, stop: int) -> Rows:
        """Return rows *start* to *stop* (exclusive) as views."""
        return Rows(self.batch.slice(start, stop), self.born_ns[start:stop], self.seq[start:stop])

    def take(self, rows: np.ndarray) -> Rows:
        """Return the given *rows*, copied."""
        return Rows(self.batch.take(rows), self.born_ns[rows], self.seq[rows])

    @classmethod
    def concat(cls, parts: Sequence[Rows]) -> Rows:
        """Join *parts* (at least one) end to end."""
        first = parts[0]
        parts = [part for part in parts if len(part)]
        if len(parts) <= 1:
            return parts[0] if parts else first
        return cls(
            Batch.concat([part.batch for part in parts]),
            np.concatenate([part.born_ns for part in parts]),
            np.concatenate([part.seq for part in parts]),
        )


@dataclass(frozen=True, slots=True)
class Share:
    """One source's share of a run of arrivals (source to emitter); it may be empty.

    Attributes
    ----------
    data
        The tuples.
    watermark
        No tuple of any source that comes after these arrivals is older, unless it is late.
    last
        Whether nothing comes after them.
    """

    data: Rows
    watermark: int
    last: bool

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + self.data.batch.nbytes

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return len(self.data)

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival number."""
        return self.data.span


@dataclass(frozen=True, slots=True)
class Tuples:
    """A batch of tuples, or a punctuation: a batch of none (emitter to replica).

    An emitter takes a turn for each message of its source, and each replica hears from it in each.

    Attributes
    ----------
    channel
        The emitter's number.
    stream
        Position in the query of the stream the tuples are of.
    data
        The tuples.
    targets
        The replicas that they are sent to; the first is the home of their keys.
    keepers
        How many of these, from the first on, may store them.
    ends
        The replicas for which this is the emitter's last message of its turn.
    watermark
        No tuple in a later turn of this emitter is older, unless it is late. It covers the partial
        batches that the emitter holds back.
    key_watermark
        The same of tuples of this batch's only key, where each batch has one; it holds from this
        batch on, within the turn too.
    """

    channel: int
    stream: int
    data: Rows
    targets: tuple[int, ...]
    keepers: int
    ends: tuple[int, ...]
    watermark: int
    key_watermark: int | None = None

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        replicas = len(self.targets) + len(self.ends)
        return HEADER_BYTES + _REPLICA_BYTES * replicas + self.data.batch.nbytes

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return len(self.data)

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival number."""
        return self.data.span
