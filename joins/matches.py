"""What probes found: for each how many matches, their fingerprint, and their ids if kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Matches:
    """The matches of some probing tuples of one stream, a row per probing tuple.

    Several operators may each report a part of one tuple's matches: counts and fingerprints of the
    parts add up.

    Attributes
    ----------
    stream
        Position in the query of the probing stream.
    probe_id
        int64, the probing tuples.
    count
        int64, matches found for each.
    fingerprint
        uint64, for each the wrapping sum over its matches of ``splitmix64(match id)``: equal sets
        of matches have equal sums in any order, and a duplicate changes the sum.
    match_id
        int64, the matches of the first row, then of the second, ...; None when only counted.

    In a join of more than two streams a match is a tuple of each other stream: *match_id* then has
    a column for each, in the order of the query, and the fingerprint sums up
    `joins.hashing.mix_rows` of them.
    """

    stream: int
    probe_id: np.ndarray
    count: np.ndarray
    fingerprint: np.ndarray
    match_id: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.probe_id)

    @property
    def total(self) -> int:
        """Number of pairs."""
        return int(self.count.sum())

    @classmethod
    def sum(cls, parts: Sequence[Matches]) -> Matches:
        """Add up what several structures found for the same probes in the same order.

        Match ids, if kept, come row by row, within a row in the order of *parts* (at least one).
        """
        first = parts[0]
        if len(parts) == 1:
            return first
        counts = np.stack([part.count for part in parts])
        count = counts.sum(axis=0)
        match_id = None
        if all(part.match_id is not None for part in parts):
            row_ends = np.cumsum(count)
            # Where each part's piece of each row begins in the result: after the pieces of the
            # parts before it in that row.
            begins = row_ends - count + np.cumsum(counts, axis=0) - counts
            match_id = np.empty(row_ends[-1] if len(row_ends) else 0, np.int64)
            for part, begin in zip(parts, begins, strict=True):
                shift = begin - (np.cumsum(part.count) - part.count)
                places = np.arange(part.total) + np.repeat(shift, part.count)
                match_id[places] = part.match_id
        return cls(
            stream=first.stream,
            probe_id=first.probe_id,
            count=count,
            fingerprint=np.stack([part.fingerprint for part in parts]).sum(axis=0),
            match_id=match_id,
        )

    def split(self, rows: Sequence[int]) -> list[Matches]:
        """Return views of the first ``rows[0]`` probes' matches, of the next ``rows[1]``', ..."""
        ends = np.cumsum(rows)
        listed = np.append(0, np.cumsum(self.count))
        return [
            replace(
                self,
                probe_id=self.probe_id[begin:end],
                count=self.count[begin:end],
                fingerprint=self.fingerprint[begin:end],
                match_id=None
                if self.match_id is None
                else self.match_id[listed[begin] : listed[end]],
            )
            for begin, end in zip(ends - rows, ends, strict=True)
        ]

    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs as two int64 columns (probe id, match id).

        Raise :exc:`ValueError` when the matches were only counted.
        """
        if self.match_id is None:
            raise ValueError("these matches were counted, not enumerated")
        return np.repeat(self.probe_id, self.count), self.match_id
