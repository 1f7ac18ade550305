"""Samples of values: alike for equal values, nested, and as large as their share."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.semijoins.value_sample import ValueSample

whole = st.lists(st.integers(-(2**53), 2**53), min_size=1, max_size=50)
shares = st.floats(0, 1, exclude_min=True)


@given(values=whole, share=shares)
def test_equal_values_are_kept_alike_whatever_their_type(values: list[int], share: float) -> None:
    kept = ValueSample(share=share)
    ints, floats = np.array(values, np.int64), np.array(values, np.float64)
    assert kept.contains(ints).tolist() == kept.contains(floats).tolist()
    assert kept.contains(np.array([0.0]))[0] == kept.contains(np.array([-0.0]))[0]


@given(values=whole, two=st.tuples(shares, shares))
def test_a_larger_share_keeps_more_and_never_others(
    values: list[int], two: tuple[float, float]
) -> None:
    columns = np.array(values, np.int64)
    few, many = (ValueSample(share=share).contains(columns) for share in sorted(two))
    assert not (few & ~many).any()
    assert ValueSample(share=1).contains(columns).all()


@pytest.mark.parametrize("share", [0.02, 0.3, 0.9])
def test_as_many_values_are_kept_as_the_share_says(share: float) -> None:
    kept = ValueSample(share=share).contains(np.arange(20_000)).mean()
    assert kept == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / 20_000))


def test_some_values_are_kept_always_and_some_never() -> None:
    values = np.arange(1000)
    kept = ValueSample(share=0.5, always=(3.0, 4.0), never=(5.0, 6.0))
    assert kept.contains(values)[3:7].tolist() == [True, True, False, False]
    assert kept.chance(values)[[3, 4]].tolist() == [1, 1]
    assert set(kept.chance(values)[7:].tolist()) == {0.5}
    others = np.delete(values, [3, 4, 5, 6])
    assert (kept.contains(others) == ValueSample(share=0.5).contains(others)).all()
