"""A window's tuples as columns in the order of their positions, which most window indexes keep.

Keys are kept as int64 whatever their dtype: a float is kept as its place in the order of all
floats. So kernels are compiled once for any mix of predicates, and -0.0 and 0.0, which are equal,
are one key to a hash table as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from joins.indexes.columns import column, key_dtype, keys_column, window_columns
from joins.indexes.search import lower_bound
from joins.indexes.windows.window_index import Ranges
from joins.machine.compiling import kernel
from joins.work import COUNTERS, Work

_CAPACITY_MIN = 64
_INT64_MIN = np.iinfo(np.int64).min


class WindowProbes(NamedTuple):
    """The probes of one call, in the terms of `WindowTuples`; m probes, p predicates.

    Attributes
    ----------
    low, high
        int64, shape (p, m): ranges of kept keys, both ends inclusive.
    negated
        bool, a predicate each: the range is what must not match.
    begin, end
        int64: probe i sees the places begin[i] to end[i] - 1, none when they are equal.
    """

    low: np.ndarray
    high: np.ndarray
    negated: np.ndarray
    begin: np.ndarray
    end: np.ndarray


class WindowTuples:
    """Columns that are appended to at the end and let go of at the front.

    A tuple's *place* is its row in the arrays; it changes when they are moved to make room, which
    `append` does. Its *serial*, place + shift, never does: it counts the tuples before it.

    Attributes
    ----------
    keys
        int64, shape (p, capacity): a row per predicate; see the module's text.
    positions
        int64, stream positions.
    begin, end
        Tuples held are those at places begin to end - 1.
    shift
        Serial less place.
    """

    def __init__(self, dtypes: Sequence[Any]) -> None:
        if not dtypes:
            raise ValueError("a window index needs at least one predicate")
        self.dtypes = tuple(key_dtype(dtype, f"predicate {i}") for i, dtype in enumerate(dtypes))
        self.begin = self.end = self.shift = 0
        self._allocate(_CAPACITY_MIN)

    def __len__(self) -> int:
        return self.end - self.begin

    @property
    def nbytes(self) -> int:
        """Bytes that the columns occupy, room for more tuples included."""
        return self.keys.nbytes + self.positions.nbytes

    def append(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Append tuples.

        Raise :exc:`ValueError` or :exc:`TypeError` when a column is missing, of another dtype or
        length, when a key is NaN, or when positions do not ascend; nothing is appended then.
        """
        self._check_count("columns", columns)
        positions = column(positions, np.int64, "positions")
        n = len(positions)
        keys = [
            in_order(keys_column(values, dtype, f"column {i}", n))
            for i, (values, dtype) in enumerate(zip(columns, self.dtypes, strict=True))
        ]
        self._check_ascent(positions)
        moved = self._make_room(n)
        for row, values in zip(self.keys, keys, strict=True):
            row[self.end : self.end + n] = values
        self.positions[self.end : self.end + n] = positions
        self.end += n
        return Work(moves=moved, bytes_copied=(len(keys) + 1) * positions.nbytes)

    def drop(self, before: int) -> tuple[int, Work]:
        """Let go of positions less than *before*; return how many and what finding them cost."""
        counters = np.zeros(len(COUNTERS), np.int64)
        begin = int(lower_bound(self.positions, self.begin, self.end, before, counters))
        dropped = begin - self.begin
        self.begin = begin
        return dropped, Work.from_counters(counters)

    def probes(self, ranges: Ranges) -> tuple[WindowProbes, Work]:
        """Return *ranges*, checked, in kept keys and places; and what finding these cost.

        Raise :exc:`ValueError` or :exc:`TypeError` when one does not fit the predicates.
        """
        low, high, negated, start, stop = ranges
        for name, given in (("low", low), ("high", high), ("negated", negated)):
            self._check_count(name, given)
        m = len(low[0])
        least, most = np.empty((2, len(self.dtypes), m), np.int64)
        for keys, name, given in ((least, "low", low), (most, "high", high)):
            for i, (values, dtype) in enumerate(zip(given, self.dtypes, strict=True)):
                keys[i] = in_order(keys_column(values, dtype, f"{name} of predicate {i}", m))
        places = np.empty((2, m), np.int64)
        counters = np.zeros(len(COUNTERS), np.int64)
        for found, bounds in zip(places, window_columns(start, stop, m), strict=True):
            _find_places(self.positions, self.begin, self.end, bounds, found, counters)
        begin, end = places
        flags = np.array(negated, np.bool_)
        probes = WindowProbes(least, most, flags, begin, np.maximum(begin, end))
        return probes, Work.from_counters(counters)

    def snapshot(self) -> dict[str, Any]:
        """Return the tuples and how they lie; so that a restored window does the same work."""
        held = slice(self.begin, self.end)
        return {
            "dtypes": [dtype.name for dtype in self.dtypes],
            "keys": self.keys[:, held].copy(),
            "positions": self.positions[held].copy(),
            "begin": self.begin,
            "shift": self.shift,
            "capacity": len(self.positions),
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> WindowTuples:
        """Return the tuples that `snapshot` described."""
        tuples = cls(snapshot["dtypes"])
        tuples._allocate(int(snapshot["capacity"]))
        tuples.begin, tuples.shift = int(snapshot["begin"]), int(snapshot["shift"])
        tuples.end = tuples.begin + len(snapshot["positions"])
        held = slice(tuples.begin, tuples.end)
        tuples.keys[:, held] = snapshot["keys"]
        tuples.positions[held] = snapshot["positions"]
        return tuples

    def _allocate(self, capacity: int) -> None:
        self.keys = np.zeros((len(self.dtypes), capacity), np.int64)
        self.positions = np.zeros(capacity, np.int64)

    def _make_room(self, more: int) -> int:
        """Move the tuples to the front when *more* do not fit; return how many were moved.

        As much room as there are tuples is left, so that a tuple is moved once on average however
        long the stream; and the arrays become small again after a burst.
        """
        if self.end + more <= len(self.positions):
            return 0
        held = slice(self.begin, self.end)
        keys, positions, moved = self.keys[:, held], self.positions[held], len(self)
        self._allocate(max(_CAPACITY_MIN, 2 * (moved + more)))
        self.keys[:, :moved] = keys
        self.positions[:moved] = positions
        self.shift += self.begin
        self.begin, self.end = 0, moved
        return moved

    def _check_count(self, name: str, given: Sequence[Any]) -> None:
        if len(given) != len(self.dtypes):
            raise ValueError(f"{name}: {len(given)} given for {len(self.dtypes)} predicates")

    def _check_ascent(self, positions: np.ndarray) -> None:
        last = self.positions[max(self.begin, self.end - 1) : self.end]
        before = np.concatenate([last, positions])
        wrong = np.flatnonzero(before[1:] <= before[:-1])
        if len(wrong):
            earlier, later = before[wrong[0] : wrong[0] + 2]
            raise ValueError(f"positions: {later} comes after {earlier}; they must ascend")


def in_order(values: np.ndarray) -> np.ndarray:
    """Return int64 numbers that compare as *values* (int64, or float64 without NaN) do."""
    if values.dtype == np.int64:
        return values
    bits = values.view(np.int64)
    # Negative floats have the sign bit set and grow in bits as they fall in value.
    return np.where(bits >= 0, bits, _INT64_MIN - bits)


@kernel
def satisfies(
    keys: np.ndarray, place: int, probes: WindowProbes, predicate: int, probe: int
) -> bool:
    """Tell whether the tuple at *place* satisfies one predicate of a probe."""
    key = keys[predicate, place]
    inside = probes.low[predicate, probe] <= key and key <= probes.high[predicate, probe]
    return inside != probes.negated[predicate]


@kernel
def _find_places(
    positions: np.ndarray,
    begin: int,
    end: int,
    bounds: np.ndarray,
    places: np.ndarray,
    counters: np.ndarray,
) -> None:
    for i in range(len(bounds)):
        places[i] = lower_bound(positions, begin, end, bounds[i], counters)
