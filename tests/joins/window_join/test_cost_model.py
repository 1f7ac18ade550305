"""The analytical model: what it must say whatever the times are."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.indexes.pim_tree.css_tree import build_inner, nodes_at
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.window_join.model.cost_model import (
    Load,
    TreeTimes,
    b_plus_tree,
    chained_index,
    im_tree,
    merge_time,
    nested_loop,
    pim_tree,
    round_robin,
    subindexes_at,
    total,
    window_join,
)
from joins.work import COUNTERS

LOAD = Load(window=2**20, match_rate=2, compare_ns=1.5)
TREE = TreeTimes(fanout=32, search_ns=20, insert_ns=40, delete_ns=50)
CSS = TreeTimes(fanout=32, search_ns=10, full=True)


def test_b_plus_tree_by_hand():
    """Four levels of 32 over 2^20 entries."""
    terms = b_plus_tree(LOAD, TREE)
    assert terms == pytest.approx({"search": 80, "scan": 3, "delete": 200, "insert": 160})
    assert total(terms) == pytest.approx(443)


def test_a_chain_of_two_by_hand():
    terms = chained_index(LOAD, TREE, CSS, 2)
    assert terms == pytest.approx({"search": 40 + 80, "scan": 1.5 * 3, "insert": 160})


def test_im_tree_by_hand():
    """With m = 2/32 the mutable tree holds 2^16 / 2 = 32^3 entries on average."""
    terms = im_tree(LOAD, TREE, CSS, 1 / 16, 0.5)
    merged = (2**20 + 2**16) * (1 + 1 / 31) * 0.5
    assert terms == pytest.approx(
        {
            "search": 3 * 20 + 4 * 10,
            "scan": 1.5 * (2 + 2 / 32),
            "merge": merged / 2**16,
            "insert": 3 * 40,
        }
    )


def test_pim_tree_by_hand():
    """At depth 2 there are 1,024 subindexes, of 32 entries on average."""
    terms = pim_tree(LOAD, TREE, CSS, 1 / 16, 0.5, 2)
    assert terms["search"] == pytest.approx(1 * 20 + 4 * 10)
    assert terms["insert"] == pytest.approx(2 * 10 + 1 * 40)
    assert pim_tree(LOAD, TREE, CSS, 1 / 16, 0.5, 9) == terms


@given(st.integers(1, 2**18), st.integers(0, 4))
def test_a_full_tree_is_the_one_that_is_built(entries, depth):
    tree = PimTree(insertion_depth=depth, merge_ratio=1)
    tree.make_room(entries, 1)
    run = 0
    build_inner(tree.forest, run, entries, np.zeros(len(COUNTERS), np.int64))
    assert CSS.height(entries) == 1 + tree.forest.run_levels[run]
    deep, subindexes = subindexes_at(depth, entries, CSS)
    assert nodes_at(tree.forest, run, depth) == (deep, math.ceil(subindexes - 1e-9))


loads = st.builds(
    Load,
    window=st.floats(64, 2**26),
    match_rate=st.floats(0, 1000),
    compare_ns=st.floats(0.1, 10),
)
trees = st.builds(
    TreeTimes,
    fanout=st.floats(4, 256),
    search_ns=st.floats(1, 100),
    insert_ns=st.floats(1, 100),
    delete_ns=st.floats(1, 100),
)


@given(loads, trees, st.floats(0.01, 1), st.floats(0.1, 10))
def test_special_cases_agree(load, tree, ratio, entry_ns):
    assert total(round_robin(load, tree, 1)) == pytest.approx(total(b_plus_tree(load, tree)))
    im = im_tree(load, tree, tree, ratio, entry_ns)
    assert pim_tree(load, tree, tree, ratio, entry_ns, 0) == im
    assert total(window_join(1, 2, 3)) == 6
    assert nested_loop(load)["scan"] == load.window * load.compare_ns


@given(loads, trees, st.integers(1, 64), st.integers(2, 64))
def test_parting_the_window_makes_updates_cheaper(load, tree, cores, length):
    """More cores have lower trees; a longer chain has lower trees and fewer expired tuples."""
    parted, whole = round_robin(load, tree, cores), b_plus_tree(load, tree)
    assert parted["insert"] <= whole["insert"] * (1 + 1e-9)
    assert parted["delete"] <= whole["delete"] * (1 + 1e-9)
    one, more = (chained_index(load, tree, tree, n) for n in (length, length + 1))
    assert more["insert"] <= one["insert"] * (1 + 1e-9)
    assert more["scan"] <= one["scan"] * (1 + 1e-9)


@given(st.integers(1, 10**9), st.integers(2, 256))
def test_merging_counts_every_level(entries, fanout):
    nodes = sum(entries / fanout**level for level in range(1, 1 + int(math.log2(1e18))))
    assert merge_time(entries, fanout, 2.0) == pytest.approx(2.0 * (entries + nodes))
