"""Every probe against a range of stored tuples, predicates evaluated as they are written.

Windows are computed anew from their definition, and each predicate is evaluated on the values that
it compares. Nothing here is shared with the indexes, nor with how predicates become ranges for
them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import numpy as np

from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.hashing import mix
from joins.machine.compiling import allocating
from joins.matches import Matches
from joins.queries.conditions import Band, ComparisonOperator, Field
from joins.queries.query import JoinQuery, Predicate
from joins.queries.windows import Window
from joins.threads import side_by_side

_ROWS_AT_ONCE = 256
_CELLS_AT_ONCE = 1 << 24
"""Probes, and pairs, compared at once: together they bound the matrix of comparisons (a band needs
some 20 bytes a pair), however long the window is."""
_CANDIDATES_AT_ONCE = 1 << 21
_WIDENING = 1e-9
"""Share of the values by which a range of candidates is widened: more than any rounding moves its
ends."""
_PAIRS_PER_CANDIDATE = 16
"""Candidates are searched for when they are fewer than one in so many pairs of the window."""
_CELLS_PER_PAIR = 16
"""Cells of the matrix for each pair beyond which pairs are compared one by one."""

_LEAST = int(np.iinfo(np.int64).min)

_COMPARE: dict[str, Callable[..., np.ndarray]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
    "=": np.equal,
    "!=": np.not_equal,
}


def evaluate(predicate: Predicate, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Evaluate a predicate as it is written, element by element; the two sides broadcast."""
    operator = predicate.operator
    compare = _COMPARE[operator.symbol]
    if not isinstance(operator, Band):
        return compare(left, right)
    if left.dtype == right.dtype == np.int64:
        # The difference of two int64 may need a bit more: as unsigned it fits.
        greater, smaller = np.maximum(left, right), np.minimum(left, right)
        distance = greater.astype(np.uint64) - smaller.astype(np.uint64)
        width = Decimal(operator.width)
        return compare(distance, math.ceil(width) if operator.symbol == "<" else int(width))
    # An infinite distance is rightly outside, and so is one between two infinities, which is none.
    with np.errstate(over="ignore", invalid="ignore"):
        return compare(np.abs(left - right), float(operator.width))


def clear_unsatisfied(
    matched: np.ndarray, predicates: Iterable[Predicate], value: Callable[[Field], np.ndarray]
) -> None:
    """Set *matched* to False where a predicate is not satisfied.

    *value* returns a field's values, which broadcast to the shape of *matched*.
    """
    for predicate in predicates:
        matched &= evaluate(predicate, value(predicate.left), value(predicate.right))


Column = tuple[bool, np.ndarray]
"""Whether a field is of the stored tuples, and its values: of all of them, or of all probes."""


@dataclass(frozen=True, slots=True, eq=False)
class Comparison:
    """Probes, and the stored tuples that each is compared with; both are rows, numbered from 0."""

    predicates: Sequence[Predicate]
    """What pairs have to satisfy."""
    columns: Mapping[Field, Column]
    """What the fields of the predicates refer to."""
    first: np.ndarray
    last: np.ndarray
    """int64, per probe the stored rows that it sees, *last* exclusive."""
    hashes: np.ndarray
    """Of the stored rows, uint64: a fingerprint is the sum of those that match."""

    @classmethod
    def of(
        cls,
        predicates: Sequence[Predicate],
        column: Callable[[Field], Column],
        first: np.ndarray,
        last: np.ndarray,
        hashes: np.ndarray,
    ) -> Comparison:
        """Return a comparison by predicates whose fields refer to what *column* returns."""
        columns = {field: column(field) for one in predicates for field in one.fields}
        return cls(predicates, columns, first, last, hashes)

    def clear_unsatisfied(self, matched: np.ndarray, probe: np.ndarray, match: np.ndarray) -> None:
        """Clear the pairs of rows, of probes and stored, that a predicate excludes."""

        def value(field: Field) -> np.ndarray:
            is_stored, values = self.columns[field]
            compared: np.ndarray = values[match if is_stored else probe]
            return compared

        clear_unsatisfied(matched, self.predicates, value)


