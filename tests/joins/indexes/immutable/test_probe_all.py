"""Probing a list of segments with several threads."""

from __future__ import annotations

import numpy as np
import pytest

from joins.indexes.immutable.segment import probe_all
from joins.indexes.index import make_ranges
from joins.indexes.structures import SEGMENTS
from tests.joins.indexes.bracketing import brackets_of
from tests.joins.indexes.immutable.segment_cases import assert_found, brute_force, random_case


@pytest.mark.parametrize("segment_type", SEGMENTS.values(), ids=SEGMENTS)
@pytest.mark.parametrize("epochs", [0, 1, 5])
@pytest.mark.parametrize("bracketed", [False, True])
def test_threads_change_neither_what_is_found_nor_the_work(segment_type, epochs, bracketed):
    rng = np.random.default_rng(epochs)
    n, negated = 200, [False, True]
    columns, lo, hi, start, stop = random_case(rng, n * max(1, epochs), 2, 50, 30, 0)
    parts = [[column[i * n : (i + 1) * n] for column in columns] for i in range(epochs)]
    segments = [segment_type.from_columns(part, first=i * n) for i, part in enumerate(parts)]
    own = [np.sort(column[:40]) for column in columns]
    brackets = [brackets_of(own, segment.keys) for segment in segments]
    ranges = make_ranges(lo, hi, negated=negated, start=start, stop=stop)
    by_brackets = brackets if bracketed else None
    alone = probe_all(segments, ranges, brackets=by_brackets, enumerate=True)
    for i, found in enumerate(alone):
        assert_found(found, brute_force(parts[i], lo, hi, negated, start, stop, i * n))
    for threads in (2, 3):
        together = probe_all(
            segments, ranges, brackets=by_brackets, threads=threads, enumerate=True
        )
        assert [found.work for found in together] == [found.work for found in alone]
        for one, other in zip(alone, together, strict=True):
            assert one.match_id is not None
            assert other.match_id is not None
            assert np.array_equal(one.match_id, other.match_id)
            assert np.array_equal(one.fingerprint, other.fingerprint)


def test_an_error_in_a_thread_is_raised():
    segments = [SEGMENTS["po_join"].from_columns([np.arange(4)], first=f) for f in (0, 4)]
    bounds = [np.array([2])] * 2
    with pytest.raises(ValueError, match="ranges: 2 given for 1 predicates"):
        probe_all(segments, make_ranges(bounds, bounds), threads=2)


def test_what_cannot_be_dealt_out_is_refused():
    segments = [SEGMENTS["po_join"].from_columns([np.arange(4)])]
    ranges = make_ranges([np.array([1])], [np.array([1])])
    with pytest.raises(ValueError, match="threads is 0, must be at least 1"):
        probe_all(segments, ranges, threads=0)
    with pytest.raises(ValueError, match="2 brackets for 1 segments"):
        probe_all(segments, ranges, brackets=[None, None])
