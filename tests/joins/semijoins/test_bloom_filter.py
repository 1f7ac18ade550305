"""Bloom filters: no false negatives, few false positives."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joins.semijoins.bloom_filter import BloomFilter


@given(
    inside=st.lists(st.integers(), min_size=1, max_size=50),
    outside=st.lists(st.integers(), max_size=50),
)
def test_a_bloom_filter_misses_nothing(inside: list[int], outside: list[int]) -> None:
    """What is in the set always passes."""
    clip = [np.array([v % 2**62 for v in values], np.int64) for values in (inside, outside)]
    bloom = BloomFilter.of([clip[0]], 8)
    assert bloom.may_contain([clip[0]]).all()
    assert len(bloom.may_contain([clip[1]])) == len(outside)


def test_a_bloom_filter_lets_few_others_through() -> None:
    """Eight bits a value: about 2 % false positives."""
    bloom = BloomFilter.of([np.arange(1000)], 8)
    assert bloom.nbytes == 1000
    assert bloom.may_contain([np.arange(1000, 11_000)]).mean() < 0.04


def test_a_bloom_filter_of_nothing_takes_no_bytes_and_lets_nothing_through() -> None:
    bloom = BloomFilter.of([np.empty(0, np.int64)])
    assert len(bloom) == bloom.nbytes == 0
    assert not bloom.may_contain([np.arange(100)]).any()
