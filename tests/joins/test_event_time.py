"""Pairs by event time: in any order of arrival those of the streams in order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joins.arrivals import Arrivals
from joins.batch import Batch
from joins.codes import GREATEST, LEAST
from joins.event_time import NO_WATERMARK, Candidates, EventTimeBounds, select_pairs
from joins.queries.parser import parse_query

Pair = tuple[int, int, int]
"""Probing stream, probe id, match id."""


def batch(ids: list[int], ts: list[int]) -> Batch:
    columns = [np.array(column, np.int64) for column in (ids, ts)]
    return Batch(id=columns[0], ts=columns[1], key=np.zeros_like(columns[0]))


def is_pair(newer: tuple[int, int], older: tuple[int, int], slide: int, precise: bool) -> bool:
    """Whether, both given as (event time, stream), the first sees the second (length 6)."""
    if precise:
        return newer[0] - 6 <= older[0] < newer[0]
    return older < newer and older[0] >= newer[0] // slide * slide - (6 - slide)


@given(
    data=st.data(),
    middle=st.sampled_from([0, LEAST + 9, GREATEST - 9]),
    precise=st.booleans(),
    slide=st.sampled_from([1, 2, 3]),
)
def test_each_pair_is_found_once_by_whichever_of_its_tuples_comes_last(
    data: st.DataObject, middle: int, precise: bool, slide: int
) -> None:
    """Batches of any size, both streams stored before either probes; times to the ends of int64."""
    near = st.integers(middle - 9, middle + 9)
    times = [sorted(data.draw(st.lists(near, max_size=9))) for _ in range(2)]
    word = " PRECISE" if precise else ""
    query = parse_query(
        "SELECT * FROM R, S WHERE R.x = S.x "
        f"WINDOW AS (SLIDE INTERVAL '{slide} ns' ON '6 ns'{word})"
    )
    tuples = [(stream, i) for stream in (0, 1) for i in range(len(times[stream]))]
    waiting = list(data.draw(st.permutations(tuples)))
    bounds = EventTimeBounds(query, None)
    stored: list[list[int]] = [[], []]
    found: list[Pair] = []
    while waiting:
        size = data.draw(st.integers(1, len(waiting)))
        new = [[i for s, i in waiting[:size] if s == stream] for stream in (0, 1)]
        waiting = waiting[size:]
        settled = [len(ids) for ids in stored]
        stored = [old + ids for old, ids in zip(stored, new, strict=True)]
        parts = [batch(new[s], [times[s][i] for i in new[s]]) for s in (0, 1)]
        seen = bounds.advance(Arrivals(tuple(parts), tuple(part.id for part in parts)))
        for stream, part in enumerate(parts):
            held = stored[1 - stream]
            every = np.array(held * len(part), np.int64)
            candidates = Candidates(
                np.repeat(np.arange(len(part)), len(held)),
                every,
                np.array([times[1 - stream][i] for i in every], np.int64),
                np.tile(np.arange(len(held)) >= settled[1 - stream], len(part)),
            )
            paired = select_pairs(
                stream, part, seen[stream], candidates, precise=precise, enumerate=True
            )
            for matches in (paired.seen, paired.seeing):
                found += [(matches.stream, *pair) for pair in zip(*matches.pairs(), strict=True)]
    expected = [
        (stream, i, j)
        for stream in (0, 1)
        for i, ts in enumerate(times[stream])
        for j, other in enumerate(times[1 - stream])
        if is_pair((ts, stream), (other, 1 - stream), slide, precise)
    ]
    assert sorted(found) == expected


def test_the_watermark_stays_behind_the_latest_event_time() -> None:
    query = parse_query(
        "SELECT * FROM R, S WHERE R.x = S.x WINDOW AS (SLIDE INTERVAL '2 ns' ON '6 ns')"
    )
    bounds = EventTimeBounds(query, 5)
    assert bounds.horizon == (NO_WATERMARK, NO_WATERMARK)
    assert bounds.oldest_seen(0, NO_WATERMARK) == NO_WATERMARK
    nothing = np.empty(0, np.int64)
    for ts, watermark in (([20, 7], 15), ([12], 15), ([31], 26)):
        parts = (batch(list(range(len(ts))), ts), batch([], []))
        bounds.advance(Arrivals(parts, (np.arange(len(ts)), nothing)))
        assert bounds.horizon == (watermark, watermark)
    assert bounds.oldest_seen(0, 15) == 14 - 4
    restored = EventTimeBounds(query, 5)
    restored.restore(bounds.snapshot())
    assert restored.horizon == bounds.horizon
