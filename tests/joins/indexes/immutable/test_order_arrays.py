"""Offset and permutation arrays against their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.indexes.immutable.order_arrays import index_dtype, offset, permutation
from tests.joins.codes import codes

# The offset array against a search of every key.


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


# The permutation array against its definition.


@settings(deadline=None)
@given(data=st.data(), n=st.integers(0, 50), first=st.sampled_from([0, 7, 1 << 40]))
def test_the_array_leads_from_one_order_to_the_other(data, n, first):
    lead = np.array(data.draw(st.permutations(range(n))), np.int64) + first
    other = np.array(data.draw(st.permutations(range(n))), np.int64) + first
    for order in (lead, other):
        order.flags.writeable = False
    array, work = permutation(lead, other, first=first)
    assert array.dtype == np.int32
    assert array.tolist() == [lead.tolist().index(position) for position in other.tolist()]
    assert work.moves == 2 * n


def test_the_paper_s_example_counts_from_zero():
    """Figure 5: the first tuple in R.COOL order, r_2, is the fourth in R.POWER order."""
    power = np.array([3, 1, 4, 2])
    cool = np.array([2, 3, 1, 4])
    assert permutation(power, cool, first=1)[0].tolist() == [3, 0, 1, 2]


@pytest.mark.parametrize(
    ("lead", "other", "text"),
    [
        ([0, 1, 1], [0, 1, 2], "lead order: row 2 is 1"),
        ([0, 1, 3], [0, 1, 2], "lead order: row 2 is 3"),
        ([0, 1, 2], [0, 0, 2], "the other order: row 1 is 0"),
        ([0, 1, 2], [-1, 1, 2], "the other order: row 0 is -1"),
    ],
)
def test_positions_that_are_not_one_epoch_are_named(lead, other, text):
    with pytest.raises(ValueError, match=text):
        permutation(np.array(lead), np.array(other), first=0)


def test_a_length_past_int32_takes_int64():
    assert index_dtype(2**31 - 1) is np.int32
    assert index_dtype(2**31) is np.int64
