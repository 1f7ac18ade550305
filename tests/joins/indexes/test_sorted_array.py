"""Searching sorted arrays and merging into them, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.indexes.sorted_array import SortedRun, merge, rebound, rebound_all
from joins.machine.compiling import kernel
from joins.work import MOVES, new_counters


@kernel
def search(keys, size, hint, target, counters):
    return rebound(keys, size, hint, target, counters)


@given(data=st.data(), keys=st.lists(st.integers(-9, 9), max_size=70).map(sorted))
def test_it_finds_the_first_place_from_any_other(data: st.DataObject, keys: list[int]) -> None:
    hint = data.draw(st.integers(0, len(keys)))
    target = data.draw(st.integers(-11, 11))
    line = np.array([keys], np.int64).reshape(1, -1)
    found = search(line, len(keys), hint, target, new_counters())
    assert found == np.searchsorted(line[0], target, "left")


@given(
    keys=st.lists(st.integers(-9, 9), max_size=70).map(sorted),
    targets=st.lists(st.integers(-11, 11), min_size=1, max_size=200),
    is_sorted=st.booleans(),
    data=st.data(),
)
def test_all_at_once_find_what_each_alone_finds(
    keys: list[int], targets: list[int], is_sorted: bool, data: st.DataObject
) -> None:
    line = np.array([keys], np.int32).reshape(1, -1)
    wanted = np.array(sorted(targets) if is_sorted else targets)
    begin = data.draw(st.integers(0, len(wanted)))
    places = np.full(len(wanted), -1)
    rebound_all(line, len(keys), wanted, begin, len(wanted), places, new_counters())
    found = np.searchsorted(line[0], wanted[begin:], "left")
    assert places.tolist() == [*found, *[-1] * begin]


def test_it_costs_less_from_nearby_than_from_afar() -> None:
    line = np.arange(100_000).reshape(1, -1)
    near, far = new_counters(), new_counters()
    search(line, 100_000, 49_990, 50_000, near)
    search(line, 100_000, 0, 50_000, far)
    assert near[0] < far[0] / 2


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
    added = SortedRun(keys[held:].reshape(1, -1), places[held:].reshape(1, -1), new)
    merge(SortedRun(merged, moved, held), added, counters)
    assert merged[0].tolist() == keys[order].tolist()
    assert moved[0].tolist() == order.tolist()
    before_all = int(np.searchsorted(keys[:held], keys[held], "right"))
    assert counters[MOVES] == held - before_all + new
