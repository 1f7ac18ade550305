"""Bit arrays against Python sets of positions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.bit_array import intersect, keep_window, read_matches, words_for
from joins.hashing import mix

BITS = 200
ROWS = st.lists(st.sets(st.integers(0, BITS - 1)), min_size=1, max_size=4)


def pack(rows):
    matrix = np.zeros((len(rows), words_for(BITS)), np.uint64)
    for row, members in enumerate(rows):
        for bit in members:
            matrix[row, bit // 64] |= np.uint64(1 << (bit % 64))
    return matrix


def positions(rows, base):
    found = read_matches(rows, base=base, enumerate=True)
    assert found.match_id is not None
    return [part.tolist() for part in np.split(found.match_id, np.cumsum(found.count)[:-1])]


@given(bits=st.integers(0, 300))
def test_words_for_is_the_least_number_of_words(bits):
    words = words_for(bits)
    assert words * 64 >= bits
    assert (words - 1) * 64 < bits or words == 0


@settings(deadline=None)
@given(rows=ROWS, base=st.sampled_from([0, 1000, 1 << 45]))
def test_matches_are_the_positions_of_the_bits(rows, base):
    packed = pack(rows)
    packed.flags.writeable = False
    expected = [[base + bit for bit in sorted(row)] for row in rows]
    assert positions(packed, base) == expected
    counted = read_matches(packed, base=base)
    assert counted.match_id is None
    assert counted.count.tolist() == [len(row) for row in rows]
    assert counted.work.matches == sum(map(len, rows))
    for row, total in zip(expected, counted.fingerprint, strict=True):
        assert mix(np.array(row, np.int64)).sum(dtype=np.uint64) == total


@settings(deadline=None)
@given(parts=st.lists(st.tuples(*[st.sets(st.integers(0, BITS - 1))] * 2), min_size=1, max_size=3))
def test_an_intersection_holds_what_all_parts_hold(parts):
    packed = [pack(part) for part in parts]
    before = [part.copy() for part in packed]
    common, work = intersect(packed)
    expected = [set.intersection(*(part[row] for part in parts)) for row in (0, 1)]
    assert np.array_equal(common, pack(expected))
    assert work.bits == (len(parts) - 1) * common.size
    assert all(np.array_equal(a, b) for a, b in zip(packed, before, strict=True))


BOUND = st.integers(-50, 350) | st.sampled_from([-(2**63), 2**63 - 1])


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(st.sets(st.integers(0, BITS - 1)), BOUND, BOUND), min_size=1),
    base=st.sampled_from([0, 40]),
)
def test_a_window_keeps_the_positions_inside_it(rows, base):
    packed = pack([row[0] for row in rows])
    packed.flags.writeable = False
    start, stop = (np.array([row[side] for row in rows]) for side in (1, 2))
    kept, _ = keep_window(packed, start, stop, base=base)
    expected = [{b for b in bits if low <= base + b < high} for bits, low, high in rows]
    assert np.array_equal(kept, pack(expected))


def test_rows_of_different_shape_do_not_intersect():
    with pytest.raises(ValueError, match="one shape"):
        intersect([np.zeros((1, 2), np.uint64), np.zeros((1, 3), np.uint64)])
    with pytest.raises(ValueError, match="one shape"):
        intersect([])
