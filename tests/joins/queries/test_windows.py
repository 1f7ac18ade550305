"""Windows: what each tuple sees, against the definitions applied tuple by tuple."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.arrivals import Arrivals
from joins.batch import Batch
from joins.queries.windows import ExtentError, Window, WindowBounds, read_extent

Arrival = tuple[int, int]
"""Stream and event time."""


@st.composite
def windows(draw: st.DrawFn) -> Window:
    slide = draw(st.integers(1, 6))
    kind = draw(st.sampled_from(["count", "time"]))
    semantics = draw(st.sampled_from(["sliding", "precise"])) if kind == "time" else "sliding"
    length = slide * draw(st.integers(1, 5))
    return Window(kind=kind, length=length, slide=slide, semantics=semantics)


@st.composite
def arrivals(draw: st.DrawFn, streams: int) -> list[Arrival]:
    ts = draw(st.integers(-20, 20) | st.integers(-(2**63), -(2**63) + 20))
    found = []
    for gap in draw(st.lists(st.sampled_from([0, 0, 1, 1, 2, 9]), min_size=1, max_size=40)):
        ts += gap
        found.append((draw(st.integers(0, streams - 1)), ts))
    # Equal event times of two streams arrive in the order of the streams.
    return sorted(found, key=lambda arrival: (arrival[1], arrival[0]))


def seen_by_definition(
    window: Window, stored: list[tuple[int, int]], seq: int, ts: int
) -> list[int]:
    """Return the positions a tuple sees, of *stored* tuples given by (arrival number, ts)."""
    before = [(place, t) for place, (s, t) in enumerate(stored) if s < seq]
    if window.kind == "count":
        k = len(before)
        oldest = max(0, k // window.slide * window.slide - (window.length - window.slide))
        return [place for place, _ in before if place >= oldest]
    if window.semantics == "precise":
        return [place for place, t in before if ts - window.length <= t < ts]
    oldest = ts // window.slide * window.slide - (window.length - window.slide)
    return [place for place, t in before if t >= oldest]


def arrivals_of(parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> Arrivals:
    """Return arrivals of given ids, event times and arrival numbers, per stream."""
    batches = tuple(Batch(id=ids, ts=ts, key=np.zeros_like(ids)) for ids, ts, _ in parts)
    return Arrivals(batches, tuple(seq for _, _, seq in parts))


def advance(
    tracker: WindowBounds, found: list[Arrival], begin: int, end: int, streams: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Feed the arrivals from *begin* to *end* to the tracker."""
    parts = []
    for stream in range(streams):
        first = sum(1 for s, _ in found[:begin] if s == stream)
        seq = [i for i in range(begin, end) if found[i][0] == stream]
        ids, ts = np.arange(first, first + len(seq)), [found[i][1] for i in seq]
        parts.append((ids, np.array(ts, np.int64), np.array(seq, np.int64)))
    return tracker.advance(arrivals_of(parts))


@settings(deadline=None)
@given(data=st.data(), two_way=st.booleans(), sizes=st.lists(st.integers(1, 9), max_size=20))
def test_bounds_are_the_definitions_however_the_arrivals_are_cut(
    data: st.DataObject, two_way: bool, sizes: list[int]
) -> None:
    """Chunk by chunk, each from the snapshot before, every tuple sees what the definitions say."""
    streams = 2 if two_way else 1
    chosen = [data.draw(windows()) for _ in range(streams)]
    found = data.draw(arrivals(streams))
    tracker = WindowBounds(chosen)
    begin, cuts = 0, iter(sizes)
    while begin < len(found):
        end = min(len(found), begin + next(cuts, 7))
        saved = tracker.snapshot()
        tracker = WindowBounds(chosen)
        tracker.restore(saved)
        bounds = advance(tracker, found, begin, end, streams)
        for stream, (start, stop) in enumerate(bounds):
            probed = 1 - stream if two_way else stream
            stored = [(seq, ts) for seq, (s, ts) in enumerate(found) if s == probed]
            mine = [seq for seq in range(begin, end) if found[seq][0] == stream]
            assert start.dtype == stop.dtype == np.int64
            assert len(start) == len(stop) == len(mine)
            for row, seq in enumerate(mine):
                expected = seen_by_definition(chosen[probed], stored, seq, found[seq][1])
                assert list(range(start[row], stop[row])) == expected
        begin = end


