"""What every immutable structure has in common: one sealed epoch of one stream, and its probes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from joins.indexes.columns import column, key_dtype, keys_column, window_columns
from joins.indexes.immutable.permutation import index_dtype, permutation
from joins.indexes.immutable.segment_probes import Probes
from joins.indexes.search import Brackets, find_ranges, find_ranges_in_brackets
from joins.matches import ProbeResult
from joins.work import COUNTERS, Work


class Segment(ABC):
    """One epoch's tuples of one stream, positions *first* to *first* + n - 1; never changes.

    A subclass builds what it needs from the attributes in `_seal`, and says how a probe's ranges
    are intersected. It expires as a whole.

    Parameters
    ----------
    keys
        Per predicate the sorted keys, as a B+-tree's scan gives them.
    lead
        int64, the stream positions of the tuples in the order of the first predicate's keys.
    permutations
        Per further predicate Algorithm 2's array (see `joins.indexes.immutable.permutation`): for
        each place in its order the place in the lead's.
    first
        The epoch's first position.

    Attributes
    ----------
    keys, lead
        As given.
    to_lead
        The permutation arrays, shape (predicates - 1, n).
    work
        What sealing cost.

    Raises
    ------
    ValueError
        When there is no predicate, columns differ in length, keys are not sorted, or positions or
        places are not of this epoch.
    """

    def __init__(
        self,
        keys: Sequence[np.ndarray],
        lead: np.ndarray,
        permutations: Sequence[np.ndarray],
        *,
        first: int,
    ) -> None:
        if not keys or len(keys) != len(permutations) + 1:
            raise ValueError(
                f"{len(keys)} columns of keys and {len(permutations)} permutation arrays; expected "
                "at least one predicate, and an array for every predicate but the first"
            )
        n = len(keys[0])
        self.first = first
        self.keys = tuple(_sorted_keys(column, i, n) for i, column in enumerate(keys))
        self.lead = column(lead, np.int64, "positions in lead order", n)
        _check_inside(self.lead, first, "positions in lead order")
        self.to_lead = np.empty((len(permutations), n), index_dtype(n))
        for other, array in enumerate(permutations):
            self.to_lead[other] = column(array, self.to_lead.dtype, f"permutation {other}", n)
            _check_inside(self.to_lead[other], 0, f"permutation {other}")
        self.work = self._seal()

    @abstractmethod
    def _seal(self) -> Work:
        """Build the structure's own arrays, and return what that cost."""

    @classmethod
    def from_columns(cls, columns: Sequence[np.ndarray], *, first: int = 0) -> Self:
        """Build a segment from unsorted *columns*, one per predicate, in stream order."""
        orders = [np.argsort(column, kind="stable") + np.int64(first) for column in columns]
        lead = orders[0]
        return cls(
            [column[order - first] for column, order in zip(columns, orders, strict=True)],
            lead,
            [permutation(lead, order, first=first)[0] for order in orders[1:]],
            first=first,
        )

    def __len__(self) -> int:
        return len(self.lead)

    @property
    def nbytes(self) -> int:
        """Bytes that the segment's arrays occupy."""
        arrays = (*self.keys, self.lead, self.to_lead, *self._own_arrays())
        return sum(array.nbytes for array in arrays)

    @abstractmethod
    def _own_arrays(self) -> list[np.ndarray]:
        """Return the arrays that a structure keeps beside those it was given."""

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
    ) -> ProbeResult:
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
            in a two-way join (see `joins.indexes.search`). The matches are the same without; a
            structure that searches by other means takes no notice.
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
            self._find_places(i, low, high, brackets, (begin[i], end[i]), counters)
        start, stop = window_columns(start, stop, m)
        probes = Probes(begin, end, np.array(flags, np.bool_), start, stop)
        return self._answer(probes, enumerate, counters)

    def _find_places(
        self,
        predicate: int,
        low: np.ndarray,
        high: np.ndarray,
        brackets: Brackets | None,
        places: tuple[np.ndarray, np.ndarray],
        counters: np.ndarray,
    ) -> None:
        """Fill in where the ranges of one predicate begin and end in its order of the keys."""
        keys = self.keys[predicate]
        if brackets is None:
            find_ranges(keys, low, high, *places, counters)
            return
        own = column(brackets.own[predicate], keys.dtype, f"own keys of predicate {predicate}")
        offsets = brackets.offsets[predicate]
        offsets = column(offsets, offsets.dtype, f"offsets of predicate {predicate}", len(own))
        find_ranges_in_brackets(keys, own, offsets, low, high, *places, counters)

    @abstractmethod
    def _answer(self, probes: Probes, enumerate: bool, counters: np.ndarray) -> ProbeResult:
        """Intersect the ranges of every probe; *counters* hold what the search has cost."""

    def snapshot(self) -> dict[str, Any]:
        """Return the segment as plain arrays and numbers; what follows from them is left out."""
        return {
            "first": self.first,
            "lead": self.lead,
            "to_lead": self.to_lead,
            "keys": list(self.keys),
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> Self:
        """Return the segment that `snapshot` described."""
        return cls(
            snapshot["keys"],
            snapshot["lead"],
            list(snapshot["to_lead"]),
            first=int(snapshot["first"]),
        )


def _sorted_keys(keys: np.ndarray, predicate: int, length: int) -> np.ndarray:
    what = f"keys of predicate {predicate}"
    keys = keys_column(keys, key_dtype(np.asarray(keys).dtype, what), what, length)
    descending = np.flatnonzero(keys[1:] < keys[:-1])
    if len(descending):
        raise ValueError(f"{what}: row {descending[0] + 1} is less than the row before it")
    return keys


def _check_inside(values: np.ndarray, first: int, what: str) -> None:
    """Raise when a value is outside *first* to *first* + n - 1: kernels index by it unchecked."""
    n = len(values)
    if n and not (first <= values.min() and values.max() < first + n):
        row = int(((values < first) | (values >= first + n)).argmax())
        raise ValueError(
            f"{what}: row {row} is {values[row]}, expected every value from {first} to "
            f"{first + n - 1} once"
        )
