"""The state buffer of one stream at a replica of an interval join (PPOIJ, section 4).

Each key has a deque of its tuples in the order of event time: those in an interval are found by
galloping, and those too old for any to come leave at the front. The deques of all keys share one
pool of columns (`joins.indexes.interval_pool`). When it is used up it is packed anew, without what
has expired, so that memory follows the interval and not the stream.

Probes of a key are in the order of time, too. So the stored tuples that a probe reaches are a
range, and from one probe to the next both its ends move forward only; seen from a stored tuple the
same is true of the probes. Whichever stream is the base, each base tuple has a range of partners,
and where key and time are the only conditions, their number and the sum of their hashes are
differences, however many they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.codes import GREATEST, LEAST
from joins.indexes.index import Ranges, in_range
from joins.indexes.interval_pool import (
    FULL,
    Keys,
    Pool,
    drop_expired,
    find_slot,
    make_keys,
    make_pool,
    rebuild,
    store_groups,
)
from joins.indexes.key_groups import KeyGroups
from joins.indexes.range_search import gallop
from joins.machine.compiling import inlined, kernel
from joins.machine.lanes import LOOKAHEAD, leading_less
from joins.matches import Matches
from joins.state import State, Stateful
from joins.work import COMPARISONS, MATCHES, Work, new_counters

_LEAST_KEYS = 16
_LEAST_TUPLES = 64


class Reach(NamedTuple):
    """What probes reach: a probe at time t stored tuples from t + *lower* to before t + *past*."""

    lower: int
    past: int
    """Nanoseconds, of any sign."""


class JoinedPairs(NamedTuple):
    """The pairs of some tuples of one stream with stored tuples of the other."""

    matches: Matches
    """A row per tuple of the base stream that has a match."""
    row: np.ndarray
    """int64, for each the row of the tuple that it was matched by; of several the earliest."""
    work: Work
    """What it cost."""


class IntervalBuffer(Stateful):
    """One stream's tuples by key and event time.

    It is no `joins.indexes.index.Index`: tuples come and are found by key and time, grouped by key
    (`KeyGroups`), and have no position that a window could end at.

    Parameters
    ----------
    conditions
        Number of conditions beside key and time.
    """

    def __init__(self, conditions: int) -> None:
        self._conditions = conditions
        self._live = 0
        self._allocate(_LEAST_KEYS, _LEAST_TUPLES)

    def __len__(self) -> int:
        return self._live

    def insert(self, groups: KeyGroups, codes: np.ndarray, *, horizon: int, floor: int) -> Work:
        """Store tuples, after dropping older ones.

        Parameters
        ----------
        groups
            The tuples.
        codes
            int64, a row per condition, a column per row of the batch that was grouped.
        horizon
            Least event time still of use among tuples of these keys.
        floor
            The same among all tuples, at most *horizon*.
        """
        counters = new_counters()
        if self._keys.used[0] + len(groups.keys) > len(self._keys.key):
            self._pack(floor, groups, counters)
        if len(groups.order):
            slots = np.empty(len(groups.keys), np.int64)
            dropped = store_groups(self._keys, self._pool, groups, slots, codes, horizon, counters)
            if dropped == FULL:
                self._pack(floor, groups, counters)
                dropped = store_groups(
                    self._keys, self._pool, groups, slots, codes, horizon, counters
                )
                assert dropped != FULL, "a packed pool has room for every key touched to double"
            self._live += len(groups.order) - dropped
        return Work.from_counters(counters)

    def probe(
        self,
        base: int,
        groups: KeyGroups,
        reach: Reach,
        conditions: Ranges,
        *,
        enumerate: bool = False,
    ) -> JoinedPairs:
        """Return the stored tuples that match each probe; *base* is the probes' stream.

        *conditions* are the further ones, in the rows of the batch; its positions are not used.
        """
        counters, pool = new_counters(), self._pool
        begin, end = np.empty((2, len(groups.order)), np.int64)
        ranges = _Partners(groups.order, groups.ids, begin, end, pool.id, pool.sums, of_probes=True)
        found = _MatchColumns.of(len(begin))
        rows = _probe(self._keys, pool, groups, reach, conditions, ranges, found, counters)
        listed = self._list(ranges, groups, conditions, counters) if enumerate else None
        return found.pairs(base, rows, listed, counters)

    def probe_stored(
        self,
        base: int,
        groups: KeyGroups,
        reach: Reach,
        conditions: Ranges,
        *,
        enumerate: bool = False,
    ) -> JoinedPairs:
        """Return the probes that match each stored tuple; *base* is the stored tuples' stream."""
        counters, pool = new_counters(), self._pool
        spans = _Spans(*np.empty((2, len(groups.keys)), np.int64))
        reached = _reach_keys(self._keys, pool, groups, reach, spans, counters)
        place, stored, begin, end = np.empty((4, reached), np.int64)
        ranges = _Partners(place, stored, begin, end, groups.ids, groups.sums, of_probes=False)
        found, rows = _MatchColumns.of(reached), 0
        if reached:
            rows = _probe_stored(pool, groups, reach, spans, conditions, ranges, found, counters)
        listed = self._list(ranges, groups, conditions, counters) if enumerate else None
        return found.pairs(base, rows, listed, counters)

    def _list(
        self, ranges: _Partners, groups: KeyGroups, conditions: Ranges, counters: np.ndarray
    ) -> np.ndarray:
        """Return the ids of the matches in *ranges*, which are counted."""
        listed = np.empty(counters[MATCHES], np.int64)
        if len(listed):
            _list_matches(ranges, self._pool.codes, conditions, groups.order, listed)
        return listed

    def expire(self, before: int) -> Work:
        """Drop all tuples older than *before*."""
        counters = new_counters()
        self._live = drop_expired(self._keys, self._pool, before, counters)
        return Work.from_counters(counters)

    def snapshot(self) -> State:
        """Return the state as plain arrays, without what is free in the pool."""
        slots, places = self._keys.used
        taken = self._taken()
        return {
            "conditions": self._conditions,
            "room": [len(self._keys.key), len(self._pool.id)],
            "table": self._keys.table.copy(),
            "slots": np.stack([array[:slots] for array in self._keys[1:-1]]),
            "places": int(places),
            "tuples": np.stack([array[taken] for array in self._columns()]),
        }

    def restore(self, state: State) -> None:
        """Go back to a state that `snapshot` returned."""
        self._conditions = state["conditions"]
        self._allocate(*state["room"])
        keys, slots = self._keys, state["slots"]
        keys.table[:] = state["table"]
        for array, saved in zip(keys[1:-1], slots, strict=True):
            array[: len(saved)] = saved
        keys.used[:] = slots.shape[1], state["places"]
        self._live = int((keys.tail - keys.head).sum())
        taken = self._taken()
        for array, saved in zip(self._columns(), state["tuples"], strict=True):
            array[taken] = saved

    def _columns(self) -> list[np.ndarray]:
        """Return the pool's columns, all int64."""
        pool = self._pool
        return [pool.ts, pool.id, pool.sums.view(np.int64), *pool.codes]

    def _taken(self) -> np.ndarray:
        """Return the places in use: each key's tuples, and the sum behind them."""
        used = self._keys.used[0]
        head, tail = self._keys.head[:used], self._keys.tail[:used]
        rows = tail - head + 1
        return np.repeat(head - rows.cumsum() + rows, rows) + np.arange(rows.sum())

    def _pack(self, floor: int, groups: KeyGroups, counters: np.ndarray) -> None:
        """Move into arrays with room for *groups*, of any keys, and for growth."""
        keys, pool = self._keys, self._pool
        self._live = live = drop_expired(keys, pool, floor, counters)
        used = keys.used[0]
        live_keys = int((keys.tail[:used] > keys.head[:used]).sum())
        # Twice the tuples there are, so that the next packing is far; and four times, because each
        # key in *groups* may move to a stretch of four times its tuples.
        self._allocate(
            max(_LEAST_KEYS, 2 * (live_keys + len(groups.keys))),
            max(_LEAST_TUPLES, 6 * (live + len(groups.order))),
        )
        rebuild(keys, pool, self._keys, self._pool, counters)

    def _allocate(self, slots: int, tuples: int) -> None:
        self._keys = make_keys(slots)
        self._pool = make_pool(tuples, self._conditions)


