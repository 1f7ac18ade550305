"""Tuples of all streams in the order in which they arrive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from joins.batch import Batch
from joins.machine.compiling import kernel, read_only
from joins.state import storable


@storable
@dataclass(frozen=True, slots=True)
class Arrivals:
    """A run of consecutive arrivals."""

    parts: tuple[Batch, ...]
    """Per stream of the query its tuples, in stream order; may be empty."""
    seq: tuple[np.ndarray, ...]
    """Per stream the arrival numbers of its tuples, int64, ascending; over all streams they are
    consecutive."""

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes: the tuples, and the arrival number of each."""
        nbytes = 0
        for part, seq in zip(self.parts, self.seq, strict=True):
            nbytes += part.nbytes + seq.nbytes
        return nbytes

    def __len__(self) -> int:
        return sum(map(len, self.seq))

    @property
    def span(self) -> tuple[int, int]:
        """First and last arrival number; there is at least one arrival."""
        ends: list[int] = []
        for seq in self.seq:
            ends += seq[:1].tolist() + seq[-1:].tolist()
        return min(ends), max(ends)

    def between(self, first: int, stop: int) -> Arrivals:
        """Return the arrivals numbered *first* to *stop* (exclusive), as views."""
        ends = [np.searchsorted(seq, (first, stop)).tolist() for seq in self.seq]
        return self.slice(*zip(*ends, strict=True))

    def slice(self, starts: Sequence[int], stops: Sequence[int]) -> Arrivals:
        """Return per stream the rows from a start to a stop (exclusive), as views."""
        rows = [slice(*ends) for ends in zip(starts, stops, strict=True)]
        return Arrivals(
            parts=tuple(part.take(which) for part, which in zip(self.parts, rows, strict=True)),
            seq=tuple(seq[which] for seq, which in zip(self.seq, rows, strict=True)),
        )


def merged_places(times: Sequence[np.ndarray], rows: int) -> list[np.ndarray]:
    """Return which of the first *rows* places each stream's tuples take, merged by event time.

    Tuples of equal time are in the order of their streams. *times* are int64 columns, each in
    order; so are the places.
    """
    places = []
    for stream, column in enumerate(times):
        place = np.arange(min(rows, len(column)))
        for other, others in enumerate(times):
            if other != stream:
                seen = read_only(column), read_only(others)
                place = place[: _count_before(*seen, rows, place, ties=other < stream)]
        places.append(place)
    return places


@kernel
def _count_before(
    times: np.ndarray, others: np.ndarray, rows: int, place: np.ndarray, ties: bool
) -> int:
    """Add to each place how many of *others* are earlier, or with *ties* at the same time.

    Return how many places that leaves before *rows*.
    """
    before = 0
    for i in range(len(place)):
        while before < len(others) and (
            others[before] < times[i] or (ties and others[before] == times[i])
        ):
            before += 1
        place[i] += before
        if place[i] >= rows:
            return i
    return len(place)
