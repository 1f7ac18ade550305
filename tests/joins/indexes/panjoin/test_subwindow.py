"""Subwindows with a late buffer, and how probes are dealt out to threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.codes import encode
from joins.indexes.index import make_ranges
from joins.indexes.panjoin.lookup import BLOCK
from joins.indexes.panjoin.subwindow import OutOfOrderSubwindow, SubwindowShape, in_threads

SHAPE = SubwindowShape(predicates=2, capacity=64, partitions=4, sigma=1.25, dtype="float64")
IDS = np.array([7, 3, 9, 30, 12, 5, 40, 8])
TS = 10 * IDS
KEYS = encode(np.array([0.5, 0.1, 0.4, 0.3, np.inf, 0.2, 0.6, -0.0]))
OTHERS = np.array([1, 2, 3, 4, 5, 6, 7, 8])


def filled(kind: Any, late: np.ndarray, batches: int = 2) -> OutOfOrderSubwindow:
    """Insert the tuples in batches, those that the mask *late* names into the buffer."""
    subwindow = OutOfOrderSubwindow(SHAPE, kind)
    for rows in np.array_split(np.arange(len(IDS)), batches):
        subwindow.begin_batch()
        for is_late, store in (
            (False, subwindow.insert_timed),
            (True, subwindow.insert_late),
        ):
            mine = rows[late[rows] == is_late]
            mine = mine[np.argsort(KEYS[mine])]
            if len(mine):
                store([KEYS[mine], OTHERS[mine]], IDS[mine], TS[mine])
    return subwindow


def found(subwindow: OutOfOrderSubwindow) -> list[tuple[int, int, int, bool]]:
    """Probe for 0 to 0.4 of any time, and for anything at times 70 to 99; others up to 7."""
    low, high = encode(np.array([0.0, -1.0])), encode(np.array([0.4, 1.0]))
    probes = make_ranges([low, np.array([0, 0])], [high, np.array([7, 7])])
    candidates, _ = subwindow.find_candidates(probes, np.array([0, 70]), np.array([1_000, 99]), 1)
    pairs = [row for part in candidates for row in zip(*(c.tolist() for c in part), strict=True)]
    # Whoever looks into a structure or a buffer has all of its times to ask for still.
    return sorted(pair for pair in pairs if pair[0] == 0 or 70 <= pair[2] < 100)


@pytest.mark.parametrize("kind", ["bi_sort", "rap_table", "wib_tree"])
@pytest.mark.parametrize("late", [[], [0, 5], list(range(len(IDS)))], ids=["none", "some", "all"])
def test_structure_and_buffer_find_the_same(kind: str, late: list[int]) -> None:
    subwindow = filled(kind, np.isin(np.arange(len(IDS)), late))
    by_value = [(0, 3, 30, False), (0, 5, 50, True), (0, 9, 90, False), (0, 30, 300, False)]
    by_time = [(1, 7, 70, False), (1, 9, 90, False)]
    assert found(subwindow) == by_value + by_time
    restored = OutOfOrderSubwindow.from_snapshot(subwindow.snapshot())
    assert found(restored) == found(subwindow)
    restored.begin_batch()
    assert not any(fresh for *_, fresh in found(restored))


def test_what_no_window_reaches_is_not_looked_into() -> None:
    subwindow = filled("rap_table", np.isin(np.arange(len(IDS)), [1]))
    low, high = encode(np.array([0.0])), encode(np.array([1.0]))
    probes = make_ranges([low, np.array([0])], [high, np.array([9])])
    only_buffer, near = subwindow.find_candidates(probes, np.array([0]), np.array([39]), 1)
    everything, far = subwindow.find_candidates(probes, np.array([0]), np.array([1_000]), 1)
    assert [part.id.tolist() for part in only_buffer] == [[3]]
    assert len(everything) == 2
    assert near.comparisons < far.comparisons


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