class _Spans(NamedTuple):
    """For each group of probes the places of stored tuples, *first* to *past*, that any reaches."""

    first: np.ndarray
    past: np.ndarray


class _Partners(NamedTuple):
    """For each of some tuples a range of candidates for its partners."""

    of: np.ndarray
    of_id: np.ndarray
    """int64: rows of probes, or places of stored tuples; and their ids."""
    begin: np.ndarray
    end: np.ndarray
    """int64: places of stored tuples, or of probes in their groups' order."""
    id: np.ndarray
    sums: np.ndarray
    """The candidates' ids, and the wrapping sum of the hashes of those before each."""
    of_probes: bool
    """Whether they are probes, and their candidates stored tuples; else the other way round."""


class _MatchColumns(NamedTuple):
    """Room for a row per range, as the columns of `JoinedPairs` and its matches."""

    ids: np.ndarray
    rows: np.ndarray
    counts: np.ndarray
    fingerprints: np.ndarray

    @classmethod
    def of(cls, ranges: int) -> _MatchColumns:
        """Return room for so many *ranges*."""
        ids, rows, counts = np.empty((3, ranges), np.int64)
        return cls(ids, rows, counts, np.empty(ranges, np.uint64))

    def pairs(
        self, base: int, rows: int, listed: np.ndarray | None, counters: np.ndarray
    ) -> JoinedPairs:
        """Return the first *rows*, of the stream *base*; *listed* are the ids of their matches."""
        matches = Matches(
            stream=base,
            probe_id=self.ids[:rows],
            count=self.counts[:rows],
            fingerprint=self.fingerprints[:rows],
            match_id=listed,
        )
        return JoinedPairs(matches, self.rows[:rows], Work.from_counters(counters))


