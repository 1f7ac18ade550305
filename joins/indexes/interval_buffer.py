"""A replica's state buffer for one stream of an interval join (PPOIJ, section 4).

Per key the tuples lie in a deque ordered by event time, so that those in an interval are found by
binary search, and those too old for any to come leave at the front. The deques of all keys share
one pool of columns; a deque that reaches the end of its stretch slides to its start, or moves to a
stretch twice its size. When the pool is used up it is packed anew, without what has expired, so
that memory follows the interval and not the stream.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from joins.found import Found
from joins.hashing import mix
from joins.indexes.columns import column
from joins.indexes.interval_kernels import (
    Keys,
    Pool,
    Probes,
    expire,
    find_or_add,
    list_pairs,
    probe_each,
    probe_stored,
    rebuild,
    reserve,
    store,
    take_sums,
)
from joins.work import COUNTERS, MATCHES, Work

_LEAST_KEYS = 16
_LEAST_TUPLES = 64


class Touched(NamedTuple):
    """The matches of some probes as their stored tuples see them, a row per stored tuple.

    Attributes
    ----------
    ids
        int64, the stored tuples.
    first
        int64, for each the row of the first probe that it matched.
    found
        Matches of each among the probes.
    """

    ids: np.ndarray
    first: np.ndarray
    found: Found


class IntervalBuffer:
    """One stream's tuples by key and event time.

    Parameters
    ----------
    conditions
        Number of conditions beside key and time.
    """

    def __init__(self, conditions: int) -> None:
        self._conditions = conditions
        self._allocate(_LEAST_KEYS, _LEAST_TUPLES)

    def __len__(self) -> int:
        used = self._keys.used[0]
        return int((self._keys.tail[:used] - self._keys.head[:used]).sum())

    @property
    def nbytes(self) -> int:
        """Bytes that its arrays occupy."""
        return sum(array.nbytes for array in (*self._keys, *self._pool, self._need))

    def insert(
        self,
        key: np.ndarray,
        ts: np.ndarray,
        ids: np.ndarray,
        values: np.ndarray,
        *,
        horizon: int,
        floor: int,
    ) -> Work:
        """Store tuples, first letting go of older ones.

        Parameters
        ----------
        key, ts, ids
            int64 columns.
        values
            int64, shape (conditions, tuples).
        horizon
            Least event time still of use among tuples of these keys.
        floor
            The same among all tuples, at most *horizon*.
        """
        rows = len(key)
        key = column(key, np.int64, "key")
        ts, ids = column(ts, np.int64, "ts", rows), column(ids, np.int64, "ids", rows)
        counters = np.zeros(len(COUNTERS), np.int64)
        if self._keys.used[0] + rows > len(self._keys.key):
            self._pack(floor, rows, counters)
        slots = np.empty(rows, np.int64)
        find_or_add(self._keys, key, slots, counters)
        if not reserve(self._keys, self._pool, slots, self._need, horizon, counters):
            self._pack(floor, rows, counters)
            find_or_add(self._keys, key, slots, counters)
            fits = reserve(self._keys, self._pool, slots, self._need, horizon, counters)
            assert fits, "a packed pool has room for every key touched to double"
        store(self._keys, self._pool, slots, ts, ids, values, counters)
        return Work.from_counters(counters)

    def probe(self, probes: Probes, *, enumerate: bool = False) -> Found:
        """Find for every probe the stored tuples it matches."""
        counters = np.zeros(len(COUNTERS), np.int64)
        count = np.empty(len(probes.key), np.int64)
        fingerprint = np.empty(len(probes.key), np.uint64)
        probe_each(self._keys, self._pool, probes, count, fingerprint, counters)
        match_id = None
        if enumerate:
            _, match_id = self._pairs(probes, int(counters[MATCHES]))
        return Found(
            count=count,
            fingerprint=fingerprint,
            match_id=match_id,
            work=Work.from_counters(counters),
        )

    def probe_stored(self, probes: Probes, ids: np.ndarray, *, enumerate: bool = False) -> Touched:
        """Find the stored tuples that the probes, tuples *ids*, match, and which match each."""
        counters = np.zeros(len(COUNTERS), np.int64)
        places = np.empty(len(self), np.int64)
        listed = probe_stored(self._keys, self._pool, probes, mix(ids), places, counters)
        stored = np.empty(listed, np.int64)
        count, first = np.empty(listed, np.int64), np.empty(listed, np.int64)
        fingerprint = np.empty(listed, np.uint64)
        take_sums(self._pool, places[:listed], stored, count, fingerprint, first)
        match_id = None
        if enumerate:
            row, of = self._pairs(probes, int(counters[MATCHES]))
            by_id = np.argsort(stored)
            place = by_id[np.searchsorted(stored, of, sorter=by_id)]
            match_id = ids[row[np.argsort(place, kind="stable")]]
        found = Found(
            count=count,
            fingerprint=fingerprint,
            match_id=match_id,
            work=Work.from_counters(counters),
        )
        return Touched(stored, first, found)

    def expire(self, horizon: int) -> Work:
        """Let go of all tuples before *horizon*."""
        counters = np.zeros(len(COUNTERS), np.int64)
        expire(self._keys, self._pool, horizon, counters)
        return Work.from_counters(counters)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain arrays."""
        slots, places = self._keys.used
        return {
            "conditions": self._conditions,
            "room": [len(self._keys.key), len(self._pool.ts)],
            "table": self._keys.table.copy(),
            "slots": np.stack([array[:slots] for array in self._keys[1:-1]]),
            "places": int(places),
            "tuples": np.concatenate([np.stack([self._pool.ts, self._pool.id]), self._pool.values])[
                :, :places
            ],
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> IntervalBuffer:
        """Return the buffer that `snapshot` described."""
        buffer = cls(snapshot["conditions"])
        buffer._allocate(*snapshot["room"])
        buffer._keys.table[:] = snapshot["table"]
        slots, places = snapshot["slots"], snapshot["places"]
        for array, saved in zip(buffer._keys[1:-1], slots, strict=True):
            array[: len(saved)] = saved
        buffer._keys.used[:] = slots.shape[1], places
        ts, ids, *values = snapshot["tuples"]
        buffer._pool.ts[:places], buffer._pool.id[:places] = ts, ids
        for row, saved in zip(buffer._pool.values, values, strict=True):
            row[:places] = saved
        return buffer

    def _pairs(self, probes: Probes, matches: int) -> tuple[np.ndarray, np.ndarray]:
        row, stored = np.empty(matches, np.int64), np.empty(matches, np.int64)
        list_pairs(self._keys, self._pool, probes, row, stored, np.zeros(len(COUNTERS), np.int64))
        return row, stored

    def _pack(self, floor: int, rows: int, counters: np.ndarray) -> None:
        """Move into arrays with room for *rows* more, of any keys, and for growth."""
        keys, pool = self._keys, self._pool
        live = expire(keys, pool, floor, counters)
        used = keys.used[0]
        live_keys = int((keys.tail[:used] > keys.head[:used]).sum())
        # Twice what is there for the next packing to be far, and twice again because each key that
        # is touched may move to a stretch twice its size.
        self._allocate(
            max(_LEAST_KEYS, 2 * (live_keys + rows)), max(_LEAST_TUPLES, 4 * (live + rows))
        )
        rebuild(keys, pool, self._keys, self._pool, counters)

    def _allocate(self, slots: int, tuples: int) -> None:
        table = 1 << (2 * slots - 1).bit_length()
        self._keys = Keys(
            np.zeros(table, np.int64),
            np.zeros(slots, np.int64),
            np.zeros(slots, np.int64),
            np.zeros(slots, np.int64),
            np.zeros(slots, np.int64),
            np.zeros(slots, np.int64),
            np.zeros(2, np.int64),
        )
        self._pool = Pool(
            np.zeros(tuples, np.int64),
            np.zeros(tuples, np.int64),
            np.zeros((self._conditions, tuples), np.int64),
            np.zeros(tuples, np.int64),
            np.zeros(tuples, np.uint64),
            np.zeros(tuples, np.int64),
        )
        self._need = np.zeros(slots, np.int64)
