"""Combinations of tuples on their way through a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import itemgetter

import numpy as np

from joins.batch import Batch, RowSelection
from joins.hashing import mix_rows
from joins.matches import Matches
from joins.state import storable


@storable
@dataclass(frozen=True, kw_only=True, slots=True)
class Combinations:
    """Combinations of a tuple of each stream joined so far, a row each."""

    streams: tuple[int, ...]
    """Positions of the streams joined so far, in the order of joining; the first is the head, whose
    tuple is the newest."""
    parts: tuple[Batch, ...]
    """Per stream its tuples; all batches have the same length."""
    seq: np.ndarray
    born_ns: np.ndarray
    """int64, arrival number and virtual birth of the newest tuple."""

    def __len__(self) -> int:
        return len(self.seq)

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes, of full tuples."""
        return sum(part.nbytes for part in self.parts)

    @property
    def head(self) -> int:
        """The stream of the newest tuple."""
        return self.streams[0]

    @property
    def newest(self) -> Batch:
        """The newest tuples."""
        return self.parts[0]

    def column(self, stream: int, field: str) -> np.ndarray:
        """Return a field of the tuples of one stream."""
        return self.parts[self.streams.index(stream)].fields[field]

    def take(self, rows: RowSelection) -> Combinations:
        """Return some *rows*."""
        return replace(
            self,
            parts=tuple(part.take(rows) for part in self.parts),
            seq=self.seq[rows],
            born_ns=self.born_ns[rows],
        )

    def slice(self, start: int, stop: int) -> Combinations:
        """Return rows *start* to *stop* (exclusive) as views."""
        return self.take(slice(start, stop))

    @classmethod
    def concat(cls, several: Sequence[Combinations]) -> Combinations:
        """Return the rows of *several*, one or more, of the same streams in the same order."""
        parts = zip(*(rows.parts for rows in several), strict=True)
        return cls(
            streams=several[0].streams,
            parts=tuple(Batch.concat(list(part)) for part in parts),
            seq=np.concatenate([rows.seq for rows in several]),
            born_ns=np.concatenate([rows.born_ns for rows in several]),
        )

    def extended(self, stream: int, tuples: Batch) -> Combinations:
        """Return the rows with a tuple of one more stream each."""
        return replace(self, streams=(*self.streams, stream), parts=(*self.parts, tuples))

    def matches(self, *, pairs: bool) -> tuple[Matches, np.ndarray]:
        """Return results of all streams by their newest tuple, and its birth.

        With *pairs* list the ids of their other tuples.
        """
        order = np.argsort(self.newest.id, kind="stable")
        newest = self.newest.id[order]
        begins = np.flatnonzero(np.diff(newest, prepend=-1))
        others = sorted(zip(self.streams[1:], self.parts[1:], strict=True), key=itemgetter(0))
        ids = [part.id[order] for _, part in others]
        mixed = mix_rows(ids)
        match_id = None
        if pairs:
            match_id = np.stack(ids, axis=1) if len(ids) > 1 else ids[0]
        matches = Matches(
            stream=self.head,
            probe_id=newest[begins],
            count=np.diff(begins, append=len(newest)),
            fingerprint=np.add.reduceat(mixed, begins) if len(begins) else mixed,
            match_id=match_id,
        )
        return matches, self.born_ns[order][begins]
