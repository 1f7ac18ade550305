"""The sorted arrays of a BI-Sort: merging a batch into one, and sampling the index array."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.machine.compiling import kernel
from joins.machine.lanes import LANES, lanes_greater, move_lanes
from joins.machine.memory import aligned
from joins.work import COMPARISONS, MOVES

CHUNK = LANES
"""Keys that a scan compares without a branch in between; partitions are whole numbers of them."""

_NARROW = np.iinfo(np.int32)


class Runs(NamedTuple):
    """The sorted arrays of a BI-Sort.

    Attributes
    ----------
    keys, places
        Shape (1, capacity): the main array. Keys are int32 while all `fits`, which halves what is
        read, else int64; places are int32. Behind the last tuple the keys are the greatest integer,
        at least one partition of them, so that scans need not look for the end.
    size
        Tuples in it.
    sampled, step
        Shape (1, P): the key of every *step*-th tuple of the main array; *step* is a
        multiple of `CHUNK`.
    samples
        Entries of the index array in use.
    buffer_keys, buffer_places, buffered
        The insertion buffer and the tuples in it; behind the last one it is as in the main array.
    """

    keys: np.ndarray
    places: np.ndarray
    size: int
    sampled: np.ndarray
    step: int
    samples: int
    buffer_keys: np.ndarray
    buffer_places: np.ndarray
    buffered: int


def widest(tuples: int, partitions: int) -> int:
    """Return how wide at most *partitions* partitions of so many tuples are."""
    return max(1, -(-tuples // (partitions * CHUNK))) * CHUNK


def fits(codes: np.ndarray, dtype: np.dtype) -> bool:
    """Return whether ascending int64 *codes* can be keys of *dtype*.

    The greatest int32 is no key, but stands for all codes beyond: none that is stored is as great.
    """
    return (
        dtype == np.int64
        or not len(codes)
        or bool(_NARROW.min <= codes[0] and codes[-1] < _NARROW.max)
    )


def make_runs(capacity: int, partitions: int, buffer: int, dtype: np.dtype) -> Runs:
    """Return empty arrays with keys of *dtype*."""
    return Runs(
        keys=aligned((1, capacity + widest(capacity, partitions)), dtype, np.iinfo(dtype).max),
        places=aligned((1, capacity), "int32"),
        size=0,
        sampled=np.empty((1, partitions), dtype),
        step=CHUNK,
        samples=0,
        buffer_keys=aligned((1, buffer + CHUNK), dtype, np.iinfo(dtype).max),
        buffer_places=np.empty((1, buffer), np.int32),
        buffered=0,
    )


@kernel
def merge(
    keys: np.ndarray,
    places: np.ndarray,
    size: int,
    new_keys: np.ndarray,
    new_places: np.ndarray,
    new: int,
    counters: np.ndarray,
) -> None:
    """Merge *new* sorted entries into *size* sorted ones, in place from the greatest down.

    Entries are keys and their places, or keys alone when *places* has no columns.

    What lies between two new entries moves up by the lanes. More is moved than lies there: what is
    too much lands where the next entries go. With fewer than `LANES` of these it would land on
    entries that are still to be moved, which therefore go one by one.
    """
    i, to, has_places = size - 1, size + new - 1, places.shape[1] > 0
    for j in range(new - 1, -1, -1):
        key = new_keys[0, j]
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
            keys[0, np.uint64(to)] = keys[0, np.uint64(i)]
            if has_places:
                places[0, np.uint64(to)] = places[0, np.uint64(i)]
            i -= 1
            to -= 1
        keys[0, np.uint64(to)] = key
        if has_places:
            places[0, np.uint64(to)] = new_places[0, j]
        to -= 1
    counters[MOVES] += size - 1 - i + new
    counters[COMPARISONS] += size - 1 - i + new


@kernel
def sample(keys: np.ndarray, size: int, step: int, index: np.ndarray, counters: np.ndarray) -> None:
    """Fill in the index array."""
    samples = (size + step - 1) // step
    for i in range(samples):
        index[0, i] = keys[0, i * step]
    counters[MOVES] += samples
