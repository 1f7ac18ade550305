"""Sorted arrays of integer keys: merging a batch into one, and searching one for many targets.

BI-Sort, RaP-Table's splitters and the sorted runs of `joins.window_join` are such arrays. All of
them are matrices of one row, because the vector instructions take matrices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.machine.compiling import inlined, kernel
from joins.machine.lanes import LANES, lanes_greater, lanes_less, move_lanes
from joins.work import COMPARISONS, MOVES

AT_ONCE = 8
"""Keys that an instruction compares: together they count as one comparison."""

_GROUP = 64
"""Searches made side by side."""


class SortedRun(NamedTuple):
    """Sorted entries with room behind them."""

    keys: np.ndarray
    """Shape (1, room), int32 or int64."""
    places: np.ndarray
    """int32, shape (1, room): which tuple each key is of. No columns where keys alone are
    stored."""
    size: int
    """Entries in use."""


@kernel
def merge(run: SortedRun, new: SortedRun, counters: np.ndarray) -> None:
    """Merge *new* entries into a run that has room for them, in place from the greatest down.

    New entries go behind equal ones of the run. The caller counts the new size.

    What lies between two new entries moves up by the lanes. More is moved than lies there: what is
    too much lands where the next entries go. With fewer than `LANES` of these it would land on
    entries that are still to be moved, which therefore go one by one.
    """
    keys, places = run.keys, run.places
    i, to, has_places = run.size - 1, run.size + new.size - 1, places.shape[1] > 0
    for j in range(new.size - 1, -1, -1):
        key = new.keys[0, j]
        greater = LANES
        while greater == LANES and i >= LANES - 1:
            lanes = i - LANES + 1
            greater = lanes_greater(keys, 0, lanes, key)
            if greater < LANES and j < LANES:
                break
            move_lanes(keys, 0, lanes, to - LANES + 1)
            if has_places:
                move_lanes(places, 0, lanes, to - LANES + 1)
            i -= greater
            to -= greater
        while i >= 0 and keys[0, i] > key:
            keys[0, to] = keys[0, i]
            if has_places:
                places[0, to] = places[0, i]
            i -= 1
            to -= 1
        keys[0, to] = key
        if has_places:
            places[0, to] = new.places[0, j]
        to -= 1
    counters[MOVES] += run.size - 1 - i + new.size
    counters[COMPARISONS] += run.size - 1 - i + new.size


@inlined
def rebound(keys: np.ndarray, size: int, hint: int, target: int, counters: np.ndarray) -> int:
    """Return the first place in ``keys[0, :size]`` with a key of at least *target*, or *size*.

    The rebounding binary search of PanJoin (section III-E, Figure 6): it starts from *hint*, a
    place from 0 to *size*, where the search before ended, and doubles its step until it is past the
    target, then halves it on the way back. Targets come in ascending order, so most searches take a
    step or two. Where one does not (the range of a probe that nothing satisfies has its ends
    anywhere) the first phase goes the other way: the result never depends on the hint, only the
    speed does.
    """
    begin, end = hint, hint
    step = 1
    steps = 0
    if hint < size and keys[0, hint] < target:
        begin += 1
        while True:
            end = hint + step
            if end >= size:
                end = size
                break
            steps += 1
            if keys[0, end] >= target:
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
            if keys[0, begin] < target:
                begin += 1
                break
            end = begin
            step += step
    while begin < end:
        middle = (begin + end) >> 1
        steps += 1
        if keys[0, middle] < target:
            begin = middle + 1
        else:
            end = middle
    counters[COMPARISONS] += steps + 1
    return begin


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

    The same places as one `rebound` after the other returns. When targets lie far apart, each of
    those mispredicts every step and waits for one read from memory after the other. Here the first
    target of every group is searched for side by side, then all others between them.
    """
    count = end - begin
    if count == 0 or size == 0:
        places[:count] = 0
        return
    _halve_all(keys, size, targets, begin, (0, count, _GROUP), (0, size), places, counters)
    hint = places[(count - 1) // _GROUP * _GROUP]
    last_place = rebound(keys, size, hint, targets[end - 1], counters)
    for first in range(0, count, _GROUP):
        last = min(first + _GROUP, count)
        between = places[first], places[last] if last < count else last_place
        for i in range(begin + first, min(begin + last, end - 1)):
            if targets[i] > targets[i + 1]:
                between = 0, size
        _halve_all(keys, size, targets, begin, (first, last, 1), between, places, counters)


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

    Column i is that of target *begin* + i; *columns* are first, last (exclusive) and step. All
    targets belong *between* the same two places. What lies there is halved for all of them at the
    same time, without a branch, until `LANES` keys are left to compare at once.
    """
    first, last, step = columns
    place, length = between[0], between[1] - between[0]
    searches = (last - first + step - 1) // step
    for i in range(first, last, step):
        places[i] = place
    last_lanes = size - LANES
    fewest = LANES if last_lanes >= 0 else 0
    while length > fewest:
        half = (length + 1) >> 1
        for i in range(first, last, step):
            middle = places[i] + half - 1
            places[i] += half * np.int64(keys[0, middle] < targets[begin + i])
        length -= half
        counters[COMPARISONS] += searches
    if length > 0:
        for i in range(first, last, step):
            # All keys before the place are less: the lanes may begin there as well.
            lanes = min(places[i], last_lanes)
            target = nearest_key(keys, targets[begin + i])
            places[i] = lanes + lanes_less(keys, 0, lanes, target)
        counters[COMPARISONS] += searches * (LANES // AT_ONCE)


@inlined
def nearest_key(keys: np.ndarray, value: int) -> int:
    """Return *value*, or the nearest one that the dtype of *keys* can represent, in that dtype."""
    limits = np.iinfo(keys.dtype)
    nearest: int = keys.dtype.type(min(max(value, limits.min), limits.max))
    return nearest
