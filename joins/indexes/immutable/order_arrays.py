"""How one order of an epoch's tuples leads to another (SPO-Join, section 3.3).

The permutation array (Algorithm 2) leads from the order of one field to the order of another, of
the same tuples; the offset array (Algorithm 3) from one stream's sorted keys to the other's.
"""

from __future__ import annotations

import numpy as np

from joins.indexes.index import as_column
from joins.machine.compiling import kernel
from joins.work import COMPARISONS, MOVES, Work, new_counters

_UNSEEN = -1


def index_dtype(length: int) -> type[np.signedinteger]:
    """Return the narrowest dtype, int32 or int64, that has room for 0 to *length*."""
    return np.int32 if length <= np.iinfo(np.int32).max else np.int64


def permutation(lead: np.ndarray, other: np.ndarray, *, first: int) -> tuple[np.ndarray, Work]:
    """Return for every tuple in the order of one field its place in the order of the lead field.

    The paper counts places from 1; here they count from 0, so that they index the lead's columns.

    Parameters
    ----------
    lead, other
        int64 stream positions of the same tuples, in the order of the lead field and of the other.
    first
        The smallest of the positions; they are first to first + len(lead) - 1.

    Returns
    -------
    array
        int32 (int64 where that is too narrow), ``lead[array[j]] == other[j]``.
    work
        What it cost.

    Raises
    ------
    ValueError
        When one of the two does not contain each of the positions once.
    """
    lead = as_column(lead, np.int64, "positions in lead order")
    other = as_column(other, np.int64, "positions in the other order", len(lead))
    n = len(lead)
    place = np.full(n, _UNSEEN, index_dtype(n))
    array = np.empty(n, index_dtype(n))
    bad = _permute(lead, other, first, place, array)
    if bad >= 0:
        name, row = ("lead", bad) if bad < n else ("the other", bad - n)
        value = lead[bad] if bad < n else other[bad - n]
        raise ValueError(
            f"positions in {name} order: row {row} is {value}, expected every position from "
            f"{first} to {first + n - 1} once"
        )
    return array, Work(moves=2 * n)


@kernel
def _permute(
    lead: np.ndarray, other: np.ndarray, first: int, place: np.ndarray, array: np.ndarray
) -> int:
    """Fill in *array*; return -1, or the row (counted through both inputs) that is wrong."""
    n = len(lead)
    for i in range(n):
        local = lead[i] - first
        if local < 0 or local >= n or place[local] != _UNSEEN:
            return i
        place[local] = i
    for j in range(n):
        local = other[j] - first
        if local < 0 or local >= n or place[local] == _UNSEEN:
            return n + j
        array[j] = place[local]
        place[local] = _UNSEEN
    return -1


def offset(keys_r: np.ndarray, keys_s: np.ndarray) -> tuple[np.ndarray, Work]:
    """Return for every key of R the place of the first key of S that is not less.

    One merge over both sorted runs. The paper searches the first key in the tree and counts from 1;
    here the merge starts at the first key of S and places count from 0.

    Parameters
    ----------
    keys_r, keys_s
        int64 keys in ascending order.

    Returns
    -------
    array
        int32 (int64 where that is too narrow); ``len(keys_s)`` where all of S is less.
    work
        What it cost.
    """
    keys_r = as_column(keys_r, np.int64, "keys of R")
    keys_s = as_column(keys_s, np.int64, "keys of S")
    array = np.empty(len(keys_r), index_dtype(len(keys_s)))
    counters = new_counters()
    _merge(keys_r, keys_s, array, counters)
    return array, Work.from_counters(counters)


@kernel
def _merge(keys_r: np.ndarray, keys_s: np.ndarray, array: np.ndarray, counters: np.ndarray) -> None:
    place = 0
    for i in range(len(keys_r)):
        key = keys_r[i]
        while place < len(keys_s):
            counters[COMPARISONS] += 1
            if keys_s[place] >= key:
                break
            place += 1
        array[i] = place
    counters[MOVES] += len(keys_r)
