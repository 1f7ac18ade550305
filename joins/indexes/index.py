"""What every index over a stream's tuples can do, and what a batch of probes is.

A stored tuple is known to an index by its *position* in its stream (int64) and by a column of
values per predicate. A probe has a closed range of values per predicate, and sees the stored
positions of its window:

- `Ranges` is a batch of probes as a join states it, in the predicates' own dtypes; `ranges_for`
  makes it from the conditions of a query.
- `EncodedRanges` is the same batch as kernels read it: two int64 matrices, a row per predicate. A
  float is encoded as its place in the order of all floats (`joins.indexes.columns.encode`), so that
  a kernel is compiled once for any mix of dtypes. `in_range` tests one stored value.

What a probe returns is `joins.matches.ProbeResult`.

`Index` is what they have in common. A structure may do more (merge, serve several sides or threads,
report ranges of places): it adds methods, and leaves these as they are. One that is sealed does not
insert or expire.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, NamedTuple, Protocol

import numpy as np

from joins.batch import Batch
from joins.indexes.columns import column, encode, window_columns
from joins.machine.compiling import inlined
from joins.matches import ProbeResult
from joins.queries.conditions import Condition
from joins.state import State, storable
from joins.work import Work


@storable
class Ranges(NamedTuple):
    """A batch of probes: a range of values per predicate, and which stored tuples each one sees.

    Attributes
    ----------
    low, high
        Per predicate the least and the greatest value that satisfy it, a row per probe, both
        inclusive, in the predicate's dtype; low > high is empty, and so is an end that is NaN.
    negated
        Per predicate whether values *outside* the range satisfy it; None means no predicate.
    start, stop
        int64, probe i sees the stored positions start[i] to stop[i] - 1; None sets no bound.
    """

    low: Sequence[np.ndarray]
    high: Sequence[np.ndarray]
    negated: Sequence[bool] | None = None
    start: np.ndarray | None = None
    stop: np.ndarray | None = None


@storable
class EncodedRanges(NamedTuple):
    """A batch of probes as kernels read it; p predicates, m probes.

    Attributes
    ----------
    low, high
        int64, shape (p, m): codes of the ranges' ends, both inclusive.
    negated
        bool, shape (p,): values outside the range satisfy the predicate.
    start, stop
        int64, shape (m,): the stored positions that each probe sees, *stop* exclusive. A structure
        may put its own numbering of tuples in their place.
    """

    low: np.ndarray
    high: np.ndarray
    negated: np.ndarray
    start: np.ndarray
    stop: np.ndarray


def ranges_for(
    conditions: Sequence[Condition],
    columns: Sequence[np.ndarray],
    start: np.ndarray | None = None,
    stop: np.ndarray | None = None,
) -> Ranges:
    """Return the ranges that satisfy *conditions* for probes with *columns*, one per condition."""
    low, high, negated = [], [], []
    for condition, values in zip(conditions, columns, strict=True):
        least, greatest = condition.bounds(values)
        low.append(least)
        high.append(greatest)
        negated.append(condition.negated)
    return Ranges(low, high, negated, start, stop)


def stored_columns(conditions: Sequence[Condition], batch: Batch) -> list[np.ndarray]:
    """Return the columns of *batch* that an index for *conditions* stores, one per condition."""
    return [batch.fields[c.stored_field].astype(c.dtype, copy=False) for c in conditions]


def negated_flags(ranges: Ranges, predicates: int) -> np.ndarray:
    """Return the flags of *ranges*, bool, one per predicate.

    Raise :exc:`ValueError` naming the part that has not *predicates* entries.
    """
    low, high, negated = ranges[:3]
    flags = [False] * predicates if negated is None else negated
    if not len(low) == len(high) == len(flags) == predicates:
        check_predicates(predicates, low=low, high=high, negated=flags)
    return np.array(flags, np.bool_)


def check_predicates(expected: int, **arguments: Sized) -> None:
    """Raise :exc:`ValueError` naming the first of *arguments* without *expected* entries."""
    for name, entries in arguments.items():
        if len(entries) != expected:
            raise ValueError(f"{name}: {len(entries)} given for {expected} predicates")


def encode_ranges(ranges: Ranges, dtypes: Sequence[Any]) -> EncodedRanges:
    """Return *ranges* as kernels read them; *dtypes* are the predicates'.

    Raise :exc:`ValueError` or :exc:`TypeError` naming the column that does not fit.
    """
    negated = negated_flags(ranges, len(dtypes))
    m = len(ranges.low[0])
    low, high = np.empty((2, len(dtypes), m), np.int64)
    for i, dtype in enumerate(dtypes):
        least = column(ranges.low[i], dtype, f"low of predicate {i}", m)
        most = column(ranges.high[i], dtype, f"high of predicate {i}", m)
        low[i], high[i] = encode(least), encode(most)
        if least.dtype.kind == "f":
            empty = np.isnan(least) | np.isnan(most)
            low[i][empty], high[i][empty] = 1, 0
    start, stop = window_columns(ranges.start, ranges.stop, m)
    return EncodedRanges(low, high, negated, start, stop)


@inlined
def in_range(ranges: EncodedRanges, predicate: int, row: int, code: int) -> bool:
    """Return whether a stored value with this *code* satisfies one predicate of a probe."""
    inside = ranges.low[predicate, row] <= code and code <= ranges.high[predicate, row]
    return bool(inside != ranges.negated[predicate])


class Index(Protocol):
    """Tuples of one stream that come and go, and answer probes.

    Positions ascend from one insertion to the next, and need not be contiguous: a joiner may store
    every k-th tuple of a stream.
    """

    def probe(self, ranges: Ranges, *, enumerate: bool = False) -> ProbeResult:
        """Return for every probe the tuples that satisfy all predicates and lie in its window.

        With *enumerate* list their positions too. Raise :exc:`ValueError` or :exc:`TypeError` when
        a range does not fit its predicate.
        """

    def __len__(self) -> int:
        """Return how many tuples are stored."""

    @property
    def nbytes(self) -> int:
        """Bytes that its arrays occupy."""

    def snapshot(self) -> State:
        """Return the state as plain data."""

    def restore(self, state: State) -> None:
        """Go back to a state that `snapshot` returned."""

    def insert(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Store tuples: a column of values per predicate, and their int64 positions.

        Raise :exc:`ValueError` when a value is NaN, which no range contains, or positions do not
        ascend; :exc:`TypeError` when a column is of another dtype than its predicate.
        """

    def expire(self, before: int) -> Work:
        """Drop positions less than *before*, which no later probe will see.

        A structure that expires by whole parts may drop some of them later.
        """
