"""Dealing out work to threads."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.threads import ROWS_A_THREAD, side_by_side, threads_for


@given(items=st.lists(st.integers(), max_size=20), threads=st.integers(1, 3))
def test_each_item_is_worked_on_once_and_results_keep_their_order(
    items: list[int], threads: int
) -> None:
    seen: list[int] = []

    def double(item: int) -> int:
        seen.append(item)
        return 2 * item

    assert side_by_side(double, items, threads) == [2 * item for item in items]
    assert sorted(seen) == sorted(items)


def test_as_many_threads_as_asked_for_work_at_a_time() -> None:
    together = threading.Barrier(3, timeout=30)
    assert sorted(side_by_side(lambda _: together.wait(), range(3), 3)) == [0, 1, 2]


def test_what_goes_wrong_in_another_thread_is_not_lost() -> None:
    together = threading.Barrier(2, timeout=30)

    def work(item: int) -> None:
        together.wait()
        if threading.current_thread() is not threading.main_thread():
            raise ValueError("in another thread")

    with pytest.raises(ValueError, match="in another thread"):
        side_by_side(work, (0, 1), 2)


@pytest.mark.parametrize(
    ("shares", "threads", "used"), [(0, 4, 1), (1, 4, 1), (2, 4, 2), (9, 2, 2)]
)
def test_a_thread_is_used_where_it_has_rows_enough(shares: int, threads: int, used: int) -> None:
    assert threads_for(shares * ROWS_A_THREAD, threads) == used
    assert threads_for(shares * 10 + 9, threads, rows_a_thread=10) == used
