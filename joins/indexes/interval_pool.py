"""How an interval join's buffer stores its tuples: a deque for each key, all in one pool.

The pool has columns, and each deque a stretch of them. A deque that reaches the end of its stretch
slides to the stretch's start, or moves to a stretch twice its size. (As a ring it would not slide,
but its ranges would be in two pieces.) `joins.indexes.interval_buffer` probes them, and packs a
pool that is used up.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.key_groups import KeyGroups
from joins.indexes.range_search import gallop
from joins.machine.compiling import kernel
from joins.machine.instructions import copy_entries
from joins.machine.lanes import LOOKAHEAD
from joins.work import BYTES_COPIED, COMPARISONS, INSERTS, MOVES

FULL = -1
"""Returned in place of a number of tuples: the pool is too small."""


class Keys(NamedTuple):
    """The keys, and each one's stretch of the pool."""

    table: np.ndarray
    """Open addressing over a power of two: a slot's number plus one, or 0."""
    key: np.ndarray
    """Per slot its key."""
    begin: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    end: np.ndarray
    """Per slot its stretch of the pool, *begin* to *end*, and within it its tuples, *head* to
    *tail*; *tail* is less than *end* unless both are 0."""
    used: np.ndarray
    """[slots in use, places of the pool in use]."""


class Pool(NamedTuple):
    """The tuples, each key's in the order of their event times."""

    ts: np.ndarray
    id: np.ndarray
    """int64 columns. Of times there are `LOOKAHEAD` more, of no meaning, so that a kernel may read
    past the end before it compares with the end."""
    sums: np.ndarray
    """uint64, the wrapping sum of the hashes of the ids before a place in its key's stretch, from
    an arbitrary start; there is one at the tail too. So the fingerprint of any range is a
    difference, however many tuples are in it."""
    codes: np.ndarray
    """int64, a row per further condition: the stored values' codes (`joins.indexes.index`)."""


def make_keys(slots: int) -> Keys:
    """Return room for the keys of so many *slots*."""
    key, begin, head, tail, end = np.zeros((5, slots), np.int64)
    table = np.zeros(1 << (2 * slots - 1).bit_length(), np.int64)
    return Keys(table, key, begin, head, tail, end, np.zeros(2, np.int64))


def make_pool(tuples: int, conditions: int) -> Pool:
    """Return room for so many *tuples* with a code for each of *conditions*."""
    return Pool(
        np.zeros(tuples + LOOKAHEAD, np.int64),
        np.zeros(tuples, np.int64),
        np.zeros(tuples, np.uint64),
        np.zeros((conditions, tuples), np.int64),
    )


@kernel
def find_slot(keys: Keys, key: int, counters: np.ndarray) -> int:
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


@kernel
def store_groups(
    keys: Keys,
    pool: Pool,
    groups: KeyGroups,
    slots: np.ndarray,
    codes: np.ndarray,
    horizon: int,
    counters: np.ndarray,
) -> int:
    """Store *groups*; return how many tuples were dropped, or `FULL` if the pool is too small."""
    dropped = _reserve(keys, pool, groups, slots, horizon, counters)
    if dropped != FULL:
        _store(keys, pool, groups, slots, codes, counters)
    return int(dropped)


@kernel
def _reserve(
    keys: Keys, pool: Pool, groups: KeyGroups, slots: np.ndarray, horizon: int, counters: np.ndarray
) -> int:
    """Make room for all of *groups*; return how many tuples were dropped, or `FULL`.

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
        slot = find_slot(keys, groups.keys[g], counters)
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
                return FULL
            keys.begin[slot] = keys.used[1]
            keys.used[1] += room
            keys.end[slot] = keys.used[1]
        _move(pool, keys.head[slot], pool, keys.begin[slot], live, counters)
        keys.head[slot] = keys.begin[slot]
        keys.tail[slot] = keys.begin[slot] + live
    return int(dropped)


@kernel
def _move(
    source: Pool, begin: int, target: Pool, to: int, count: int, counters: np.ndarray
) -> None:
    """Copy *count* tuples to another place, in the same pool only towards its start or apart."""
    copy_entries(source.ts, begin, target.ts, to, count)
    copy_entries(source.id, begin, target.id, to, count)
    copy_entries(source.sums, begin, target.sums, to, count + 1)
    for c in range(len(source.codes)):
        copy_entries(source.codes[c], begin, target.codes[c], to, count)
    counters[BYTES_COPIED] += count * 8 * (3 + len(source.codes))


@kernel
def drop_expired(keys: Keys, pool: Pool, horizon: int, counters: np.ndarray) -> int:
    """Drop all tuples before *horizon*; return how many are left."""
    live = np.int64(0)
    for slot in range(keys.used[0]):
        keys.head[slot] = gallop(pool.ts, keys.head[slot], keys.tail[slot], horizon, counters)
        live += keys.tail[slot] - keys.head[slot]
    return int(live)


@kernel
def rebuild(old: Keys, old_pool: Pool, keys: Keys, pool: Pool, counters: np.ndarray) -> None:
    """Copy all tuples into empty *keys* and *pool*, without gaps and empty keys."""
    for slot in range(old.used[0]):
        live = old.tail[slot] - old.head[slot]
        if not live:
            continue
        new = keys.used[0]
        keys.used[0] += 1
        keys.table[-1 - find_slot(keys, old.key[slot], counters)] = new + 1
        keys.key[new] = old.key[slot]
        keys.begin[new] = keys.head[new] = keys.used[1]
        _move(old_pool, old.head[slot], pool, keys.used[1], live, counters)
        keys.tail[new] = keys.used[1] + live
        keys.used[1] += live + 1
        keys.end[new] = keys.used[1]


@kernel
def _store(
    keys: Keys,
    pool: Pool,
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
    pool: Pool,
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
