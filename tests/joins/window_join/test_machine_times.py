"""From the model's nanoseconds to a machine's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.window_join.model.machine_times import MachineTimes

RATIOS = st.lists(st.floats(0.01, 100), min_size=1, max_size=5)


@given(RATIOS, st.floats(1, 1e6))
def test_at_the_windows_that_were_timed_it_is_what_was_timed(
    ratios: list[float], predicted_ns: float
) -> None:
    windows = tuple(1 << 2 * bits for bits in range(10, 10 + len(ratios)))
    times = MachineTimes(windows=windows, ratios=tuple(ratios))
    for window, ratio in zip(windows, ratios, strict=True):
        assert times.tuple_ns(predicted_ns, window) == pytest.approx(predicted_ns * ratio)


def test_between_them_each_doubling_multiplies_the_ratio_alike() -> None:
    times = MachineTimes(windows=(1 << 16, 1 << 20), ratios=(0.5, 8.0))
    assert [times.tuple_ns(100, 1 << bits) for bits in range(16, 21)] == pytest.approx(
        [50, 100, 200, 400, 800]
    )


@given(RATIOS, st.floats(0, 100))
def test_beyond_them_the_ratio_stays(ratios: list[float], bits: float) -> None:
    windows = tuple(range(64, 64 + len(ratios)))
    times = MachineTimes(windows=windows, ratios=tuple(ratios))
    assert times.tuple_ns(100, 64 / 2**bits) == pytest.approx(100 * ratios[0])
    assert times.tuple_ns(100, windows[-1] * 2**bits) == pytest.approx(100 * ratios[-1])


@pytest.mark.parametrize(
    ("windows", "ratios"),
    [((), ()), ((8,), (1, 2)), ((8, 8), (1, 2)), ((0, 8), (1, 2)), ((8,), (0,)), ((8,), (-1.0,))],
)
def test_times_that_do_not_belong_together_are_refused(
    windows: tuple[int, ...], ratios: tuple[float, ...]
) -> None:
    with pytest.raises(ValueError, match=r"ratio|ascend"):
        MachineTimes(windows=windows, ratios=ratios)
