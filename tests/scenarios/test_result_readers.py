"""Rows add up per tuple, in whatever order they come, and none of a tuple that is gone is lost."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from scenarios.result_readers import TupleSums

ROWS = st.lists(st.tuples(st.integers(-2, 14), st.integers(-1, 5), st.integers(0, 99)), max_size=40)


@given(turns=st.lists(st.tuples(ROWS, st.integers(0, 4)), min_size=1, max_size=6))
def test_rows_add_up_per_tuple_and_the_rest_is_stray(
    turns: list[tuple[list[tuple[int, int, int]], int]],
) -> None:
    """Twelve tuples: rows of others, of those already taken, or that claim less than nothing."""
    sums = TupleSums(12)
    count, latest = np.zeros(12, np.int64), np.full(12, -1)
    first = stray_rows = stray_pairs = 0
    taken = []
    for rows, more in turns:
        ids, counts, last = (
            (np.array(column, np.int64) for column in zip(*rows, strict=True))
            if (rows)
            else [np.empty(0, np.int64)] * 3
        )
        sums.add(ids, counts, counts.astype(np.uint64), last)
        for id_, number, ns in rows:
            if first <= id_ < 12 and number >= 0:
                count[id_] += number
                latest[id_] = max(latest[id_], ns)
            else:
                stray_rows += 1
                stray_pairs += abs(number)
        first = min(12, first + more)
        taken.append(sums.take(first))
    assert np.concatenate([one.pairs for one in taken]).tolist() == count[:first].tolist()
    assert np.concatenate([one.fingerprint for one in taken]).tolist() == count[:first].tolist()
    assert np.concatenate([one.latest for one in taken]).tolist() == latest[:first].tolist()
    assert (sums.stray_rows, sums.stray_pairs) == (stray_rows, stray_pairs)


def test_pairs_of_others_and_of_tuples_that_do_not_exist_stay_stray() -> None:
    sums = TupleSums(3)
    ids, hashes = np.array([0, 2, 2, 3, -1, 1]), np.array([7, 1, 2, 9, 9, 9], np.uint64)
    mine, stray = np.array([True] * 5 + [False]), np.ones(6, np.bool_)
    sums.add_pairs(ids, hashes, mine, stray)
    assert stray.tolist() == [False, False, False, True, True, True]
    taken = sums.take(3)
    assert taken.pairs.tolist() == [1, 0, 2]
    assert taken.fingerprint.tolist() == [7, 0, 3]
