"""Sums of rows per probing tuple; rows come in nearly any order, sums leave in ascending ranges.

What joiners find comes in several rows a tuple, nearly in the order of the tuples. Each row is
looked at once; memory is that of the tuples between the first not taken and the last seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.machine.compiling import kernel


class Sums(NamedTuple):
    """What has been added up, a row per tuple."""

    pairs: np.ndarray
    fingerprint: np.ndarray
    """int64 and uint64, sums."""
    latest: np.ndarray
    """int64, the greatest; -1 of a tuple without rows."""

    @classmethod
    def empty(cls, tuples: int) -> Sums:
        """Return the sums of *tuples* without rows."""
        return cls(
            np.zeros(tuples, np.int64), np.zeros(tuples, np.uint64), np.full(tuples, -1, np.int64)
        )

    def slice(self, start: int, stop: int) -> Sums:
        """Return tuples *start* to *stop* (exclusive) as views."""
        return Sums(*(column[start:stop] for column in self))


class TupleSums:
    """Adds up rows of the first *tuples* of a stream that have not been taken."""

    def __init__(self, tuples: int) -> None:
        self._tuples, self._first = tuples, 0
        self._sums = Sums.empty(0)
        self.stray_rows = self.stray_pairs = 0
        """Rows of no such tuple, or with a negative count, and the pairs that they claim."""

    def add(
        self, ids: np.ndarray, count: np.ndarray, fingerprint: np.ndarray, latest: np.ndarray
    ) -> None:
        """Add rows: tuple (int64), matches, their fingerprint, and a candidate for the latest."""
        self._make_room(ids)
        rows, pairs = _add_rows(
            self._first, self._tuples, ids, count, fingerprint, latest, self._sums
        )
        self.stray_rows += rows
        self.stray_pairs += pairs

    def add_pairs(
        self, ids: np.ndarray, hashes: np.ndarray, mine: np.ndarray, stray: np.ndarray
    ) -> None:
        """Add the pairs that the mask *mine* names: a tuple of *ids*, and its match's hash, uint64.

        The mask *stray* is cleared where the tuple exists and was not taken.
        """
        self._make_room(ids)
        _add_pairs(self._first, self._tuples, ids, hashes, mine, self._sums, stray)

    def take(self, stop: int) -> Sums:
        """Return the sums of all tuples below *stop* that have not been taken."""
        self._grow(stop)
        taken = self._sums.slice(0, stop - self._first)
        self._sums = self._sums.slice(stop - self._first, len(self._sums.pairs))
        self._first = stop
        return taken

    def _make_room(self, ids: np.ndarray) -> None:
        if len(ids):
            self._grow(min(int(ids.max()) + 1, self._tuples))

    def _grow(self, stop: int) -> None:
        there = len(self._sums.pairs)
        more = stop - self._first - there
        if more > 0:
            fresh = Sums.empty(max(more, there))
            self._sums = Sums(*map(np.concatenate, zip(self._sums, fresh, strict=True)))


@kernel
def _add_rows(
    first: int,
    tuples: int,
    ids: np.ndarray,
    count: np.ndarray,
    fingerprint: np.ndarray,
    latest: np.ndarray,
    sums: Sums,
) -> tuple[int, int]:
    """Return how many rows are stray, and the pairs that they claim."""
    rows = pairs = 0
    for i in range(len(ids)):
        if ids[i] < first or ids[i] >= tuples or count[i] < 0:
            rows += 1
            pairs += abs(count[i])
            continue
        place = ids[i] - first
        sums.pairs[place] += count[i]
        sums.fingerprint[place] += fingerprint[i]
        sums.latest[place] = max(sums.latest[place], latest[i])
    return rows, pairs


@kernel
def _add_pairs(
    first: int,
    tuples: int,
    ids: np.ndarray,
    hashes: np.ndarray,
    mine: np.ndarray,
    sums: Sums,
    stray: np.ndarray,
) -> None:
    for i in range(len(ids)):
        if mine[i] and first <= ids[i] < tuples:
            place = ids[i] - first
            sums.pairs[place] += 1
            sums.fingerprint[place] += hashes[i]
            stray[i] = False
