"""Merging sorted entries into a run, in place from the greatest down."""

from __future__ import annotations

import numpy as np

from joins.indexes.sorted_array import SortedRun, merge
from joins.machine.compiling import kernel
from joins.machine.lanes import LANES
from joins.machine.sorted_lanes import choose_lanes, load_lanes, merge_lanes, store_lanes
from joins.work import COMPARISONS, MOVES


@kernel
def merge_words(
    words: np.ndarray,
    places: np.ndarray,
    size: int,
    new_words: np.ndarray,
    new: int,
    carried: np.ndarray,
    counters: np.ndarray,
) -> None:
    """Merge *new* sorted words into *size* sorted ones; *places* has no columns.

    Of the two, the one with the greater last word gives its last `LANES` words: what is carried and
    these hold the `LANES` greatest of all that is left, which go to the end, and the others are
    carried on. Each step waits only for the one before it in the network, not for a branch guessed
    wrong, so that it costs a third of what `merge` does where the two are about as long. What is
    left when one of them has less than a vector is for `merge`.

    Parameters
    ----------
    words
        int64, shape (1, at least *size* + *new*): the older ones from 0 on, and room behind them.
    places
        int32, shape (1, 0), as `merge` asks for it.
    new_words
        int64, shape (1, at least *new*).
    carried
        Working memory, int64, shape (1, `LANES`).
    counters
        A word moved by the network is counted as a move and a comparison.
    """
    i, j = size, new
    if i >= LANES and j >= LANES:
        j -= LANES
        lanes = load_lanes(new_words, 0, j)
        while i >= LANES and j >= LANES:
            older = words[0, np.uint64(i - 1)] > new_words[0, np.uint64(j - 1)]
            following = choose_lanes(
                older, load_lanes(words, 0, i - LANES), load_lanes(new_words, 0, j - LANES)
            )
            lanes, greatest = merge_lanes(lanes, following)
            # What is left of the older words ends at i, and what is carried makes room above it.
            store_lanes(greatest, words, 0, i + j)
            i -= LANES * older
            j -= LANES * (not older)
        store_lanes(lanes, carried, 0, 0)
        moved = size + new - (i + j + LANES)
        counters[MOVES] += moved
        counters[COMPARISONS] += moved
        merge(SortedRun(words, places, i), SortedRun(carried, places, LANES), counters)
        i += LANES
    merge(SortedRun(words, places, i), SortedRun(new_words, places, j), counters)
