"""The static search tree against numpy's binary search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.indexes.immutable.css_tree import (
    FANOUT,
    NODE_KEYS,
    build_css_tree,
    child,
    find_ranges_in_tree,
)
from joins.work import COMPARISONS, new_counters
from tests.joins.codes import CODES, GREATEST, LEAST, draw_codes

FULL = [NODE_KEYS * FANOUT**level for level in range(3)]


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(0, 30)
    | st.integers(0, 1500)
    | st.sampled_from([size + d for size in FULL for d in (-1, 0, 1)]),
    domain=st.sampled_from([1, 5, 10**6]),
    is_wide=st.booleans(),
)
def test_a_search_ends_where_numpys_does(seed, n, domain, is_wide):
    rng = np.random.default_rng(seed)
    keys = draw_codes(rng, n) if is_wide else rng.integers(0, domain, n)
    keys[: n // 7], keys[n - n // 5 :] = LEAST, GREATEST
    keys.sort()
    values = np.concatenate([[LEAST, GREATEST], rng.integers(-1, domain + 1, 30), CODES])
    begin, end = np.empty((2, len(values)), np.int64)
    tree = build_css_tree(keys)
    find_ranges_in_tree(tree, values, values, begin, end, new_counters())
    assert np.array_equal(begin, np.searchsorted(keys, values, "left"))
    assert np.array_equal(end, np.searchsorted(keys, values, "right"))


def test_an_empty_range_begins_and_ends_at_the_same_place():
    tree = build_css_tree(np.arange(1000))
    begin, end = np.empty((2, 2), np.int64)
    low, high = np.array([500, 7]), np.array([499, -7])
    find_ranges_in_tree(tree, low, high, begin, end, new_counters())
    assert np.array_equal(begin, end)


@pytest.mark.parametrize("n", [1, 100, 5000])
def test_a_node_covers_a_contiguous_stretch_of_keys(n):
    keys = np.arange(n)
    tree = build_css_tree(keys)
    nodes = np.zeros(n, np.int64)
    for level in range(len(tree.level)):
        nodes = np.array([child(tree, level, nodes[key], key, after=False) for key in keys])
        stretch = NODE_KEYS * FANOUT ** (len(tree.level) - level - 1)
        assert nodes.tolist() == (keys // stretch).tolist()
        assert tree.width[level + 1] == nodes[-1] + 1


def test_a_search_compares_one_node_per_level_and_nodes_are_cache_lines():
    keys = np.arange(NODE_KEYS * FANOUT**3)
    tree = build_css_tree(keys)
    counters = new_counters()
    place = np.empty(1, np.int64)
    one = np.array([1234])
    find_ranges_in_tree(tree, one, one, place, place.copy(), counters)
    assert counters[COMPARISONS] == 2 + 2 * 4 * NODE_KEYS
    assert counters.sum() == counters[COMPARISONS]
    assert len(tree.level) == 3
    assert tree.inner.ctypes.data % 64 == 0
    assert tree.inner.nbytes < 0.2 * keys.nbytes
