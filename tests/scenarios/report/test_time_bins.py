from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scenarios.report.time_bins import BINS_MAX, TimeBins


@given(st.integers(0, 10**15), st.integers(0, 10**9))
def test_time_bins_cover_the_run_and_no_more_than_one_bin_beyond_it(
    end_ns: int, messages: int
) -> None:
    bins = TimeBins.over(end_ns, messages)
    assert 1 <= bins.count <= BINS_MAX
    assert bins.edges_ns[0] == 0
    assert bins.edges_ns[-1] - bins.width_ns < max(1, end_ns) <= bins.edges_ns[-1]
    assert bins.of(np.array([0, end_ns])).tolist() == [0, bins.count - 1]
