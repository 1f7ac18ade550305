"""The join over Bw-Trees with threads, live and on simulated cores: always exact."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.pim_tree import make_work
from joins.window_join.shared_bw_tree import BwTreeWindows
from joins.window_join.shared_join import CoresJoin, ThreadsJoin
from joins.work import COUNTERS
from netsim.cost import load_profile
from tests.joins.window_join.ibwj_cases import (
    PausingThreadsJoin,
    arrivals,
    assert_join_is_exact,
    assert_threads_lose_repeat_and_misplace_nothing,
)

# The join over Bw-Trees: any threads, tasks, nodes and interleavings give the same answer.


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


# The join over Bw-Trees on simulated cores: exact whatever the cores, slower where they meet.


@given(
    case=arrivals(),
    threads=st.integers(1, 20),
    task_rows=st.integers(1, 20),
    width=st.integers(4, 9),
    chain=st.integers(3, 4),
    enumerate_ids=st.booleans(),
    unit_ps=st.lists(st.integers(0, 10**6), min_size=len(COUNTERS), max_size=len(COUNTERS)),
)
def test_on_simulated_cores_every_tuple_finds_exactly_what_it_sees(
    case, enumerate_ids, width, chain, **options
):
    sides, workers = 1 if case[0] else 2, options["threads"]
    windows = BwTreeWindows(sides, workers=workers, width=width, chain=chain)
    assert_join_is_exact(CoresJoin(windows, **options), case, enumerate_ids)


def steady(window, **options):
    """Return the work of two windows of tuples when the windows are full."""
    rows = make_work(2 * window, window)
    windows = BwTreeWindows(2, workers=options["threads"])
    join = CoresJoin(windows, unit_ps=load_profile().unit_ps, **options)
    join.join(rows.part(0, 2 * window))
    return join.join(rows.part(2 * window, 4 * window)).work


def test_cores_share_the_work_and_meet_more_often_in_a_small_window():
    large, small = 1 << 14, 1 << 6
    gain = {
        window: steady(window, threads=1).elapsed_ns / steady(window, threads=16).elapsed_ns
        for window in (large, small)
    }
    assert 16 > gain[large] > 8
    assert gain[small] < 0.7 * gain[large]
    # What fails is tried again: the same tuples take more swaps the more cores there are.
    atomics = [steady(small, threads=threads).atomics for threads in (1, 4, 16)]
    assert atomics == sorted(atomics)
    assert atomics[0] < 0.9 * atomics[-1]


def test_threads_that_share_cores_gain_nothing_over_as_many_threads_as_cores():
    sixteen, shared, eight = [
        steady(1 << 12, **options).elapsed_ns
        for options in ({"threads": 16}, {"threads": 16, "cores": 8}, {"threads": 8})
    ]
    assert sixteen < eight < shared


@pytest.mark.parametrize("name", ["threads", "cores", "task_rows"])
def test_what_cannot_be_is_named(name):
    options = {"unit_ps": load_profile().unit_ps, "threads": 2} | {name: 0}
    with pytest.raises(ValueError, match=f"{name} is 0, must be at least 1"):
        CoresJoin(BwTreeWindows(2, workers=2), **options)
