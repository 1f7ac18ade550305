"""Kernels of `joins.indexes.interval_buffer`: per-key deques, ordered by time, in one pool."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.search import lower_bound
from joins.machine import kernel
from joins.work import BYTES_COPIED, COMPARISONS, INSERTS, MATCHES, MOVES


class Keys(NamedTuple):
    """The keys there are, and each one's stretch of the pool.

    Attributes
    ----------
    table
        Open addressing over a power of two: a slot's number plus one, or 0.
    key
        Per slot its key.
    begin, head, tail, end
        Per slot: its stretch of the pool, and within it the tuples it holds.
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
        int64 columns.
    values
        int64, a row per further condition.
    matches, fingerprint, first
        What the probes of one call found of each stored tuple; 0 between calls.
    """

    ts: np.ndarray
    id: np.ndarray
    values: np.ndarray
    matches: np.ndarray
    fingerprint: np.ndarray
    first: np.ndarray


class Probes(NamedTuple):
    """Probing tuples: keys, ranges of event time, and per condition a range of values.

    Ranges include both ends; *negated* conditions hold outside theirs.
    """

    key: np.ndarray
    least: np.ndarray
    most: np.ndarray
    low: np.ndarray
    high: np.ndarray
    negated: np.ndarray


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
def find_or_add(keys: Keys, key: np.ndarray, slots: np.ndarray, counters: np.ndarray) -> None:
    """Fill in the slot of each key; a new one gets an empty stretch. There is room for all."""
    for i in range(len(key)):
        slot = find_slot(keys, key[i], counters)
        if slot < 0:
            place = -1 - slot
            slot = keys.used[0]
            keys.used[0] += 1
            keys.table[place] = slot + 1
            keys.key[slot] = key[i]
            keys.begin[slot] = keys.head[slot] = keys.tail[slot] = keys.end[slot] = 0
        slots[i] = slot


@kernel
def reserve(
    keys: Keys,
    pool: Pool,
    slots: np.ndarray,
    need: np.ndarray,
    horizon: int,
    counters: np.ndarray,
) -> bool:
    """Make room for one more tuple of each of *slots*; say whether the pool was large enough.

    Tuples before *horizon* are let go first. *need* is scratch of a place per slot, all 0, and is
    left so.
    """
    for i in range(len(slots)):
        need[slots[i]] += 1
    fits = True
    for i in range(len(slots)):
        slot = slots[i]
        if not need[slot]:
            continue
        more = need[slot]
        need[slot] = 0
        while keys.head[slot] < keys.tail[slot] and pool.ts[keys.head[slot]] < horizon:
            keys.head[slot] += 1
        live = keys.tail[slot] - keys.head[slot]
        if not fits or keys.tail[slot] + more <= keys.end[slot]:
            continue
        if 2 * (live + more) > keys.end[slot] - keys.begin[slot]:
            # Twice what is needed: then a stretch slides or grows once per as many insertions.
            room = 2 * (live + more)
            if keys.used[1] + room > len(pool.ts):
                fits = False
                continue
            keys.begin[slot] = keys.used[1]
            keys.used[1] += room
            keys.end[slot] = keys.used[1]
        move(pool, keys.head[slot], pool, keys.begin[slot], live, counters)
        keys.head[slot] = keys.begin[slot]
        keys.tail[slot] = keys.begin[slot] + live
    return fits


@kernel
def move(source: Pool, begin: int, target: Pool, to: int, count: int, counters: np.ndarray) -> None:
    """Copy *count* tuples to another place, in the same pool only towards its start or apart."""
    for i in range(count):
        target.ts[to + i] = source.ts[begin + i]
        target.id[to + i] = source.id[begin + i]
        for c in range(len(source.values)):
            target.values[c, to + i] = source.values[c, begin + i]
    counters[BYTES_COPIED] += count * 8 * (2 + len(source.values))


@kernel
def expire(keys: Keys, pool: Pool, horizon: int, counters: np.ndarray) -> int:
    """Let go of all tuples before *horizon*; return how many are left."""
    live = np.int64(0)
    for slot in range(keys.used[0]):
        keys.head[slot] = lower_bound(pool.ts, keys.head[slot], keys.tail[slot], horizon, counters)
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
        keys.used[1] += live
        keys.tail[new] = keys.end[new] = keys.used[1]


@kernel
def store(
    keys: Keys,
    pool: Pool,
    slots: np.ndarray,
    ts: np.ndarray,
    ids: np.ndarray,
    values: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Insert tuples in the order of time, each after those of its own time."""
    for i in range(len(slots)):
        slot = slots[i]
        place = keys.tail[slot]
        head = keys.head[slot]
        while place > head and pool.ts[place - 1] > ts[i]:
            pool.ts[place] = pool.ts[place - 1]
            pool.id[place] = pool.id[place - 1]
            for c in range(len(values)):
                pool.values[c, place] = pool.values[c, place - 1]
            place -= 1
        counters[MOVES] += keys.tail[slot] - place
        pool.ts[place] = ts[i]
        pool.id[place] = ids[i]
        for c in range(len(values)):
            pool.values[c, place] = values[c, i]
        keys.tail[slot] += 1
    counters[INSERTS] += len(slots)


