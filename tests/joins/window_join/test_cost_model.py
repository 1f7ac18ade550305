"""The cost model: its equations, its predictions, and what a machine makes of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.pim_tree import make_work
from joins.indexes.pim_tree.immutable_tree import build_inner, nodes_at
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.window_join.cost_model import (
    MODELLED,
    JoinLoad,
    TreeTimes,
    b_plus_tree,
    chained_index,
    merge_time,
    nested_loop,
    pim_tree,
    predict,
    predict_all,
    subindexes_at,
)
from joins.window_join.window_join_spec import IndexName, WindowJoinSpec
from joins.work import new_counters
from netsim.cost import load_profile

LOAD = JoinLoad(window=2**20, match_rate=2, compare_ns=1.5)
TREE = TreeTimes(fanout=32, search_ns=20, insert_ns=40, delete_ns=50)
CSS = TreeTimes(fanout=32, search_ns=10, full=True)


def test_b_plus_tree_by_hand():
    """Four levels of 32 over 2^20 entries."""
    terms = b_plus_tree(LOAD, TREE)
    assert terms == pytest.approx({"search": 80, "scan": 3, "delete": 200, "insert": 160})
    assert sum(terms.values()) == pytest.approx(443)


def test_a_chain_of_two_by_hand():
    terms = chained_index(LOAD, TREE, CSS, 2)
    assert terms == pytest.approx({"search": 40 + 80, "scan": 1.5 * 3, "insert": 160})


def test_im_tree_by_hand():
    """With m = 2/32 the mutable tree holds 2^16 / 2 = 32^3 entries on average."""
    terms = pim_tree(LOAD, TREE, CSS, 1 / 16, 0.5, 0)
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
    build_inner(tree.forest, run, entries, new_counters())
    assert CSS.height(entries) == 1 + tree.forest.run_levels[run]
    deep, subindexes = subindexes_at(depth, entries, CSS)
    assert nodes_at(tree.forest, run, depth) == (deep, math.ceil(subindexes - 1e-9))


loads = st.builds(
    JoinLoad,
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


@given(loads)
def test_nested_loops_compare_the_whole_window(load):
    assert nested_loop(load)["scan"] == load.window * load.compare_ns


@given(loads, trees, st.integers(2, 64))
def test_parting_the_window_makes_updates_cheaper(load, tree, length):
    """A longer chain has lower trees and fewer expired tuples."""
    one, more = (chained_index(load, tree, tree, n) for n in (length, length + 1))
    assert more["insert"] <= one["insert"] * (1 + 1e-9)
    assert more["scan"] <= one["scan"] * (1 + 1e-9)


@given(st.integers(1, 10**9), st.integers(2, 256))
def test_merging_counts_every_level(entries, fanout):
    nodes = sum(entries / fanout**level for level in range(1, 1 + int(math.log2(1e18))))
    assert merge_time(entries, fanout, 2.0) == pytest.approx(2.0 * (entries + nodes))


UNIT_PS = load_profile().unit_ps


@pytest.mark.parametrize("bits", [12, 15])
@pytest.mark.parametrize("index", MODELLED)
def test_a_prediction_is_within_30_percent_of_the_work_counted(index: IndexName, bits: int) -> None:
    window = 1 << bits
    tuples = 2 * window if index != "nested_loop" else 2000
    rows = make_work(tuples, window)
    spec = WindowJoinSpec(index=index)
    join = spec.make(self_join=False, unit_ps=UNIT_PS)
    join.join(rows.part(0, 2 * window))
    found = join.join(rows.part(2 * window, 2 * window + tuples))
    counted_ns = load_profile().work_ns(found.work) / tuples
    predicted = predict(spec, window=window, match_rate=2, unit_ps=UNIT_PS).tuple_ns
    assert counted_ns / 1.3 < predicted < counted_ns * 1.3


def test_every_index_is_ranked_once_at_its_best() -> None:
    ranked = predict_all(window=2**20, match_rate=2, unit_ps=lambda _: UNIT_PS)
    assert sorted(one.spec.index_name for one in ranked) == sorted(MODELLED)
    costs = [one.tuple_ns for one in ranked]
    assert costs == sorted(costs)
    for one in ranked:
        default = predict(
            WindowJoinSpec(index=one.spec.index), window=2**20, match_rate=2, unit_ps=UNIT_PS
        )
        assert one.tuple_ns <= default.tuple_ns
    assert ranked[-1].spec.index == "nested_loop"


def test_every_index_is_ranked_at_its_own_prices() -> None:
    """Where a unit of one index costs next to nothing, that index is the cheapest."""

    def unit_ps(index: str) -> tuple[int, ...]:
        return tuple(ps // 1000 for ps in UNIT_PS) if index == "bw_tree" else UNIT_PS

    ranked = predict_all(window=2**20, match_rate=2, unit_ps=unit_ps)
    assert ranked[0].spec.index == "bw_tree"
