"""Sorted vectors, merged by a network."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joins.machine.compiling import kernel
from joins.machine.lanes import LANES, choose_lanes, load_lanes, merge_lanes, store_lanes

INTEGERS = st.integers(np.iinfo(np.int64).min, np.iinfo(np.int64).max)
VECTORS = st.lists(INTEGERS | st.integers(-3, 3), min_size=LANES, max_size=LANES).map(sorted)


@kernel
def merge(rows, merged):
    less, greater = merge_lanes(load_lanes(rows, 0, 0), load_lanes(rows, 1, 0))
    store_lanes(less, merged, 0, 1)
    store_lanes(greater, merged, 0, 1 + LANES)


@given(one=VECTORS, other=VECTORS)
def test_two_vectors_become_the_lesser_and_the_greater_half(one, other):
    merged = np.zeros((1, 2 * LANES + 2), np.int64)
    merge(np.array([one, other]), merged)
    assert merged[0].tolist() == [0, *sorted(one + other), 0]


@kernel
def choose(rows, is_first, chosen):
    store_lanes(
        choose_lanes(is_first, load_lanes(rows, 0, 3), load_lanes(rows, 1, 5)), chosen, 0, 0
    )


def test_one_of_two_is_chosen():
    rows = np.arange(60).reshape(2, 30)
    chosen = np.zeros((1, LANES), np.int64)
    for is_first, begin in ((True, 3), (False, 35)):
        choose(rows, is_first, chosen)
        assert chosen[0].tolist() == list(range(begin, begin + LANES))