# What an operation does is one kernel each: a message of few tuples takes less time than the call.


@kernel
def _probe(
    keys: Keys,
    pool: Pool,
    groups: KeyGroups,
    reach: Reach,
    conditions: Ranges,
    ranges: _Partners,
    found: _MatchColumns,
    counters: np.ndarray,
) -> int:
    """Fill in *ranges* of stored tuples, and what is *found* in them; return how many rows."""
    _reach_stored(keys, pool, groups, reach, ranges.begin, ranges.end, counters)
    return int(_count_matches(ranges, pool.codes, conditions, groups.order, found, counters))


@kernel
def _probe_stored(
    pool: Pool,
    groups: KeyGroups,
    reach: Reach,
    spans: _Spans,
    conditions: Ranges,
    ranges: _Partners,
    found: _MatchColumns,
    counters: np.ndarray,
) -> int:
    """Fill in *ranges* of probes, and what is *found* in them; return how many rows."""
    _reach_probes(pool, groups, reach, spans, ranges, counters)
    return int(_count_matches(ranges, pool.codes, conditions, groups.order, found, counters))


@inlined
def first_from(
    times: np.ndarray, begin: int, end: int, time: int, by: int, counters: np.ndarray
) -> int:
    """Return the first place from *begin* to *end* at *time* + *by* or later, or *end*.

    *times* has `LOOKAHEAD` values from *end* on. A sum may be beyond the ends of int64.
    """
    if by > 0 and time > GREATEST - by:
        return end
    if by < 0 and time < LEAST - by:
        return begin
    value = time + by
    # The place is mostly a few further on, at random: all of these are compared, since a branch
    # that cannot be predicted costs more.
    place: int = begin + leading_less(times, begin, value)
    if place == begin + LOOKAHEAD and place < end:
        place = gallop(times, place, end, value, counters)
    return min(place, end)


