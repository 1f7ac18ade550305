"""The leaves of a WiB+-Tree: unsorted partitions of an LLAT, and how one is split.

All tuples of one value are in one leaf, so a leaf can be split only between two values, and a leaf
with many equal ones may outgrow its entry. How far it may be off the middle the paper does not say.
Here a split must leave at least half an entry on either side; where none does, the leaf grows on
and is tried again when it is half as large again. So every leaf but a lone one holds at least C/2
tuples, C an entry's capacity; then ⌈n / C⌉ ≤ 2n / C for each, and the table needs 2N / C = 2P / σ <
2P entries at the most. With any smaller remainder, values that arrive in descending order beside a
frequent one would take an entry each.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.panjoin.llat import NONE, Llat, take_entry
from joins.machine.compiling import kernel
from joins.work import COMPARISONS, MOVES


class Leaves(NamedTuple):
    """What is known of each leaf, by the entry it begins with.

    Attributes
    ----------
    tuples
        int64, how many it holds.
    attempt
        int64, the count at which to try to split it.
    """

    tuples: np.ndarray
    attempt: np.ndarray


class Scratch(NamedTuple):
    """Room for the tuples of a leaf while it is split."""

    keys: np.ndarray
    places: np.ndarray
    selected: np.ndarray


@kernel
def _select(keys: np.ndarray, size: int, rank: int) -> int:
    """Return the key that would be at *rank* if ``keys[:size]`` were sorted; moves keys."""
    low, high = 0, size - 1
    while low < high:
        pivot = keys[(low + high) >> 1]
        i, j = low, high
        while i <= j:
            while keys[i] < pivot:
                i += 1
            while keys[j] > pivot:
                j -= 1
            if i <= j:
                keys[i], keys[j] = keys[j], keys[i]
                i += 1
                j -= 1
        if rank <= j:
            high = j
        elif rank >= i:
            low = i
        else:
            return keys[rank]
    return keys[rank]


@kernel
def _unload(llat: Llat, leaf: int, scratch: Scratch) -> int:
    """Copy a leaf's tuples out of its entries; return how many."""
    count = 0
    entry = leaf
    while entry != NONE:
        for i in range(llat.size[entry]):
            scratch.keys[count] = scratch.selected[count] = llat.keys[entry, i]
            scratch.places[count] = llat.places[entry, i]
            count += 1
        entry = llat.next[entry]
    return count


@kernel
def _load(llat: Llat, head: int, scratch: Scratch, count: int, least: int, most: int) -> int:
    """Write the tuples with keys from *least* to *most* into *head* and the entries linked to it.

    Return the first linked entry that is not needed, or `NONE`; it is linked no more.
    """
    room = llat.keys.shape[1]
    entry, at = head, 0
    for i in range(count):
        key = scratch.keys[i]
        if not least <= key <= most:
            continue
        if at == room:
            llat.size[entry] = room
            if llat.next[entry] == NONE:
                llat.next[entry] = take_entry(llat)
            entry, at = llat.next[entry], 0
        llat.keys[entry, at] = key
        llat.places[entry, at] = scratch.places[i]
        at += 1
    llat.size[entry] = at
    llat.last[head] = entry
    spare = llat.next[entry]
    llat.next[entry] = NONE
    return spare


@kernel
def split_leaf(
    llat: Llat, leaves: Leaves, leaf: int, scratch: Scratch, counters: np.ndarray
) -> tuple[int, int]:
    """Split a leaf if it can be; return the new leaf on its right (or `NONE`) and its least key.

    The paper sorts the leaf; to halve it, selecting the middle key is enough.
    """
    room = llat.keys.shape[1]
    count = _unload(llat, leaf, scratch)
    middle = _select(scratch.selected, count, count // 2)
    below = up_to = 0
    least, most = scratch.keys[0], scratch.keys[0]
    above = np.int64(0x7FFFFFFFFFFFFFFF)
    for i in range(count):
        key = scratch.keys[i]
        below += key < middle
        up_to += key <= middle
        least, most = min(least, key), max(most, key)
        if key > middle:
            above = min(above, key)
    # Selecting reads every key about three times over.
    counters[COMPARISONS] += 3 * count
    before, after = min(below, count - below), min(up_to, count - up_to)
    if max(before, after) < room // 2:
        leaves.attempt[leaf] = count + max(room // 2, count // 2)
        return NONE, 0
    separator, left = (middle, below) if before >= after else (above, up_to)
    spare = _load(llat, leaf, scratch, count, least, separator - 1)
    right = take_entry(llat) if spare == NONE else spare
    _load(llat, right, scratch, count, separator, most)
    counters[MOVES] += count
    llat.follow[right] = llat.follow[leaf]
    llat.follow[leaf] = right
    leaves.tuples[leaf], leaves.tuples[right] = left, count - left
    leaves.attempt[leaf] = max(room, left + 1)
    leaves.attempt[right] = max(room, count - left + 1)
    return right, int(separator)
