"""Every window index on the same sliding window of real trips: tuples a second of processor time.

Yellow-taxi trips come in batches. A batch is inserted, each of its trips looks for its matches
among the 10,000 before it, and what no later trip can see expires. Two self joins: Q3, the trips
farther and cheaper than an earlier one; and for the hash table, which needs an equality, those from
the same place and cheaper. Beside the window indexes stand PO-Join segments, a batch sealed in
each. Counts and fingerprints are compared with brute force; filling the window is not timed.

Run: ``python -m benchmarks.window_indexes [--json]``
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.measure import Result, report
from joins.conditions import Condition
from joins.found import Found
from joins.hashing import mix
from joins.indexes.listing import add_up
from joins.indexes.po_join import PoJoinSegment
from joins.indexes.window_indexes import WINDOW_INDEXES

_FILE = Path(__file__).resolve().parent.parent / "data" / "yellow_taxi_sample.parquet"
_WINDOW = 10_000
_BATCH = 500
_TIMED = 20_000
_REPEATS = 3
_QUERIES = {
    # Predicates as stored trips see them: Q3 has NEW.distance > OLD.distance, NEW.fare < OLD.fare.
    "Q3": (("trip_distance", "<", "float64"), ("fare_amount", ">", "float64")),
    "equal place": (("pickup_location_id", "=", "int64"), ("fare_amount", ">", "float64")),
}
_OPTIONS = {"chain_index": {"length": 1000}}


class SealedBatches:
    """A window of PO-Join segments, with as much of `WindowIndex` as is needed here."""

    def __init__(self) -> None:
        self._segments: list[PoJoinSegment] = []

    def insert(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> None:
        """Sort and seal the batch."""
        self._segments.append(PoJoinSegment.from_columns(columns, first=int(positions[0])))

    def probe(self, *ranges: Sequence[np.ndarray], **window: Any) -> Found:
        """Probe every segment."""
        return add_up([segment.probe(*ranges, **window) for segment in self._segments])

    def expire(self, before: int) -> None:
        """Drop the segments that lie before it as a whole."""
        self._segments = [s for s in self._segments if s.first + len(s) > before]


def make(name: str, conditions: Sequence[Condition]) -> Any:
    """Return an empty index."""
    if name == "po_join":
        return SealedBatches()
    return WINDOW_INDEXES[name](conditions, **_OPTIONS.get(name, {}))


def run(
    index: Any, conditions: Sequence[Condition], columns: Sequence[np.ndarray]
) -> tuple[dict[str, float], np.ndarray, np.ndarray]:
    """Join all trips; return seconds spent on full windows, and counts and fingerprints there."""
    seconds = {"insert": 0.0, "probe": 0.0, "expire": 0.0}
    counts, fingerprints = [], []
    for first in range(0, len(columns[0]), _BATCH):
        positions = np.arange(first, first + _BATCH)
        fresh = [column[first : first + _BATCH] for column in columns]
        low, high = zip(
            *(c.bounds(values) for c, values in zip(conditions, fresh, strict=True)), strict=True
        )
        window = {"start": positions - _WINDOW, "stop": positions}
        at_0 = time.process_time()
        index.insert(fresh, positions)
        at_1 = time.process_time()
        found = index.probe(low, high, negated=[False] * len(low), **window)
        at_2 = time.process_time()
        index.expire(first + _BATCH - _WINDOW)
        at_3 = time.process_time()
        if first >= _WINDOW:
            seconds["insert"] += at_1 - at_0
            seconds["probe"] += at_2 - at_1
            seconds["expire"] += at_3 - at_2
            counts.append(found.count)
            fingerprints.append(found.fingerprint)
    return seconds, np.concatenate(counts), np.concatenate(fingerprints)


def brute_force(
    conditions: Sequence[Condition], columns: Sequence[np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Return count and fingerprint of every trip that sees a full window."""
    mixed = mix(np.arange(len(columns[0])))
    count, fingerprint = [], []
    for row in range(_WINDOW, len(columns[0])):
        seen = slice(row - _WINDOW, row)
        match = np.ones(_WINDOW, bool)
        for condition, column in zip(conditions, columns, strict=True):
            match &= condition.holds(column[row : row + 1], column[seen])
        count.append(np.count_nonzero(match))
        fingerprint.append(mixed[seen][match].sum(dtype=np.uint64))
    return np.array(count), np.array(fingerprint)


def measure() -> list[Result]:
    """Return for every query and index what a batch costs, as tuples a second."""
    results = []
    for query, predicates in _QUERIES.items():
        fields = [field for field, _, _ in predicates]
        conditions = [
            Condition(probe_field=field, stored_field=field, operator=op, epsilon=None, dtype=dtype)
            for field, op, dtype in predicates
        ]
        table = pq.read_table(_FILE, columns=fields).slice(0, _WINDOW + _TIMED)
        columns = [table[c.stored_field].to_numpy().astype(c.dtype) for c in conditions]
        expected = brute_force(conditions, columns)
        for name in ("po_join", *WINDOW_INDEXES):
            if name == "hash" and not any(c.operator == "=" for c in conditions):
                continue
            runs = []
            for repeat in range(_REPEATS + 1):
                seconds, *found = run(make(name, conditions), conditions, columns)
                if not all(map(np.array_equal, found, expected)):
                    raise SystemExit(f"{name}, {query}: not what brute force finds")
                if repeat:  # the first one compiles
                    runs.append(seconds)
            parts = (f"{_TIMED / np.median([r[part] for r in runs]):,.0f}" for part in runs[0])
            results.append(
                Result.rate(
                    f"{query}: {name}",
                    _TIMED,
                    [sum(seconds.values()) for seconds in runs],
                    unit="tuples/s",
                    note=" / ".join(parts),
                )
            )
    return results


if __name__ == "__main__":
    report("window indexes (notes: insert / probe / expire)", measure())
