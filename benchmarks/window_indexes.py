"""Every window index on the same sliding window of real trips: tuples a second of processor time.

In the clock: inserting, probing and expiring, from tuples in memory to matches counted; processor
time.

Yellow-taxi trips come in batches of a twentieth of the window. A batch is inserted, each of its
trips looks for its matches among the window's trips before it, and what no later trip can see
expires. Two self joins: Q3, the trips farther and cheaper than an earlier one, over a window of
10,000 that a cache holds and one of 200,000 that it does not, for which the trips come twice; and
for the hash table, which needs an equality, those from the same place and cheaper. Beside the
window indexes stand sealed segments, a batch in each; the chain index has as many parts. Counts and
fingerprints are compared with brute force; filling the window is not timed.

Run: ``python -m benchmarks.window_indexes [--json]``
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.measure import Result, report
from joins.hashing import mix
from joins.indexes.immutable.segment import ImmutableSegment
from joins.indexes.index import Ranges, ranges_for, stored_codes
from joins.indexes.structures import SEGMENTS, WINDOW_INDEXES, make_window_index
from joins.matches import ProbeResult
from joins.queries.conditions import OPERATORS, Condition
from scenarios.streams import SAMPLES

_FILE = SAMPLES / "yellow_taxi_sample.parquet"
_PARTS = 20  # Batches of a window, and so sealed segments; sub-indexes of the chain index.
_REPEATS = 3
_SEALED = ("po_join", "css_bits", "prefix_grid")
_QUERIES = {
    # Predicates as stored trips see them: Q3 has NEW.distance > OLD.distance, NEW.fare < OLD.fare.
    "Q3": (("trip_distance", "<", "float64"), ("fare_amount", ">", "float64")),
    "equal place": (("pickup_location_id", "=", "int64"), ("fare_amount", ">", "float64")),
}
# Query, trips of the window, trips that are timed.
_WORKS = (("Q3", 10_000, 20_000), ("Q3", 200_000, 10_000), ("equal place", 10_000, 20_000))


class SealedBatches:
    """A window of sealed segments, with as much of `Index` as is needed here."""

    def __init__(self, segment_type: type[ImmutableSegment]) -> None:
        self._type = segment_type
        self._segments: list[ImmutableSegment] = []

    def insert(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> None:
        """Sort and seal the batch."""
        self._segments.append(self._type.from_columns(columns, first=int(positions[0])))

    def probe(self, ranges: Ranges) -> ProbeResult:
        """Probe every segment."""
        return ProbeResult.sum([segment.probe(ranges) for segment in self._segments])

    def expire(self, before: int) -> None:
        """Drop the segments that lie before it as a whole."""
        self._segments = [s for s in self._segments if s.first + len(s) > before]


def make(name: str, conditions: Sequence[Condition], window: int) -> Any:
    """Return an empty index."""
    if name in _SEALED:
        return SealedBatches(SEGMENTS[name])
    options = {"length": window // _PARTS} if name == "chain_index" else {}
    return make_window_index(name, conditions, **options)


def run(
    index: Any, conditions: Sequence[Condition], columns: Sequence[np.ndarray], window: int
) -> tuple[dict[str, float], np.ndarray, np.ndarray]:
    """Join the trips that see a full window; return seconds, and counts and fingerprints."""
    batch = window // _PARTS
    seconds = {"insert": 0.0, "probe": 0.0, "expire": 0.0}
    counts, fingerprints = [], []
    for first in range(0, len(columns[0]), batch):
        positions = np.arange(first, first + batch)
        fresh = [column[first : first + batch] for column in columns]
        ranges = ranges_for(conditions, fresh, positions - window, positions)
        at_0 = time.process_time()
        index.insert(stored_codes(conditions, fresh), positions)
        if first < window:
            continue
        at_1 = time.process_time()
        found = index.probe(ranges)
        at_2 = time.process_time()
        index.expire(first + batch - window)
        at_3 = time.process_time()
        seconds["insert"] += at_1 - at_0
        seconds["probe"] += at_2 - at_1
        seconds["expire"] += at_3 - at_2
        counts.append(found.count)
        fingerprints.append(found.fingerprint)
    return seconds, np.concatenate(counts), np.concatenate(fingerprints)


def brute_force(
    conditions: Sequence[Condition], columns: Sequence[np.ndarray], window: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return count and fingerprint of every trip that sees a full window."""
    mixed = mix(np.arange(len(columns[0])))
    count, fingerprint = [], []
    for row in range(window, len(columns[0])):
        seen = slice(row - window, row)
        match = np.ones(window, bool)
        for condition, column in zip(conditions, columns, strict=True):
            match &= condition.holds(column[row : row + 1], column[seen])
        count.append(np.count_nonzero(match))
        fingerprint.append(mixed[seen][match].sum(dtype=np.uint64))
    return np.array(count), np.array(fingerprint)


def measure() -> list[Result]:
    """Return for every query and index what a batch costs, as tuples a second."""
    results = []
    for query, window, timed in _WORKS:
        predicates = _QUERIES[query]
        fields = [field for field, _, _ in predicates]
        conditions = [
            Condition(probe_field=field, stored_field=field, operator=OPERATORS[op], dtype=dtype)
            for field, op, dtype in predicates
        ]
        table = pq.read_table(_FILE, columns=fields)
        columns = [
            np.resize(table[c.stored_field].to_numpy(), window + timed).astype(c.dtype)
            for c in conditions
        ]
        expected = brute_force(conditions, columns, window)
        for name in (*_SEALED, *WINDOW_INDEXES):
            if name == "hash" and not any(c.operator.is_equality for c in conditions):
                continue
            runs = []
            for repeat in range(_REPEATS + 1):
                seconds, *found = run(make(name, conditions, window), conditions, columns, window)
                if not all(map(np.array_equal, found, expected)):
                    raise SystemExit(f"{name}, {query}, {window}: not what brute force finds")
                if repeat:  # the first one compiles
                    runs.append(seconds)
            parts = (f"{timed / np.median([r[part] for r in runs]):,.0f}" for part in runs[0])
            results.append(
                Result.rate(
                    f"{query}, {window:,}: {name}",
                    timed,
                    [sum(seconds.values()) for seconds in runs],
                    unit="tuples/s",
                    note=" / ".join(parts),
                )
            )
    return results


if __name__ == "__main__":
    report("window indexes (notes: insert / probe / expire)", measure())