@settings(deadline=None)
@given(data=st.data(), window=windows(), two_way=st.booleans())
def test_what_is_seen_first_never_moves_back(
    data: st.DataObject, window: Window, two_way: bool
) -> None:
    """The first position that tuples of one stream see does not decrease: expiry is for good."""
    streams = 2 if two_way else 1
    found = data.draw(arrivals(streams))
    tracker = WindowBounds([window] * streams)
    for start, stop in advance(tracker, found, 0, len(found), streams):
        assert (np.diff(start) >= 0).all()
        assert (start <= stop).all()


@settings(deadline=None)
@given(data=st.data(), two_way=st.booleans())
def test_the_horizon_is_what_the_next_arrival_sees_first(
    data: st.DataObject, two_way: bool
) -> None:
    """No later arrival sees less than the horizon; one that came at once would see just so far."""
    streams = 2 if two_way else 1
    chosen = [data.draw(windows()) for _ in range(streams)]
    found = data.draw(arrivals(streams))
    end = data.draw(st.integers(1, len(found)))
    tracker = WindowBounds(chosen)
    advance(tracker, found, 0, end, streams)
    for stored_stream, (window, horizon) in enumerate(zip(chosen, tracker.horizon, strict=True)):
        stored = [(seq, ts) for seq, (s, ts) in enumerate(found) if s == stored_stream]
        at_once = seen_by_definition(window, stored, end, found[end - 1][1])
        later = [
            position
            for seq, (s, ts) in enumerate(found)
            if seq >= end and (not two_way or s != stored_stream)
            for position in seen_by_definition(window, stored, seq, ts)
        ]
        assert all(position >= horizon for position in later)
        assert not at_once or at_once[0] == horizon


@pytest.mark.parametrize("semantics", ["sliding", "precise"])
@pytest.mark.parametrize("silent", [None, 0, 1])
def test_memory_is_bounded_by_the_window(semantics: str, silent: int | None) -> None:
    """What is remembered does not grow with the stream, not even while one stream is silent."""
    window = Window(kind="time", length=40, slide=10, semantics=semantics)
    tracker = WindowBounds([window, window])
    nothing = np.empty(0, np.int64)
    sizes, rows = [], np.arange(100, dtype=np.int64)
    for chunk in range(20):
        ts = rows + chunk * 100
        part = [(ts, ts, 2 * ts), (ts, ts, 2 * ts + 1)]
        if silent is not None:
            part[silent] = (nothing, nothing, nothing)
        tracker.advance(arrivals_of(part))
        sizes.append(tracker.nbytes)
    assert max(sizes) <= 2 * 8 * (1.25 * 60 + 100)  # with room for a quarter more, and a message


def test_few_messages_move_a_long_window() -> None:
    """Most messages go where there is room, and copy no event time of earlier ones."""
    tracker = WindowBounds([Window(kind="time", length=10_000, slide=1)])
    moves = 0
    tracemalloc.start()
    for first in range(0, 100_000, 100):
        rows = np.arange(first, first + 100)
        arrivals = arrivals_of([(rows, rows, rows)])
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        tracker.advance(arrivals)
        moves += first >= 10_000 and tracemalloc.get_traced_memory()[1] - before > 8 * 9_000
    tracemalloc.stop()
    assert moves <= 4 * 900 * 100 / 10_000 + 1


def test_a_snapshot_goes_on_as_the_tracker_did() -> None:
    windows = [Window(kind="time", length=30, slide=3)] * 2
    tracker, restored = WindowBounds(windows), WindowBounds(windows)
    for chunk in range(9):
        rows = np.arange(10) + chunk * 10
        arrivals = arrivals_of([(rows, rows, 2 * rows), (rows, rows, 2 * rows + 1)])
        for found, expected in zip(
            restored.advance(arrivals), tracker.advance(arrivals), strict=True
        ):
            np.testing.assert_array_equal(found, expected)
        restored = WindowBounds(windows)
        restored.restore(tracker.snapshot())


