"""What every index over a stream's tuples can do, and the columns and probes that it takes.

A stored tuple is known to an index by its *position* in its stream (int64) and by a *code* per
predicate (`joins.codes`). Values become codes where they enter an index: `codes_of` encodes what is
stored of a batch, and `ranges_of` finds the codes that it looks for.

A probe has a closed range of codes per predicate, and sees the stored positions of its window.
`Ranges` is a batch of them, and `in_range` tests one stored code. What a probe returns is
`joins.matches.ProbeResult`.

`Index` is what they have in common. A structure may do more (merge, serve several sides or threads,
report ranges of places): it adds methods, and leaves these as they are. One that is sealed does not
insert or expire.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any, NamedTuple, Protocol

import numpy as np

from joins.batch import Batch, RowSelection
from joins.codes import GREATEST, LEAST, encode
from joins.machine.compiling import inlined, kernel
from joins.matches import ProbeResult
from joins.queries.conditions import Condition
from joins.state import State
from joins.work import Work

NONE = -1
"""In place of a node, a row or a place, where there is none."""


def check_least(least: int, **values: int | None) -> None:
    """Raise :exc:`ValueError` naming the first of *values* less than *least*; None is enough."""
    for name, value in values.items():
        if value is not None and value < least:
            raise ValueError(f"{name} is {value}, must be at least {least}")


def as_column(values: Any, dtype: Any, what: str, length: int | None = None) -> np.ndarray:
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


class Ranges(NamedTuple):
    """A batch of probes: a range of codes per predicate, and which stored tuples each one sees.

    There are p predicates and m probes; `make_ranges` fills in what is left out.
    """

    low: np.ndarray
    high: np.ndarray
    """int64, shape (p, m): the codes of the least and the greatest value that satisfy a predicate,
    both inclusive; low > high is empty."""
    negated: np.ndarray
    """bool, shape (p,): values *outside* the range satisfy the predicate."""
    start: np.ndarray
    stop: np.ndarray
    """int64, shape (m,): probe i sees the stored positions start[i] to stop[i] - 1. A structure may
    put its own numbering of tuples in their place."""


def make_ranges(
    low: Sequence[np.ndarray] | np.ndarray,
    high: Sequence[np.ndarray] | np.ndarray,
    *,
    negated: Sequence[bool] | np.ndarray | None = None,
    start: np.ndarray | None = None,
    stop: np.ndarray | None = None,
) -> Ranges:
    """Return probes whose ranges have the codes *low* and *high* for ends, a column per predicate.

    Without *negated* no predicate is, and without *start* or *stop* that side of the window is
    open. Raise :exc:`ValueError` or :exc:`TypeError` naming the column that does not fit.
    """
    m = len(low[0]) if len(low) else 0
    flags = [False] * len(low) if negated is None else negated
    _check_predicates(len(low), high=high, negated=flags)
    return Ranges(
        _rows_of(low, "low", m),
        _rows_of(high, "high", m),
        np.array(flags, np.bool_),
        *_windows(m, start, stop),
    )


def _windows(
    probes: int, start: np.ndarray | None, stop: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the ends of the windows of so many *probes*; None is an open side."""
    return (
        as_column(np.full(probes, LEAST) if start is None else start, np.int64, "start", probes),
        as_column(np.full(probes, GREATEST) if stop is None else stop, np.int64, "stop", probes),
    )


def _rows_of(columns: Sequence[np.ndarray] | np.ndarray, what: str, length: int) -> np.ndarray:
    """Return int64 columns of *length* as the rows of a matrix; a single one is not copied."""
    rows = [
        as_column(codes, np.int64, f"{what} of predicate {i}", length)
        for i, codes in enumerate(columns)
    ]
    return (
        rows[0][np.newaxis]
        if len(rows) == 1
        else np.array(rows, np.int64).reshape(len(rows), length)
    )


def ranges_for(
    conditions: Sequence[Condition],
    columns: Sequence[np.ndarray],
    start: np.ndarray | None = None,
    stop: np.ndarray | None = None,
) -> Ranges:
    """Return the ranges that satisfy *conditions* for probes with *columns*, one per condition.

    A probe with a NaN has an empty range. Windows are those of `make_ranges`.
    """
    m = len(columns[0]) if columns else 0
    low, high = np.empty((2, len(columns), m), np.int64)
    for row, (condition, values) in enumerate(zip(conditions, columns, strict=True)):
        low[row], high[row] = condition.bounds(values)
    return Ranges(
        low,
        high,
        np.array([condition.operator.negated for condition in conditions], np.bool_),
        *_windows(m, start, stop),
    )


