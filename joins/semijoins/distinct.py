"""Distinct rows of columns, by hashing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joins.hashing import splitmix64
from joins.indexes.columns import encode
from joins.machine.compiling import kernel

_EMPTY = -1


def distinct(columns: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Give the distinct rows of some columns numbers in the order of their first appearance.

    Parameters
    ----------
    columns
        int64 or float64, at least one, of equal length; 0.0 and -0.0 are equal.

    Returns
    -------
    tuple
        The row at which each distinct row appears first, and the number of every row; int64.
    """
    keys = np.stack([as_whole(column) for column in columns])
    rows = keys.shape[1]
    slots = np.full(1 << max(1, (2 * rows - 1).bit_length()), _EMPTY, np.int64)
    first, number = np.empty((2, rows), np.int64)
    found = _number(keys, slots, first, number)
    return first[:found], number


def contained(columns: Sequence[np.ndarray], values: Sequence[np.ndarray]) -> np.ndarray:
    """Return for each row of *columns* which row of *values* it equals, int64; -1 for none.

    Rows of *values* are distinct.
    """
    known = len(values[0])
    _, number = distinct(
        [np.concatenate([value, column]) for value, column in zip(values, columns, strict=True)]
    )
    places = number[known:]
    return np.where(places < known, places, -1)


def as_whole(column: np.ndarray) -> np.ndarray:
    """Return int64 numbers that are equal where the values (int64 or float64) are."""
    return encode(column if column.dtype == np.int64 else column + 0.0)


@kernel
def _number(keys: np.ndarray, slots: np.ndarray, first: np.ndarray, number: np.ndarray) -> int:
    """Fill in `distinct`'s results through a hash table with linear probing; return how many."""
    found = 0
    mask = len(slots) - 1
    for row in range(keys.shape[1]):
        mixed = np.uint64(0)
        for column in range(len(keys)):
            mixed = splitmix64(int(mixed) ^ keys[column, row])
        slot = np.int64(mixed & np.uint64(mask))
        while slots[slot] != _EMPTY:
            earlier = first[slots[slot]]
            same = True
            for column in range(len(keys)):
                same = same and keys[column, earlier] == keys[column, row]
            if same:
                break
            slot = (slot + 1) & mask
        if slots[slot] == _EMPTY:
            slots[slot] = found
            first[found] = row
            found += 1
        number[row] = slots[slot]
    return found
