"""A sliding column against a list, whatever is appended and dropped in whatever order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.sliding_column import SlidingColumn


@given(steps=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.booleans())))
def test_it_has_what_came_and_has_not_gone(steps: list[tuple[int, int, bool]]) -> None:
    column, expected = SlidingColumn(np.int64), np.empty(0, np.int64)
    came = 0
    for more, gone, stored in steps:
        column.append(np.arange(came, came + more))
        came += more
        expected = np.append(expected, np.arange(came - more, came))
        gone = min(gone, len(column))
        column.drop(gone)
        expected = expected[gone:]
        if stored:
            column, restored = SlidingColumn(np.int64), column
            column.restore(restored.snapshot())
        assert len(column) == len(expected)
        np.testing.assert_array_equal(column.values, expected)


@pytest.mark.parametrize("window", [0, 10, 10_000])
def test_values_are_moved_four_times_on_average_and_memory_is_bounded(window: int) -> None:
    column, moved, most = SlidingColumn(np.int64), 0, 0
    for first in range(0, 50_000, 10):
        before = column.values
        column.append(np.arange(first, first + 10))
        moved += 0 if np.shares_memory(before, column.values) else len(before)
        column.drop(max(0, len(column) - window))
        most = max(most, column.nbytes)
    assert moved <= 4 * (50_000 + window) + 4 * 50_000 // 10
    assert most <= 8 * (1.25 * (window + 10) + 10)


def test_what_a_snapshot_has_does_not_change_afterwards() -> None:
    column = SlidingColumn(np.bool_)
    column.append(np.zeros(3, np.bool_))
    saved = column.snapshot()
    column.values[1] = True
    column.restore(saved)
    assert column.values.tolist() == [False] * 3
