"""Codes of values, against the order of the values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from joins.codes import decode, encode
from joins.indexes.index import make_ranges, ranges_for, stored_codes
from joins.queries.conditions import OPERATORS, Band, Condition, Operator

VALUES = st.floats(allow_nan=False) | st.integers(-3, 3).map(float)


@given(values=hnp.arrays(np.float64, 8, elements=VALUES))
def test_codes_have_the_order_and_the_equalities_of_the_values(values: np.ndarray) -> None:
    codes = encode(values)
    assert ((codes[:, None] < codes) == (values[:, None] < values)).all()
    assert ((codes[:, None] == codes) == (values[:, None] == values)).all()
    assert (decode(codes, "float64") == values).all()


SPECIAL = [-np.inf, -1e300, -1.0, -5e-324, -0.0, 0.0, 5e-324, 1.0, 2.0**53, 1e300, np.inf]
FLOATS = st.sampled_from(SPECIAL) | st.integers(-9, 9).map(lambda i: i / 4)
WHOLE = st.sampled_from([-(2**63), -(2**53), 0, 2**53, 2**53 + 1, 2**63 - 1]) | st.integers(-9, 9)
DRAWN = {"float64": FLOATS, "int64": WHOLE}
CONDITION_OPERATORS = [*OPERATORS.values(), Band("<=", "0.5"), Band("<", "1"), Band("<=", "3")]


@given(
    data=st.data(),
    operator=st.sampled_from(CONDITION_OPERATORS),
    dtypes=st.tuples(*[st.sampled_from(["int64", "float64"])] * 2),
)
def test_a_stored_code_lies_in_a_range_exactly_if_the_predicate_holds(
    data: st.DataObject, operator: Operator, dtypes: tuple[str, str]
) -> None:
    """Also where a field of whole numbers is compared with one of floats; a probe may be NaN."""
    stored, probing = (
        np.array(data.draw(st.lists(DRAWN[dtype], min_size=1, max_size=9)), dtype)
        for dtype in dtypes
    )
    if dtypes[1] == "float64":
        probing = np.append(probing, np.nan)
    common = "int64" if set(dtypes) == {"int64"} else "float64"
    conditions = [Condition(probe_field="p", stored_field="s", operator=operator, dtype=common)]
    ranges = ranges_for(conditions, [probing])
    (codes,) = stored_codes(conditions, [stored])
    low, high = ranges.low[0, :, None], ranges.high[0, :, None]
    inside = (low <= codes) & (codes <= high)
    holds = conditions[0].holds(probing[:, None], stored)
    assert ((inside != ranges.negated[0]) == holds).all()


def test_a_nan_that_would_be_stored_is_refused_by_field_and_row() -> None:
    conditions = [
        Condition(probe_field="p", stored_field="s", operator=OPERATORS["<"], dtype="float64")
    ]
    with pytest.raises(ValueError, match="s: row 2 is NaN"):
        stored_codes(conditions, [np.array([1.0, -0.0, np.nan])])


def test_columns_that_are_no_ranges_are_refused() -> None:
    ends = [np.array([1, 2])]
    for low, high, options, text in (
        (ends, ends * 2, {}, "high: 2 given for 1 predicates"),
        (ends, ends, {"negated": [True] * 2}, "negated: 2 given for 1 predicates"),
        (ends, [np.array([1.0, 2.0])], {}, "high of predicate 0: dtype is float64"),
        (ends, [np.array([1])], {}, "high of predicate 0: shape"),
        (ends, ends, {"stop": np.array([1])}, "stop: shape"),
    ):
        with pytest.raises((TypeError, ValueError), match=text):
            make_ranges(low, high, **options)


def test_no_range_reaches_a_nan() -> None:
    ends = encode(np.array([-np.inf, np.inf]))
    for nan in (np.nan, -np.nan):
        code = encode(np.array([nan]))[0]
        assert not ends[0] <= code <= ends[1]
