"""BI-Sort: Buffered Indexed Sort (section III-D).

The subwindow is one sorted array, the main array. A small insertion buffer keeps most insertions
from moving it, and an index array of every so many keys keeps most searches out of it.

Two things differ from the paper. Its buffer is unsorted and scanned by every probe; batches come
sorted, so that merging them into a sorted buffer costs next to nothing, and a probe then searches
the buffer as it does the main array: the buffer may be large, and a range in it is a record too.
And inside a partition the paper goes through tuples and probes in one merging loop; here each probe
counts the keys of its partition that are less, eight in an instruction and without a branch to
guess. The tuples read are the same ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.indexes.panjoin.answering import Output, Probes, Stored, new_counters, work_of
from joins.indexes.panjoin.bi_sort_kernels import (
    BLOCK,
    CHUNK,
    Runs,
    merge,
    probe_runs,
    report_ranges,
    sample,
    search_runs,
)
from joins.work import NO_WORK, Work

BUFFER_SHARE = 32
BUFFER_MOST = 32_768
"""The insertion buffer has room for this part of a subwindow, and for no more than so many tuples:
measured with windows of 2^20 tuples (benchmarks/panjoin.py), where merging a batch into the buffer
and the buffer into the main array then cost about the same."""

_GREATEST = np.iinfo(np.int64).max


def _widest(tuples: int, partitions: int) -> int:
    """Return how wide at most *partitions* partitions of so many tuples are."""
    return max(1, -(-tuples // (partitions * CHUNK))) * CHUNK


class BiSort:
    """The sorted tuples of a subwindow.

    Parameters
    ----------
    capacity
        N_Sub, the most tuples.
    partitions
        P, the most entries of the index array.
    buffer
        Room of the insertion buffer; None takes a share of the capacity.
    """

    def __init__(self, capacity: int, partitions: int, buffer: int | None = None) -> None:
        if buffer is None:
            buffer = min(max(1, capacity // BUFFER_SHARE), BUFFER_MOST)
        self._runs = Runs(
            keys=np.full((1, capacity + _widest(capacity, partitions)), _GREATEST),
            places=np.empty((1, capacity), np.int32),
            size=0,
            sampled=np.empty((1, partitions), np.int64),
            step=CHUNK,
            samples=0,
            buffer_keys=np.empty((1, buffer), np.int64),
            buffer_places=np.empty((1, buffer), np.int32),
            buffered=0,
        )

    def __len__(self) -> int:
        return self._runs.size + self._runs.buffered

    @property
    def nbytes(self) -> int:
        """Bytes that its arrays occupy."""
        return sum(part.nbytes for part in self._runs if isinstance(part, np.ndarray))

    @property
    def sizes(self) -> tuple[int, int]:
        """Tuples in the main array and in the buffer."""
        return self._runs.size, self._runs.buffered

    @property
    def index_bytes(self) -> int:
        """Bytes of the index array."""
        return self._runs.sampled.nbytes

    def insert(self, codes: np.ndarray, places: np.ndarray) -> Work:
        """Take a batch in ascending order: into the buffer if it fits, else into the main array."""
        runs = self._runs
        counters = new_counters()
        room = runs.buffer_keys.shape[1]
        work = Work(inserts=len(codes))
        if runs.buffered + len(codes) > room:
            work += self.seal()
            runs = self._runs
        new = codes.reshape(1, -1), places.reshape(1, -1), len(codes)
        if len(codes) > room:
            self._merge_into_main(*new, counters)
        else:
            merge(runs.buffer_keys, runs.buffer_places, runs.buffered, *new, counters)
            self._runs = runs._replace(buffered=runs.buffered + len(codes))
        return work + work_of(counters)

    def seal(self) -> Work:
        """Merge the buffer into the main array."""
        runs = self._runs
        if not runs.buffered:
            return NO_WORK
        counters = new_counters()
        self._merge_into_main(runs.buffer_keys, runs.buffer_places, runs.buffered, counters)
        self._runs = self._runs._replace(buffered=0)
        return work_of(counters)

    def answer(
        self, probes: Probes, stored: Stored, begin: int, end: int, output: Output
    ) -> np.ndarray:
        """Answer probes *begin* to *end*; return the counters."""
        counters = new_counters()
        ranges = np.empty((4, BLOCK), np.int64)
        probe_runs(self._runs, ranges, probes, stored, begin, end, output, counters)
        return counters

    def search(self, probes: Probes) -> tuple[np.ndarray, Work]:
        """Return each probe's ranges of places without looking at the tuples in them.

        Returns
        -------
        ranges
            int64, shape (4, probes): begin and end in the main array, begin and end in the buffer.
        work
            What it cost, whatever the number of matches.
        """
        ranges = np.empty((4, len(probes.low)), np.int64)
        counters = new_counters()
        search_runs(self._runs, probes, 0, len(probes.low), ranges, counters)
        return ranges, work_of(counters)

    def report(
        self, ranges: np.ndarray, probes: Probes, stored: Stored, output: Output
    ) -> np.ndarray:
        """Turn what `search` returned into matches; return the counters."""
        counters = new_counters()
        report_ranges(self._runs, ranges, 0, probes, stored, 0, len(probes.low), output, counters)
        return counters

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain arrays and numbers."""
        runs = self._runs
        return {
            "capacity": runs.places.shape[1],
            "partitions": runs.sampled.shape[1],
            "buffer": runs.buffer_keys.shape[1],
            "keys": runs.keys[0, : runs.size].copy(),
            "places": runs.places[0, : runs.size].copy(),
            "buffer_keys": runs.buffer_keys[0, : runs.buffered].copy(),
            "buffer_places": runs.buffer_places[0, : runs.buffered].copy(),
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> BiSort:
        """Return the structure that `snapshot` described."""
        held = cls(snapshot["capacity"], snapshot["partitions"], snapshot["buffer"])
        runs = held._runs
        size, buffered = len(snapshot["keys"]), len(snapshot["buffer_keys"])
        runs.keys[0, :size] = snapshot["keys"]
        runs.places[0, :size] = snapshot["places"]
        runs.buffer_keys[0, :buffered] = snapshot["buffer_keys"]
        runs.buffer_places[0, :buffered] = snapshot["buffer_places"]
        held._runs = runs._replace(size=size, buffered=buffered)
        held._sample(new_counters())
        return held

    def _merge_into_main(
        self, keys: np.ndarray, places: np.ndarray, new: int, counters: np.ndarray
    ) -> None:
        runs = self._runs
        merge(runs.keys, runs.places, runs.size, keys, places, new, counters)
        self._runs = runs._replace(size=runs.size + new)
        self._sample(counters)

    def _sample(self, counters: np.ndarray) -> None:
        """Sample every M/P-th key anew."""
        runs = self._runs
        step = _widest(runs.size, runs.sampled.shape[1])
        sample(runs.keys, runs.size, step, runs.sampled, counters)
        self._runs = runs._replace(step=step, samples=-(-runs.size // step))
