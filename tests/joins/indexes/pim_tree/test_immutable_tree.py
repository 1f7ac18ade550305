"""The immutable tree against a binary search of its sorted keys."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.indexes.pim_tree import immutable_tree
from joins.indexes.pim_tree.forest import Sizes, make_forest
from joins.indexes.pim_tree.immutable_tree import build_coarse, build_inner, greatest_key, nodes_at
from joins.work import new_counters
from tests.joins.codes import GREATEST, LEAST
from tests.joins.in_kernel import in_kernel

descend = in_kernel(immutable_tree.descend)
first_place = in_kernel(immutable_tree.first_place)
leaf_below = in_kernel(immutable_tree.leaf_below)
place_from = in_kernel(immutable_tree.place_from)
place_in_leaf = in_kernel(immutable_tree.place_in_leaf)


def tree_of(keys, width):
    slots = Sizes(runs=1, trees=1, run_width=width, nodes=1, subindexes=1)
    forest = make_forest(slots, sides=1, run_entries=len(keys), tree_width=4)
    forest.run_keys[0, : len(keys)] = keys
    counters = new_counters()
    build_inner(forest, 0, len(keys), counters)
    build_coarse(forest, 0)
    return forest, counters


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.one_of(st.integers(0, 40), st.integers(0, 3000)),
    spread=st.sampled_from([1, 10, 10**6]),
    width=st.sampled_from([4, 6, 16, 20]),
    depth=st.integers(0, 8),
)
def test_searching_from_any_depth_finds_the_first_place(seed, n, spread, width, depth):
    rng = np.random.default_rng(seed)
    keys = rng.integers(-spread, spread + 1, n)
    keys[rng.random(n) < 0.02] = GREATEST
    keys[rng.random(n) < 0.02] = LEAST
    keys.sort()
    forest, counters = tree_of(keys, width)
    assert forest.run_length[0] == n
    levels = int(forest.run_levels[0])
    depth, nodes = nodes_at(forest, 0, depth)
    assert depth <= max(0, levels - 1)
    assert nodes == max(1, -(-n // width ** (levels - depth + 1)))
    probes = np.concatenate([keys, keys + (keys < GREATEST), [LEAST, 0, GREATEST]])[:500]
    for probe in probes.tolist():
        node = descend(forest, 0, 0, 0, depth, probe, counters)
        assert 0 <= node < nodes
        assert probe <= greatest_key(forest, 0, depth, node)
        assert node == 0 or probe > greatest_key(forest, 0, depth, node - 1)
        leaf = descend(forest, 0, node, depth, levels, probe, counters)
        place = place_in_leaf(forest, 0, leaf, probe, counters)
        assert place == np.searchsorted(keys, probe)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.one_of(st.integers(0, 40), st.integers(0, 3000)),
    bits=st.sampled_from([1, 5, 12, 20, 40, 63]),
    width=st.sampled_from([4, 6, 16, 32]),
)
def test_a_coarse_copy_leads_to_the_leaf_and_the_place(seed, n, bits, width):
    rng = np.random.default_rng(seed)
    # Some parts of the keys' range are crowded, others empty.
    keys = rng.integers(-(2**bits), 2**bits, n) >> rng.integers(0, bits, n)
    keys[rng.random(n) < 0.02] = GREATEST
    keys[rng.random(n) < 0.02] = LEAST
    keys.sort()
    forest, counters = tree_of(keys, width)
    levels = int(forest.run_levels[0])
    probes = np.concatenate([keys, keys + (keys < GREATEST), [LEAST, 0, GREATEST]])
    for probe in rng.permutation(probes)[:300].tolist():
        leaf = descend(forest, 0, 0, 0, levels, probe, counters)
        if levels:
            node = descend(forest, 0, 0, 0, levels - 1, probe, counters)
            assert leaf_below(forest, 0, node, probe) == leaf
        begin = first_place(forest, 0, leaf, probe)
        place = np.searchsorted(keys, probe)
        assert leaf * width <= begin <= max(leaf * width, place)
        assert place_from(forest, 0, begin, probe) == place


def test_a_coarse_copy_tells_the_line_of_a_leaf():
    width, n = 32, 5000
    keys = np.cumsum(np.random.default_rng(1).integers(1, 2000, n))
    forest, counters = tree_of(keys, width)
    levels = int(forest.run_levels[0])
    quarters = 0
    for key in keys.tolist():
        leaf = descend(forest, 0, 0, 0, levels, key, counters)
        begin = first_place(forest, 0, leaf, key)
        quarters += np.searchsorted(keys, key) - begin < width // 4
    # Neither the first leaf nor the last has fences, and bits that are equal do not tell.
    assert quarters > 0.98 * n