def stored_codes(
    conditions: Sequence[Condition], columns: Sequence[np.ndarray]
) -> list[np.ndarray]:
    """Return what an index for *conditions* stores of tuples with *columns*, one per condition.

    Raise :exc:`ValueError` naming the field and the row of a NaN.
    """
    codes = []
    for condition, values in zip(conditions, columns, strict=True):
        if values.dtype.kind == "f" and np.isnan(values).any():
            raise ValueError(
                f"{condition.stored_field}: row {np.isnan(values).argmax()} is NaN, which has no "
                "place in an order; drop it first"
            )
        codes.append(encode(values.astype(condition.dtype, copy=False)))
    return codes


def ranges_of(
    conditions: Sequence[Condition],
    batch: Batch,
    start: np.ndarray | None = None,
    stop: np.ndarray | None = None,
    rows: RowSelection = slice(None),
) -> Ranges:
    """Return the ranges that some *rows* of a batch probe with; windows are those of these rows."""
    columns = [batch.fields[condition.probe_field][rows] for condition in conditions]
    return ranges_for(conditions, columns, start, stop)


def codes_of(
    conditions: Sequence[Condition], batch: Batch, rows: RowSelection = slice(None)
) -> list[np.ndarray]:
    """Return what an index for *conditions* stores of some *rows* of a batch.

    Raise :exc:`ValueError` as `stored_codes` does.
    """
    columns = [batch.fields[condition.stored_field][rows] for condition in conditions]
    return stored_codes(conditions, columns)


def _check_predicates(expected: int, **arguments: Sized) -> None:
    """Raise :exc:`ValueError` naming the first of *arguments* without *expected* entries."""
    for name, entries in arguments.items():
        if len(entries) != expected:
            raise ValueError(f"{name}: {len(entries)} given for {expected} predicates")


def check_columns(
    predicates: int, columns: Sequence[np.ndarray], positions: np.ndarray
) -> tuple[list[np.ndarray], np.ndarray]:
    """Return tuples to store as columns that kernels can take, and their positions.

    Raise :exc:`ValueError` or :exc:`TypeError` when a column is missing, not int64 or of another
    length.
    """
    _check_predicates(predicates, columns=columns)
    positions = as_column(positions, np.int64, "positions")
    n = len(positions)
    codes = [as_column(one, np.int64, f"column {i}", n) for i, one in enumerate(columns)]
    return codes, positions


def check_ranges(ranges: Ranges, predicates: int) -> None:
    """Raise :exc:`ValueError` when *ranges* are not of so many predicates."""
    _check_predicates(predicates, ranges=ranges.negated)


class Sought(NamedTuple):
    """What one probe looks for by one predicate, for kernels that answer a probe at a time."""

    low: int
    high: int
    """The codes, both ends included."""
    start: int
    stop: int
    """The positions: *start* to *stop* - 1."""
    row: int
    """Its row of the output."""


@inlined
def in_range(ranges: Ranges, predicate: int, row: int, code: int) -> bool:
    """Return whether a stored value with this *code* satisfies one predicate of a probe."""
    inside = ranges.low[predicate, row] <= code and code <= ranges.high[predicate, row]
    return bool(inside != ranges.negated[predicate])


@kernel
def window_in(first: int, tuples: int, start: int, stop: int) -> tuple[int, int]:
    """Return which tuples, counted from 0 at *first*, are at positions *start* to *stop* - 1."""
    last = first + tuples
    # Clamped before subtracting: an unbounded window is the smallest and the largest int64.
    return min(max(start, first), last) - first, min(max(stop, first), last) - first


class Index(Protocol):
    """Tuples of one stream that come and go, and answer probes.

    Positions ascend from one insertion to the next, and need not be contiguous: a joiner may store
    every k-th tuple of a stream.
    """

    def probe(self, ranges: Ranges, *, enumerate: bool = False) -> ProbeResult:
        """Return for every probe the tuples that satisfy all predicates and lie in its window.

        With *enumerate* list their positions too. Raise :exc:`ValueError` when the ranges are not
        of its predicates.
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
        """Store tuples: an int64 column of codes per predicate, and their int64 positions.

        Raise :exc:`ValueError` when positions do not ascend, :exc:`TypeError` when a column is not
        int64.
        """

    def expire(self, before: int) -> Work:
        """Drop positions less than *before*, which no later probe will see.

        A structure that expires by whole parts may drop some of them later.
        """
