"""The window scanned from end to end for every probe: nested loops (Kang, Naughton and Viglas).

No structure but the order of positions, which bounds the scan to what a probe may see.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from joins.found import Found
from joins.indexes.immutable.segment_probes import Output
from joins.indexes.listing import find_all, fits, report
from joins.indexes.windows.unindexed import Unindexed
from joins.indexes.windows.window_index import Ranges
from joins.indexes.windows.window_tuples import WindowProbes
from joins.machine.compiling import kernel
from joins.work import COMPARISONS

_BLOCK = 1024
"""Tuples taken through all predicates at a time: what one leaves for the next stays in cache."""


class NestedLoop(Unindexed):
    """A window's tuples, each compared with each probe."""

    def probe(self, ranges: Ranges, *, enumerate: bool = False) -> Found:
        """Find matches as `WindowIndex.probe` says; ids ascend within a row."""
        tuples = self._tuples
        probes, work = tuples.probes(ranges)
        candidates = np.empty(_BLOCK, np.int64)

        def answer(row: int, listed: int, output: Output, counters: np.ndarray) -> tuple[int, int]:
            return _scan(
                tuples.keys, tuples.positions, probes, row, listed, candidates, output, counters
            )

        found = find_all(answer, probes.end - probes.begin, enumerate=enumerate)
        return replace(found, work=work + found.work)


@kernel
def _scan(
    keys: np.ndarray,
    positions: np.ndarray,
    probes: WindowProbes,
    row: int,
    listed: int,
    candidates: np.ndarray,
    output: Output,
    counters: np.ndarray,
) -> tuple[int, int]:
    """Do what `joins.indexes.listing.Answer` says."""
    for probe in range(row, len(probes.begin)):
        begin, end = probes.begin[probe], probes.end[probe]
        if not fits(end - begin, listed, output):
            return probe, listed
        for block in range(begin, end, len(candidates)):
            count = min(len(candidates), end - block)
            for i in range(np.uint64(count)):
                candidates[i] = np.uint64(block) + i
            for predicate in range(len(keys)):
                counters[COMPARISONS] += count
                count = _keep(keys, predicate, probes, probe, candidates, count)
            for i in range(np.uint64(count)):
                listed = report(positions[candidates[i]], probe, listed, output)
    return len(probes.begin), listed


@kernel
def _keep(
    keys: np.ndarray,
    predicate: int,
    probes: WindowProbes,
    probe: int,
    candidates: np.ndarray,
    count: int,
) -> int:
    """Keep the candidates that satisfy one predicate, at the front; return how many."""
    low, high = probes.low[predicate, probe], probes.high[predicate, probe]
    negated = probes.negated[predicate]
    kept = 0
    # No branch on what is found: half of them would be guessed wrong.
    for i in range(np.uint64(count)):
        place = candidates[i]
        key = keys[predicate, np.uint64(place)]
        candidates[np.uint64(kept)] = place
        kept += int(((low <= key) & (key <= high)) ^ negated)
    return kept
