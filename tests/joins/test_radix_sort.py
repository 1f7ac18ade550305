"""Sorting a batch of codes, against numpy."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from joins.radix_sort import sort_codes


@given(codes=hnp.arrays(np.int64, st.integers(0, 300)))
def test_a_batch_is_sorted_and_equal_codes_keep_their_order(codes: np.ndarray) -> None:
    ordered, order, _ = sort_codes(codes)
    assert (ordered == np.sort(codes)).all()
    assert (order == np.argsort(codes, kind="stable")).all()
