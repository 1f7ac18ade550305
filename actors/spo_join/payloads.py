"""What SPO-Join's operators send each other (the arrows of Figure 3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.protocol import NO_SPAN
from joins.batch import Batch

_BOUNDS_BYTES = 16
_HEADER_BYTES = 32


@dataclass(frozen=True, slots=True)
class Probes:
    """Tuples of one stream, each with the window it sees in the stream it probes.

    Attributes
    ----------
    batch
        The tuples; they are stored too.
    start, stop
        int64, positions in the probed stream that each tuple sees, *stop* exclusive.
    born_ns
        int64, when each tuple came into being, virtual nanoseconds.
    """

    batch: Batch
    start: np.ndarray
    stop: np.ndarray
    born_ns: np.ndarray

    def __len__(self) -> int:
        return len(self.batch)


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
        return _HEADER_BYTES + sum(
            part.batch.nbytes + _BOUNDS_BYTES * len(part) for part in self.parts
        )

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return sum(len(part) for part in self.parts)


@dataclass(frozen=True, slots=True)
class MergeFlag:
    """The flag tuple: *epoch* ends here, with *ends* the next position of each stream.

    It travels from the router in line with the tuples, so that no tuple overtakes it.
    """

    epoch: int
    ends: tuple[int, ...]

    nbytes = _HEADER_BYTES
    rows = 0
    span = NO_SPAN


@dataclass(frozen=True, slots=True)
class BitRows:
    """What some probes of one stream found in the mutable component, one bit array each.

    Attributes
    ----------
    ids, born_ns
        int64, the probing tuples.
    base
        Position in the probed stream that bit 0 stands for.
    words
        uint64, shape (probes, words).
    """

    ids: np.ndarray
    born_ns: np.ndarray
    base: int
    words: np.ndarray


@dataclass(frozen=True, slots=True)
class PartialBits:
    """One predicate's bit arrays for the tuples that one logical PE is responsible for.

    Attributes
    ----------
    number
        The `Routed` message they come from.
    predicate
        Position of the predicate in the query.
    parts
        One per probing stream.
    span
        Of the `Routed` message.
    """

    number: int
    predicate: int
    parts: tuple[BitRows, ...]
    span: tuple[int, int]

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return _HEADER_BYTES + sum(8 * len(part.ids) + part.words.nbytes for part in self.parts)

    @property
    def rows(self) -> int:
        """Number of bit arrays."""
        return sum(len(part.ids) for part in self.parts)


@dataclass(frozen=True, slots=True)
class SortedRun:
    """One field of one stream's epoch in sorted order, as ids (predicate PE to permutation PE)."""

    epoch: int
    stream: int
    predicate: int
    first: int
    ids: np.ndarray

    span = NO_SPAN

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return _HEADER_BYTES + self.ids.nbytes

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
        return _HEADER_BYTES + offsets + sum(keys.nbytes for keys in self.keys)

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
    lead_ids
        int64, the tuples in the order of the first predicate's field.
    arrays
        Per further predicate, for each place in its field's order the place in the lead's.
    """

    epoch: int
    stream: int
    first: int
    lead_ids: np.ndarray
    arrays: tuple[np.ndarray, ...]

    span = NO_SPAN

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return _HEADER_BYTES + self.lead_ids.nbytes + sum(array.nbytes for array in self.arrays)

    @property
    def rows(self) -> int:
        """Number of tuples."""
        return len(self.lead_ids)
