"""Building a prefix grid (see `joins.indexes.immutable.prefix_grid`), as kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.machine.compiling import kernel

GROUP_BITS = 2
"""Logarithm of how many groups of blocks make one of the next level of runs."""


class Grid(NamedTuple):
    """The arrays of a prefix grid; n tuples, p predicates, b blocks of ``1 << block_bits`` places.

    Attributes
    ----------
    block_bits
        Logarithm of the block size.
    id
        Ids, counted from the epoch's first position, in the order of each axis, the lead axis
        first, and then in the order of each further predicate; shape (max(p, 2), n).
    place
        Each id's place in the order of each predicate; shape (p, n), or (0, n) where candidates
        are never tested for another predicate.
    to_lead, from_lead
        Place on the other axis to place on the lead axis, and back.
    below, sum_below
        Shape (b + 1, b + 1): how many tuples lie below a pair of block boundaries, and the wrapping
        uint64 sum of ``splitmix64(position)`` over them. The lead axis comes last, so that the
        ranks of neighbouring groups of blocks lie side by side.
    run
        Shape (levels, n + `LANES`): ids by groups of ``1 << GROUP_BITS * level`` blocks of the lead
        axis, within a group in the order of the other axis; and what is read behind the last one.
    """

    block_bits: int
    id: np.ndarray
    place: np.ndarray
    to_lead: np.ndarray
    from_lead: np.ndarray
    below: np.ndarray
    sum_below: np.ndarray
    run: np.ndarray


def levels_for(blocks: int) -> int:
    """Return how many levels of runs cover *blocks* blocks by no more than one group's width."""
    levels = 1
    while (1 << GROUP_BITS * levels) < blocks:
        levels += 1
    return levels


@kernel
def fill_axes(grid: Grid, lead: np.ndarray, first: int) -> None:
    """Fill in ids and places of the two axes, given positions in lead order."""
    n = np.uint64(len(lead))
    for place in range(n):
        grid.id[0, place] = lead[place] - first
    for place in range(n):
        in_lead = np.uint64(grid.to_lead[place])
        grid.from_lead[in_lead] = place
        grid.id[1, place] = grid.id[0, in_lead]


@kernel
def fill_table(grid: Grid, first: int) -> None:
    """Fill in the prefix counts and sums, block by block of the other axis."""
    n = np.uint64(len(grid.to_lead))
    bits, one = np.uint64(grid.block_bits), np.uint64(1)
    rows, columns = np.uint64(len(grid.below)), np.uint64(grid.below.shape[1])
    for row in range(rows):
        for column in range(columns):
            grid.below[row, column] = 0
            grid.sum_below[row, column] = np.uint64(0)
        if row == 0:
            continue
        before = row - one
        for place in range(before << bits, min(row << bits, n)):
            block = (np.uint64(grid.to_lead[place]) >> bits) + one
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
def fill_runs(grid: Grid, filled: np.ndarray) -> None:
    """Fill in the runs of all levels; *filled* has room for an int64 per level and block."""
    levels, groups = np.uint64(len(filled)), np.uint64(filled.shape[1])
    bits, more = np.uint64(grid.block_bits), np.uint64(GROUP_BITS)
    for level in range(levels):
        for group in range(groups):
            filled[level, group] = group << (bits + more * level)
    # All levels in one pass: neighbours often go to one wide group, whose count must be written
    # before it is read again, and the other levels are filled meanwhile.
    for place in range(np.uint64(len(grid.to_lead))):
        own = np.uint64(grid.to_lead[place]) >> bits
        for level in range(levels):
            grid.run[level, np.uint64(filled[level, own])] = grid.id[1, place]
            filled[level, own] += 1
            own >>= more
