"""What every immutable structure has in common: one sealed epoch of one stream, and its probes.

A probe is answered in two steps. First the keys are searched: a predicate's range of values becomes
a range of places in the order of that predicate's keys (`PlaceRanges`). Then the ranges of all
predicates are intersected; how they do that is the difference between the structures.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from joins.indexes.immutable.order_arrays import index_dtype, permutation
from joins.indexes.index import Ranges, as_column, check_least, check_ranges
from joins.indexes.range_search import Brackets, find_ranges, find_ranges_in_brackets
from joins.machine.compiling import inlined, kernel
from joins.matches import ProbeResult
from joins.radix_sort import sort_codes
from joins.state import State, Stateful
from joins.threads import side_by_side
from joins.work import Work, new_counters


class PlaceRanges(NamedTuple):
    """A batch of probes once the keys have been searched; m probes, p predicates."""

    begin: np.ndarray
    end: np.ndarray
    """int64, shape (p, m): ranges of places in the order of each predicate's keys, *end*
    exclusive."""
    negated: np.ndarray
    """bool, shape (p,): the range is what must not match."""
    start: np.ndarray
    stop: np.ndarray
    """int64, shape (m,): positions start[i] to stop[i] - 1 are in probe i's window."""

    def shortest(self, tuples: int) -> np.ndarray:
        """Return for each probe how long the shortest of its ranges is: it has no more matches."""
        lengths = self.end - self.begin
        least: np.ndarray = np.where(self.negated[:, None], tuples - lengths, lengths).min(axis=0)
        return least


class ImmutableSegment(Stateful, ABC):
    """One epoch's tuples of one stream, positions *first* to *first* + n - 1, sealed.

    It never changes, and expires as a whole. A subclass builds what it needs from the attributes in
    `_seal`, and says in `_intersect` how a probe's ranges are intersected.

    Parameters
    ----------
    keys
        Per predicate the sorted int64 keys, as a B+-tree's scan returns them.
    lead
        int64, the stream positions of the tuples in the order of the first predicate's keys.
    permutations
        Per further predicate Algorithm 2's array (see `joins.indexes.immutable.order_arrays`): for
        each place in its order the place in the lead's.
    first
        The epoch's first position.

    Raises
    ------
    ValueError
        When there is no predicate, columns differ in length, keys are not sorted, or positions or
        places are not of this epoch.
    """

    state = ("first", "keys", "lead", "to_lead")

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
        self.lead = as_column(lead, np.int64, "positions in lead order", n)
        """The parameters, checked."""
        _check_inside(self.lead, first, "positions in lead order")
        self.to_lead = np.empty((len(permutations), n), index_dtype(n))
        """The permutation arrays, shape (predicates - 1, n)."""
        for other, array in enumerate(permutations):
            self.to_lead[other] = as_column(array, self.to_lead.dtype, f"permutation {other}", n)
            _check_inside(self.to_lead[other], 0, f"permutation {other}")
        self.work = self._seal()
        """What sealing cost."""

    @abstractmethod
    def _seal(self) -> Work:
        """Build the structure's own arrays, and return what that cost."""

    @classmethod
    def from_columns(
        cls, columns: Sequence[np.ndarray], *, first: int = 0, threads: int = 1
    ) -> Self:
        """Build a segment from unsorted int64 *columns*, one per predicate, in stream order.

        Several *threads* sort a column each.
        """
        columns = [as_column(column, np.int64, "keys") for column in columns]
        sorted_columns = side_by_side(sort_codes, columns, min(threads, len(columns)))
        orders = [order for _, order, _ in sorted_columns]
        return cls(
            [keys for keys, _, _ in sorted_columns],
            orders[0] + np.int64(first),
            [permutation(orders[0], order, first=0)[0] for order in orders[1:]],
            first=first,
        )

    def __len__(self) -> int:
        return len(self.lead)

    def probe(
        self, ranges: Ranges, *, enumerate: bool = False, brackets: Brackets | None = None
    ) -> ProbeResult:
        """Find matches as `Index.probe` says; ids are in no particular order within a row.

        *brackets* are the probing stream's own sorted keys and their offset arrays: they make the
        search that of the paper's two-way join (see `joins.indexes.range_search`). The matches are
        the same without; a structure that searches by other means ignores them.
        """
        check_ranges(ranges, len(self.keys))
        counters = new_counters()
        begin, end = np.empty((2, *ranges.low.shape), np.int64)
        for i in range(len(self.keys)):
            self._find_places(i, ranges, brackets, (begin[i], end[i]), counters)
        places = PlaceRanges(begin, end, *ranges[2:])
        return self._intersect(places, counters, enumerate=enumerate)

    def _find_places(
        self,
        predicate: int,
        ranges: Ranges,
        brackets: Brackets | None,
        places: tuple[np.ndarray, np.ndarray],
        counters: np.ndarray,
    ) -> None:
        """Fill in where the ranges of one predicate begin and end in its order of the keys."""
        keys, low, high = self.keys[predicate], ranges.low[predicate], ranges.high[predicate]
        if brackets is None:
            find_ranges(keys, low, high, *places, counters)
            return
        own = as_column(brackets.own[predicate], np.int64, f"own keys of predicate {predicate}")
        offsets = brackets.offsets[predicate]
        offsets = as_column(offsets, offsets.dtype, f"offsets of predicate {predicate}", len(own))
        find_ranges_in_brackets(keys, own, offsets, low, high, *places, counters)

    @abstractmethod
    def _intersect(
        self, places: PlaceRanges, counters: np.ndarray, *, enumerate: bool
    ) -> ProbeResult:
        """Return the matches of every probe; *counters* have counted the search."""

    def restore(self, state: State) -> None:
        """Go back to a snapshot; what follows from its arrays is built again."""
        super().restore(state)
        self.work = self._seal()


