"""The prefix grid: an immutable structure whose probe does not visit what it counts.

Of our own making, for the place of SPO-Join's PO-Join structure. A tuple is a point: its place in
the order of the first predicate's keys (the lead) and its place in the second's. A probe asks for
the points in a rectangle, and the bit arrays of PO-Join take time linear in the segment to answer.

Structure. Both axes are cut into blocks of B places. A table holds, for every pair of block
boundaries, how many points lie below both, and the sum of their ids' hashes. Beside it, runs: for
the single blocks of the lead axis, and for 4, 16, 64, ... neighbouring blocks together, their
points' ids in the order of the other axis.

Probe. A rectangle's sides are moved to the nearest block boundaries, and what it then holds is
counted, and its fingerprint summed, from four cells. What moving a side added or left out is a
strip of at most B/2 places, which is scanned in the order of its own axis and taken away or added.
Listing cannot take away: the whole blocks inside the rectangle are covered by the fewest groups of
4^k blocks; in each, the ids wanted lie side by side in its run, from one rank to another, and the
table has the ranks; the strips around them are scanned. So counting costs O(B) whatever it finds,
and listing O(B + log n) and the copying of what is listed. A negated range is two ranges, before
and after it.

Cost. With B about the square root of n/4 and never less than 64, the table has at most 8n cells of
12 bytes, a strip is scanned in a fraction of a microsecond for a million tuples, and building takes
a pass for the table and one for each of the log4(n/B) levels of runs.

One predicate alone has the positions for its other axis, which makes windows exact rectangles too.
In other cases a window that cuts through the segment, and every predicate but the first two, are
tested for each candidate: those of the rectangle or, where that is shorter, of another predicate's
range.
"""

from __future__ import annotations

import numpy as np

from joins.indexes.immutable.prefix_grid_build import (
    Grid,
    fill_axes,
    fill_runs,
    fill_table,
    levels_for,
)
from joins.indexes.immutable.prefix_grid_probe import count_rows, list_rows
from joins.indexes.immutable.segment_probes import Probes, new_output
from joins.indexes.immutable.tree_searched import TreeSearchedSegment
from joins.machine.lanes import LANES
from joins.matches import ProbeResult
from joins.work import Work

_BLOCK_BITS_MIN = 6
_CELLS_MAX = 8  # Cells of the table per tuple.


def block_bits(tuples: int) -> int:
    """Return the logarithm of the block size B for a segment of *tuples*."""
    bits = _BLOCK_BITS_MIN
    while (tuples >> bits) ** 2 > _CELLS_MAX * tuples:
        bits += 1
    return bits


class PrefixGridSegment(TreeSearchedSegment):
    """One epoch's tuples as points, with prefix counts and sums over a grid of blocks."""

    def _seal(self) -> Work:
        searched = super()._seal()
        n, keys, dtype = len(self), self.keys, self.to_lead.dtype
        bits = block_bits(n)
        blocks = -(-n >> bits)
        self._grid = Grid(
            block_bits=bits,
            id=np.empty((max(2, len(keys)), n), dtype),
            place=np.empty((len(keys) if len(keys) > 2 else 0, n), dtype),
            to_lead=self.to_lead[0] if len(keys) > 1 else self._place_of_positions(),
            from_lead=np.empty(n, dtype),
            below=np.empty((blocks + 1, blocks + 1), dtype),
            sum_below=np.empty((blocks + 1, blocks + 1), np.uint64),
            run=np.empty((levels_for(blocks), n + LANES), dtype),
        )
        fill_axes(self._grid, self.lead, self.first)
        fill_table(self._grid, self.first)
        fill_runs(self._grid, np.empty((len(self._grid.run), blocks), np.int64))
        for other in range(1, len(self.to_lead)):
            self._grid.id[other + 1] = self._grid.id[0][self.to_lead[other]]
        for place, ids in zip(self._grid.place, self._grid.id, strict=False):
            place[ids] = np.arange(n)
        filled = (self._grid.id, self._grid.place, self._grid.run, self._grid.from_lead)
        return searched + Work(moves=sum(array.size for array in filled) + self._grid.below.size)

    def _place_of_positions(self) -> np.ndarray:
        """Return the lead place of every position: the other axis of a single predicate."""
        places = np.empty(len(self), self.to_lead.dtype)
        places[self.lead - self.first] = np.arange(len(self))
        return places

    def _own_arrays(self) -> list[np.ndarray]:
        grid = self._grid
        others = [grid.id, grid.place, grid.from_lead]
        shared = [] if len(self.keys) > 1 else [grid.to_lead]
        searched = super()._own_arrays()
        return [*others, *shared, grid.below, grid.sum_below, grid.run, *searched]

    def _answer(self, probes: Probes, enumerate: bool, counters: np.ndarray) -> ProbeResult:
        candidates = np.empty(len(self) + LANES, np.int64)
        output = new_output(len(probes.start))
        count_rows(self._grid, self.first, probes, candidates, output, counters)
        if enumerate:
            room = np.empty(int(output.matches.sum()) + LANES, np.int64)
            output = output._replace(match_id=room)
            # Matches are charged by their number: a run that keeps its pairs is the same run.
            uncharged = np.zeros_like(counters)
            list_rows(self._grid, self.first, probes, candidates, output, uncharged)
        return ProbeResult(
            count=output.matches,
            fingerprint=output.fingerprint,
            match_id=output.match_id[:-LANES] if enumerate else None,
            work=Work.from_counters(counters),
        )
