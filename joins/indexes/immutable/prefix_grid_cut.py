"""Counting and listing the points in one rectangle of a prefix grid, as kernels.

A rectangle is four places: from and to on the lead axis, from and to on the other one.
"""

from __future__ import annotations

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.immutable.prefix_grid_build import GROUP_BITS, Grid
from joins.machine.compiling import inlined, kernel
from joins.machine.lanes import LANES, widen_lanes
from joins.work import COMPARISONS

_CORNERS = 4  # Cells of the table per rectangle or run; a cell read counts as a comparison.


@kernel
def _nearest_boundary(place: int, bits: int, tuples: int) -> int:
    """Return the block boundary nearest to a place; behind the last block lies one, too."""
    if place == tuples:
        return (place + (1 << bits) - 1) >> bits
    return (place + (1 << bits >> 1)) >> bits


@kernel
def _count_strip(
    place: np.ndarray,
    ids: np.ndarray,
    axis: int,
    strip: tuple[int, int],
    inside: tuple[int, int],
    first: int,
) -> tuple[int, np.uint64]:
    """Count the points of a strip of one *axis* that are in a range of the other."""
    count = 0
    total = np.uint64(0)
    for i in range(np.uint64(strip[0]), np.uint64(strip[1])):
        wanted = (inside[0] <= place[i]) & (place[i] < inside[1])
        count += int(wanted)
        total += splitmix64(first + ids[axis, i]) if wanted else np.uint64(0)
    return count, total


@kernel
def _count_between(
    place: np.ndarray,
    ids: np.ndarray,
    axis: int,
    strip: tuple[int, int],
    inside: tuple[int, int],
    first: int,
) -> tuple[int, np.uint64]:
    """Count a strip, taken as negative where it ends before it begins."""
    if strip[0] <= strip[1]:
        return _count_strip(place, ids, axis, strip, inside, first)
    count, total = _count_strip(place, ids, axis, (strip[1], strip[0]), inside, first)
    return -count, np.uint64(0) - total


@kernel
def count_rectangle(
    grid: Grid, x: tuple[int, int], y: tuple[int, int], first: int, counters: np.ndarray
) -> tuple[int, np.uint64]:
    """Return how many points a rectangle holds, and the sum of their positions' hashes.

    Every side is moved to the nearest boundary of blocks, and what that adds or leaves out is
    counted in a strip of at most half a block: first the sides of the lead axis, then the others.
    """
    n, bits = len(grid.to_lead), grid.block_bits
    left, right = _nearest_boundary(x[0], bits, n), _nearest_boundary(x[1], bits, n)
    if left == right:
        counters[COMPARISONS] += x[1] - x[0]
        return _count_strip(grid.from_lead, grid.id, 0, x, y, first)
    x_begin, x_end = left << bits, min(right << bits, n)
    place, ids = grid.from_lead, grid.id
    count, total = _count_between(place, ids, 0, (x[0], x_begin), y, first)
    more, hashes = _count_between(place, ids, 0, (x_end, x[1]), y, first)
    count, total = count + more, total + hashes
    bottom, top = _nearest_boundary(y[0], bits, n), _nearest_boundary(y[1], bits, n)
    y_begin, y_end = min(bottom << bits, n), min(top << bits, n)
    place, inside = grid.to_lead, (x_begin, x_end)
    more, hashes = _count_between(place, ids, 1, (y[0], y_begin), inside, first)
    count, total = count + more, total + hashes
    more, hashes = _count_between(place, ids, 1, (y_end, y[1]), inside, first)
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
    place: np.ndarray,
    ids: np.ndarray,
    axis: int,
    strip: tuple[int, int],
    inside: tuple[int, int],
    first: int,
    out: np.ndarray,
    listed: int,
) -> int:
    """List the points of a strip of one *axis* that are in a range of the other."""
    # No branch on what is found: a point that is not wanted is overwritten by the next one.
    for i in range(np.uint64(strip[0]), np.uint64(strip[1])):
        out[np.uint64(listed)] = first + np.int64(ids[axis, i])
        listed += int((inside[0] <= place[i]) & (place[i] < inside[1]))
    return listed


@inlined
def _copy_run(
    grid: Grid, level: int, group: int, y: tuple[int, int], first: int, out: np.ndarray, listed: int
) -> int:
    """List the points of one group of blocks that are in the blocks *y* of the other axis."""
    bits = GROUP_BITS * level
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
    mask = (1 << GROUP_BITS) - 1
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
        left >>= GROUP_BITS
        right >>= GROUP_BITS
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
    place, ids = grid.from_lead, grid.id
    listed = _list_strip(place, ids, 0, (x[0], x_begin), y, first, out, listed)
    listed = _list_strip(place, ids, 0, (x_end, x[1]), y, first, out, listed)
    counters[COMPARISONS] += x_begin - x[0] + x[1] - x_end
    if left == right:
        return listed
    place, inside = grid.to_lead, (x_begin, x_end)
    listed = _list_strip(place, ids, 1, (y[0], y_begin), inside, first, out, listed)
    listed = _list_strip(place, ids, 1, (y_end, y[1]), inside, first, out, listed)
    counters[COMPARISONS] += y_begin - y[0] + y[1] - y_end
    if bottom < top:
        listed = _list_blocks(grid, (left, right), (bottom, top), first, out, listed, counters)
    return listed
