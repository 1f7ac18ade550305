"""Binary search for the places of a closed range of values in a sorted column, and filtering.

For two-way joins SPO-Join searches the probing stream's own sorted keys and jumps through the
offset array into the stored stream's order (section 3.4). Taken literally that forgets the stored
keys between two neighbouring own keys. Here the offsets of the two neighbours bracket the place,
and a binary search inside the bracket finishes it: the same answer as a search of all stored keys.

`filter_candidates` reduces what one predicate's range contains to what satisfies another predicate.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.machine.compiling import inlined, kernel
from joins.work import COMPARISONS


class Brackets(NamedTuple):
    """The probing stream's own sorted keys of an epoch, and where they belong among stored keys."""

    own: tuple[np.ndarray, ...]
    """Sorted keys, one column per predicate."""
    offsets: tuple[np.ndarray, ...]
    """For each of them the offset array of own keys in stored keys."""


@kernel
def lower_bound(keys: np.ndarray, begin: int, end: int, value: int, counters: np.ndarray) -> int:
    """Return the first place from *begin* to *end* with a key of at least *value*, or *end*."""
    while begin < end:
        middle = (begin + end) >> 1
        counters[COMPARISONS] += 1
        if keys[middle] < value:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def upper_bound(keys: np.ndarray, begin: int, end: int, value: int, counters: np.ndarray) -> int:
    """Return the first place from *begin* to *end* with a key greater than *value*, or *end*."""
    while begin < end:
        middle = (begin + end) >> 1
        counters[COMPARISONS] += 1
        if keys[middle] <= value:
            begin = middle + 1
        else:
            end = middle
    return begin


@kernel
def gallop(keys: np.ndarray, begin: int, end: int, value: int, counters: np.ndarray) -> int:
    """Do what `lower_bound` does, at a cost logarithmic in how far the place is from *begin*."""
    step = 1
    place = begin
    while place < end and keys[place] < value:
        begin = place + 1
        place += step
        step *= 2
        counters[COMPARISONS] += 1
    return int(lower_bound(keys, begin, min(place, end), value, counters))


@kernel
def find_ranges(
    keys: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Fill in the places *begin* to *end* - 1 whose keys are in ``lo[i] <= key <= hi[i]``."""
    for i in range(len(lo)):
        begin[i] = end[i] = 0
        if lo[i] <= hi[i]:
            begin[i] = lower_bound(keys, 0, len(keys), lo[i], counters)
            end[i] = upper_bound(keys, begin[i], len(keys), hi[i], counters)


@kernel
def find_ranges_in_brackets(
    keys: np.ndarray,
    own: np.ndarray,
    offsets: np.ndarray,
    lo: np.ndarray,
    hi: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Do what `find_ranges` does by way of the offsets of the *own* keys."""
    for i in range(len(lo)):
        begin[i] = end[i] = 0
        if lo[i] <= hi[i]:
            place = lower_bound(own, 0, len(own), lo[i], counters)
            left, right = _bracket(offsets, place, len(keys))
            begin[i] = lower_bound(keys, left, right, lo[i], counters)
            place = upper_bound(own, place, len(own), hi[i], counters)
            left, right = _bracket(offsets, place, len(keys))
            end[i] = upper_bound(keys, left, right, hi[i], counters)


@inlined
def _bracket(offsets: np.ndarray, place: int, last: int) -> tuple[int, int]:
    """Return the places of the own keys before and at *place* among the *last* stored keys."""
    left = offsets[place - 1] if place > 0 else 0
    right = offsets[place] if place < len(offsets) else last
    return left, right


class Within(NamedTuple):
    """A closed range of values; *negated*, all that lie outside it."""

    low: int
    high: int
    negated: bool


@kernel
def filter_candidates(
    candidates: np.ndarray, count: int, values: np.ndarray, line: int, within: Within
) -> int:
    """Move the candidates with ``values[line, candidate]`` *within* a range to the front.

    Line -1 stands for the candidates themselves. Return how many they are.
    """
    passed = 0
    # No branch on the outcome: half of them would be guessed wrong, at six times the cost.
    for i in range(count):
        candidate = candidates[i]
        value = np.int64(candidate if line < 0 else values[line, candidate])
        candidates[passed] = candidate
        passed += int(((within.low <= value) & (value <= within.high)) ^ within.negated)
    return passed
