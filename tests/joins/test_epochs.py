"""Merge epochs: the cuts depend on the arrivals alone, and respect the threshold."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.arrivals import Arrivals
from joins.batch import Batch
from joins.codes import GREATEST, LEAST
from joins.epochs import EpochCutter, MergeThreshold

Arrival = tuple[int, int]
"""Stream and event time."""


@st.composite
def arrivals(draw: st.DrawFn) -> list[Arrival]:
    gaps = draw(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 12)), min_size=1, max_size=60))
    ts = 0
    found = []
    for stream, gap in gaps:
        ts += gap
        found.append((stream, ts))
    return found


def epochs_of(
    threshold: MergeThreshold, found: list[Arrival], chunks: list[int]
) -> tuple[list[int], int]:
    """Return the epoch of every arrival, and the number of epochs that ended, cut by the cutter."""
    cutter = EpochCutter(threshold, 2)
    epochs, ended, begin = [0] * len(found), 0, 0
    sizes = iter(chunks)
    while begin < len(found):
        end = min(len(found), begin + next(sizes, 7))
        rows = [[i for i in range(begin, end) if found[i][0] == stream] for stream in (0, 1)]
        seq = tuple(np.array(mine, np.int64) for mine in rows)
        times = (np.array([found[i][1] for i in mine], np.int64) for mine in rows)
        parts = tuple(Batch(id=ids, ts=ts, key=ids) for ids, ts in zip(seq, times, strict=True))
        saved = cutter.snapshot()
        cutter = EpochCutter(threshold, 2)
        cutter.restore(saved)
        for cut in cutter.cut(Arrivals(parts, seq)):
            ended += cut.ends_epoch
            for mine, start, stop in zip(rows, cut.starts, cut.stops, strict=True):
                for i in mine[start:stop]:
                    epochs[i] = cut.epoch
        begin = end
    return epochs, ended


def naive_count_epochs(length: int, parts: int, found: list[Arrival]) -> list[int]:
    epoch, gathered, epochs = 0, [0, 0], []
    for stream, _ in found:
        epochs.append(epoch)
        gathered[stream] += 1
        part = epoch % parts
        room = max(1, length * (part + 1) // parts - length * part // parts)
        if max(gathered) == room:
            epoch, gathered = epoch + 1, [0, 0]
    return epochs


@given(
    found=arrivals(),
    length=st.integers(1, 15),
    parts=st.integers(1, 10),
    chunks=st.lists(st.integers(1, 20), max_size=10),
)
def test_count_epochs_end_when_either_stream_is_full_however_arrivals_are_chunked(
    found: list[Arrival], length: int, parts: int, chunks: list[int]
) -> None:
    threshold = MergeThreshold(kind="count", length=length, parts=parts)
    epochs, _ = epochs_of(threshold, found, chunks)
    assert epochs == naive_count_epochs(length, parts, found)


@given(
    found=arrivals(),
    length=st.integers(1, 50),
    parts=st.integers(1, 5),
    chunks=st.lists(st.integers(1, 20), max_size=10),
)
def test_time_epochs_change_exactly_where_the_stretch_of_time_does(
    found: list[Arrival], length: int, parts: int, chunks: list[int]
) -> None:
    threshold = MergeThreshold(kind="time", length=length, parts=parts)
    epochs, _ = epochs_of(threshold, found, chunks)
    # The stretch of ts is the number of boundaries floor-or-ceil(j * length / parts) passed.
    stretches = [
        max(j for j in range((ts // length + 1) * parts + 1) if j * length <= ts * parts)
        for _, ts in found
    ]
    dense = {stretch: i for i, stretch in enumerate(sorted(set(stretches)))}
    assert epochs == [dense[stretch] for stretch in stretches]


@given(
    ts=st.lists(st.integers(LEAST, GREATEST), min_size=2),
    length=st.integers(1, 50) | st.integers(2**60, GREATEST),
    parts=st.integers(1, 10),
)
def test_stretches_of_time_keep_the_order_of_all_times(
    ts: list[int], length: int, parts: int
) -> None:
    threshold = MergeThreshold(kind="time", length=length, parts=parts)
    found = threshold.stretch(np.array(sorted(ts))).tolist()
    exact = [one * parts // length for one in sorted(ts)]
    assert [a < b for a, b in pairwise(found)] == [a < b for a, b in pairwise(exact)]
    assert found == sorted(found)


def test_each_tuple_of_a_chunk_is_looked_at_once_however_many_epochs_end_in_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked_at = []
    stretch = MergeThreshold.stretch

    def counted(threshold: MergeThreshold, ts: np.ndarray) -> np.ndarray:
        looked_at.append(len(ts))
        return stretch(threshold, ts)

    monkeypatch.setattr(MergeThreshold, "stretch", counted)
    found = [(number % 2, number) for number in range(200)]
    _, ended = epochs_of(MergeThreshold(kind="time", length=1), found, [200])
    assert ended == 199
    assert sum(looked_at) == 200


@given(slide=st.integers(1, 200), parts=st.integers(1, 10))
def test_epochs_of_one_stream_never_lie_in_two_slides(slide: int, parts: int) -> None:
    threshold = MergeThreshold(kind="count", length=slide, parts=min(parts, slide))
    ends = np.cumsum([threshold.count(epoch) for epoch in range(3 * threshold.parts)])
    assert {slide, 2 * slide, 3 * slide} <= set(ends.tolist())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kind": "weight", "length": 1}, "must be count or time"),
        ({"kind": "count", "length": 0}, "both must be at least 1"),
        ({"kind": "count", "length": 1, "parts": 0}, "both must be at least 1"),
    ],
)
def test_a_threshold_that_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        MergeThreshold(**arguments)
