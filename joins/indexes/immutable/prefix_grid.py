"""The prefix grid: an immutable structure whose probe does not visit what it counts.

Of our own making, for the place of SPO-Join's PO-Join structure. A tuple is a point: its place in
the order of the first predicate's keys (the lead) and its place in the second's. A probe wants
the points in a rectangle, and the bit arrays of PO-Join take time linear in the segment to answer.

Structure. Both axes are cut into blocks of B places. A table has, for every pair of block
boundaries, how many points lie below both, and the sum of their ids' hashes. Beside it, runs: for
the single blocks of the lead axis, and for 4, 16, 64, ... neighbouring blocks together, their
points' ids in the order of the other axis.

Probe. A rectangle's sides are moved to the nearest block boundaries, and what it then contains is
counted, and its fingerprint summed, from four cells. What moving a side added or left out is a
strip of at most B/2 places, which is scanned in the order of its own axis and taken away or added.
Listing cannot take away: the whole blocks inside the rectangle are covered by the fewest groups of
4^k blocks; in each, the ids wanted lie side by side in its run, from one rank to another, and the
table has the ranks; the strips around them are scanned. So counting costs O(B) whatever it finds,
and listing O(B + log n) and the copying of what is listed. A negated range is two ranges, before
and after it.

Cost. With B about the square root of n/4 and never less than 64, the table has about 8n cells of
12 bytes, a strip is scanned in a fraction of a microsecond for a million tuples, and building takes
a pass for the table and one for each of the log4(n/B) levels of runs.

One predicate alone has the positions for its other axis, which makes windows exact rectangles too.
In other cases a window that cuts through the segment, and every predicate but the first two, are
tested for each candidate: those of the rectangle or, where that is shorter, of another predicate's
range.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.immutable.css_tree import TreeSearchedSegment
from joins.indexes.immutable.segment import PlaceRanges, Stretch, satisfying, stretch_of
from joins.indexes.index import window_in
from joins.indexes.range_search import Within, filter_candidates
from joins.machine.compiling import inlined, kernel
from joins.machine.lanes import LANES, widen_lanes
from joins.matches import MatchBuffer, MatchList, ProbeResult, add_total
from joins.work import COMPARISONS, Work, new_counters

_BLOCK_BITS_MIN = 6
_CELLS_MAX = 8  # Cells of the table per tuple.
_GROUP_BITS = 2  # Logarithm of how many groups of blocks make one of the next level of runs.
_CORNERS = 4  # Cells of the table per rectangle or run; a cell read counts as a comparison.


class Grid(NamedTuple):
    """The arrays of a grid; n tuples, p predicates, b blocks of ``1 << block_bits`` places."""

    block_bits: int
    """Logarithm of the block size."""
    id: np.ndarray
    """Ids, counted from the epoch's first position, in the order of each axis, the lead axis first,
    and then in the order of each further predicate; shape (max(p, 2), n)."""
    place: np.ndarray
    """Each id's place in the order of each predicate; shape (p, n), or (0, n) where candidates are
    never tested for another predicate."""
    to_lead: np.ndarray
    from_lead: np.ndarray
    """Place on the other axis to place on the lead axis, and back."""
    below: np.ndarray
    sum_below: np.ndarray
    """Shape (b + 1, b + 1): how many tuples lie below a pair of block boundaries, and the wrapping
    uint64 sum of ``splitmix64(position)`` over them. The lead axis comes last, so that the ranks of
    neighbouring groups of blocks lie side by side."""
    run: np.ndarray
    """Shape (levels, n + `LANES`): ids by groups of ``1 << _GROUP_BITS * level`` blocks of the lead
    axis, within a group in the order of the other axis; and what is read behind the last one."""


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
            run=np.empty((_levels_for(blocks), n + LANES), dtype),
        )
        _fill_axes(self._grid, self.lead, self.first)
        _fill_table(self._grid, self.first)
        _fill_runs(self._grid, np.empty((len(self._grid.run), blocks), np.int64))
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

    def _intersect(
        self, places: PlaceRanges, counters: np.ndarray, *, enumerate: bool
    ) -> ProbeResult:
        matches = MatchList(len(places.start), enumerate=False)
        buffer = matches.buffer
        candidates = np.empty(len(self) + LANES, np.int64)
        _probe_rows(self._grid, self.first, places, candidates, None, buffer, counters)
        result = matches.result(counters)
        if not enumerate:
            return result
        # The number of matches is known by now: all ids are listed in one go.
        listed = np.empty(result.work.matches + LANES, np.int64)
        # Matches are charged by their number: enumerating costs what counting does.
        uncharged = new_counters()
        _probe_rows(self._grid, self.first, places, candidates, listed, buffer, uncharged)
        return replace(result, match_id=listed[:-LANES])


def _levels_for(blocks: int) -> int:
    """Return how many levels of runs cover *blocks* blocks by no more than one group's width."""
    levels = 1
    while (1 << _GROUP_BITS * levels) < blocks:
        levels += 1
    return levels


