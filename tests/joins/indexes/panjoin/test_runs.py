"""Merging into a sorted array, against numpy's stable sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.indexes.panjoin.answering import new_counters
from joins.indexes.panjoin.bi_sort_runs import merge
from joins.work import MOVES


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@given(
    held=st.integers(0, 150),
    new=st.integers(1, 60),
    spread=st.sampled_from([1, 20, 10_000]),
    seed=st.integers(0, 99),
)
def test_entries_are_merged_in_order_and_equal_ones_stay_behind_older(
    dtype: str, held: int, new: int, spread: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    keys = rng.integers(-spread, spread, held + new).astype(dtype)
    keys[:held].sort()
    keys[held:].sort()
    if dtype == "int64":
        keys[-1] = np.iinfo(dtype).max
    places = np.arange(held + new, dtype=np.int32)
    order = np.argsort(keys, kind="stable")
    merged, moved = keys.reshape(1, -1).copy(), places.reshape(1, -1).copy()
    counters = new_counters()
    added = keys[held:].reshape(1, -1), places[held:].reshape(1, -1)
    merge(merged, moved, held, *added, new, counters)
    assert merged[0].tolist() == keys[order].tolist()
    assert moved[0].tolist() == order.tolist()
    before_all = int(np.searchsorted(keys[:held], keys[held], "right"))
    assert counters[MOVES] == held - before_all + new
