"""The state buffer of one stream at a replica of an interval join (PPOIJ, section 4).

Each key has a deque of its tuples in the order of event time: those in an interval are found by
galloping, and those too old for any to come leave at the front. The deques of all keys share one
pool of columns; a deque that reaches the end of its stretch slides to the stretch's start, or moves
to a stretch twice its size. (As a ring it would not slide, but its ranges would be in two pieces.)
When the pool is used up it is packed anew, without what has expired, so that memory follows the
interval and not the stream.

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
from joins.hashing import splitmix64
from joins.indexes.index import Ranges, in_range
from joins.indexes.key_groups import KeyGroups
from joins.indexes.range_search import gallop
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import copy_entries
from joins.machine.lanes import LOOKAHEAD, leading_less
from joins.matches import Matches
from joins.state import State, Stateful
from joins.work import BYTES_COPIED, COMPARISONS, INSERTS, MATCHES, MOVES, Work, new_counters

_LEAST_KEYS = 16
_LEAST_TUPLES = 64
_FULL = -1


class _Keys(NamedTuple):
    """The keys, and each one's stretch of the pool.

    Attributes
    ----------
    table
        Open addressing over a power of two: a slot's number plus one, or 0.
    key
        Per slot its key.
    begin, head, tail, end
        Per slot its stretch of the pool, *begin* to *end*, and within it its tuples, *head* to
        *tail*; *tail* is less than *end* unless both are 0.
    used
        [slots in use, places of the pool in use].
    """

    table: np.ndarray
    key: np.ndarray
    begin: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    end: np.ndarray
    used: np.ndarray


class _Pool(NamedTuple):
    """The tuples, each key's in the order of their event times.

    Attributes
    ----------
    ts, id
        int64 columns. Of times there are `LOOKAHEAD` more, of no meaning, so that a kernel may read
        past the end before it compares with the end.
    sums
        uint64, the wrapping sum of the hashes of the ids before a place in its key's stretch, from
        an arbitrary start; there is one at the tail too. So the fingerprint of any range is a
        difference, however many tuples are in it.
    codes
        int64, a row per further condition: the stored values' codes (`joins.indexes.index`).
    """

    ts: np.ndarray
    id: np.ndarray
    sums: np.ndarray
    codes: np.ndarray


class Reach(NamedTuple):
    """What probes reach: a probe at time t stored tuples from t + *lower* to before t + *past*.

    Attributes
    ----------
    lower, past
        Nanoseconds, of any sign.
    """

    lower: int
    past: int


class JoinedPairs(NamedTuple):
    """The pairs of some tuples of one stream with stored tuples of the other.

    Attributes
    ----------
    matches
        A row per tuple of the base stream that has a match.
    row
        int64, for each the row of the tuple that it was matched by; of several the earliest.
    work
        What it cost.
    """

    matches: Matches
    row: np.ndarray
    work: Work


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
            dropped = _insert(self._keys, self._pool, groups, slots, codes, horizon, counters)
            if dropped == _FULL:
                self._pack(floor, groups, counters)
                dropped = _insert(self._keys, self._pool, groups, slots, codes, horizon, counters)
                assert dropped != _FULL, "a packed pool has room for every key touched to double"
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
        ranges = _Ranges(groups.order, groups.ids, begin, end, pool.id, pool.sums, of_probes=True)
        found = _Found.of(len(begin))
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
        ranges = _Ranges(place, stored, begin, end, groups.ids, groups.sums, of_probes=False)
        found, rows = _Found.of(reached), 0
        if reached:
            rows = _probe_stored(pool, groups, reach, spans, conditions, ranges, found, counters)
        listed = self._list(ranges, groups, conditions, counters) if enumerate else None
        return found.pairs(base, rows, listed, counters)

    def _list(
        self, ranges: _Ranges, groups: KeyGroups, conditions: Ranges, counters: np.ndarray
    ) -> np.ndarray:
        """Return the ids of the matches in *ranges*, which are counted."""
        listed = np.empty(counters[MATCHES], np.int64)
        if len(listed):
            _list_matches(ranges, self._pool.codes, conditions, groups.order, listed)
        return listed

    def expire(self, before: int) -> Work:
        """Drop all tuples older than *before*."""
        counters = new_counters()
        self._live = _expire(self._keys, self._pool, before, counters)
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
        self._live = live = _expire(keys, pool, floor, counters)
        used = keys.used[0]
        live_keys = int((keys.tail[:used] > keys.head[:used]).sum())
        # Twice the tuples there are, so that the next packing is far; and four times, because each
        # key in *groups* may move to a stretch of four times its tuples.
        self._allocate(
            max(_LEAST_KEYS, 2 * (live_keys + len(groups.keys))),
            max(_LEAST_TUPLES, 6 * (live + len(groups.order))),
        )
        _rebuild(keys, pool, self._keys, self._pool, counters)

    def _allocate(self, slots: int, tuples: int) -> None:
        key, begin, head, tail, end = np.zeros((5, slots), np.int64)
        table = np.zeros(1 << (2 * slots - 1).bit_length(), np.int64)
        self._keys = _Keys(table, key, begin, head, tail, end, np.zeros(2, np.int64))
        self._pool = _Pool(
            np.zeros(tuples + LOOKAHEAD, np.int64),
            np.zeros(tuples, np.int64),
            np.zeros(tuples, np.uint64),
            np.zeros((self._conditions, tuples), np.int64),
        )


class _Spans(NamedTuple):
    """For each group of probes the places of stored tuples, *first* to *past*, that any reaches."""

    first: np.ndarray
    past: np.ndarray


class _Ranges(NamedTuple):
    """For each of some tuples a range of candidates for its partners.

    Attributes
    ----------
    of, of_id
        int64: rows of probes, or places of stored tuples; and their ids.
    begin, end
        int64: places of stored tuples, or of probes in their groups' order.
    id, sums
        The candidates' ids, and the wrapping sum of the hashes of those before each.
    of_probes
        Whether they are probes, and their candidates stored tuples; else the other way round.
    """

    of: np.ndarray
    of_id: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    id: np.ndarray
    sums: np.ndarray
    of_probes: bool


class _Found(NamedTuple):
    """Room for a row per range, as the columns of `JoinedPairs` and its matches."""

    ids: np.ndarray
    rows: np.ndarray
    counts: np.ndarray
    fingerprints: np.ndarray

    @classmethod
    def of(cls, ranges: int) -> _Found:
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


@kernel
def _find_slot(keys: _Keys, key: int, counters: np.ndarray) -> int:
    """Return the slot of *key*, or minus one minus the place in the table where it would go."""
    mask = len(keys.table) - 1
    place = np.int64(splitmix64(key) & np.uint64(mask))
    while keys.table[place]:
        counters[COMPARISONS] += 1
        slot = keys.table[place] - 1
        if keys.key[slot] == key:
            return int(slot)
        place = (place + 1) & mask
    return int(-1 - place)


# What an operation does is one kernel each: a message of few tuples takes less time than the call.


@kernel
def _insert(
    keys: _Keys,
    pool: _Pool,
    groups: KeyGroups,
    slots: np.ndarray,
    codes: np.ndarray,
    horizon: int,
    counters: np.ndarray,
) -> int:
    """Store *groups*; return how many tuples were dropped, or `_FULL` if the pool is too small."""
    dropped = _reserve(keys, pool, groups, slots, horizon, counters)
    if dropped != _FULL:
        _store(keys, pool, groups, slots, codes, counters)
    return int(dropped)


@kernel
def _probe(
    keys: _Keys,
    pool: _Pool,
    groups: KeyGroups,
    reach: Reach,
    conditions: Ranges,
    ranges: _Ranges,
    found: _Found,
    counters: np.ndarray,
) -> int:
    """Fill in *ranges* of stored tuples, and what is *found* in them; return how many rows."""
    _reach_stored(keys, pool, groups, reach, ranges.begin, ranges.end, counters)
    return int(_count_matches(ranges, pool.codes, conditions, groups.order, found, counters))


@kernel
def _probe_stored(
    pool: _Pool,
    groups: KeyGroups,
    reach: Reach,
    spans: _Spans,
    conditions: Ranges,
    ranges: _Ranges,
    found: _Found,
    counters: np.ndarray,
) -> int:
    """Fill in *ranges* of probes, and what is *found* in them; return how many rows."""
    _reach_probes(pool, groups, reach, spans, ranges, counters)
    return int(_count_matches(ranges, pool.codes, conditions, groups.order, found, counters))


@kernel
def _reserve(
    keys: _Keys,
    pool: _Pool,
    groups: KeyGroups,
    slots: np.ndarray,
    horizon: int,
    counters: np.ndarray,
) -> int:
    """Make room for all of *groups*; return how many tuples were dropped, or `_FULL`.

    *slots* is filled in, with -1 for an empty group. A new key gets an empty stretch; there is room
    for all keys. Tuples before *horizon* are dropped first.
    """
    begin = dropped = 0
    for g in range(len(slots)):
        more = groups.ends[g] - begin
        begin = groups.ends[g]
        if not more:
            slots[g] = -1
            continue
        slot = _find_slot(keys, groups.keys[g], counters)
        if slot < 0:
            place = -1 - slot
            slot = keys.used[0]
            keys.used[0] += 1
            keys.table[place] = slot + 1
            keys.key[slot] = groups.keys[g]
            keys.begin[slot] = keys.head[slot] = keys.tail[slot] = keys.end[slot] = 0
        slots[g] = slot
        head = gallop(pool.ts, keys.head[slot], keys.tail[slot], horizon, counters)
        dropped += head - keys.head[slot]
        keys.head[slot] = head
        live = keys.tail[slot] - head
        if keys.tail[slot] + more < keys.end[slot]:
            continue
        # Room for twice the tuples: then they are moved once per as many insertions. Not more,
        # since what was filled last is still in the cache. A power of two: then it is seldom
        # outgrown by a little.
        if 2 * live + more >= keys.end[slot] - keys.begin[slot]:
            room = 2
            while room <= 2 * live + more:
                room *= 2
            if keys.used[1] + room > len(pool.id):
                return _FULL
            keys.begin[slot] = keys.used[1]
            keys.used[1] += room
            keys.end[slot] = keys.used[1]
        _move(pool, keys.head[slot], pool, keys.begin[slot], live, counters)
        keys.head[slot] = keys.begin[slot]
        keys.tail[slot] = keys.begin[slot] + live
    return int(dropped)


@kernel
def _move(
    source: _Pool, begin: int, target: _Pool, to: int, count: int, counters: np.ndarray
) -> None:
    """Copy *count* tuples to another place, in the same pool only towards its start or apart."""
    copy_entries(source.ts, begin, target.ts, to, count)
    copy_entries(source.id, begin, target.id, to, count)
    copy_entries(source.sums, begin, target.sums, to, count + 1)
    for c in range(len(source.codes)):
        copy_entries(source.codes[c], begin, target.codes[c], to, count)
    counters[BYTES_COPIED] += count * 8 * (3 + len(source.codes))


@kernel
def _expire(keys: _Keys, pool: _Pool, horizon: int, counters: np.ndarray) -> int:
    """Drop all tuples before *horizon*; return how many are left."""
    live = np.int64(0)
    for slot in range(keys.used[0]):
        keys.head[slot] = gallop(pool.ts, keys.head[slot], keys.tail[slot], horizon, counters)
        live += keys.tail[slot] - keys.head[slot]
    return int(live)


@kernel
def _rebuild(old: _Keys, old_pool: _Pool, keys: _Keys, pool: _Pool, counters: np.ndarray) -> None:
    """Copy all tuples into empty *keys* and *pool*, without gaps and empty keys."""
    for slot in range(old.used[0]):
        live = old.tail[slot] - old.head[slot]
        if not live:
            continue
        new = keys.used[0]
        keys.used[0] += 1
        keys.table[-1 - _find_slot(keys, old.key[slot], counters)] = new + 1
        keys.key[new] = old.key[slot]
        keys.begin[new] = keys.head[new] = keys.used[1]
        _move(old_pool, old.head[slot], pool, keys.used[1], live, counters)
        keys.tail[new] = keys.used[1] + live
        keys.used[1] += live + 1
        keys.end[new] = keys.used[1]


@kernel
def _store(
    keys: _Keys,
    pool: _Pool,
    groups: KeyGroups,
    slots: np.ndarray,
    codes: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Merge each group into its key's tuples, each after those of its own time."""
    begin = 0
    for g in range(len(slots)):
        slot, end = slots[g], groups.ends[g]
        if slot < 0:
            continue
        head, tail = keys.head[slot], keys.tail[slot]
        keys.tail[slot] = tail + end - begin
        if tail > head and pool.ts[tail - 1] > groups.ts[begin]:
            _merge(pool, head, tail, groups, begin, end, codes, counters)
        else:
            copy_entries(groups.ts, begin, pool.ts, tail, end - begin)
            copy_entries(groups.ids, begin, pool.id, tail, end - begin)
            shift = pool.sums[tail] - groups.sums[begin]
            for i in range(end - begin):
                pool.sums[tail + i + 1] = groups.sums[begin + i + 1] + shift
            for c in range(len(codes)):
                for i in range(end - begin):
                    pool.codes[c, tail + i] = codes[c, groups.order[begin + i]]
        begin = end
    counters[INSERTS] += len(groups.order)


