"""Vector comparisons and aligned arrays, as kernels use them."""

from __future__ import annotations

import numpy as np
import pytest

from joins.machine import LANES, kernel, lanes_less
from joins.memory import aligned


@kernel
def less_from_each(rows, target, counts):
    for begin in range(len(counts)):
        counts[begin] = lanes_less(rows, 0, begin, target)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_lanes_are_compared_as_signed_numbers_from_any_place(dtype):
    limits = np.iinfo(dtype)
    values = np.arange(-30, 30).astype(dtype)
    values[5], values[40] = limits.max, limits.min
    rows = values.reshape(1, -1)
    for target in (limits.min, -7, 0, 29, limits.max):
        counts = np.zeros(len(values) - LANES + 1, np.int64)
        less_from_each(rows, np.dtype(dtype).type(target), counts)
        windows = np.lib.stride_tricks.sliding_window_view(values, LANES)
        assert counts.tolist() == (windows < target).sum(axis=1).tolist()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_aligned_arrays_begin_at_a_cache_line(dtype):
    for length in (0, 1, 7, 1000):
        array = aligned((2, length), dtype, 3)
        assert not length or array.ctypes.data % 64 == 0
        assert array.shape == (2, length)
        assert array.dtype == dtype
        assert (array == 3).all()