def probe_all(
    segments: Sequence[ImmutableSegment],
    ranges: Ranges,
    *,
    brackets: Sequence[Brackets | None] | None = None,
    threads: int = 1,
    enumerate: bool = False,
) -> list[ProbeResult]:
    """Probe every segment with the same probes; return each result, in the segments' order.

    This is how one PE scales up (SPO-Join, section 4.2, Algorithm 4): a thread takes the next
    segment of the list whenever it has finished one. Segments never change, so they need no lock,
    and kernels do not block the interpreter; matches and work are those of a single thread.

    Parameters
    ----------
    segments
        The list to deal out.
    ranges
        The probes.
    brackets
        One for each segment, or None for none at all; see `ImmutableSegment.probe`.
    threads
        How many work at once; 1 starts none.
    enumerate
        List positions too.

    Raises
    ------
    ValueError
        When *threads* is less than 1 or *brackets* are not one for each segment; and whatever
        `ImmutableSegment.probe` raises.
    """
    check_least(1, threads=threads)
    each = [None] * len(segments) if brackets is None else list(brackets)
    if len(each) != len(segments):
        raise ValueError(f"{len(each)} brackets for {len(segments)} segments; expected one each")

    def probe(place: int) -> ProbeResult:
        return segments[place].probe(ranges, brackets=each[place], enumerate=enumerate)

    return side_by_side(probe, range(len(segments)), min(threads, len(segments)))


class Stretch(NamedTuple):
    """The places of one probe's range of one predicate; *negated*, it is what must not match."""

    begin: int
    end: int
    negated: bool


@inlined
def stretch_of(places: PlaceRanges, predicate: int, probe: int) -> Stretch:
    """Return a probe's range of one predicate."""
    return Stretch(
        places.begin[predicate, probe], places.end[predicate, probe], places.negated[predicate]
    )


@kernel
def satisfying(stretch: Stretch, part: int, tuples: int) -> tuple[int, int]:
    """Return the places that satisfy a predicate, as the two parts number 0 and 1.

    They are the range itself and an empty one, or what lies before and after a negated range.
    """
    begin, end, negated = stretch
    if not negated:
        return (begin, end) if part == 0 else (end, end)
    return (0, begin) if part == 0 else (end, tuples)


def _sorted_keys(keys: np.ndarray, predicate: int, length: int) -> np.ndarray:
    what = f"keys of predicate {predicate}"
    keys = as_column(keys, np.int64, what, length)
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
