"""The rebounding binary search and the codes of values, against numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from joins.indexes.columns import decode, encode
from joins.indexes.panjoin.answering import new_counters
from joins.indexes.panjoin.rebound import rebound, rebound_all
from joins.indexes.panjoin.sorting import sort_codes
from joins.machine.compiling import kernel

VALUES = st.floats(allow_nan=False) | st.integers(-3, 3).map(float)


@kernel
def search(keys, size, hint, target, counters):  # type: ignore[no-untyped-def]
    return rebound(keys, 0, size, hint, target, counters)


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


@given(codes=hnp.arrays(np.int64, st.integers(0, 300)))
def test_a_batch_is_sorted_and_equal_codes_keep_their_order(codes: np.ndarray) -> None:
    ordered, order, _ = sort_codes(codes)
    assert (ordered == np.sort(codes)).all()
    assert (order == np.argsort(codes, kind="stable")).all()


def test_it_costs_less_from_nearby_than_from_afar() -> None:
    line = np.arange(100_000).reshape(1, -1)
    near, far = new_counters(), new_counters()
    search(line, 100_000, 49_990, 50_000, near)
    search(line, 100_000, 0, 50_000, far)
    assert near[0] < far[0] / 2


@given(values=hnp.arrays(np.float64, 8, elements=VALUES))
def test_codes_have_the_order_and_the_equalities_of_the_values(values: np.ndarray) -> None:
    codes = encode(values)
    assert ((codes[:, None] < codes) == (values[:, None] < values)).all()
    assert ((codes[:, None] == codes) == (values[:, None] == values)).all()
    assert (decode(codes, "float64") == values).all()


def test_no_range_reaches_a_nan() -> None:
    ends = encode(np.array([-np.inf, np.inf]))
    for nan in (np.nan, -np.nan):
        code = encode(np.array([nan]))[0]
        assert not ends[0] <= code <= ends[1]
