"""The join over PIM-Trees with threads, live and on simulated cores: always exact."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.pim_tree import make_work
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.window_join.shared_join import CoresJoin, ThreadsJoin
from joins.window_join.shared_pim_tree import PimTreeWindows
from joins.work import COUNTERS
from netsim.cost import load_profile
from tests.joins.window_join.ibwj_cases import (
    PausingThreadsJoin,
    arrivals,
    assert_join_is_exact,
    assert_threads_lose_repeat_and_misplace_nothing,
)

# The live join: any threads, tasks, merges and interleavings give the same exact answer.


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
    join_class=st.sampled_from([ThreadsJoin, PausingThreadsJoin]),
)
def test_every_tuple_finds_exactly_what_it_sees(
    case, ratio, depth, nonblocking, join_class, **options
):
    sides = 1 if case[0] else 2
    index = PimTree(sides=sides, merge_ratio=ratio, insertion_depth=depth, **SMALL)
    assert_join_is_exact(
        join_class(PimTreeWindows(index, nonblocking=nonblocking), rows_a_thread=1, **options), case
    )


@pytest.mark.parametrize("seed", range(12))
def test_threads_that_meet_all_the_time(seed):
    # Few subindexes, so that threads are in the same one; in every other run they pause.
    index = PimTree(sides=2, merge_ratio=1 / (1 + seed % 4), insertion_depth=seed % 3, **SMALL)
    join_class = PausingThreadsJoin if seed % 2 else ThreadsJoin
    join = join_class(
        PimTreeWindows(index, nonblocking=seed % 4 > 1),
        threads=2 + seed % 3,
        task_rows=1 + seed,
    )
    assert_threads_lose_repeat_and_misplace_nothing(join)


@given(case=arrivals(), threads=st.integers(1, 4), task_rows=st.integers(1, 20))
def test_threads_go_on_after_a_snapshot(case, **options):
    def make():
        index = PimTree(sides=1 if case[0] else 2, merge_ratio=0.5, **SMALL)
        return ThreadsJoin(PimTreeWindows(index), rows_a_thread=1, **options)

    class PutAway:
        kept = make().snapshot()

        def join(self, rows, *, enumerate):
            fresh = make()
            fresh.restore(self.kept)
            found = fresh.join(rows, enumerate=enumerate)
            self.kept = fresh.snapshot()
            return found

    assert_join_is_exact(PutAway(), case)


@pytest.mark.parametrize(("rows", "started"), [(99, 1), (100, 1), (199, 1), (200, 2), (900, 3)])
def test_a_small_batch_wakes_fewer_threads(rows, started, monkeypatch):
    join = ThreadsJoin(PimTreeWindows(PimTree(sides=2)), threads=3, rows_a_thread=100)
    taken = []
    own = join._scheduler

    def schedule(workers, thread):
        taken.append(thread)
        return own(workers, thread)

    monkeypatch.setattr(join, "_scheduler", schedule)
    join.join(make_work(rows, 50).part(0, rows))
    assert taken == list(range(started))


def test_full_windows_stay_where_they_are():
    # A window of any length, not one that fills nodes to the last entry.
    window, batch = 1_003, 250
    windows = PimTreeWindows(PimTree(sides=2, merge_ratio=1.0))
    join = ThreadsJoin(windows, threads=1)
    rows = make_work(8 * window, window)
    forests = []
    for begin in range(0, len(rows.side), batch):
        join.join(rows.part(begin, begin + batch))
        forests.append(windows.index.forest)
    moves = [new is not old for old, new in pairwise(forests)]
    assert not any(moves[len(moves) // 2 :])
    assert sum(moves) <= 8, "windows that fill up ask for more room seldom"


# The join on simulated cores: exact whatever the cores, and slower the more must wait.


@given(
    case=arrivals(),
    ratio=st.floats(0, 1, exclude_min=True),
    depth=st.integers(0, 5),
    threads=st.integers(1, 20),
    task_rows=st.integers(1, 20),
    nonblocking=st.booleans(),
    unit_ps=st.lists(st.integers(0, 10**6), min_size=len(COUNTERS), max_size=len(COUNTERS)),
)
def test_on_simulated_cores_every_tuple_finds_exactly_what_it_sees(
    case, ratio, depth, nonblocking, **options
):
    sides = 1 if case[0] else 2
    index = PimTree(sides=sides, merge_ratio=ratio, insertion_depth=depth, **SMALL)
    windows = PimTreeWindows(index, nonblocking=nonblocking)
    assert_join_is_exact(CoresJoin(windows, **options), case)


def steady_ns(**options):
    """Return what two windows of tuples take when the windows are full."""
    window = 1 << 13
    rows = make_work(2 * window, window)
    depth = options.pop("depth", 1)
    index = PimTree(sides=2, merge_ratio=1.0, insertion_depth=depth)
    join = CoresJoin(PimTreeWindows(index), unit_ps=load_profile().unit_ps, **options)
    join.join(rows.part(0, 2 * window))
    return join.join(rows.part(2 * window, 4 * window)).work.elapsed_ns


def test_cores_share_the_work_and_wait_for_locks():
    one, sixteen = steady_ns(threads=1), steady_ns(threads=16)
    assert 16 > one / sixteen > 4
    # One subindex has one lock: what is done under it is done one after the other.
    assert steady_ns(threads=16, depth=0) > 2 * sixteen
    # Threads that share cores gain nothing over as many threads as cores.
    assert sixteen < steady_ns(threads=8) < steady_ns(threads=16, cores=8) < one


@given(case=arrivals(), threads=st.integers(1, 20), nonblocking=st.booleans())
def test_cores_go_on_after_a_snapshot_as_if_there_had_been_none(case, threads, nonblocking):
    def make():
        index = PimTree(sides=1 if case[0] else 2, merge_ratio=0.5, insertion_depth=1, **SMALL)
        windows = PimTreeWindows(index, nonblocking=nonblocking)
        return CoresJoin(windows, unit_ps=load_profile().unit_ps, threads=threads, task_rows=3)

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
