"""WiB+-Tree: the Wide B+-Tree (section III-C).

Wide unsorted leaves in an LLAT under the narrow sorted inner nodes of a B+-tree: it adapts to any
distribution as it goes, rising values included, and needs to know nothing beforehand.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.indexes.panjoin.answering import Output, Probes, Stored, new_counters, work_of
from joins.indexes.panjoin.llat import (
    NONE,
    Llat,
    append,
    make_llat,
    scan_partitions,
    take_entry,
)
from joins.indexes.panjoin.threads import BLOCK
from joins.indexes.panjoin.wib_leaves import Leaves, Scratch, split_leaf
from joins.indexes.panjoin.wib_nodes import Inner, add_leaf, advance, descend, make_inner
from joins.machine.compiling import kernel
from joins.work import INSERTS, NO_WORK, Work

FANOUT = 64
"""Children of an inner node: 512 bytes of keys, few enough for inner nodes to stay in the cache."""

_LEFTMOST = 0


class WibTree:
    """The tuples of a subwindow in a tree of wide leaves.

    Parameters
    ----------
    capacity
        N_Sub, the most tuples.
    partitions
        P, about the number of leaves.
    sigma
        σ, above 1: an LLAT entry, and so a leaf, has room for (N_Sub / P)·σ tuples.
    fanout
        Children of an inner node, at least 4.
    """

    def __init__(self, capacity: int, partitions: int, sigma: float, fanout: int = FANOUT) -> None:
        self._made_of = (capacity, partitions, sigma, fanout)
        self.llat = make_llat(capacity, partitions, sigma)
        entries, room = self.llat.keys.shape
        self.leaves = Leaves(np.zeros(entries, np.int64), np.full(entries, room, np.int64))
        self.inner = make_inner(entries, fanout)
        take_entry(self.llat)

    def __len__(self) -> int:
        return int(self.leaves.tuples.sum())

    @property
    def nbytes(self) -> int:
        """Bytes that its arrays occupy."""
        return sum(array.nbytes for part in (self.llat, self.leaves, self.inner) for array in part)

    def insert(self, codes: np.ndarray, places: np.ndarray) -> Work:
        """Take a batch in ascending order of *codes*."""
        most = len(self) + len(codes)
        scratch = Scratch(
            np.empty(most, np.int64), np.empty(most, np.int32), np.empty(most, np.int64)
        )
        counters = new_counters()
        _insert(self.llat, self.leaves, self.inner, scratch, codes, places, counters)
        return work_of(counters)

    def seal(self) -> Work:
        """Do nothing: leaves stay unsorted."""
        return NO_WORK

    def answer(
        self, probes: Probes, stored: Stored, begin: int, end: int, output: Output
    ) -> np.ndarray:
        """Answer probes *begin* to *end*; return the counters."""
        counters = new_counters()
        # Two paths of this call's own: other calls walk the same tree at the same time.
        low, high = (self.inner._replace(path=np.zeros_like(self.inner.path)) for _ in range(2))
        _answer(self.llat, low, high, probes, stored, begin, end, output, counters)
        return counters

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain arrays and numbers."""
        return {
            "made_of": list(self._made_of),
            "llat": self.llat.snapshot(),
            "leaves": [array.copy() for array in self.leaves],
            "inner": [array.copy() for array in self.inner],
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> WibTree:
        """Return the structure that `snapshot` described."""
        held = cls(*snapshot["made_of"])
        held.llat.take_over(snapshot["llat"])
        for part, arrays in ((held.leaves, snapshot["leaves"]), (held.inner, snapshot["inner"])):
            for target, array in zip(part, arrays, strict=True):
                target[:] = array
        return held


@kernel
def _insert(
    llat: Llat,
    leaves: Leaves,
    inner: Inner,
    scratch: Scratch,
    codes: np.ndarray,
    places: np.ndarray,
    counters: np.ndarray,
) -> None:
    leaf, stale = 0, True
    for i in range(len(codes)):
        code = codes[i]
        if stale:
            leaf = descend(inner, 0, code, counters)
        else:
            leaf = advance(inner, leaf, codes[i - 1], code, counters)
        stale = False
        append(llat, leaf, code, places[i])
        leaves.tuples[leaf] += 1
        if leaves.tuples[leaf] >= leaves.attempt[leaf]:
            right, separator = split_leaf(llat, leaves, leaf, scratch, counters)
            if right != NONE:
                add_leaf(inner, separator, right, counters)
                stale = True
    counters[INSERTS] += len(codes)


@kernel
def _answer(
    llat: Llat,
    low_path: Inner,
    high_path: Inner,
    probes: Probes,
    stored: Stored,
    begin: int,
    end: int,
    output: Output,
    counters: np.ndarray,
) -> None:
    first = last = 0
    for row in range(begin, end):
        low, high = probes.low[row], probes.high[row]
        if row % BLOCK == 0:
            first = descend(low_path, 0, low, counters)
            last = descend(high_path, 0, high, counters)
        else:
            first = advance(low_path, first, probes.low[row - 1], low, counters)
            last = advance(high_path, last, probes.high[row - 1], high, counters)
        scan_partitions(llat, _LEFTMOST, first, last, probes, stored, row, output, counters)
