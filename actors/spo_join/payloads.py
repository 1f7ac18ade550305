"""What SPO-Join's operators send each other (the arrows of Figure 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.probes import Probes
from actors.protocol import HEADER_BYTES, NO_SPAN
from actors.spo_join.rows import Rows


@dataclass(frozen=True, slots=True)
class Routed:
    """Arrivals of one merge epoch, one `Probes` per stream (router to joiner PEs).

    Attributes
    ----------
    number
        Counts the router's messages; the provenance of everything computed from this one.
    epoch
        The merge epoch the tuples belong to.
    parts
        One per stream of the query.
    span
        First and last arrival number.
    """

    number: int
    epoch: int
    parts: tuple[Probes, ...]
    span: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + sum(part.nbytes for part in self.parts)

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return sum(len(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class MergeFlag:
    """The flag tuple: *epoch* ends here, with *ends* the next position of each stream.

    It travels from the router in line with the tuples, so that no tuple overtakes it. *last* is the
    arrival number of the epoch's last tuple.
    """

    epoch: int
    ends: tuple[int, ...]
    last: int

    nbytes = HEADER_BYTES
    rows = 0
    span = NO_SPAN


@dataclass(frozen=True, slots=True)
class Partial:
    """What one predicate found for the tuples that one logical PE is responsible for.

    Attributes
    ----------
    number
        The `Routed` message they come from.
    share
        Which share of that message: the shares of one number are alike in every predicate.
    predicate
        Position of the predicate in the query.
    parts
        One per probing stream.
    span
        Of the `Routed` message.
    """

    number: int
    share: int
    predicate: int
    parts: tuple[Rows, ...]
    span: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + sum(part.nbytes for part in self.parts)

    @property
    def rows(self) -> int:
        """Number of probing tuples."""
        return sum(len(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class SortedRun:
    """One field of one stream's epoch in sorted order, as ids (predicate PE to permutation PE)."""

    epoch: int
    stream: int
    predicate: int
    first: int
    last: int
    ids: np.ndarray

    span = NO_SPAN

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + self.ids.nbytes

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Offsets:
    """One predicate's sorted keys of an epoch, and where one stream's fall among the other's.

    Attributes
    ----------
    epoch, predicate
        What they belong to.
    keys
        Per stored stream its sorted keys.
    offsets
        Algorithm 3's array: for every key of stream 0 its place among the keys of stream 1; None in
        a self join.
    """

    epoch: int
    predicate: int
    keys: tuple[np.ndarray, ...]
    offsets: np.ndarray | None

    span = NO_SPAN

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        offsets = 0 if self.offsets is None else self.offsets.nbytes
        return HEADER_BYTES + offsets + sum(keys.nbytes for keys in self.keys)

    @property
    def rows(self) -> int:
        """Number of keys."""
        return sum(len(keys) for keys in self.keys)


@dataclass(frozen=True, slots=True)
class Permutations:
    """One stream's permutation arrays of an epoch (permutation PE to PO-Join PE).

    Attributes
    ----------
    epoch, stream
        What they belong to.
    first
        Position of the epoch's first tuple in its stream.
    last
        Arrival number of the epoch's last tuple.
    lead_ids
        int64, the tuples in the order of the first predicate's field.
    arrays
        Per further predicate, for each place in its field's order the place in the lead's.
    """

    epoch: int
    stream: int
    first: int
    last: int
    lead_ids: np.ndarray
    arrays: tuple[np.ndarray, ...]

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return HEADER_BYTES + self.lead_ids.nbytes + sum(array.nbytes for array in self.arrays)

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return len(self.lead_ids)

    @property
    def span(self) -> tuple[int, int]:
        """The epoch's last tuple: so far the receiver's count then reaches."""
        return self.last, self.last


@dataclass(frozen=True, slots=True)
class MergedCount:
    """How many tuples of one stream were merged into another PO-Join PE's segments (Figure 6 A).

    *last* is the arrival number of the epoch's last tuple.
    """

    stream: int
    tuples: int
    last: int

    nbytes = HEADER_BYTES
    rows = 0

    @property
    def span(self) -> tuple[int, int]:
        """The last tuple merged: the trace then shows how far behind a PE's count is."""
        return self.last, self.last


@dataclass(frozen=True, slots=True)
class WindowCount:
    """How many tuples of each stream the first PO-Join PE has evaluated (Figure 6 B).

    *last* is the arrival number of the latest.
    """

    counts: tuple[int, ...]
    last: int

    nbytes = HEADER_BYTES
    rows = 0

    @property
    def span(self) -> tuple[int, int]:
        """The latest tuple counted: the trace then shows how far behind a PE's count is."""
        return self.last, self.last


@dataclass(frozen=True, slots=True)
class SyncRequest:
    """PO-Join PE number *pe* asks the cache for the count."""

    pe: int

    nbytes = HEADER_BYTES
    rows = 0
    span = NO_SPAN
