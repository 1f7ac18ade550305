"""The offset array against a search of every key."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.indexes.immutable.order_arrays import offset
from tests.joins.codes import codes

KEYS = st.lists(codes, max_size=40)


@settings(deadline=None)
@given(r=KEYS, s=KEYS)
def test_each_key_gets_the_first_place_that_is_not_less(r, s):
    keys_r, keys_s = np.array(sorted(r), np.int64), np.array(sorted(s), np.int64)
    array, work = offset(keys_r, keys_s)
    assert array.tolist() == [sum(b < a for b in s) for a in sorted(r)]
    assert work.comparisons <= len(r) + len(s)
    assert work.moves == len(r)


def test_keys_that_are_no_codes_are_refused():
    with pytest.raises(TypeError, match="keys of S: dtype is float64"):
        offset(np.array([1]), np.array([1.0]))