@kernel
def _fill_axes(grid: Grid, lead: np.ndarray, first: int) -> None:
    """Fill in ids and places of the two axes, given positions in lead order."""
    for place in range(len(lead)):
        grid.id[0, place] = lead[place] - first
    for place in range(len(lead)):
        in_lead = grid.to_lead[place]
        grid.from_lead[in_lead] = place
        grid.id[1, place] = grid.id[0, in_lead]


@kernel
def _fill_table(grid: Grid, first: int) -> None:
    """Fill in the prefix counts and sums, block by block of the other axis."""
    n, bits = len(grid.to_lead), grid.block_bits
    rows, columns = grid.below.shape
    for row in range(rows):
        for column in range(columns):
            grid.below[row, column] = 0
            grid.sum_below[row, column] = 0
        if row == 0:
            continue
        before = row - 1
        for place in range(before << bits, min(row << bits, n)):
            block = (grid.to_lead[place] >> bits) + 1
            grid.below[row, block] += 1
            grid.sum_below[row, block] += splitmix64(first + grid.id[1, place])
        count = 0
        total = np.uint64(0)
        for column in range(columns):
            count += grid.below[row, column]
            total += grid.sum_below[row, column]
            grid.below[row, column] = grid.below[before, column] + count
            grid.sum_below[row, column] = grid.sum_below[before, column] + total


@kernel
def _fill_runs(grid: Grid, filled: np.ndarray) -> None:
    """Fill in the runs of all levels; *filled* has room for an int64 per level and block."""
    bits = grid.block_bits
    levels, groups = filled.shape
    for level in range(levels):
        for group in range(groups):
            filled[level, group] = group << (bits + _GROUP_BITS * level)
    # All levels in one pass: neighbours often go to one wide group, whose count must be written
    # before it is read again, and the other levels are filled meanwhile.
    for place in range(len(grid.to_lead)):
        own = grid.to_lead[place] >> bits
        for level in range(levels):
            grid.run[level, filled[level, own]] = grid.id[1, place]
            filled[level, own] += 1
            own >>= _GROUP_BITS


@kernel
def _side(
    places: PlaceRanges, axis: int, probe: int, part: int, window: tuple[int, int], tuples: int
) -> tuple[int, int]:
    """Return part 0 or 1 of the range of a probe on one axis."""
    if axis == len(places.begin):
        # One predicate alone: positions are the other axis.
        return satisfying(Stretch(window[0], window[1], negated=False), part, tuples)
    return satisfying(stretch_of(places, axis, probe), part, tuples)


@kernel
def _visit_rectangles(
    grid: Grid,
    places: PlaceRanges,
    probe: int,
    window: tuple[int, int],
    first: int,
    out: np.ndarray | None,
    listed: int,
    counters: np.ndarray,
) -> tuple[int, np.uint64]:
    """Return how many points both axes allow, and the sum of their positions' hashes.

    Given *out*, list them there instead, from place *listed* on, and sum up nothing. It is compiled
    once with and once without.
    """
    n = len(grid.to_lead)
    count = 0
    total = np.uint64(0)
    for i in range(2):
        x = _side(places, 0, probe, i, window, n)
        for j in range(2):
            y = _side(places, 1, probe, j, window, n)
            if x[0] >= x[1] or y[0] >= y[1]:
                continue
            if out is None:
                more, hashes = count_rectangle(grid, x, y, first, counters)
                count, total = count + more, total + hashes
            else:
                end = list_rectangle(grid, x, y, first, out, listed + count, counters)
                count = end - listed
    return count, total


@kernel
def _test_candidates(
    grid: Grid,
    places: PlaceRanges,
    probe: int,
    window: tuple[int, int],
    candidates: np.ndarray,
    counters: np.ndarray,
) -> int:
    """List the ids that satisfy everything, by testing the fewest candidates; return how many."""
    source = -1
    count = _visit_rectangles(grid, places, probe, window, 0, None, 0, counters)[0]
    for predicate in range(2, len(places.begin)):
        length = places.end[predicate, probe] - places.begin[predicate, probe]
        if length < count and not places.negated[predicate]:
            source, count = predicate, length
    if source < 0:
        count = _visit_rectangles(grid, places, probe, window, 0, candidates, 0, counters)[0]
    else:
        begin = places.begin[source, probe]
        for i in range(count):
            candidates[i] = grid.id[source, begin + i]
    for predicate in range(len(grid.place)):
        if predicate == source or (source < 0 and predicate < 2):
            continue
        stretch = stretch_of(places, predicate, probe)
        counters[COMPARISONS] += count
        within = Within(stretch.begin, stretch.end - 1, stretch.negated)
        count = filter_candidates(candidates, count, grid.place, predicate, within)
    counters[COMPARISONS] += count
    within = Within(window[0], window[1] - 1, negated=False)
    return int(filter_candidates(candidates, count, grid.place, -1, within))


