"""The join over Bw-Trees: any threads, tasks, nodes and interleavings give the same answer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.window_join.live.bw_tree import BwTreeJoin
from tests.joins.window_join.ibwj_cases import (
    arrivals,
    assert_join_is_exact,
    assert_threads_lose_repeat_and_misplace_nothing,
)


@settings(max_examples=60, deadline=None)
@given(
    case=arrivals(largest=300),
    threads=st.integers(1, 4),
    task_rows=st.integers(1, 20),
    width=st.integers(4, 9),
    chain=st.integers(3, 4),
    pauses=st.sampled_from([0, 3, 30]),
    seed=st.integers(0, 1000),
    enumerate_ids=st.booleans(),
)
def test_every_tuple_finds_exactly_what_it_sees(case, enumerate_ids, **options):
    join = BwTreeJoin(self_join=case[0], **options)
    assert_join_is_exact(join, case, enumerate_ids)


@pytest.mark.parametrize("seed", range(6))
def test_threads_that_meet_all_the_time(seed):
    join = BwTreeJoin(
        threads=2 + seed % 3,
        task_rows=1 + seed,
        width=4 + seed,
        chain=3 + seed % 2,
        pauses=seed % 2 * 20,
        seed=seed,
    )
    assert_threads_lose_repeat_and_misplace_nothing(join)


@given(case=arrivals(), task_rows=st.integers(1, 20))
def test_one_thread_goes_on_after_a_snapshot_as_if_there_had_been_none(case, task_rows):
    self_join = case[0]
    kept = BwTreeJoin(self_join=self_join, task_rows=task_rows, width=4, chain=3)

    class PutAway:
        def join(self, rows, *, enumerate):
            fresh = BwTreeJoin(self_join=self_join, task_rows=task_rows, width=4, chain=3)
            fresh.restore(kept.snapshot())
            found, again = (
                kept.join(rows, enumerate=enumerate),
                fresh.join(rows, enumerate=enumerate),
            )
            assert found.work == again.work
            return again

    assert_join_is_exact(PutAway(), case)
