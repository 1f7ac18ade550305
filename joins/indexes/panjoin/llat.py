"""LLAT: the Linked List Adaptive Table (section III-B2).

Room for the unsorted tuples of partitions whose sizes nobody knows beforehand: 2P entries of equal
capacity, (N_Sub / P)·σ tuples each, of which a partition has one, and as many more, linked to it,
as its tuples fill. A partition is known by its first entry.

An entry is linked when a tuple needs it; the paper links it as soon as the one before is full,
which may leave it empty. There is no deletion (section III-G1), and so no tail pointer.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.indexes.panjoin.answering import (
    Output,
    Probes,
    Stored,
    sees_nothing,
    take_all,
    take_fitting,
)
from joins.machine.compiling import kernel

NONE = -1
PTR_G = 0


class Llat(NamedTuple):
    """The table's arrays; rows are entries.

    Attributes
    ----------
    keys, places
        int64 and int32, shape (2P, capacity of an entry).
    size
        int32, tuples in each entry: the paper's *Head*.
    next
        int32, the entry linked to it, or `NONE`.
    last
        int32, of a partition's first entry: its last one.
    follow
        int32, of a partition's first entry: the partition after it in the order of values.
    state
        int32, shape (1,): *PtrG*, the first entry that nobody uses.
    """

    keys: np.ndarray
    places: np.ndarray
    size: np.ndarray
    next: np.ndarray
    last: np.ndarray
    follow: np.ndarray
    state: np.ndarray

    @property
    def used(self) -> int:
        """Entries in use."""
        return int(self.state[PTR_G])

    def snapshot(self) -> dict[str, np.ndarray]:
        """Return what is in use, as plain arrays."""
        used, widest = self.used, int(self.size[: self.used].max(initial=0))
        held = {
            name: (array[:used, :widest] if array.ndim == 2 else array[:used]).copy()
            for name, array in self._asdict().items()
        }
        return held | {"state": self.state.copy()}

    def take_over(self, snapshot: dict[str, np.ndarray]) -> None:
        """Become the table that `snapshot` described; this one is of the same size and empty."""
        for name, array in snapshot.items():
            getattr(self, name)[tuple(slice(length) for length in array.shape)] = array


def entry_capacity(capacity: int, partitions: int, sigma: float) -> int:
    """Return how many tuples an entry holds, (N_Sub / P)·σ rounded up to an even number.

    Even, because WiB+-Tree splits an entry into halves.
    """
    return 2 * max(1, int(np.ceil(capacity * sigma / (2 * partitions))))


def make_llat(capacity: int, partitions: int, sigma: float) -> Llat:
    """Return an empty table for *capacity* tuples in about *partitions* partitions."""
    entries = 2 * partitions
    room = entry_capacity(capacity, partitions, sigma)
    return Llat(
        keys=np.empty((entries, room), np.int64),
        places=np.empty((entries, room), np.int32),
        size=np.zeros(entries, np.int32),
        next=np.full(entries, NONE, np.int32),
        last=np.arange(entries, dtype=np.int32),
        follow=np.full(entries, NONE, np.int32),
        state=np.zeros(1, np.int32),
    )


@kernel
def take_entry(llat: Llat) -> int:
    """Return an entry that nobody uses and move *PtrG* past it."""
    entry = llat.state[PTR_G]
    llat.state[PTR_G] += 1
    return entry


@kernel
def append(llat: Llat, partition: int, key: int, place: int) -> None:
    """Add a tuple to a partition."""
    entry = llat.last[partition]
    if llat.size[entry] == llat.keys.shape[1]:
        linked = take_entry(llat)
        llat.next[entry] = linked
        llat.last[partition] = linked
        entry = linked
    at = llat.size[entry]
    llat.keys[entry, at] = key
    llat.places[entry, at] = place
    llat.size[entry] = at + 1


@kernel
def _take_partition(
    llat: Llat,
    partition: int,
    is_end: bool,
    probes: Probes,
    stored: Stored,
    row: int,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Report a partition: at an end of the range tuple by tuple, else as a whole."""
    entry = partition
    while entry != NONE:
        size = llat.size[entry]
        if is_end:
            wanted = not probes.negated
            take_fitting(
                llat.keys, llat.places, entry, size, wanted, probes, stored, row, output, counters
            )
        else:
            take_all(llat.places, entry, 0, size, probes, stored, row, output, counters)
        entry = llat.next[entry]


@kernel
def scan_partitions(
    llat: Llat,
    leftmost: int,
    first: int,
    last: int,
    probes: Probes,
    stored: Stored,
    row: int,
    output: Output,
    counters: np.ndarray,
) -> None:
    """Answer probe *row*, the ends of whose range fall into partitions *first* and *last*.

    The paper scans a partition tuple by tuple and in it goes through the probes that share it, so
    that the partition is read once. Here probes take turns: they are sorted, so the partition is in
    the nearest cache when the next probe reads it, and a probe's matches are found together.
    """
    if sees_nothing(probes, stored, row):
        return
    empty = probes.low[row] > probes.high[row]
    if not probes.negated:
        partition = NONE if empty else first
        while partition != NONE:
            is_end = partition in (first, last)
            _take_partition(llat, partition, is_end, probes, stored, row, output, counters)
            partition = NONE if partition == last else llat.follow[partition]
        return
    partition = leftmost
    between = False
    while partition != NONE:
        is_end = not empty and partition in (first, last)
        if is_end or not between:
            _take_partition(llat, partition, is_end, probes, stored, row, output, counters)
        if is_end:
            between = partition != last
        partition = llat.follow[partition]
