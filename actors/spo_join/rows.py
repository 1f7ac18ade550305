"""What probes of one predicate found in the mutable component: the two forms it can take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from actors.probes import Probes
from joins.bit_array import intersect, keep_window, read_matches
from joins.id_sets import intersect_ids
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.matches import ProbeResult
from joins.work import Work


@dataclass(frozen=True, slots=True)
class Rows(ABC):
    """A row per probing tuple of one stream.

    Attributes
    ----------
    ids, born_ns
        int64, the probing tuples.
    """

    ids: np.ndarray
    born_ns: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Size on the wire in bytes."""

    @classmethod
    @abstractmethod
    def probe(
        cls,
        tree: BPlusTree,
        part: Probes,
        bounds: tuple[np.ndarray, np.ndarray],
        *,
        negated: bool,
        base: int,
        stored: int,
    ) -> tuple[Self, Work]:
        """Probe *tree*, which holds *stored* tuples from position *base* on, within the windows."""

    @abstractmethod
    def take(self, rows: np.ndarray) -> Self:
        """Return the given *rows* (int64 places)."""

    @classmethod
    @abstractmethod
    def intersect(cls, parts: Sequence[Any], *, enumerate: bool) -> ProbeResult:
        """Find row by row what all *parts* (one per predicate) have in common."""


@dataclass(frozen=True, slots=True)
class BitRows(Rows):
    """Bit arrays: the identifiers of the mutable tuples are the places in them (Figure 4).

    Attributes
    ----------
    base
        Position in the probed stream that bit 0 stands for.
    words
        uint64, shape (probes, words).
    """

    base: int
    words: np.ndarray

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return self.ids.nbytes + self.words.nbytes

    @classmethod
    def probe(
        cls,
        tree: BPlusTree,
        part: Probes,
        bounds: tuple[np.ndarray, np.ndarray],
        *,
        negated: bool,
        base: int,
        stored: int,
    ) -> tuple[Self, Work]:
        """Mark the matches, and cut the marks to the windows."""
        low, high = bounds
        words, marking = tree.mark(low, high, negated=negated, base=base, bits=stored)
        seen, cutting = keep_window(words, part.start, part.stop, base=base)
        return cls(part.batch.id, part.born_ns, base, seen), marking + cutting

    def take(self, rows: np.ndarray) -> Self:
        """Return the given *rows* (int64 places)."""
        return type(self)(self.ids[rows], self.born_ns[rows], self.base, self.words[rows])

    @classmethod
    def intersect(cls, parts: Sequence[BitRows], *, enumerate: bool) -> ProbeResult:
        """AND the bit arrays.

        Those of one tuple are alike. Those of different tuples, which meet where there is no hash
        table, are compared as far as the shorter goes; of different epochs they have nothing in
        common.
        """
        same_epoch = len({part.base for part in parts}) == 1
        width = min(part.words.shape[1] for part in parts) if same_epoch else 0
        words, work = intersect([part.words[:, :width] for part in parts])
        found = read_matches(words, base=parts[0].base, enumerate=enumerate)
        return ProbeResult(
            count=found.count,
            fingerprint=found.fingerprint,
            match_id=found.match_id,
            work=work + found.work,
        )


@dataclass(frozen=True, slots=True)
class IdRows(Rows):
    """Lists of the matching tuples' ids, to be intersected by hashing (section 5.4).

    Attributes
    ----------
    count
        int64, matches of each probe.
    match_id
        int64, the matches of the first probe, then of the second, ...
    """

    count: np.ndarray
    match_id: np.ndarray

    @property
    def nbytes(self) -> int:
        """Size on the wire in bytes."""
        return self.ids.nbytes + self.count.nbytes + self.match_id.nbytes

    @classmethod
    def probe(
        cls,
        tree: BPlusTree,
        part: Probes,
        bounds: tuple[np.ndarray, np.ndarray],
        *,
        negated: bool,
        base: int,
        stored: int,
    ) -> tuple[Self, Work]:
        """List the matches in the windows."""
        low, high = bounds
        found = tree.probe(
            low, high, start=part.start, stop=part.stop, negated=negated, enumerate=True
        )
        assert found.match_id is not None
        copied = Work(bytes_copied=found.match_id.nbytes)
        return cls(part.batch.id, part.born_ns, found.count, found.match_id), found.work + copied

    def take(self, rows: np.ndarray) -> Self:
        """Return the given *rows* (int64 places)."""
        count = self.count[rows]
        # Each id's place: where its row begins in the list, and how far it is into the row.
        begins = (np.cumsum(self.count) - self.count)[rows]
        places = np.arange(count.sum()) + np.repeat(begins - (np.cumsum(count) - count), count)
        return type(self)(self.ids[rows], self.born_ns[rows], count, self.match_id[places])

    @classmethod
    def intersect(cls, parts: Sequence[IdRows], *, enumerate: bool) -> ProbeResult:
        """Intersect the lists through a hash table."""
        return intersect_ids(
            [part.count for part in parts], [part.match_id for part in parts], enumerate=enumerate
        )


ROWS: dict[str, type[Rows]] = {"bits": BitRows, "hash": IdRows}
"""Form of the mutable component's results by name."""
