"""The immutable component's index: one sealed epoch of one stream (SPO-Join, section 3.3-3.4).

A `PoJoinSegment` holds the tuples that the mutable component had gathered when it was merged: per
predicate the sorted keys, the tuples' positions in the order of the lead predicate (the first), and
for every further predicate the permutation array that leads from its order to the lead's. It never
changes; it expires as a whole.

Left out: the lock and the threads of Algorithm 4, which only deal segments to cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from joins.bit_array import words_for
from joins.found import Found
from joins.hashing import mix
from joins.indexes.columns import column, key_dtype, keys_column, window_columns
from joins.indexes.permutation import index_dtype, permutation
from joins.indexes.po_join_bits import Output, Probes, Sealed, fill_bitmaps
from joins.indexes.po_join_kernels import probe_segment
from joins.indexes.search import Brackets, find_ranges, find_ranges_in_brackets
from joins.work import COUNTERS, Work

BITMAP_EVERY_MIN = 1024
BITMAPS_MAX = 128
"""Prefix bitmaps: one every so many tuples, but no more than that many, so that they take at most
16 bytes per tuple and predicate however large the segment is."""

_LISTED_MAX = 1 << 25  # Ids per chunk of an enumeration: 256 MiB of address space, paged in by use.


def bitmap_spacing(tuples: int) -> int:
    """Return how many tuples lie between two prefix bitmaps of a segment of *tuples*."""
    return max(BITMAP_EVERY_MIN, -(-tuples // BITMAPS_MAX))


class PoJoinSegment:
    """One epoch's tuples, sorted by every predicate's field and linked by permutation arrays.

    Parameters
    ----------
    keys
        Per predicate the sorted keys, as a B+-tree's scan gives them.
    lead
        int64, the stream positions of the tuples in the order of the first predicate's keys.
    permutations
        Per further predicate Algorithm 2's array (see `joins.indexes.permutation`): for each place
        in its order the place in the lead's.
    first
        The epoch's first position; the tuples are first to first + n - 1.
    bitmap_every
        Tuples between two prefix bitmaps (see `joins.indexes.po_join_bits`); None keeps none, and
        leaves the plain fill of the paper's Figure 5.

    Attributes
    ----------
    work
        What sealing cost.

    Raises
    ------
    ValueError
        When there is no predicate, columns differ in length, or keys are not sorted.
    """

    def __init__(
        self,
        keys: Sequence[np.ndarray],
        lead: np.ndarray,
        permutations: Sequence[np.ndarray],
        *,
        first: int,
        bitmap_every: int | None = None,
    ) -> None:
        if not keys or len(keys) != len(permutations) + 1:
            raise ValueError(
                f"{len(keys)} columns of keys and {len(permutations)} permutation arrays; expected "
                "at least one predicate, and an array for every predicate but the first"
            )
        n = len(keys[0])
        others = len(permutations)
        self.first = first
        self.keys = tuple(_sorted_keys(column, i, n) for i, column in enumerate(keys))
        # A bitmap every n tuples is the empty one and the full one: none that helps.
        self.bitmap_every = max(1, n if bitmap_every is None else bitmap_every)
        lead = column(lead, np.int64, "positions in lead order", n)
        to_lead = np.empty((others, n), index_dtype(n))
        from_lead = np.empty((others, n), index_dtype(n))
        for other, array in enumerate(permutations):
            to_lead[other] = column(array, to_lead.dtype, f"permutation {other}", n)
            from_lead[other][to_lead[other]] = np.arange(n, dtype=from_lead.dtype)
        self._seal(lead, to_lead, from_lead)
        self.work = Work(
            moves=others * n,
            bits=others * n if self.bitmap_every < n else 0,
            bytes_copied=self._sealed.bitmap.nbytes + sum(key.nbytes for key in self.keys),
        )

    @classmethod
    def from_columns(
        cls, columns: Sequence[np.ndarray], *, first: int = 0, bitmap_every: int | None = None
    ) -> PoJoinSegment:
        """Build a segment from unsorted *columns*, one per predicate, in stream order."""
        orders = [np.argsort(column, kind="stable") + np.int64(first) for column in columns]
        lead = orders[0]
        return cls(
            [column[order - first] for column, order in zip(columns, orders, strict=True)],
            lead,
            [permutation(lead, order, first=first)[0] for order in orders[1:]],
            first=first,
            bitmap_every=bitmap_every,
        )

    def __len__(self) -> int:
        return len(self._sealed.position)

    @property
    def nbytes(self) -> int:
        """Bytes that the segment's arrays occupy."""
        return sum(array.nbytes for array in (*self.keys, *self._sealed))

    def probe(
        self,
        lo: Sequence[np.ndarray],
        hi: Sequence[np.ndarray],
        *,
        negated: Sequence[bool] | None = None,
        start: np.ndarray | None = None,
        stop: np.ndarray | None = None,
        brackets: Brackets | None = None,
        enumerate: bool = False,
    ) -> Found:
        """Find for every probe the tuples that satisfy all predicates and lie in its window.

        Parameters
        ----------
        lo, hi
            Per predicate the ranges' ends, a row per probe, both inclusive; lo > hi is empty.
        negated
            Per predicate whether the range is what must *not* match; None means none.
        start, stop
            int64, probe i sees positions start[i] to stop[i] - 1; None sees all.
        brackets
            The probing stream's own sorted keys and their offset arrays: search as the paper does
            in a two-way join (see `joins.indexes.search`). The matches are the same without.
        enumerate
            List the positions found too, in no particular order within a probe.

        Raises
        ------
        ValueError, TypeError
            When an argument's shape or dtype does not fit the segment.
        """
        predicates = len(self.keys)
        flags = [False] * predicates if negated is None else list(negated)
        for name, given in (("lo", lo), ("hi", hi), ("negated", flags)):
            if len(given) != predicates:
                raise ValueError(f"{name} has {len(given)} entries for {predicates} predicates")
        m = len(lo[0])
        counters = np.zeros(len(COUNTERS), np.int64)
        begin, end = np.empty((2, predicates, m), np.int64)
        for i, keys in zip(range(predicates), self.keys, strict=True):
            low = column(lo[i], keys.dtype, f"lo of predicate {i}", m)
            high = column(hi[i], keys.dtype, f"hi of predicate {i}", m)
            if brackets is None:
                find_ranges(keys, low, high, begin[i], end[i], counters)
            else:
                own = column(brackets.own[i], keys.dtype, f"own keys of predicate {i}")
                offsets = brackets.offsets[i]
                offsets = column(offsets, offsets.dtype, f"offsets of predicate {i}", len(own))
                find_ranges_in_brackets(keys, own, offsets, low, high, begin[i], end[i], counters)
        start, stop = window_columns(start, stop, m)
        probes = Probes(begin, end, np.array(flags, np.bool_), start, stop)
        return self._answer(probes, enumerate, counters)

    def _answer(self, probes: Probes, enumerate: bool, counters: np.ndarray) -> Found:
        """Run the probe kernel, in chunks that bound the memory an enumeration asks for."""
        n, m = len(self), len(probes.start)
        scratch = np.empty((2, words_for(n)), np.uint64)
        candidates = np.empty(n, np.int64)
        output = Output(np.zeros(m, np.int64), np.zeros(m, np.uint64), np.empty(0, np.int64))
        size = 0
        if enumerate:
            lengths = np.where(probes.negated[:, None], n, probes.end - probes.begin).min(axis=0)
            size = min(int(lengths.sum()), max(_LISTED_MAX, n))
        chunks: list[np.ndarray] = []
        row = 0
        while row < m:
            output = output._replace(match_id=np.empty(size, np.int64))
            row, listed = probe_segment(
                self._sealed,
                self.first,
                self.bitmap_every,
                probes,
                row,
                size,
                scratch,
                candidates,
                output,
                counters,
            )
            chunks.append(output.match_id[:listed])
        match_id = None
        if enumerate:
            match_id = (
                chunks[0] if len(chunks) == 1 else np.concatenate([output.match_id[:0], *chunks])
            )
        return Found(
            count=output.matches,
            fingerprint=output.fingerprint,
            match_id=match_id,
            work=Work.from_counters(counters),
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the segment as plain arrays and numbers; what follows from them is left out."""
        return {
            "first": self.first,
            "bitmap_every": self.bitmap_every,
            "position": self._sealed.position,
            "to_lead": self._sealed.to_lead,
            "keys": list(self.keys),
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> PoJoinSegment:
        """Return the segment that `snapshot` described."""
        return cls(
            snapshot["keys"],
            snapshot["position"],
            list(snapshot["to_lead"]),
            first=int(snapshot["first"]),
            bitmap_every=int(snapshot["bitmap_every"]),
        )

    def _seal(self, lead: np.ndarray, to_lead: np.ndarray, from_lead: np.ndarray) -> None:
        others, n = to_lead.shape
        bitmaps = -(-n // self.bitmap_every) + 1
        bitmap = np.zeros((others, bitmaps, words_for(n)), np.uint64)
        fill_bitmaps(to_lead, self.bitmap_every, bitmap)
        self._sealed = Sealed(lead, mix(lead), to_lead, from_lead, bitmap)


def _sorted_keys(keys: np.ndarray, predicate: int, length: int) -> np.ndarray:
    what = f"keys of predicate {predicate}"
    keys = keys_column(keys, key_dtype(np.asarray(keys).dtype, what), what, length)
    descending = np.flatnonzero(keys[1:] < keys[:-1])
    if len(descending):
        raise ValueError(f"{what}: row {descending[0] + 1} is less than the row before it")
    return keys
