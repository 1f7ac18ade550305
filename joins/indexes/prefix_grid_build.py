"""Building a prefix grid (see `joins.indexes.prefix_grid`), as kernels."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.hashing import splitmix64
from joins.machine import kernel

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
        Shape (levels, n): ids by groups of ``1 << GROUP_BITS * level`` blocks of the lead axis,
        within a group in the order of the other axis.
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
    n = len(grid.to_lead)
    bits = np.uint64(grid.block_bits)
    columns = grid.below.shape[1]
    for column in range(columns):
        grid.below[0, column] = 0
        grid.sum_below[0, column] = np.uint64(0)
    for row in range(1, len(grid.below)):
        for column in range(columns):
            grid.below[row, column] = 0
            grid.sum_below[row, column] = np.uint64(0)
        begin = (row - 1) << grid.block_bits
        for place in range(np.uint64(begin), np.uint64(min(row << grid.block_bits, n))):
            block = (np.uint64(grid.to_lead[place]) >> bits) + np.uint64(1)
            grid.below[row, block] += 1
            grid.sum_below[row, block] += splitmix64(first + grid.id[1, place])
        count = 0
        total = np.uint64(0)
        for column in range(columns):
            count += grid.below[row, column]
            total += grid.sum_below[row, column]
            grid.below[row, column] = grid.below[row - 1, column] + count
            grid.sum_below[row, column] = grid.sum_below[row - 1, column] + total


@kernel
def fill_runs(grid: Grid, filled: np.ndarray) -> None:
    """Fill in the runs of every level; *filled* has room for an int64 per block."""
    for level in range(len(grid.run)):
        bits = grid.block_bits + GROUP_BITS * level
        for group in range(len(filled)):
            filled[group] = group << bits
        for place in range(np.uint64(grid.run.shape[1])):
            own = np.uint64(grid.to_lead[place]) >> np.uint64(bits)
            grid.run[level, np.uint64(filled[own])] = grid.id[1, place]
            filled[own] += 1
