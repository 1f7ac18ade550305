"""The live join: any threads, tasks, merges and interleavings give the same exact answer."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from joins.indexes.pim_tree.pim_tree import PimTree
from joins.window_join.live.pim_tree import LiveJoin
from tests.joins.window_join.ibwj_cases import arrivals, assert_join_is_exact

SMALL = {"run_width": 4, "tree_width": 4}


@settings(max_examples=120, deadline=None)
@given(
    case=arrivals(),
    ratio=st.floats(0, 1, exclude_min=True),
    depth=st.integers(0, 5),
    threads=st.integers(1, 4),
    task_rows=st.integers(1, 20),
    slack=st.integers(1, 40),
    nonblocking=st.booleans(),
    pauses=st.integers(0, 6),
    seed=st.integers(0, 1000),
)
def test_every_tuple_finds_exactly_what_it_sees(case, ratio, depth, seed, **options):
    sides = 1 if case[0] else 2
    index = PimTree(sides=sides, merge_ratio=ratio, insertion_depth=depth, **SMALL)
    join = LiveJoin(index, seed=seed, **options)
    try:
        assert_join_is_exact(join, case)
    finally:
        join.close()
