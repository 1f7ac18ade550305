"""The immutable component SPO-Join is compared with: a CSS-tree per predicate (section 5).

Each predicate's tree leads to a stretch of leaves, and the leaves hold the ids of stream tuples in
the order of that predicate's keys. The trees know nothing of each other, so what satisfies all
predicates is found by provenance, from the ids: with bit arrays, one per predicate, or by hashing
the ids of one result and looking up those of the others. A leaf's id counts from the epoch's first
position.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from joins.bit_array import find_matches, intersect, keep_window, words_for
from joins.indexes.immutable.css_kernels import fill_rows, probe_hash, table_bits
from joins.indexes.immutable.segment_probes import Output, Probes, answer_in_chunks
from joins.indexes.immutable.tree_searched import TreeSearchedSegment
from joins.matches import ProbeResult
from joins.work import Work

_ROW_WORDS_MAX = 1 << 16  # Words of bit arrays filled at a time, per predicate: half a megabyte.


class _CssSegment(TreeSearchedSegment):
    """A CSS-tree per predicate, and the ids of its leaves; probes search the trees."""

    def _seal(self) -> Work:
        searched = super()._seal()
        ids = np.empty((len(self.keys), len(self)), self.to_lead.dtype)
        ids[0] = self.lead - self.first
        for other, to_lead in enumerate(self.to_lead, start=1):
            ids[other] = ids[0][to_lead]
        self._leaf_id = ids
        return searched + Work(bytes_copied=ids.nbytes)

    def _own_arrays(self) -> list[np.ndarray]:
        return [self._leaf_id, *super()._own_arrays()]


class CssBitsSegment(_CssSegment):
    """CSS-trees whose results are intersected as bit arrays, a bit per tuple of the epoch."""

    def _answer(self, probes: Probes, enumerate: bool, counters: np.ndarray) -> ProbeResult:
        m = len(probes.start)
        words = words_for(len(self))
        rows_max = max(1, _ROW_WORDS_MAX // max(1, words))
        found = []
        for row in range(0, m, rows_max):
            rows = slice(row, min(row + rows_max, m))
            parts = []
            for predicate in range(len(self.keys)):
                part = np.zeros((rows.stop - row, words), np.uint64)
                fill_rows(self._leaf_id, probes, predicate, row, part, counters)
                parts.append(part)
            common, work = intersect(parts)
            common, kept = keep_window(
                common, probes.start[rows], probes.stop[rows], base=self.first
            )
            part_found = find_matches(common, base=self.first, enumerate=enumerate)
            found.append(replace(part_found, work=part_found.work + work + kept))
        none = np.empty(0, np.int64)
        ids = [part.match_id for part in found if part.match_id is not None]
        return ProbeResult(
            count=np.concatenate([none, *(part.count for part in found)]),
            fingerprint=np.concatenate(
                [np.empty(0, np.uint64), *(part.fingerprint for part in found)]
            ),
            match_id=np.concatenate([none, *ids]) if enumerate else None,
            work=sum((part.work for part in found), Work.from_counters(counters)),
        )


class CssHashSegment(_CssSegment):
    """CSS-trees whose results are intersected by a hash table of the ids of the shortest one."""

    def _answer(self, probes: Probes, enumerate: bool, counters: np.ndarray) -> ProbeResult:
        n = len(self)
        table = np.empty(1 << table_bits(n), self._leaf_id.dtype)
        agreed = np.empty(len(table), np.int16)

        def probe_rows(row: int, listed_max: int, output: Output) -> tuple[int, int]:
            return probe_hash(
                self._leaf_id, self.first, probes, row, listed_max, table, agreed, output, counters
            )

        return answer_in_chunks(probes, n, enumerate, counters, probe_rows)
