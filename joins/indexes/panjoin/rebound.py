"""Rebounding binary search (section III-E, Figure 6).

The search starts where the previous one ended and doubles its step until it is past the target,
then halves it on the way back. Targets come in ascending order, so most searches are a step or two.
Where one does not (the range of a probe that nothing satisfies has its ends anywhere) the first
phase goes the other way: the answer never depends on the order, only the speed does.
"""

from __future__ import annotations

import numpy as np

from joins.machine import inlined, kernel
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
    goes wrong at every step in guessing which way to go; here only the ends of a group are searched
    like that, and all others halve what lies between at the same time, without a branch.
    """
    place = 0
    for first in range(begin, end, GROUP):
        last = min(first + GROUP, end)
        least = most = targets[first]
        for i in range(np.uint64(first), np.uint64(last)):
            least = min(least, targets[i])
            most = max(most, targets[i])
        place = rebound(keys, 0, size, place, least, counters)
        length = rebound(keys, 0, size, place, most, counters) - place
        for i in range(np.uint64(first - begin), np.uint64(last - begin)):
            places[i] = place
        while length > 0:
            half = (length + 1) >> 1
            for i in range(np.uint64(first - begin), np.uint64(last - begin)):
                middle = np.uint64(places[i] + half - 1)
                places[i] += half * np.int64(keys[0, middle] < targets[np.uint64(begin) + i])
            length -= half
            counters[COMPARISONS] += last - first
        place = places[last - begin - 1]
