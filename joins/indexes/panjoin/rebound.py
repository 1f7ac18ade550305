"""Rebounding binary search (section III-E, Figure 6).

The search starts where the previous one ended and doubles its step until it is past the target,
then halves it on the way back. Targets come in ascending order, so most searches are a step or two.
Where one does not (the range of a probe that nothing satisfies has its ends anywhere) the first
phase goes the other way: the answer never depends on the order, only the speed does.
"""

from __future__ import annotations

import numpy as np

from joins.machine.compiling import inlined, kernel
from joins.machine.lanes import LANES, lanes_less
from joins.work import COMPARISONS


@inlined
def rebound(
    keys: np.ndarray, row: int, size: int, hint: int, target: int, counters: np.ndarray
) -> int:
    """Return the first place in ``keys[row, :size]`` with a key of at least *target*, or *size*.

    *hint* is a place from 0 to *size*.
    """
    begin, end = hint, hint
    step = 1
    steps = 0
    if hint < size and keys[row, np.uint64(hint)] < target:
        begin += 1
        while True:
            end = hint + step
            if end >= size:
                end = size
                break
            steps += 1
            if keys[row, np.uint64(end)] >= target:
                break
            begin = end + 1
            step += step
    else:
        while True:
            begin = hint - step
            if begin < 0:
                begin = 0
                break
            steps += 1
            if keys[row, np.uint64(begin)] < target:
                begin += 1
                break
            end = begin
            step += step
    while begin < end:
        middle = (begin + end) >> 1
        steps += 1
        if keys[row, np.uint64(middle)] < target:
            begin = middle + 1
        else:
            end = middle
    counters[COMPARISONS] += steps + 1
    return begin


GROUP = 64
"""Searches made side by side."""

AT_ONCE = 8
"""Keys that an instruction compares: together they count as one comparison."""


@inlined
def as_key(keys: np.ndarray, value: int) -> int:
    """Return *value*, or the nearest one that a key can have, as the integer that keys are."""
    limits = np.iinfo(keys.dtype)
    return keys.dtype.type(min(max(value, limits.min), limits.max))


@inlined
def _halve_all(
    keys: np.ndarray,
    size: int,
    targets: np.ndarray,
    begin: int,
    columns: tuple[int, int, int],
    between: tuple[int, int],
    places: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Write into some *columns* of *places* where their targets belong.

    Column i is that of target *begin* + i. All of them belong *between* the same two places, and
    halve what lies there at the same time, without a branch, until `LANES` keys are left to compare
    at once.
    """
    first, last, step = columns
    place, length = between[0], between[1] - between[0]
    searches = (last - first + step - 1) // step
    for i in range(np.uint64(first), np.uint64(last), np.uint64(step)):
        places[i] = place
    last_lanes = size - LANES
    fewest = LANES if last_lanes >= 0 else 0
    while length > fewest:
        half = (length + 1) >> 1
        for i in range(np.uint64(first), np.uint64(last), np.uint64(step)):
            middle = np.uint64(places[i] + half - 1)
            places[i] += half * np.int64(keys[0, middle] < targets[np.uint64(begin) + i])
        length -= half
        counters[COMPARISONS] += searches
    if length > 0:
        for i in range(np.uint64(first), np.uint64(last), np.uint64(step)):
            # All keys before the place are less: the lanes may begin there as well.
            lanes = min(places[i], last_lanes)
            target = as_key(keys, targets[np.uint64(begin) + i])
            places[i] = lanes + lanes_less(keys, 0, lanes, target)
        counters[COMPARISONS] += searches * (LANES // AT_ONCE)


@kernel
def rebound_all(
    keys: np.ndarray,
    size: int,
    targets: np.ndarray,
    begin: int,
    end: int,
    places: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Write into *places*, from 0 on, where ``targets[begin:end]`` belong in ``keys[0, :size]``.

    The same places as from one `rebound` after the other. When targets lie far apart, each of those
    goes wrong at every step in guessing which way to go, and waits for a read from memory after the
    other. Here the first of every group are searched side by side, then all others between them.
    """
    count = end - begin
    if count == 0 or size == 0:
        places[:count] = 0
        return
    _halve_all(keys, size, targets, begin, (0, count, GROUP), (0, size), places, counters)
    hint = places[(count - 1) // GROUP * GROUP]
    last_place = rebound(keys, 0, size, hint, targets[end - 1], counters)
    for first in range(0, count, GROUP):
        last = min(first + GROUP, count)
        between = places[first], places[last] if last < count else last_place
        for i in range(np.uint64(begin + first), np.uint64(min(begin + last, end - 1))):
            if targets[i] > targets[i + np.uint64(1)]:
                between = 0, size
        _halve_all(keys, size, targets, begin, (first, last, 1), between, places, counters)
