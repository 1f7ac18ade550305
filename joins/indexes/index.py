"""What every index over a stream's tuples can do, and the columns and probes that it takes.

A stored tuple is known to an index by its *position* in its stream (int64) and by a column of
values per predicate. Columns are checked as they come in, and encoded for kernels: the *code* of a
value is an int64 that compares as the value does, so that one kernel serves every dtype. An integer
is its own code. A float's code is its place in the order of all floats: both zeros are 0, and NaN
lies beyond the infinities, where no range reaches it.

A probe has a closed range of values per predicate, and sees the stored positions of its window:

- `Ranges` is a batch of probes as a join states it, in the predicates' own dtypes; `ranges_for`
  makes it from the conditions of a query.
- `EncodedRanges` is the same batch as kernels read it: two int64 matrices of codes, a row per
  predicate. `in_range` tests one stored value.

What a probe returns is `joins.matches.ProbeResult`.

`Index` is what they have in common. A structure may do more (merge, serve several sides or threads,
report ranges of places): it adds methods, and leaves these as they are. One that is sealed does not
insert or expire.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Sized
from typing import Any, NamedTuple, Protocol

import numpy as np

from joins.batch import FIELD_DTYPES, Batch, Rows, Schema
from joins.machine.compiling import inlined
from joins.matches import ProbeResult
from joins.queries.conditions import Condition
from joins.queries.query import JoinQuery
from joins.state import State, storable
from joins.work import Work

_BOUNDS = np.iinfo(np.int64)
_WITHOUT_SIGN, _SIGN_BIT = np.int64(_BOUNDS.max), np.int64(63)


def at_least_one(**counts: int | None) -> None:
    """Raise :exc:`ValueError` naming the first of *counts* less than 1; None is as good as 1."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise ValueError(f"{name} is {count}, must be at least 1")


def key_dtype(dtype: Any, what: str) -> np.dtype:
    """Return *dtype* as a numpy dtype; raise :exc:`TypeError` when *what* cannot have it."""
    if np.dtype(dtype).name not in FIELD_DTYPES:
        raise TypeError(f"{what}: dtype {dtype} is not one of {', '.join(FIELD_DTYPES)}")
    checked: np.dtype = np.dtype(dtype)
    return checked


def column(values: Any, dtype: Any, what: str, length: int | None = None) -> np.ndarray:
    """Return *values* as a contiguous column that a kernel can take, copied only if it must be.

    Read-only arrays are copied: numba compiles a kernel anew for every mix of writable and
    read-only arguments.

    Raise :exc:`TypeError` when the dtype is another one, :exc:`ValueError` when *values* is not one
    column or not of *length*; both name the column as *what*.
    """
    array = np.asarray(values)
    if array.dtype != dtype:
        raise TypeError(f"{what}: dtype is {array.dtype}, expected {np.dtype(dtype).name}")
    if array.ndim != 1 or (length is not None and len(array) != length):
        expected = "one column" if length is None else f"one column of {length}"
        raise ValueError(f"{what}: shape is {array.shape}, expected {expected}")
    # np.require takes ten microseconds to find that there is nothing to do.
    return array if array.flags.carray else np.require(array, requirements=["C", "W"])


def keys_column(values: Any, dtype: Any, what: str, length: int | None = None) -> np.ndarray:
    """Return a column of keys as `column` does; raise :exc:`ValueError` when a key is NaN."""
    keys = column(values, dtype, what, length)
    if keys.dtype.kind == "f" and np.isnan(keys).any():
        row = int(np.isnan(keys).argmax())
        raise ValueError(f"{what}: row {row} is NaN, which has no place in an order; drop it first")
    return keys


def window_columns(start: Any, stop: Any, length: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions that each of *length* probes may see; None means no bound."""
    if start is None:
        start = np.full(length, _BOUNDS.min)
    if stop is None:
        stop = np.full(length, _BOUNDS.max)
    return column(start, np.int64, "start", length), column(stop, np.int64, "stop", length)


def encode(values: np.ndarray) -> np.ndarray:
    """Return the code of each value (int64 or float64)."""
    if values.dtype == np.int64:
        return values
    # Negative floats have the sign bit set and grow in bits as they fall in value: such a code is
    # the bits without the sign, negated.
    bits = values.view(np.int64)
    signs = bits >> _SIGN_BIT
    codes: np.ndarray = signs & _WITHOUT_SIGN
    codes ^= bits
    codes -= signs
    return codes


def decode(codes: np.ndarray, dtype: str) -> np.ndarray:
    """Return the values of *codes*; zero is positive."""
    if dtype == "int64":
        return codes
    magnitude = np.abs(codes).view(np.float64)
    values: np.ndarray = np.where(codes >= 0, magnitude, -magnitude)
    return values


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


class JoinSides:
    """What each stream's tuples probe with and are stored for, where one or two streams are joined.

    Attributes
    ----------
    stored_stream
        Per probing stream the one it probes.
    probing, storing
        Per stream the conditions that its tuples probe with, and those that they are stored for:
        those of the query's predicates at *places*, in this order, or of all.
    """

    def __init__(
        self, query: JoinQuery, schemas: Sequence[Schema], places: Iterable[int] | None = None
    ) -> None:
        chosen = range(len(query.predicates)) if places is None else tuple(places)
        streams = range(len(query.streams))
        conditions = [query.conditions(stream, schemas) for stream in streams]
        self.stored_stream = [query.stored_stream(stream) for stream in streams]
        self.probing = [tuple(of_stream[place] for place in chosen) for of_stream in conditions]
        self.storing = [self.probing[other] for other in self.stored_stream]


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


def probe_columns(
    conditions: Sequence[Condition], batch: Batch, rows: Rows = slice(None)
) -> list[np.ndarray]:
    """Return what some *rows* probe with, a column per condition, as `ranges_for` takes them."""
    return [batch.fields[condition.probe_field][rows] for condition in conditions]


def stored_columns(
    conditions: Sequence[Condition], batch: Batch, rows: Rows = slice(None)
) -> list[np.ndarray]:
    """Return what an index for *conditions* stores of some *rows*, a column per condition."""
    return [batch.fields[c.stored_field][rows].astype(c.dtype, copy=False) for c in conditions]


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
        low[i], high[i] = encode_ends(
            ranges.low[i], ranges.high[i], dtype, of=f" of predicate {i}", length=m
        )
    start, stop = window_columns(ranges.start, ranges.stop, m)
    return EncodedRanges(low, high, negated, start, stop)


class Sought(NamedTuple):
    """What one probe looks for by one predicate, for kernels that answer a probe at a time.

    Attributes
    ----------
    low, high
        The keys (codes, or values of the structure's dtype), both ends included.
    start, stop
        The positions: *start* to *stop* - 1.
    row
        Its row of the output.
    """

    low: int
    high: int
    start: int
    stop: int
    row: int


def encode_ends(
    low: Any, high: Any, dtype: Any, *, of: str = "", length: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the codes of ranges' ends; a range with a NaN end becomes empty.

    Raise what `column` raises; it names the ends ``low`` and ``high`` with *of* behind them.
    """
    least = column(low, dtype, f"low{of}", length)
    most = column(high, dtype, f"high{of}", len(least))
    if least.dtype.kind != "f":
        return least, most
    empty = np.isnan(least) | np.isnan(most)
    least, most = encode(least), encode(most)
    least[empty], most[empty] = 1, 0
    return least, most


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