@dataclass(frozen=True, slots=True, eq=False)
class Seen:
    """Tuples that probe, and the stored tuples that each of them sees."""

    query: JoinQuery
    probing: int
    """The stream that *probes* are of."""
    probes: Batch
    stored: Batch
    first: np.ndarray
    last: np.ndarray
    """int64, per probe the rows of *stored* that it sees, *last* exclusive."""

    def names(self, predicate: Predicate) -> tuple[str, str]:
        """Return the field of the probing tuple and that of the stored one."""
        names = {self._is_probed_with(field): field.name for field in predicate.fields}
        return names[True], names[False]

    def symbol(self, predicate: Predicate) -> str:
        """Return a predicate's symbol with the stored tuple's value on its left."""
        symbol = predicate.operator.symbol
        return _MIRRORED.get(symbol, symbol) if self._is_probed_with(predicate.left) else symbol

    def comparison(self) -> Comparison:
        """Return what is to be compared."""

        def column(field: Field) -> Column:
            is_probed = self._is_probed_with(field)
            return not is_probed, (self.probes if is_probed else self.stored).fields[field.name]

        return Comparison.of(
            self.query.predicates, column, self.first, self.last, mix(self.stored.id)
        )

    def _is_probed_with(self, field: Field) -> bool:
        """Return whether a predicate's field is the probing tuple's, not the stored one's."""
        return field.role == 1 if self.query.is_self_join else field.stream == self.probing


def match_ranges(seen: Seen, *, enumerate_ids: bool, threads: int = 1) -> Iterator[Matches]:
    """Compare every probe with the rows of *stored* that it sees, some at a time.

    Parameters
    ----------
    seen
        Who probes, and what each sees.
    enumerate_ids
        Whether to list match ids, in the order of *stored* within a row.
    threads
        How many may compare.
    """
    ids = seen.probes.id
    places = None if enumerate_ids else _places(seen)
    if places is not None:
        count, fingerprint = _count_below(places, seen, threads)
        yield Matches(stream=seen.probing, probe_id=ids, count=count, fingerprint=fingerprint)
        return
    for rows, count, fingerprint, match in compare(seen.comparison(), enumerate_rows=enumerate_ids):
        yield Matches(
            stream=seen.probing,
            probe_id=ids[rows],
            count=count,
            fingerprint=fingerprint,
            match_id=seen.stored.id[match] if enumerate_ids else None,
        )


_Part = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Rows of probes, per row its count and its fingerprint, and rows of their matches, row by row."""


def compare(comparison: Comparison, *, enumerate_rows: bool) -> Iterator[_Part]:
    """Compare every probe with the stored rows that it sees, some at a time.

    Rows that match are listed if *enumerate_rows*, ascending within a probe.
    """
    candidates = _candidates(comparison)
    if candidates is None:
        return _compare_all(comparison, enumerate_rows=enumerate_rows)
    return _compare_candidates(candidates, comparison)


def _compare_all(comparison: Comparison, *, enumerate_rows: bool) -> Iterator[_Part]:
    """Compare every probe with all stored tuples that it sees."""
    first, last, hashes = comparison.first, comparison.last, comparison.hashes
    width = max(1, int((last - first).max(initial=1)))
    step = max(1, min(_ROWS_AT_ONCE, _CELLS_AT_ONCE // width))
    end = 0
    while end < len(first):
        begin, end = end, min(end + step, len(first))
        while end - begin > 1 and _cells(first[begin:end], last[begin:end]) > _CELLS_AT_ONCE:
            end = (begin + end) // 2
        rows = np.arange(begin, end)
        left, right = int(first[rows].min()), int(last[rows].max())
        matched = np.zeros((len(rows), right - left), np.bool_)
        mark_ranges(matched, first[rows] - left, last[rows] - left)
        comparison.clear_unsatisfied(
            matched, rows[:, np.newaxis], np.arange(left, right)[np.newaxis]
        )
        count, fingerprint = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.uint64)
        _sum(matched, hashes[left:right], count, fingerprint)
        listed = left + np.nonzero(matched)[1] if enumerate_rows else rows[:0]
        yield rows, count, fingerprint, listed


def _cells(first: np.ndarray, last: np.ndarray) -> int:
    """Return how many cells the matrices of rows have, with all columns that one of them has."""
    if not len(first):
        return 0
    starts = np.arange(0, len(first), _ROWS_AT_ONCE)
    columns = np.maximum.reduceat(last, starts) - np.minimum.reduceat(first, starts)
    return int((columns * np.diff(np.append(starts, len(first)))).sum())


_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_MOST_PLACES = 2
_SLICES = 8
"""Parts of the probes that each thread compares: so that all threads end at the same time."""

_Places = list[tuple[np.ndarray, np.ndarray]]
"""For each predicate a place of every stored tuple, and of every probe: a pair satisfies it if the
stored tuple's is less. int64."""