@kernel
def satisfies(values: np.ndarray, place: int, probes: Probes, i: int) -> bool:
    """Return whether a stored tuple satisfies all further conditions of probe *i*."""
    for c in range(len(values)):
        value = values[c, place]
        inside = probes.low[c, i] <= value and value <= probes.high[c, i]
        if inside == probes.negated[c]:
            return False
    return True


@kernel
def probe_each(
    keys: Keys,
    pool: Pool,
    probes: Probes,
    count: np.ndarray,
    fingerprint: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Fill in how many stored tuples each probe matches, and the sum of their hashes."""
    for i in range(len(probes.key)):
        count[i] = 0
        fingerprint[i] = 0
        slot = find_slot(keys, probes.key[i], counters)
        if slot < 0 or probes.least[i] > probes.most[i]:
            continue
        place = lower_bound(pool.ts, keys.head[slot], keys.tail[slot], probes.least[i], counters)
        begin = place
        found = np.int64(0)
        total = np.uint64(0)
        while place < keys.tail[slot] and pool.ts[place] <= probes.most[i]:
            if satisfies(pool.values, place, probes, i):
                found += 1
                total += splitmix64(pool.id[place])
            place += 1
        counters[COMPARISONS] += place - begin + 1
        counters[MATCHES] += found
        count[i] = found
        fingerprint[i] = total


@kernel
def probe_stored(
    keys: Keys,
    pool: Pool,
    probes: Probes,
    hashes: np.ndarray,
    touched: np.ndarray,
    counters: np.ndarray,
) -> int:
    """Add each probe's hash up at the stored tuples it matches; return how many were touched.

    They are listed in *touched*, which has a place for every stored tuple.
    """
    listed = 0
    for i in range(len(probes.key)):
        slot = find_slot(keys, probes.key[i], counters)
        if slot < 0 or probes.least[i] > probes.most[i]:
            continue
        place = lower_bound(pool.ts, keys.head[slot], keys.tail[slot], probes.least[i], counters)
        begin = place
        while place < keys.tail[slot] and pool.ts[place] <= probes.most[i]:
            if satisfies(pool.values, place, probes, i):
                if not pool.matches[place]:
                    touched[listed] = place
                    pool.first[place] = i
                    listed += 1
                pool.matches[place] += 1
                pool.fingerprint[place] += hashes[i]
                counters[MATCHES] += 1
            place += 1
        counters[COMPARISONS] += place - begin + 1
    return listed


@kernel
def take_sums(
    pool: Pool,
    touched: np.ndarray,
    ids: np.ndarray,
    count: np.ndarray,
    fingerprint: np.ndarray,
    first: np.ndarray,
) -> None:
    """Read out what `probe_stored` added up, and set it to 0."""
    for i in range(len(touched)):
        place = touched[i]
        ids[i] = pool.id[place]
        count[i] = pool.matches[place]
        fingerprint[i] = pool.fingerprint[place]
        first[i] = pool.first[place]
        pool.matches[place] = 0
        pool.fingerprint[place] = 0


@kernel
def list_pairs(
    keys: Keys,
    pool: Pool,
    probes: Probes,
    row: np.ndarray,
    match_id: np.ndarray,
    counters: np.ndarray,
) -> None:
    """List each pair: the probe's row and the stored tuple's id. There is room for all."""
    listed = 0
    for i in range(len(probes.key)):
        slot = find_slot(keys, probes.key[i], counters)
        if slot < 0 or probes.least[i] > probes.most[i]:
            continue
        place = lower_bound(pool.ts, keys.head[slot], keys.tail[slot], probes.least[i], counters)
        while place < keys.tail[slot] and pool.ts[place] <= probes.most[i]:
            if satisfies(pool.values, place, probes, i):
                row[listed] = i
                match_id[listed] = pool.id[place]
                listed += 1
            place += 1
