"""The join over Bw-Trees: any threads, tasks, nodes and interleavings give the same answer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.window_join.shared_bw_tree import BwTreeWindows
from joins.window_join.shared_join import ThreadsJoin
from tests.joins.window_join.ibwj_cases import (
    PausingThreadsJoin,
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
    join_class=st.sampled_from([ThreadsJoin, PausingThreadsJoin]),
    enumerate_ids=st.booleans(),
)
def test_every_tuple_finds_exactly_what_it_sees(
    case, enumerate_ids, threads, task_rows, join_class, **options
):
    windows = BwTreeWindows(1 if case[0] else 2, workers=threads, **options)
    join = join_class(windows, threads=threads, task_rows=task_rows, rows_a_thread=1)
    assert_join_is_exact(join, case, enumerate_ids)


@pytest.mark.parametrize("seed", range(6))
def test_threads_that_meet_all_the_time(seed):
    threads = 2 + seed % 3
    windows = BwTreeWindows(2, workers=threads, width=4 + seed, chain=3 + seed % 2)
    join_class = PausingThreadsJoin if seed % 2 else ThreadsJoin
    join = join_class(windows, threads=threads, task_rows=1 + seed)
    assert_threads_lose_repeat_and_misplace_nothing(join)


@given(case=arrivals(), task_rows=st.integers(1, 20))
def test_one_thread_goes_on_after_a_snapshot_as_if_there_had_been_none(case, task_rows):
    def make():
        windows = BwTreeWindows(1 if case[0] else 2, workers=1, width=4, chain=3)
        return ThreadsJoin(windows, threads=1, task_rows=task_rows)

    going_on = make()

    class PutAway:
        def join(self, rows, *, enumerate):
            fresh = make()
            fresh.restore(going_on.snapshot())
            found = going_on.join(rows, enumerate=enumerate)
            again = fresh.join(rows, enumerate=enumerate)
            assert found.work == again.work
            return again

    assert_join_is_exact(PutAway(), case)
