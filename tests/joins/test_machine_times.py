"""The constants between the model's nanoseconds and a machine's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.window_join.machine_times import CALIBRATED_BITS, MachineTimes, fit_times

WINDOWS = [1 << bits for bits in CALIBRATED_BITS]


@given(
    st.integers(20, 500),
    st.integers(0, 300_000),
    st.integers(0, 300_000),
    st.lists(st.floats(100, 5000), min_size=3, max_size=3).map(sorted),
)
def test_times_that_the_constants_explain_are_explained(
    work_percent: int, doubling_ps: int, uncached_ps: int, predicted_ns: list[float]
) -> None:
    machine = MachineTimes(
        work_percent=work_percent, doubling_ps=doubling_ps, uncached_ps=uncached_ps
    )
    took_ns = [machine.tuple_ns(ns, w) for ns, w in zip(predicted_ns, WINDOWS, strict=True)]
    found = fit_times(WINDOWS, predicted_ns, took_ns)
    for ns, window, took in zip(predicted_ns, WINDOWS, took_ns, strict=True):
        assert found.tuple_ns(ns, window) == pytest.approx(took, rel=0.02)


def test_what_falls_with_the_window_has_no_negative_constants() -> None:
    found = fit_times(WINDOWS, [100, 100, 100], [100, 90, 80])
    assert found == MachineTimes(work_percent=89, doubling_ps=0, uncached_ps=0)


def test_doublings_count_from_where_a_cache_ends() -> None:
    machine = MachineTimes(work_percent=50, doubling_ps=1_000, uncached_ps=10_000)
    assert machine.tuple_ns(100, 1 << 10) == 50
    assert machine.tuple_ns(100, 1 << 18) == 56
    assert machine.tuple_ns(100, 1 << 20) == 78
