"""Sorting a batch, which happens once: ahead of insertion, and ahead of probing."""

from __future__ import annotations

import numpy as np

from joins.indexes.panjoin.answering import new_counters, work_of
from joins.radix_sort import COUNTERS_MAX, sort_rows
from joins.work import Work


def sort_codes(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, Work]:
    """Sort a column of codes (int64), digit by digit; equal ones keep their order.

    Returns
    -------
    sorted
        The codes in ascending order.
    order
        int64, the row of *codes* that each one is from.
    work
        What it cost.
    """
    n = len(codes)
    ordered, order = np.empty(n, np.int64), np.empty(n, np.int64)
    words, spare = np.empty(n, np.uint64), np.empty(n, np.uint64)
    counters = new_counters()
    sort_rows(codes, ordered, order, words, spare, n, np.empty(COUNTERS_MAX, np.int64), counters)
    return ordered, order, work_of(counters)
