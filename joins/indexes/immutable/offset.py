"""The offset array (SPO-Join, section 3.3, Algorithm 3)."""

from __future__ import annotations

import numpy as np

from joins.indexes.columns import key_dtype, keys_column
from joins.indexes.immutable.permutation import index_dtype
from joins.machine.compiling import kernel
from joins.work import COMPARISONS, COUNTERS, MOVES, Work


def offset(keys_r: np.ndarray, keys_s: np.ndarray) -> tuple[np.ndarray, Work]:
    """Return for every key of R the place of the first key of S that is not less.

    One merge over both sorted runs. The paper searches the first key in the tree and counts from 1;
    here the merge starts at the first key of S and places count from 0.

    Parameters
    ----------
    keys_r, keys_s
        Keys in ascending order, of one dtype.

    Returns
    -------
    array
        int32 (int64 where that is too narrow); ``len(keys_s)`` where all of S is less.
    work
        What it cost.
    """
    dtype = key_dtype(np.asarray(keys_r).dtype, "keys of R")
    keys_r = keys_column(keys_r, dtype, "keys of R")
    keys_s = keys_column(keys_s, dtype, "keys of S")
    array = np.empty(len(keys_r), index_dtype(len(keys_s)))
    counters = np.zeros(len(COUNTERS), np.int64)
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