@settings(deadline=None)
@given(data=st.data(), two_way=st.booleans(), size=st.integers(1, 5))
def test_no_later_arrival_sees_what_is_overdue(
    data: st.DataObject, two_way: bool, size: int
) -> None:
    streams = 2 if two_way else 1
    tracker = WindowBounds([data.draw(windows()) for _ in range(streams)])
    found = data.draw(arrivals(streams))
    for begin in range(0, len(found), size):
        overdue = tracker.overdue
        end = min(len(found), begin + size)
        for stream, (start, _) in enumerate(advance(tracker, found, begin, end, streams)):
            assert (start >= overdue[1 - stream if two_way else stream]).all()
    assert two_way or tracker.overdue == (0,)


@pytest.mark.parametrize("kind", ["count", "time"])
def test_a_stream_is_overdue_when_nothing_has_probed_it_for_a_window(kind: str) -> None:
    length, rows = 40, 10
    window = Window(kind=kind, length=length, slide=10)
    tracker = WindowBounds([window, window])
    found = [(i % 2, i) for i in range(200)] + [(0, i) for i in range(200, 1000)]
    probed_from, stored = 0, []
    for begin in range(0, len(found), rows):
        _, (start, _) = advance(tracker, found, begin, begin + rows, 2)
        probed_from = max([probed_from, *start.tolist()])
        if begin < 200:
            assert tracker.overdue == (0, 0)
        arrived = sum(stream == 0 for stream, _ in found[: begin + rows])
        stored.append(arrived - max(probed_from, tracker.overdue[0]))
    assert max(stored) <= 2 * length + 2 * rows
    assert tracker.overdue[1] == 0


@pytest.mark.parametrize(
    ("spelt", "ns"),
    [
        ("9007199254740993 ns", 2**53 + 1),
        ("100.000000001 d", 8_640_000_000_086_400),
        ("8_640_000_000_000.001 us", 8_640_000_000_000_001),
        ("1e3ms", 10**9),
        ("1.5 ns", 2),
        ("1e-30 s", 0),
    ],
)
def test_a_time_is_read_to_the_nanosecond(spelt: str, ns: int) -> None:
    assert read_extent(spelt) == ("time", ns)


@pytest.mark.parametrize(
    ("given_window", "says"),
    [
        ({"kind": "rows", "length": 1, "slide": 1}, "count or time"),
        ({"kind": "count", "length": 0, "slide": 0}, "at least 1"),
        ({"kind": "count", "length": -5, "slide": 1}, "at least 1"),
        ({"kind": "count", "length": 5, "slide": 6}, "longer than the window"),
        ({"kind": "count", "length": 10, "slide": 3}, "9 or 12"),
        ({"kind": "count", "length": 1, "slide": 1, "semantics": "precise"}, "time"),
        ({"kind": "time", "length": 1, "slide": 1, "semantics": "exact"}, "sliding or precise"),
    ],
)
def test_a_window_that_cannot_be_is_refused(given_window: dict[str, Any], says: str) -> None:
    """The error says what is allowed."""
    with pytest.raises(ExtentError, match=says):
        Window(**given_window)


@given(window=windows(), older=st.integers(-50, 50), gap=st.integers(0, 40))
def test_an_event_time_is_seen_as_far_as_it_reaches(window: Window, older: int, gap: int) -> None:
    times = np.array([older]), np.array([older + gap])
    is_seen = window.bound(times[1]) <= times[0]
    assert (times[1] <= window.seen_until(times[0])) == is_seen


@given(window=windows(), beside=st.integers(0, 60), late=st.booleans())
def test_event_times_reach_as_far_as_int64_does(window: Window, beside: int, late: bool) -> None:
    """With Python's integers, which do not overflow, as the yardstick."""
    end = np.iinfo(np.int64)
    at = int(end.max) - beside if late else int(end.min) + beside
    ahead = window.length
    if window.semantics == "sliding":
        ahead -= 1 + at % window.slide
    assert window.seen_until(np.array([at])).tolist() == [min(at + ahead, int(end.max))]
