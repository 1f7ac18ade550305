"""LLAT: the Linked List Adaptive Table (section III-B2), in which RaP-Table and WiB+-Tree store.

Room for the unsorted tuples of partitions whose sizes nobody knows beforehand: 2P entries of equal
capacity, (N_Sub / P)·σ tuples each, of which a partition has one, and as many more, linked to it,
as its tuples fill. A partition is identified by its first entry.

An entry is linked when a tuple needs it; the paper links it as soon as the one before is full,
which may leave it empty. There is no deletion (section III-G1), and so no tail pointer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.index import NONE
from joins.indexes.panjoin.lookup import Lookup, match_entries, match_places, sees_nothing
from joins.machine.compiling import kernel
from joins.state import storable


@storable
class Llat(NamedTuple):
    """The table; rows are entries."""

    keys: np.ndarray
    places: np.ndarray
    """int64 and int32, shape (2P, capacity of an entry)."""
    size: np.ndarray
    """int32, tuples in each entry: the paper's *Head*."""
    next: np.ndarray
    """int32, the entry linked to it, or `NONE`."""
    last: np.ndarray
    """int32, of a partition's first entry: its last one."""
    follow: np.ndarray
    """int32, of a partition's first entry: the partition after it in the order of values."""
    used: np.ndarray
    """int32, shape (1,): entries in use, and so the first free one, the paper's *PtrG*."""


def new_llat(capacity: int, partitions: int, sigma: float) -> Llat:
    """Return an empty table for *capacity* tuples in about *partitions* partitions.

    (N_Sub / P)·σ is rounded up to an even number, because WiB+-Tree splits an entry into halves.
    """
    entries = 2 * partitions
    room = 2 * max(1, int(np.ceil(capacity * sigma / entries)))
    return Llat(
        keys=np.zeros((entries, room), np.int64),
        places=np.zeros((entries, room), np.int32),
        size=np.zeros(entries, np.int32),
        next=np.full(entries, NONE, np.int32),
        last=np.arange(entries, dtype=np.int32),
        follow=np.full(entries, NONE, np.int32),
        used=np.zeros(1, np.int32),
    )


@kernel
def use_entry(llat: Llat) -> int:
    """Return a free entry, which is in use from now on."""
    entry = llat.used[0]
    llat.used[0] += 1
    return int(entry)


@kernel
def append(llat: Llat, partition: int, key: int, place: int) -> None:
    """Add a tuple to a partition."""
    entry = llat.last[partition]
    if llat.size[entry] == llat.keys.shape[1]:
        linked = use_entry(llat)
        llat.next[entry] = linked
        llat.last[partition] = linked
        entry = linked
    at = llat.size[entry]
    llat.keys[entry, at] = key
    llat.places[entry, at] = place
    llat.size[entry] = at + 1


@kernel
def _match_partition(llat: Llat, partition: int, lookup: Lookup, row: int, whole: bool) -> None:
    """Match a partition: the *whole* if all of its keys are in range, else key by key."""
    entry = partition
    while entry != NONE:
        if whole:
            match_places(lookup, row, llat.places, entry, 0, llat.size[entry])
        else:
            match_entries(lookup, row, llat.keys, llat.places, entry, llat.size[entry])
        entry = llat.next[entry]


@kernel
def match_partitions(llat: Llat, lookup: Lookup, row: int, first: int, last: int) -> None:
    """Answer probe *row*, the ends of whose range fall into partitions *first* and *last*.

    The paper scans a partition tuple by tuple and in it goes through the probes that share it, so
    that the partition is read once. Here probes take turns: they are sorted, so the partition is in
    the nearest cache when the next probe reads it, and a probe's matches are found together.
    """
    if sees_nothing(lookup, row):
        return
    empty = lookup.ranges.low[0, row] > lookup.ranges.high[0, row]
    if not lookup.ranges.negated[0]:
        partition = NONE if empty else first
        while partition != NONE:
            whole = partition not in (first, last)
            _match_partition(llat, partition, lookup, row, whole=whole)
            partition = NONE if partition == last else llat.follow[partition]
        return
    partition = 0  # The leftmost: splitting a partition moves its upper part.
    between = False
    while partition != NONE:
        if not empty and partition in (first, last):
            _match_partition(llat, partition, lookup, row, whole=False)
            between = partition != last
        elif not between:
            _match_partition(llat, partition, lookup, row, whole=True)
        partition = llat.follow[partition]