@kernel
def _merge(
    pool: _Pool,
    head: int,
    tail: int,
    groups: KeyGroups,
    begin: int,
    end: int,
    codes: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Merge rows of *groups* into places *head* to *tail*, from the latest down.

    Tuples older than all of them stay where they are.
    """
    last = tail - 1
    place = tail + end - begin - 1
    for k in range(end - 1, begin - 1, -1):
        while last >= head and pool.ts[last] > groups.ts[k]:
            pool.ts[place] = pool.ts[last]
            pool.id[place] = pool.id[last]
            for c in range(len(codes)):
                pool.codes[c, place] = pool.codes[c, last]
            last -= 1
            place -= 1
        pool.ts[place] = groups.ts[k]
        pool.id[place] = groups.ids[k]
        for c in range(len(codes)):
            pool.codes[c, place] = codes[c, groups.order[k]]
        place -= 1
    counters[MOVES] += tail - 1 - last
    for changed in range(last + 1, tail + end - begin):
        pool.sums[changed + 1] = pool.sums[changed] + splitmix64(pool.id[changed])


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
    keys: _Keys,
    pool: _Pool,
    groups: KeyGroups,
    reach: Reach,
    begin: np.ndarray,
    end: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Fill in the range of stored tuples that each probe reaches, in the groups' order."""
    k = 0
    for g in range(len(groups.keys)):
        slot = _find_slot(keys, groups.keys[g], counters)
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
    keys: _Keys,
    pool: _Pool,
    groups: KeyGroups,
    reach: Reach,
    spans: _Spans,
    counters: np.ndarray,
) -> int:
    """Fill in the *spans* of stored tuples that any probe of each group may reach; count them."""
    total = 0
    begin = 0
    for g in range(len(groups.keys)):
        slot = _find_slot(keys, groups.keys[g], counters)
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
    pool: _Pool,
    groups: KeyGroups,
    reach: Reach,
    spans: _Spans,
    ranges: _Ranges,
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
    ranges: _Ranges, r: int, x: int, codes: np.ndarray, conditions: Ranges, order: np.ndarray
) -> bool:
    """Return whether candidate *x* of range *r* satisfies all further conditions with its tuple."""
    place, probe = (x, ranges.of[r]) if ranges.of_probes else (ranges.of[r], order[x])
    satisfied = True
    for c in range(len(codes)):
        satisfied = satisfied and in_range(conditions, c, probe, codes[c, place])
    return satisfied


@kernel
def _count_matches(
    ranges: _Ranges,
    codes: np.ndarray,
    conditions: Ranges,
    order: np.ndarray,
    found: _Found,
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
    ranges: _Ranges, codes: np.ndarray, conditions: Ranges, order: np.ndarray, listed: np.ndarray
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
