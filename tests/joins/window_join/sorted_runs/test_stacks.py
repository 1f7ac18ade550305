"""Merging words by vectors, against numpy's sort."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joins.indexes.sorted_array import SortedRun
from joins.machine.lanes import LANES
from joins.window_join.sorted_runs.stacks import merge_words
from joins.work import COMPARISONS, MOVES, new_counters

NO_PLACES = np.empty((1, 0), np.int32)
BEHIND = 7


@given(
    old=st.integers(0, 150),
    new=st.integers(0, 150),
    spread=st.sampled_from([1, 300, 2**62]),
    apart=st.sampled_from([-(2**62), 0, 2**62]),
    seed=st.integers(0, 99),
)
def test_words_are_merged_in_order_and_nothing_behind_them_is_touched(
    old: int, new: int, spread: int, apart: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    older = np.sort(rng.integers(-spread, spread, old))
    younger = np.sort(rng.integers(-spread, spread, new) + apart)
    words = np.full((1, old + new + LANES), BEHIND)
    words[0, :old] = older
    counters = new_counters()
    carried = np.empty((1, LANES), np.int64)
    run = SortedRun(younger.reshape(1, -1), NO_PLACES, new)
    merge_words(SortedRun(words, NO_PLACES, old), run, carried, counters)
    assert words[0, : old + new].tolist() == np.sort(np.append(older, younger)).tolist()
    assert (words[0, old + new :] == BEHIND).all()
    # What is left for one by one is moved twice at the most.
    assert counters[MOVES] == counters[COMPARISONS] >= new
    assert counters[MOVES] <= 2 * (old + new) + LANES