@kernel
def _axes_suffice(places: PlaceRanges, window: tuple[int, int], tuples: int) -> bool:
    """Return whether a probe is restricted by nothing but the two axes."""
    predicates = len(places.begin)
    return predicates == 1 or (predicates == 2 and window[1] - window[0] == tuples)


@kernel
def _probe_rows(
    grid: Grid,
    first: int,
    places: PlaceRanges,
    candidates: np.ndarray,
    out: np.ndarray | None,
    buffer: MatchBuffer,
    counters: np.ndarray,
) -> None:
    """Count the matches of every probe; or list them, once counted, in *out*, which has room."""
    n = len(grid.to_lead)
    listed = 0
    for probe in range(len(places.start)):
        window = window_in(first, n, places.start[probe], places.stop[probe])
        if window[0] >= window[1]:
            continue
        if out is not None and buffer.matches[probe] == 0:
            continue
        if _axes_suffice(places, window, n):
            count, total = _visit_rectangles(
                grid, places, probe, window, first, out, listed, counters
            )
        else:
            count = _test_candidates(grid, places, probe, window, candidates, counters)
            total = np.uint64(0)
            for i in range(count):
                position = first + candidates[i]
                if out is None:
                    total += splitmix64(position)
                else:
                    out[listed + i] = position
        if out is None:
            add_total(buffer, probe, count, total)
        else:
            listed += count


@kernel
def _nearest_boundary(place: int, bits: int, tuples: int) -> int:
    """Return the block boundary nearest to a place; behind the last block lies one, too."""
    if place == tuples:
        return (place + (1 << bits) - 1) >> bits
    return (place + (1 << bits >> 1)) >> bits


@kernel
def _count_strip(
    grid: Grid, axis: int, strip: tuple[int, int], inside: tuple[int, int], first: int
) -> tuple[int, np.uint64]:
    """Count the points of a strip of one *axis* that are in a range of the other."""
    place, ids = grid.to_lead if axis else grid.from_lead, grid.id
    count = 0
    total = np.uint64(0)
    for i in range(strip[0], strip[1]):
        wanted = (inside[0] <= place[i]) & (place[i] < inside[1])
        count += int(wanted)
        total += splitmix64(first + ids[axis, i]) if wanted else np.uint64(0)
    return count, total


@kernel
def _count_between(
    grid: Grid, axis: int, strip: tuple[int, int], inside: tuple[int, int], first: int
) -> tuple[int, np.uint64]:
    """Count a strip, taken as negative where it ends before it begins."""
    if strip[0] <= strip[1]:
        return _count_strip(grid, axis, strip, inside, first)
    count, total = _count_strip(grid, axis, (strip[1], strip[0]), inside, first)
    return -count, np.uint64(0) - total


@kernel
def count_rectangle(
    grid: Grid, x: tuple[int, int], y: tuple[int, int], first: int, counters: np.ndarray
) -> tuple[int, np.uint64]:
    """Return how many points a rectangle has, and the sum of their positions' hashes.

    Every side is moved to the nearest boundary of blocks, and what that adds or leaves out is
    counted in a strip of at most half a block: first the sides of the lead axis, then the others.
    """
    n, bits = len(grid.to_lead), grid.block_bits
    left, right = _nearest_boundary(x[0], bits, n), _nearest_boundary(x[1], bits, n)
    if left == right:
        counters[COMPARISONS] += x[1] - x[0]
        return _count_strip(grid, 0, x, y, first)
    x_begin, x_end = left << bits, min(right << bits, n)
    count, total = _count_between(grid, 0, (x[0], x_begin), y, first)
    more, hashes = _count_between(grid, 0, (x_end, x[1]), y, first)
    count, total = count + more, total + hashes
    bottom, top = _nearest_boundary(y[0], bits, n), _nearest_boundary(y[1], bits, n)
    y_begin, y_end = min(bottom << bits, n), min(top << bits, n)
    inside = x_begin, x_end
    more, hashes = _count_between(grid, 1, (y[0], y_begin), inside, first)
    count, total = count + more, total + hashes
    more, hashes = _count_between(grid, 1, (y_end, y[1]), inside, first)
    count, total = count + more, total + hashes
    cells, sums = grid.below, grid.sum_below
    count += int(cells[top, right]) - int(cells[top, left])
    count -= int(cells[bottom, right]) - int(cells[bottom, left])
    total += sums[top, right] - sums[top, left] - (sums[bottom, right] - sums[bottom, left])
    strips = abs(x_begin - x[0]) + abs(x[1] - x_end) + abs(y_begin - y[0]) + abs(y[1] - y_end)
    counters[COMPARISONS] += strips + _CORNERS
    return count, total