def _places(seen: Seen) -> _Places | None:
    """Return places on a line for one or two predicates of order; None for others, and for NaN.

    Stored tuples have the place of their value among all, in descending order for ``>`` and ``>=``;
    a probe that of the first value that does not satisfy the predicate with its own.
    """
    predicates = seen.query.predicates
    if not 0 < len(predicates) <= _MOST_PLACES:
        return None
    places: _Places = []
    for predicate in predicates:
        symbol = seen.symbol(predicate)
        if not isinstance(predicate.operator, ComparisonOperator) or symbol not in _MIRRORED:
            return None
        probing_name, stored_name = seen.names(predicate)
        values, probed = seen.stored.fields[stored_name], seen.probes.fields[probing_name]
        common = np.result_type(values, probed)
        if common.kind == "f" and (np.isnan(values).any() or np.isnan(probed).any()):
            return None  # they are nowhere on a line
        known, place = np.unique(values.astype(common), return_inverse=True)
        side: Literal["left", "right"] = "left" if symbol in ("<", ">=") else "right"
        bound = known.searchsorted(probed.astype(common), side)
        places.append((place, bound) if symbol in ("<", "<=") else (-place, 1 - bound))
    return places


def _count_below(places: _Places, seen: Seen, threads: int) -> tuple[np.ndarray, np.ndarray]:
    """Compare every probe with all stored tuples that it sees; return counts and fingerprints."""
    first, last, hashes = seen.first, seen.last, mix(seen.stored.id)
    count, fingerprint = np.zeros(len(first), np.int64), np.zeros(len(first), np.uint64)
    one, other = places[0], places[-1]

    def add_up(rows: slice) -> None:
        _sum_below(
            one[0], one[1][rows], other[0], other[1][rows],
            first[rows], last[rows], hashes, count[rows], fingerprint[rows],
        )  # fmt: skip

    step = max(1, -(-len(first) // (_SLICES * threads)))
    side_by_side(add_up, [slice(i, i + step) for i in range(0, len(first), step)], threads)
    return count, fingerprint


@allocating
def _sum_below(
    places: np.ndarray,
    bounds: np.ndarray,
    other_places: np.ndarray,
    other_bounds: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    hashes: np.ndarray,
    count: np.ndarray,
    fingerprint: np.ndarray,
) -> None:
    """Add up, for every probe, the stored tuples whose places are both below its bounds."""
    for i in range(len(first)):
        bound, other_bound = bounds[i], other_bounds[i]
        # Of parts, indices begin at 0 and cannot be negative: only so is the loop vectorised.
        mine, other = places[first[i] : last[i]], other_places[first[i] : last[i]]
        hashed = hashes[first[i] : last[i]]
        matches = total = np.uint64(0)
        for j in range(len(mine)):
            matched = np.uint64((mine[j] < bound) & (other[j] < other_bound))
            matches += matched
            total += hashed[j] & (np.uint64(0) - matched)
        count[i] = matches
        fingerprint[i] = total


_Candidates = tuple[np.ndarray, np.ndarray, np.ndarray]
"""An order of the stored tuples, and for each probe the range of it that may match: int64."""


def _candidates(comparison: Comparison) -> _Candidates | None:
    """Return what each probe is to be compared with; None: all that it sees."""
    pairs = int((comparison.last - comparison.first).sum())
    near = _near(comparison)
    if near and _PAIRS_PER_CANDIDATE * int((near[2] - near[1]).sum()) <= pairs:
        return near
    if _cells(comparison.first, comparison.last) > _CELLS_PER_PAIR * pairs:
        # Neighbours see tuples that are far apart.
        return np.arange(len(comparison.hashes)), comparison.first, comparison.last
    return None


def _near(comparison: Comparison) -> _Candidates | None:
    """Return which stored values are near each probe's, generously; None where it does not matter.

    A tuple can only satisfy ``=`` or a band with tuples whose value is near its own.
    """
    near = [
        p for p in comparison.predicates if p.operator.symbol == "=" or isinstance(p.operator, Band)
    ]
    if not near or not len(comparison.first) or not len(comparison.hashes):
        return None
    operator = near[0].operator
    sides = dict(comparison.columns[field] for field in near[0].fields)
    values = sides[True].astype(np.float64)
    order = np.argsort(values, kind="stable")
    probed = sides[False].astype(np.float64)
    finite = np.isfinite(probed)
    middle = np.where(finite, probed, 0.0)
    width = float(operator.width) if isinstance(operator, Band) else 0.0
    with np.errstate(over="ignore"):  # beyond the greatest float are infinities, rightly
        half_width = width + _WIDENING * (np.abs(middle) + width)
        least, most = middle - half_width, middle + half_width
    begin = np.searchsorted(values[order], np.where(finite, least, -np.inf), "left")
    end = np.searchsorted(values[order], np.where(finite, most, np.inf), "right")
    return order, begin, end


def _compare_candidates(found: _Candidates, comparison: Comparison) -> Iterator[_Part]:
    """Compare every probe with those stored tuples it sees that are in its range of an order."""
    order, begin, end = found
    first, last, hashes = comparison.first, comparison.last, comparison.hashes
    candidates = np.cumsum(end - begin)
    full = np.arange(_CANDIDATES_AT_ONCE, candidates[-1], _CANDIDATES_AT_ONCE)
    cuts = np.unique(candidates.searchsorted(full, "right"))
    for rows in np.split(np.arange(len(first)), cuts[cuts > 0]):
        sizes = (end - begin)[rows]
        place = np.repeat(np.arange(len(rows)), sizes)
        offset = np.arange(len(place)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        match = order[begin[rows][place] + offset]
        visible = (match >= first[rows][place]) & (match < last[rows][place])
        place, match = place[visible], match[visible]
        matched = np.ones(len(match), np.bool_)
        comparison.clear_unsatisfied(matched, rows[place], match)
        place, match = place[matched], match[matched]
        fingerprint = np.zeros(len(rows), np.uint64)
        np.add.at(fingerprint, place, hashes[match])
        count = np.bincount(place, minlength=len(rows)).astype(np.int64)
        yield rows, count, fingerprint, match[np.lexsort((match, place))]


@allocating
def mark_ranges(marked: np.ndarray, first: np.ndarray, last: np.ndarray) -> None:
    """Set each row of a matrix from its first column to its last, exclusive."""
    for i in range(len(first)):
        marked[i, first[i] : last[i]] = True


@allocating
def _sum(
    matched: np.ndarray, hashes: np.ndarray, count: np.ndarray, fingerprint: np.ndarray
) -> None:
    for i in range(len(count)):
        matches = 0
        total = np.uint64(0)
        for j in range(len(hashes)):
            if matched[i, j]:
                matches += 1
                total += hashes[j]
        count[i] = matches
        fingerprint[i] = total


class Visible:
    """The tuples of each stream that a window may still show, in the order of their arrival."""

    def __init__(self, query: JoinQuery, schemas: Sequence[Schema]) -> None:
        self._windows = query.windows
        self.batches = [Batch.empty(schema) for schema in schemas]
        """Per stream its tuples."""
        self._seq = [np.empty(0, np.int64) for _ in schemas]

    def add(self, stream: int, tuples: Batch, seq: np.ndarray) -> None:
        """Append the next tuples of a stream; *seq* are their arrival numbers."""
        self.batches[stream] = Batch.concat([self.batches[stream], tuples])
        self._seq[stream] = np.concatenate([self._seq[stream], seq])

    def rows(self, stored: int, probes: Batch, seq: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return which rows of stream *stored* probes see: the first, and one past the last.

        *seq* are the arrival numbers of *probes*.
        """
        window, batch = self._windows[stored], self.batches[stored]
        base = int(batch.id[0]) if len(batch) else 0
        last = np.searchsorted(self._seq[stored], seq)
        if window.kind == "count":
            first = np.maximum(_oldest(window, base + last), base) - base
        else:
            first = np.searchsorted(batch.ts, _oldest(window, probes.ts), "left")
            if window.semantics == "precise":
                last = np.minimum(last, np.searchsorted(batch.ts, probes.ts, "left"))
        return np.minimum(first, last).astype(np.int64), last.astype(np.int64)

    def drop_unseen(self, arrivals: Arrivals) -> None:
        """Drop the tuples that none after *arrivals* will see."""
        latest = max((int(part.ts[-1]) for part in arrivals.parts if len(part)), default=None)
        if latest is None:
            return
        for stored, (window, batch) in enumerate(zip(self._windows, self.batches, strict=True)):
            column, at = batch.ts, np.array([latest])
            if window.kind == "count":
                column, at = batch.id, batch.id[-1:] + 1
            if len(batch):
                row = int(column.searchsorted(_oldest(window, at)[0]))
                self.batches[stored] = batch.slice(row, len(batch))
                self._seq[stored] = self._seq[stored][row:]


def _oldest(window: Window, at: np.ndarray) -> np.ndarray:
    """Return the least position or time that a window shows at *at*, by its definition."""
    if not len(at) or at.min() >= _LEAST + window.length:
        return _defined(window, at)
    exact = _defined(window, at.astype(object))  # as Python's integers, which do not wrap
    rounded: np.ndarray = np.maximum(exact, _LEAST).astype(np.int64)
    return rounded


def _defined(window: Window, at: np.ndarray) -> np.ndarray:
    if window.semantics == "precise":
        return at - window.length
    return (at // window.slide) * window.slide - (window.length - window.slide)
