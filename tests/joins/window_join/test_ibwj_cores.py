"""The join on simulated cores: exact whatever the cores, and slower the more must wait."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from benchmarks.pim_tree import make_work
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.window_join.shared_join import CoresJoin
from joins.window_join.shared_pim_tree import PimTreeWindows
from joins.work import COUNTERS
from netsim.cost import load_profile
from tests.joins.window_join.ibwj_cases import arrivals, assert_join_is_exact

SMALL = {"run_width": 4, "tree_width": 4}


@given(
    case=arrivals(),
    ratio=st.floats(0, 1, exclude_min=True),
    depth=st.integers(0, 5),
    threads=st.integers(1, 20),
    task_rows=st.integers(1, 20),
    nonblocking=st.booleans(),
    unit_ps=st.lists(st.integers(0, 10**6), min_size=len(COUNTERS), max_size=len(COUNTERS)),
)
def test_every_tuple_finds_exactly_what_it_sees(case, ratio, depth, nonblocking, **options):
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
