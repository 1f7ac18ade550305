"""The offset array against a search of every key."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.indexes.immutable.order_arrays import offset

KEYS = st.lists(st.integers(-5, 5), max_size=40)


@settings(deadline=None)
@given(r=KEYS, s=KEYS, dtype=st.sampled_from(["int64", "float64"]))
def test_each_key_gets_the_first_place_that_is_not_less(r, s, dtype):
    keys_r, keys_s = np.array(sorted(r), dtype), np.array(sorted(s), dtype)
    array, work = offset(keys_r, keys_s)
    assert array.tolist() == [sum(b < a for b in s) for a in sorted(r)]
    assert work.comparisons <= len(r) + len(s)
    assert work.moves == len(r)


def test_extreme_floats_have_a_place():
    keys_s = np.array([-np.inf, 0.0, np.inf])
    assert offset(np.array([-np.inf, 1.0, np.inf]), keys_s)[0].tolist() == [0, 2, 2]


def test_keys_of_two_dtypes_are_refused():
    with pytest.raises(TypeError, match="keys of S: dtype is float64"):
        offset(np.array([1]), np.array([1.0]))
