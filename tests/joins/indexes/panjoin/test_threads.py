"""Dealing out probes to threads."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joins.indexes.panjoin.threads import BLOCK, in_threads


@given(probes=st.integers(0, 300 * BLOCK), threads=st.integers(1, 4))
def test_every_probe_is_answered_once_in_runs_of_whole_blocks(probes: int, threads: int) -> None:
    answered = np.zeros(probes, np.int64)

    def answer(begin: int, end: int) -> np.ndarray:
        assert begin % BLOCK == 0
        answered[begin:end] += 1
        return np.array([end - begin, 1])

    total, _ = in_threads(answer, probes, threads)
    assert total == probes
    assert (answered == 1).all()
