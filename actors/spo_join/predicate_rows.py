"""What probing with one predicate of SPO-Join finds: its two forms, and how either is intersected.

They are the paper's bit arrays (`BitRows`, section 3.2), and lists of ids (`IdRows`, section 5.4).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from actors.protocol import Payload
from actors.source import Probes
from joins.bit_array import intersect, keep_window, read_matches
from joins.id_sets import intersect_ids
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.index import Ranges
from joins.matches import ProbeResult
from joins.work import Step, Work


@dataclass(frozen=True, slots=True)
class PredicateRows(Payload, ABC):
    """The results of probing with one predicate, a row per probing tuple of one stream."""

    ids: np.ndarray
    born_ns: np.ndarray
    """int64, the probing tuples."""

    frame_bytes = 0
    probing: ClassVar[str]
    """The name of a probe's `Step`."""

    def __len__(self) -> int:
        return len(self.ids)

    @classmethod
    @abstractmethod
    def probe(cls, tree: BPlusTree, base: int, part: Probes, ranges: Ranges) -> tuple[Self, Work]:
        """Probe *tree*, whose tuples are those from position *base* on, for *ranges* of *part*."""

    @abstractmethod
    def take(self, rows: np.ndarray) -> Self:
        """Return some *rows* (int64 places)."""

    @classmethod
    @abstractmethod
    def intersect(cls, parts: Sequence[Any], *, enumerate: bool) -> ProbeResult:
        """Find row by row what all *parts* (one per predicate) have in common."""

    @property
    @abstractmethod
    def intersecting(self) -> Step:
        """The step of intersecting these rows with other predicates'."""


@dataclass(frozen=True, slots=True)
class BitRows(PredicateRows):
    """Bit arrays: the identifiers of the mutable tuples are the places in them (Figure 4)."""

    base: int
    """Position in the probed stream of bit 0."""
    words: np.ndarray
    """uint64, shape (probes, words)."""

    bytes_of = ("ids", "words")
    probing = "predicate_tree.mark"

    @classmethod
    def probe(cls, tree: BPlusTree, base: int, part: Probes, ranges: Ranges) -> tuple[Self, Work]:
        """Mark the matches, and clear the marks outside the windows."""
        (low,), (high,), (negated,), start, stop = ranges
        words, marking = tree.mark(low, high, negated=negated, base=base, bits=len(tree))
        seen, clearing = keep_window(words, start, stop, base=base)
        return cls(part.batch.id, part.born_ns, base, seen), marking + clearing

    def take(self, rows: np.ndarray) -> Self:
        """Return some *rows* (int64 places)."""
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
        result = read_matches(words, base=parts[0].base, enumerate=enumerate)
        return replace(result, work=work + result.work)

    @property
    def intersecting(self) -> Step:
        """The step, whose size is the length of the bit arrays."""
        return Step("bit_rows.intersect", len(self), 64 * self.words.shape[1])


@dataclass(frozen=True, slots=True)
class IdRows(PredicateRows):
    """Lists of the matching tuples' ids, to be intersected by hashing (section 5.4)."""

    count: np.ndarray
    """int64, matches of each probe."""
    match_id: np.ndarray
    """int64, the matches of the first probe, then of the second, ..."""

    bytes_of = ("ids", "count", "match_id")
    probing = "predicate_tree.list"

    @classmethod
    def probe(cls, tree: BPlusTree, base: int, part: Probes, ranges: Ranges) -> tuple[Self, Work]:
        """List the matches in the windows."""
        result = tree.probe(ranges, enumerate=True)
        assert result.match_id is not None
        copied = Work(bytes_copied=result.match_id.nbytes)
        rows = cls(part.batch.id, part.born_ns, result.count, result.match_id)
        return rows, result.work + copied

    def take(self, rows: np.ndarray) -> Self:
        """Return some *rows* (int64 places)."""
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

    @property
    def intersecting(self) -> Step:
        """The step, whose size is how many ids a row has on average."""
        return Step("id_rows.intersect", len(self), len(self.match_id) // max(len(self), 1))


ROWS: dict[str, type[PredicateRows]] = {"bits": BitRows, "hash": IdRows}
"""Form of the mutable component's results by name."""
