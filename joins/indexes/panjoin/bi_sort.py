"""BI-Sort: Buffered Indexed Sort (section III-D).

The subwindow is one sorted array, the main array. A small insertion buffer keeps most insertions
from moving it, and an index array of every so many keys keeps most searches out of it.

Two things differ from the paper. Its buffer is unsorted and scanned by every probe; batches come
sorted, so that merging them into a sorted buffer costs next to nothing, and a probe then searches
the buffer as it does the main array: the buffer may be large, and a range in it is a record too.
And inside a partition the paper goes through tuples and probes in one merging loop; here each probe
counts the keys of its partition that are less, eight in an instruction and without a branch to
guess. The tuples read are the same ones. Where matches are counted, a range's end is not searched
for: it is counted beside the beginning, and if it lies beyond the partition, keys are compared from
there on, sixteen at a time.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.indexes.panjoin.answering import Output, Probes, Stored, new_counters, work_of
from joins.indexes.panjoin.bi_sort_matches import make_ranges, probe_runs, report_ranges
from joins.indexes.panjoin.bi_sort_runs import fits, make_runs, merge, sample, widest
from joins.indexes.panjoin.bi_sort_search import search_runs
from joins.work import MOVES, Work

BUFFER_SHARE = 32
BUFFER_MOST = 32_768
"""The insertion buffer has room for this part of a subwindow, and for no more than so many tuples:
measured with windows of 2^20 tuples (benchmarks/panjoin.py), where merging a batch into the buffer
and the buffer into the main array then cost about the same."""


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
        self._runs = make_runs(capacity, partitions, buffer, np.dtype(np.int32))

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
    def partitioning(self) -> tuple[int, int]:
        """How many tuples wide a partition of the main array is, and how many there are."""
        return self._runs.step, self._runs.samples

    @property
    def index_bytes(self) -> int:
        """Bytes of the index array."""
        return self._runs.sampled.nbytes

    def insert(self, codes: np.ndarray, places: np.ndarray) -> Work:
        """Take a batch in ascending order: into the buffer if it fits, else into the main array.

        Both are merges, counted as the keys that they compare and the entries that they move.
        """
        counters = new_counters()
        if not fits(codes, self._runs.keys.dtype):
            self._fill(self.snapshot(), np.dtype(np.int64), counters)
            counters[MOVES] += len(self)
        runs = self._runs
        room = runs.buffer_places.shape[1]
        if runs.buffered + len(codes) > room:
            self._empty_buffer(counters)
            runs = self._runs
        new = (
            codes.reshape(1, -1).astype(runs.keys.dtype, copy=False),
            places.reshape(1, -1),
            len(codes),
        )
        if len(codes) > room:
            self._merge_into_main(*new, counters)
        else:
            merge(runs.buffer_keys, runs.buffer_places, runs.buffered, *new, counters)
            self._runs = runs._replace(buffered=runs.buffered + len(codes))
        return work_of(counters)

    def seal(self) -> Work:
        """Merge the buffer into the main array."""
        counters = new_counters()
        self._empty_buffer(counters)
        return work_of(counters)

    def answer(
        self, probes: Probes, stored: Stored, begin: int, end: int, output: Output
    ) -> np.ndarray:
        """Answer probes *begin* to *end*; return the counters."""
        counters = new_counters()
        probe_runs(self._runs, make_ranges(), probes, stored, begin, end, output, counters)
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
            "buffer": runs.buffer_places.shape[1],
            "keys": runs.keys[0, : runs.size].copy(),
            "places": runs.places[0, : runs.size].copy(),
            "buffer_keys": runs.buffer_keys[0, : runs.buffered].copy(),
            "buffer_places": runs.buffer_places[0, : runs.buffered].copy(),
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> BiSort:
        """Return the structure that `snapshot` described."""
        held = cls(snapshot["capacity"], snapshot["partitions"], snapshot["buffer"])
        held._fill(snapshot, snapshot["keys"].dtype, new_counters())
        return held

    def _fill(self, snapshot: dict[str, Any], dtype: np.dtype, counters: np.ndarray) -> None:
        """Take over a snapshot, into arrays with keys of *dtype*."""
        made_of = snapshot["capacity"], snapshot["partitions"], snapshot["buffer"]
        runs = make_runs(*made_of, dtype)
        size, buffered = len(snapshot["keys"]), len(snapshot["buffer_keys"])
        runs.keys[0, :size] = snapshot["keys"]
        runs.places[0, :size] = snapshot["places"]
        runs.buffer_keys[0, :buffered] = snapshot["buffer_keys"]
        runs.buffer_places[0, :buffered] = snapshot["buffer_places"]
        self._runs = runs._replace(size=size, buffered=buffered)
        self._sample(counters)

    def _empty_buffer(self, counters: np.ndarray) -> None:
        runs = self._runs
        if runs.buffered:
            self._merge_into_main(runs.buffer_keys, runs.buffer_places, runs.buffered, counters)
            runs.buffer_keys[:, : runs.buffered] = np.iinfo(runs.keys.dtype).max
            self._runs = self._runs._replace(buffered=0)

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
        step = widest(runs.size, runs.sampled.shape[1])
        sample(runs.keys, runs.size, step, runs.sampled, counters)
        self._runs = runs._replace(step=step, samples=-(-runs.size // step))