@kernel
def _reach_stored(
    keys: Keys,
    pool: Pool,
    groups: KeyGroups,
    reach: Reach,
    begin: np.ndarray,
    end: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Fill in the range of stored tuples that each probe reaches, in the groups' order."""
    k = 0
    for g in range(len(groups.keys)):
        slot = find_slot(keys, groups.keys[g], counters)
        first = past = tail = 0
        if slot >= 0:
            first = past = keys.head[slot]
            tail = keys.tail[slot]
        while k < groups.ends[g]:
            if first == tail:
                begin[k] = end[k] = tail
                k += 1
                continue
            time = groups.ts[k]
            first = first_from(pool.ts, first, tail, time, reach.lower, counters)
            past = first_from(pool.ts, past, tail, time, reach.past, counters)
            begin[k] = first
            end[k] = past
            k += 1
    counters[COMPARISONS] += 6 * k


@kernel
def _reach_keys(
    keys: Keys, pool: Pool, groups: KeyGroups, reach: Reach, spans: _Spans, counters: np.ndarray
) -> int:
    """Fill in the *spans* of stored tuples that any probe of each group may reach; count them."""
    total = 0
    begin = 0
    for g in range(len(groups.keys)):
        slot = find_slot(keys, groups.keys[g], counters)
        first = past = 0
        if slot >= 0 and begin < groups.ends[g]:
            head, tail = keys.head[slot], keys.tail[slot]
            earliest, latest = groups.ts[begin], groups.ts[groups.ends[g] - 1]
            first = first_from(pool.ts, head, tail, earliest, reach.lower, counters)
            past = first_from(pool.ts, first, tail, latest, reach.past, counters)
        spans.first[g], spans.past[g] = first, past
        total += past - first
        begin = groups.ends[g]
    return total


@kernel
def _reach_probes(
    pool: Pool,
    groups: KeyGroups,
    reach: Reach,
    spans: _Spans,
    ranges: _Partners,
    counters: np.ndarray,
) -> None:
    """Fill in the places in the *spans* of all groups, and the probes that reach each."""
    r = 0
    low = 0
    for g in range(len(groups.keys)):
        high, stop = low, groups.ends[g]
        for place in range(spans.first[g], spans.past[g]):
            time = pool.ts[place]
            low = first_from(groups.ts, low, stop, time, 1 - reach.past, counters)
            high = first_from(groups.ts, high, stop, time, 1 - reach.lower, counters)
            ranges.of[r] = place
            ranges.of_id[r] = pool.id[place]
            ranges.begin[r] = low
            ranges.end[r] = high
            r += 1
        low = stop
    counters[COMPARISONS] += 6 * r


@kernel
def _satisfies(
    ranges: _Partners, r: int, x: int, codes: np.ndarray, conditions: Ranges, order: np.ndarray
) -> bool:
    """Return whether candidate *x* of range *r* satisfies all further conditions with its tuple."""
    place, probe = (x, ranges.of[r]) if ranges.of_probes else (ranges.of[r], order[x])
    satisfied = True
    for c in range(len(codes)):
        satisfied = satisfied and in_range(conditions, c, probe, codes[c, place])
    return satisfied


@kernel
def _count_matches(
    ranges: _Partners,
    codes: np.ndarray,
    conditions: Ranges,
    order: np.ndarray,
    found: _MatchColumns,
    counters: np.ndarray,
) -> int:
    """Fill in a row of *found* for each range with a match; return how many there are."""
    rows = 0
    matches = np.int64(0)
    for r in range(len(ranges.of)):
        begin, end = ranges.begin[r], ranges.end[r]
        count, total = end - begin, ranges.sums[end] - ranges.sums[begin]
        if len(codes):
            counters[COMPARISONS] += count
            count, total = 0, np.uint64(0)
            for x in range(begin, end):
                if not _satisfies(ranges, r, x, codes, conditions, order):
                    continue
                if not count:
                    begin = x
                count += 1
                total += ranges.sums[x + 1] - ranges.sums[x]
        if count:
            found.ids[rows] = ranges.of_id[r]
            found.rows[rows] = ranges.of[r] if ranges.of_probes else order[begin]
            found.counts[rows] = count
            found.fingerprints[rows] = total
            rows += 1
            matches += count
    counters[MATCHES] += matches
    return rows


@kernel
def _list_matches(
    ranges: _Partners, codes: np.ndarray, conditions: Ranges, order: np.ndarray, listed: np.ndarray
) -> None:
    """Fill *listed*, which has room for all, with the ids of the matches, range by range."""
    at = 0
    for r in range(len(ranges.of)):
        begin, end = ranges.begin[r], ranges.end[r]
        if not len(codes):
            for i in range(end - begin):
                listed[at + i] = ranges.id[begin + i]
            at += end - begin
            continue
        for x in range(begin, end):
            if _satisfies(ranges, r, x, codes, conditions, order):
                listed[at] = ranges.id[x]
                at += 1
