"""Kernels of `joins.indexes.interval.buffer`: per-key deques, ordered by time, in one pool."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.interval.key_groups import KeyGroups
from joins.indexes.search import gallop
from joins.machine.compiling import kernel
from joins.machine.instructions import copy_entries
from joins.work import BYTES_COPIED, COMPARISONS, INSERTS, MOVES


class Keys(NamedTuple):
    """The keys there are, and each one's stretch of the pool.

    Attributes
    ----------
    table
        Open addressing over a power of two: a slot's number plus one, or 0.
    key
        Per slot its key.
    begin, head, tail, end
        Per slot: its stretch of the pool, and within it the tuples it holds; *tail* is less than
        *end* unless both are 0.
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


class Pool(NamedTuple):
    """The tuples, each key's in the order of their event times.

    Attributes
    ----------
    ts, id
        int64 columns. Of times there are `LOOKAHEAD` more, of no meaning, so that a kernel may look
        past the end before it asks where the end is.
    sums
        uint64, the wrapping sum of the hashes of the ids before a place in its key's stretch, from
        an arbitrary start; there is one at the tail too. So the fingerprint of any range is a
        difference, however many tuples lie in it.
    values
        int64, a row per further condition.
    """

    ts: np.ndarray
    id: np.ndarray
    sums: np.ndarray
    values: np.ndarray


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
def reserve(
    keys: Keys,
    pool: Pool,
    groups: KeyGroups,
    slots: np.ndarray,
    horizon: int,
    counters: np.ndarray,
) -> bool:
    """Make room for all of *groups*; say whether the pool was large enough.

    *slots* is filled in, with -1 for an empty group. A new key gets an empty stretch; there is room
    for all keys. Tuples before *horizon* are let go first.
    """
    begin = 0
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
        keys.head[slot] = gallop(pool.ts, keys.head[slot], keys.tail[slot], horizon, counters)
        live = keys.tail[slot] - keys.head[slot]
        if keys.tail[slot] + more < keys.end[slot]:
            continue
        # Room for what is held twice over: then it is moved once per as many insertions. Not more,
        # since what is filled anew is still in the cache. A power of two: then it is seldom
        # outgrown by a little.
        if 2 * live + more >= keys.end[slot] - keys.begin[slot]:
            room = 2
            while room <= 2 * live + more:
                room *= 2
            if keys.used[1] + room > len(pool.id):
                return False
            keys.begin[slot] = keys.used[1]
            keys.used[1] += room
            keys.end[slot] = keys.used[1]
        move(pool, keys.head[slot], pool, keys.begin[slot], live, counters)
        keys.head[slot] = keys.begin[slot]
        keys.tail[slot] = keys.begin[slot] + live
    return True


@kernel
def move(source: Pool, begin: int, target: Pool, to: int, count: int, counters: np.ndarray) -> None:
    """Copy *count* tuples to another place, in the same pool only towards its start or apart."""
    copy_entries(source.ts, begin, target.ts, to, count)
    copy_entries(source.id, begin, target.id, to, count)
    copy_entries(source.sums, begin, target.sums, to, count + 1)
    for c in range(len(source.values)):
        copy_entries(source.values[c], begin, target.values[c], to, count)
    counters[BYTES_COPIED] += count * 8 * (3 + len(source.values))


@kernel
def expire(keys: Keys, pool: Pool, horizon: int, counters: np.ndarray) -> int:
    """Let go of all tuples before *horizon*; return how many are left."""
    live = np.int64(0)
    for slot in range(keys.used[0]):
        keys.head[slot] = gallop(pool.ts, keys.head[slot], keys.tail[slot], horizon, counters)
        live += keys.tail[slot] - keys.head[slot]
    return int(live)


@kernel
def rebuild(old: Keys, old_pool: Pool, keys: Keys, pool: Pool, counters: np.ndarray) -> None:
    """Copy all tuples into empty *keys* and *pool*, without gaps; empty keys are forgotten."""
    for slot in range(old.used[0]):
        live = old.tail[slot] - old.head[slot]
        if not live:
            continue
        new = keys.used[0]
        keys.used[0] += 1
        keys.table[-1 - find_slot(keys, old.key[slot], counters)] = new + 1
        keys.key[new] = old.key[slot]
        keys.begin[new] = keys.head[new] = keys.used[1]
        move(old_pool, old.head[slot], pool, keys.used[1], live, counters)
        keys.tail[new] = keys.used[1] + live
        keys.used[1] += live + 1
        keys.end[new] = keys.used[1]


@kernel
def store(
    keys: Keys,
    pool: Pool,
    groups: KeyGroups,
    slots: np.ndarray,
    values: np.ndarray,
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
            merge(pool, head, tail, groups, begin, end, values, counters)
        else:
            copy_entries(groups.ts, begin, pool.ts, tail, end - begin)
            copy_entries(groups.ids, begin, pool.id, tail, end - begin)
            shift = pool.sums[tail] - groups.sums[begin]
            for i in range(end - begin):
                pool.sums[tail + i + 1] = groups.sums[begin + i + 1] + shift
            for c in range(len(values)):
                for i in range(end - begin):
                    pool.values[c, tail + i] = values[c, groups.order[begin + i]]
        begin = end
    counters[INSERTS] += len(groups.order)


@kernel
def merge(
    pool: Pool,
    head: int,
    tail: int,
    groups: KeyGroups,
    begin: int,
    end: int,
    values: np.ndarray,
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
            for c in range(len(values)):
                pool.values[c, place] = pool.values[c, last]
            last -= 1
            place -= 1
        pool.ts[place] = groups.ts[k]
        pool.id[place] = groups.ids[k]
        for c in range(len(values)):
            pool.values[c, place] = values[c, groups.order[k]]
        place -= 1
    counters[MOVES] += tail - 1 - last
    for changed in range(last + 1, tail + end - begin):
        pool.sums[changed + 1] = pool.sums[changed] + splitmix64(pool.id[changed])
