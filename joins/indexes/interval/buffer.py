"""A replica's state buffer for one stream of an interval join (PPOIJ, section 4).

Per key the tuples lie in a deque ordered by event time, so that those in an interval are found by
galloping and binary search, and those too old for any to come leave at the front. The deques of all
keys share one pool of columns; a deque that reaches the end of its stretch slides to its start, or
moves to a stretch twice its size. (As a ring it would not slide, but its ranges would be in two
pieces.) When the pool is used up it is packed anew, without what has expired, so that memory
follows the interval and not the stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from joins.indexes.interval.kernels import Keys, Pool, expire, rebuild, reserve, store
from joins.indexes.interval.key_groups import KeyGroups
from joins.indexes.interval.probe import (
    Found,
    Probes,
    Ranges,
    find_probes,
    find_reached,
    find_stored,
    list_matches,
    sum_up,
)
from joins.machine.lanes import LOOKAHEAD
from joins.work import COUNTERS, MATCHES, Work

_LEAST_KEYS = 16
_LEAST_TUPLES = 64


@dataclass(frozen=True)
class Partners:
    """What probes and stored tuples found in each other, a row per tuple of one of the two sides.

    Attributes
    ----------
    ids
        int64, the tuples.
    row
        int64, the probe that each is or, of stored tuples, the earliest that it matches.
    count
        int64, how many of the other side match it, at least one.
    fingerprint
        uint64, the wrapping sum of their ``splitmix64(id)``.
    match_id
        int64, their ids, row by row; None when only counted.
    work
        What it cost.
    """

    ids: np.ndarray
    row: np.ndarray
    count: np.ndarray
    fingerprint: np.ndarray
    match_id: np.ndarray | None
    work: Work


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
        return sum(array.nbytes for array in (*self._keys, *self._pool))

    def insert(
        self,
        groups: KeyGroups,
        values: np.ndarray,
        *,
        horizon: int,
        floor: int,
    ) -> Work:
        """Store tuples, first letting go of older ones.

        Parameters
        ----------
        groups
            The tuples.
        values
            int64, a row per condition, a column per row of the batch that was grouped.
        horizon
            Least event time still of use among tuples of these keys.
        floor
            The same among all tuples, at most *horizon*.
        """
        counters = np.zeros(len(COUNTERS), np.int64)
        if self._keys.used[0] + len(groups.keys) > len(self._keys.key):
            self._pack(floor, groups, counters)
        slots = np.empty(len(groups.keys), np.int64)
        if not reserve(self._keys, self._pool, groups, slots, horizon, counters):
            self._pack(floor, groups, counters)
            fits = reserve(self._keys, self._pool, groups, slots, horizon, counters)
            assert fits, "a packed pool has room for every key touched to double"
        store(self._keys, self._pool, groups, slots, values, counters)
        return Work.from_counters(counters)

    def probe(self, groups: KeyGroups, probes: Probes, *, enumerate: bool = False) -> Partners:
        """Find for each probe the stored tuples that it matches."""
        counters = np.zeros(len(COUNTERS), np.int64)
        begin, end = np.empty((2, len(groups.order)), np.int64)
        find_stored(self._keys, self._pool, groups, probes, begin, end, counters)
        ranges, pool = Ranges(groups.order, groups.ids, begin, end, True), self._pool
        return self._match(ranges, pool.sums, pool.id, groups, probes, counters, enumerate)

    def probe_stored(
        self, groups: KeyGroups, probes: Probes, *, enumerate: bool = False
    ) -> Partners:
        """Find for each stored tuple the probes that match it."""
        counters = np.zeros(len(COUNTERS), np.int64)
        first, past = np.empty((2, len(groups.keys)), np.int64)
        reached = find_reached(self._keys, self._pool, groups, probes, first, past, counters)
        place, stored, begin, end = np.empty((4, reached), np.int64)
        ranges = Ranges(place, stored, begin, end, False)
        find_probes(self._pool, groups, probes, first, past, ranges, counters)
        return self._match(ranges, groups.sums, groups.ids, groups, probes, counters, enumerate)

    def expire(self, horizon: int) -> Work:
        """Let go of all tuples before *horizon*."""
        counters = np.zeros(len(COUNTERS), np.int64)
        expire(self._keys, self._pool, horizon, counters)
        return Work.from_counters(counters)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain arrays."""
        slots, places = self._keys.used
        pool, taken = self._pool, self._taken()
        columns = [pool.ts, pool.id, pool.sums.view(np.int64), *pool.values]
        return {
            "conditions": self._conditions,
            "room": [len(self._keys.key), len(pool.id)],
            "table": self._keys.table.copy(),
            "slots": np.stack([array[:slots] for array in self._keys[1:-1]]),
            "places": int(places),
            "tuples": np.stack([array[taken] for array in columns]),
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> IntervalBuffer:
        """Return the buffer that `snapshot` described."""
        buffer = cls(snapshot["conditions"])
        buffer._allocate(*snapshot["room"])
        keys, pool = buffer._keys, buffer._pool
        keys.table[:] = snapshot["table"]
        slots = snapshot["slots"]
        for array, saved in zip(keys[1:-1], slots, strict=True):
            array[: len(saved)] = saved
        keys.used[:] = slots.shape[1], snapshot["places"]
        taken = buffer._taken()
        columns = [pool.ts, pool.id, pool.sums.view(np.int64), *pool.values]
        for array, saved in zip(columns, snapshot["tuples"], strict=True):
            array[taken] = saved
        return buffer

    def _taken(self) -> np.ndarray:
        """Return the places that hold something: each key's tuples, and the sum behind them."""
        used = self._keys.used[0]
        head, tail = self._keys.head[:used], self._keys.tail[:used]
        rows = tail - head + 1
        return np.repeat(head - rows.cumsum() + rows, rows) + np.arange(rows.sum())

    def _match(
        self,
        ranges: Ranges,
        sums: np.ndarray,
        ids: np.ndarray,
        groups: KeyGroups,
        probes: Probes,
        counters: np.ndarray,
        enumerate: bool,
    ) -> Partners:
        """Return what the ranges found, of tuples with *sums* and *ids*."""
        values, order = self._pool.values, groups.order
        of, row, count = np.empty((3, len(ranges.of)), np.int64)
        found = Found(of, row, count, np.empty(len(ranges.of), np.uint64))
        rows = sum_up(ranges, sums, values, probes, order, found, counters)
        match_id = None
        if enumerate:
            match_id = np.empty(counters[MATCHES], np.int64)
            list_matches(ranges, ids, values, probes, order, match_id)
        return Partners(
            ids=of[:rows],
            row=row[:rows],
            count=count[:rows],
            fingerprint=found.fingerprints[:rows],
            match_id=match_id,
            work=Work.from_counters(counters),
        )

    def _pack(self, floor: int, groups: KeyGroups, counters: np.ndarray) -> None:
        """Move into arrays with room for *groups*, of any keys, and for growth."""
        keys, pool = self._keys, self._pool
        live = expire(keys, pool, floor, counters)
        used = keys.used[0]
        live_keys = int((keys.tail[:used] > keys.head[:used]).sum())
        # Twice what is there for the next packing to be far, and four times because each key that
        # is touched may move to a stretch of four times its tuples.
        self._allocate(
            max(_LEAST_KEYS, 2 * (live_keys + len(groups.keys))),
            max(_LEAST_TUPLES, 6 * (live + len(groups.order))),
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
            np.zeros(tuples + LOOKAHEAD, np.int64),
            np.zeros(tuples, np.int64),
            np.zeros(tuples, np.uint64),
            np.zeros((self._conditions, tuples), np.int64),
        )
