"""Probing kernels of `joins.indexes.interval.buffer`: ranges of tuples, summed up or listed.

The probes of a key and its stored tuples both are in the order of time. So the stored tuples that a
probe reaches are a range, and from one probe to the next both its ends move forward only; seen from
a stored tuple the same is true of the probes. Whichever stream is the base, each base tuple has a
range of partners, and where key and time are all there is to satisfy, their number and the sum of
their hashes are differences, however many they are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.interval.kernels import Keys, Pool, find_slot
from joins.indexes.interval.key_groups import KeyGroups
from joins.indexes.search import gallop
from joins.machine.compiling import inlined, kernel
from joins.machine.lanes import LOOKAHEAD, leading_less
from joins.work import COMPARISONS, MATCHES

_EARLIEST, _LATEST = -(2**63), 2**63 - 1


class Probes(NamedTuple):
    """Probing tuples: how far they reach, and per condition a range of values.

    A probe at time t reaches stored tuples from t + *lower* up to, but not including, t + *past*,
    nanoseconds. Ranges of values include both ends; *negated* conditions hold outside theirs.
    """

    lower: int
    past: int
    low: np.ndarray
    high: np.ndarray
    negated: np.ndarray


class Ranges(NamedTuple):
    """For each of some tuples a range of candidates.

    Attributes
    ----------
    of
        int64: rows of probes when *of_probes*, else places of stored tuples.
    ids
        int64, the ids of those.
    begin, end
        int64: places of stored tuples when *of_probes*, else of probes in their groups' order.
    of_probes
        Which of the two it is.
    """

    of: np.ndarray
    ids: np.ndarray
    begin: np.ndarray
    end: np.ndarray
    of_probes: bool


class Found(NamedTuple):
    """Room for what ranges with a match found, as the columns of `Partners`."""

    ids: np.ndarray
    rows: np.ndarray
    counts: np.ndarray
    fingerprints: np.ndarray


@inlined
def first_from(
    times: np.ndarray, begin: int, end: int, time: int, by: int, counters: np.ndarray
) -> int:
    """Return the first place from *begin* to *end* at *time* + *by* or later, or *end*.

    *times* has `LOOKAHEAD` values from *end* on. Sums beyond the ends of int64 are taken for what
    they are.
    """
    if by > 0 and time > _LATEST - by:
        return end
    if by < 0 and time < _EARLIEST - by:
        return begin
    value = time + by
    # The place is mostly some few further, at random: all of those are looked at, since a branch
    # that cannot be foreseen costs more.
    place = begin + leading_less(times, begin, value)
    if place == begin + LOOKAHEAD and place < end:
        place = gallop(times, place, end, value, counters)
    return min(place, end)


@kernel
def find_stored(
    keys: Keys,
    pool: Pool,
    groups: KeyGroups,
    probes: Probes,
    begin: np.ndarray,
    end: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Fill in the range of stored tuples that each probe reaches, in the groups' order."""
    k = 0
    for g in range(len(groups.keys)):
        slot = find_slot(keys, groups.keys[g], counters)
        first = past = tail = np.int64(0)
        if slot >= 0:
            first = past = keys.head[slot]
            tail = keys.tail[slot]
        while k < groups.ends[g]:
            if first == tail:
                begin[k] = end[k] = tail
                k += 1
                continue
            time = groups.ts[k]
            first = first_from(pool.ts, first, tail, time, probes.lower, counters)
            past = first_from(pool.ts, past, tail, time, probes.past, counters)
            begin[k] = first
            end[k] = past
            k += 1
    counters[COMPARISONS] += 6 * k


@kernel
def find_reached(
    keys: Keys,
    pool: Pool,
    groups: KeyGroups,
    probes: Probes,
    first: np.ndarray,
    past: np.ndarray,
    counters: np.ndarray,
) -> int:
    """Fill in the places of stored tuples that any probe of each group may reach; count them."""
    total = 0
    begin = 0
    for g in range(len(groups.keys)):
        slot = find_slot(keys, groups.keys[g], counters)
        first[g] = past[g] = 0
        if slot >= 0 and begin < groups.ends[g]:
            head, tail = keys.head[slot], keys.tail[slot]
            earliest, latest = groups.ts[begin], groups.ts[groups.ends[g] - 1]
            first[g] = first_from(pool.ts, head, tail, earliest, probes.lower, counters)
            past[g] = first_from(pool.ts, first[g], tail, latest, probes.past, counters)
            total += past[g] - first[g]
        begin = groups.ends[g]
    return total


@kernel
def find_probes(
    pool: Pool,
    groups: KeyGroups,
    probes: Probes,
    first: np.ndarray,
    past: np.ndarray,
    ranges: Ranges,
    counters: np.ndarray,
) -> None:
    """Fill in the places of *first* to *past* of each group, and the probes that reach each."""
    r = 0
    low = 0
    for g in range(len(groups.keys)):
        high, stop = low, groups.ends[g]
        for place in range(first[g], past[g]):
            time = pool.ts[place]
            low = first_from(groups.ts, low, stop, time, 1 - probes.past, counters)
            high = first_from(groups.ts, high, stop, time, 1 - probes.lower, counters)
            ranges.of[r] = place
            ranges.ids[r] = pool.id[place]
            ranges.begin[r] = low
            ranges.end[r] = high
            r += 1
        low = stop
    counters[COMPARISONS] += 6 * r


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
def sum_up(
    ranges: Ranges,
    sums: np.ndarray,
    values: np.ndarray,
    probes: Probes,
    order: np.ndarray,
    found: Found,
    counters: np.ndarray,
) -> int:
    """Fill in what the ranges with a match found, and return how many there are.

    *sums* are running sums of the hashes of what the ranges are ranges of, *order* the groups'.
    """
    listed = 0
    matches = np.int64(0)
    for r in range(len(ranges.of)):
        begin, end = ranges.begin[r], ranges.end[r]
        count, total = end - begin, sums[end] - sums[begin]
        if len(values):
            counters[COMPARISONS] += count
            count, total = 0, np.uint64(0)
            for x in range(end - 1, begin - 1, -1):
                place, i = (x, ranges.of[r]) if ranges.of_probes else (ranges.of[r], order[x])
                if satisfies(values, place, probes, i):
                    begin = x
                    count += 1
                    total += sums[x + 1] - sums[x]
        if count:
            found.ids[listed] = ranges.ids[r]
            found.rows[listed] = ranges.of[r] if ranges.of_probes else order[begin]
            found.counts[listed] = count
            found.fingerprints[listed] = total
            listed += 1
            matches += count
    counters[MATCHES] += matches
    return listed


@kernel
def list_matches(
    ranges: Ranges,
    ids: np.ndarray,
    values: np.ndarray,
    probes: Probes,
    order: np.ndarray,
    match_id: np.ndarray,
) -> None:
    """List the ids of the matches, range by range. There is room for all."""
    listed = 0
    for r in range(len(ranges.of)):
        begin, end = ranges.begin[r], ranges.end[r]
        if not len(values):
            for x in range(begin, end):
                match_id[listed + x - begin] = ids[x]
            listed += end - begin
            continue
        for x in range(begin, end):
            place, i = (x, ranges.of[r]) if ranges.of_probes else (ranges.of[r], order[x])
            if satisfies(values, place, probes, i):
                match_id[listed] = ids[x]
                listed += 1