@kernel
def _whole_blocks(begin: int, end: int, bits: int, tuples: int) -> tuple[int, int, int, int]:
    """Return the first whole block in a range and the one past the last, and their places.

    Where no block is whole, the two blocks are equal, and both places are the range's end, so that
    all of it lies before them.
    """
    first = (begin + (1 << bits) - 1) >> bits
    last = end >> bits
    if end == tuples:
        last = (end + (1 << bits) - 1) >> bits
    if first >= last:
        return 0, 0, end, end
    return first, last, first << bits, min(last << bits, tuples)


@kernel
def _list_strip(
    grid: Grid,
    axis: int,
    strip: tuple[int, int],
    inside: tuple[int, int],
    first: int,
    out: np.ndarray,
    listed: int,
) -> int:
    """List the points of a strip of one *axis* that are in a range of the other."""
    place, ids = grid.to_lead if axis else grid.from_lead, grid.id
    # No branch on the outcome: a point that is not wanted is overwritten by the next one.
    for i in range(strip[0], strip[1]):
        out[listed] = first + np.int64(ids[axis, i])
        listed += int((inside[0] <= place[i]) & (place[i] < inside[1]))
    return listed


@inlined
def _copy_run(
    grid: Grid, level: int, group: int, y: tuple[int, int], first: int, out: np.ndarray, listed: int
) -> int:
    """List the points of one group of blocks that are in the blocks *y* of the other axis."""
    bits = _GROUP_BITS * level
    left = group << bits
    right = min((group + 1) << bits, len(grid.below) - 1)
    below = int(grid.below[y[0], right]) - int(grid.below[y[0], left])
    up_to = int(grid.below[y[1], right]) - int(grid.below[y[1], left])
    source = (left << grid.block_bits) + below
    # Whole lanes, the last ones too: what they copy too much is overwritten by what comes next.
    for i in range(0, up_to - below, LANES):
        widen_lanes(grid.run, level, source + i, out, listed + i, first)
    return listed + up_to - below


@inlined
def _list_blocks(
    grid: Grid,
    x: tuple[int, int],
    y: tuple[int, int],
    first: int,
    out: np.ndarray,
    listed: int,
    counters: np.ndarray,
) -> int:
    """List the points of whole blocks: cover the lead axis's by the fewest groups."""
    left, right = x
    mask = (1 << _GROUP_BITS) - 1
    runs = 0
    for level in range(len(grid.run)):
        # The last level has no wider groups above it: all that is left is covered here.
        last = level == len(grid.run) - 1
        while left < right and (last or left & mask):
            listed = _copy_run(grid, level, left, y, first, out, listed)
            left += 1
            runs += 1
        while left < right and right & mask:
            right -= 1
            listed = _copy_run(grid, level, right, y, first, out, listed)
            runs += 1
        left >>= _GROUP_BITS
        right >>= _GROUP_BITS
    counters[COMPARISONS] += runs * _CORNERS
    return listed


@kernel
def list_rectangle(
    grid: Grid,
    x: tuple[int, int],
    y: tuple[int, int],
    first: int,
    out: np.ndarray,
    listed: int,
    counters: np.ndarray,
) -> int:
    """List the ids of a rectangle's points, plus *first*; return how many are listed then.

    *out* has room for `LANES` entries more, which may be written to.
    """
    n = len(grid.to_lead)
    left, right, x_begin, x_end = _whole_blocks(x[0], x[1], grid.block_bits, n)
    bottom, top, y_begin, y_end = _whole_blocks(y[0], y[1], grid.block_bits, n)
    listed = _list_strip(grid, 0, (x[0], x_begin), y, first, out, listed)
    listed = _list_strip(grid, 0, (x_end, x[1]), y, first, out, listed)
    counters[COMPARISONS] += x_begin - x[0] + x[1] - x_end
    if left == right:
        return listed
    inside = x_begin, x_end
    listed = _list_strip(grid, 1, (y[0], y_begin), inside, first, out, listed)
    listed = _list_strip(grid, 1, (y_end, y[1]), inside, first, out, listed)
    counters[COMPARISONS] += y_begin - y[0] + y[1] - y_end
    if bottom < top:
        listed = _list_blocks(grid, (left, right), (bottom, top), first, out, listed, counters)
    return listed
