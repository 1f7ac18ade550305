"""How long window joins take here."""

from __future__ import annotations

import numpy as np

from joins.window_join.window_join_spec import WindowJoinSpec
from scenarios.calibration.window_workload import band_join, time_join


def test_tuples_that_fill_the_windows_are_not_counted() -> None:
    keys = np.zeros(30, np.int64)
    join = WindowJoinSpec().make(self_join=False, unit_ps=None)
    timed = time_join(join, band_join(keys, 0, 10), 20)
    assert timed.tuples == 10
    assert timed.work.matches == 10 * 10  # every tuple sees a full window of equal keys
    assert timed.seconds > 0
