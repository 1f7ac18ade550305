"""Codes of values, against the order of the values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from joins.indexes.index import decode, encode

VALUES = st.floats(allow_nan=False) | st.integers(-3, 3).map(float)


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
