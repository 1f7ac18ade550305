"""The window scanned from end to end for every probe: nested loops (Kang, Naughton and Viglas).

No structure but the order of positions, which bounds the scan to what a probe may see.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from joins.indexes.index import Ranges
from joins.indexes.range_search import Within, filter_candidates
from joins.indexes.windows.window_tuples import WindowIndex
from joins.machine.compiling import kernel
from joins.matches import MatchBuffer, ProbeResult, add_match, find_matches, has_room
from joins.work import COMPARISONS

_BLOCK = 1024
"""Tuples taken through all predicates at a time: what one leaves for the next stays in cache."""


class NestedLoop(WindowIndex):
    """A window's tuples, each compared with each probe."""

    def probe(self, ranges: Ranges, *, enumerate: bool = False) -> ProbeResult:
        """Find matches as `Index.probe` says; ids ascend within a row."""
        tuples = self._tuples
        located, counters = tuples.locate(ranges)
        candidates = np.empty(_BLOCK, np.int64)
        step = partial(_scan, tuples.keys, tuples.positions, located, candidates)
        most = located.stop - located.start
        return find_matches(step, len(most), enumerate=enumerate, most=most, counters=counters)


@kernel
def _scan(
    keys: np.ndarray,
    positions: np.ndarray,
    ranges: Ranges,
    candidates: np.ndarray,
    row: int,
    buffer: MatchBuffer,
    counters: np.ndarray,
) -> int:
    """Probe from *row* on; see `joins.matches.ProbeStep`."""
    for probe in range(row, len(ranges.start)):
        begin, end = ranges.start[probe], ranges.stop[probe]
        if not has_room(buffer, end - begin):
            return probe
        for block in range(begin, end, len(candidates)):
            count = min(len(candidates), end - block)
            for i in range(count):
                candidates[i] = block + i
            for predicate in range(len(keys)):
                counters[COMPARISONS] += count
                within = Within(
                    ranges.low[predicate, probe],
                    ranges.high[predicate, probe],
                    ranges.negated[predicate],
                )
                count = filter_candidates(candidates, count, keys, predicate, within)
            for i in range(count):
                add_match(buffer, probe, positions[candidates[i]])
    return len(ranges.start)
