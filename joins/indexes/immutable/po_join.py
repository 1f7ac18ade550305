"""The immutable component's index: one sealed epoch of one stream (SPO-Join, section 3.3-3.4).

A `PoJoinSegment` holds the tuples that the mutable component had gathered when it was merged: per
predicate the sorted keys, the tuples' positions in the order of the lead predicate (the first), and
for every further predicate the permutation array that leads from its order to the lead's.

Left out: the lock of Algorithm 4, because a segment never changes. Its threads, which deal segments
to cores, are `joins.indexes.immutable.probe_list`.
"""

from __future__ import annotations

import numpy as np

from joins.bit_array import words_for
from joins.hashing import mix
from joins.indexes.immutable.po_join_bits import Sealed
from joins.indexes.immutable.po_join_kernels import probe_segment
from joins.indexes.immutable.segment import Segment
from joins.indexes.immutable.segment_probes import Output, Probes, answer_in_chunks
from joins.matches import ProbeResult
from joins.work import Work


class PoJoinSegment(Segment):
    """One epoch's tuples, sorted by every predicate's field and linked by permutation arrays."""

    def _seal(self) -> Work:
        others, n = self.to_lead.shape
        from_lead = np.empty_like(self.to_lead)
        for other in range(others):
            from_lead[other][self.to_lead[other]] = np.arange(n, dtype=from_lead.dtype)
        self._sealed = Sealed(self.lead, mix(self.lead), self.to_lead, from_lead)
        return Work(moves=others * n, bytes_copied=sum(key.nbytes for key in self.keys))

    def _own_arrays(self) -> list[np.ndarray]:
        return [self._sealed.mixed, self._sealed.from_lead]

    def _answer(self, probes: Probes, enumerate: bool, counters: np.ndarray) -> ProbeResult:
        n = len(self)
        scratch = np.empty((2, words_for(n)), np.uint64)
        candidates = np.empty(n, np.int64)

        def probe_rows(row: int, listed_max: int, output: Output) -> tuple[int, int]:
            return probe_segment(
                self._sealed,
                self.first,
                probes,
                row,
                listed_max,
                scratch,
                candidates,
                output,
                counters,
            )

        return answer_in_chunks(probes, n, enumerate, counters, probe_rows)
