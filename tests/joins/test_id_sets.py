"""Hash intersection of lists of ids, against Python's sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.hashing import mix
from joins.id_sets import intersect_ids

_INT64 = np.iinfo(np.int64)
_ids = st.integers(0, 30) | st.integers(_INT64.min, _INT64.max)
_rows = st.lists(
    st.lists(st.lists(_ids, unique=True, max_size=40), min_size=1, max_size=4), max_size=6
).filter(lambda rows: len({len(row) for row in rows}) <= 1)
"""Per row one list of ids for each of equally many predicates."""


def columns(rows: list[list[list[int]]]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    lists = range(len(rows[0])) if rows else range(2)
    counts = [np.array([len(row[i]) for row in rows], np.int64) for i in lists]
    ids = [np.array([key for row in rows for key in row[i]], np.int64) for i in lists]
    return counts, ids


@given(rows=_rows)
def test_what_is_found_is_what_all_lists_of_a_row_hold(rows: list[list[list[int]]]) -> None:
    counts, ids = columns(rows)
    expected = [sorted(set.intersection(*map(set, row))) for row in rows]
    counted = intersect_ids(counts, ids)
    listed = intersect_ids(counts, ids, enumerate=True)
    assert counted.match_id is None
    assert listed.match_id is not None
    assert counted.work == listed.work
    stops = np.cumsum(listed.count)
    found = [
        sorted(listed.match_id[stop - count : stop].tolist())
        for stop, count in zip(stops.tolist(), listed.count.tolist(), strict=True)
    ]
    assert found == expected
    with np.errstate(over="ignore"):
        sums = [int(mix(np.array(keys, np.int64)).sum()) for keys in expected]
    for result in (counted, listed):
        assert result.count.tolist() == [len(keys) for keys in expected]
        assert result.fingerprint.tolist() == sums


@given(rows=_rows.filter(bool))
def test_the_table_takes_the_shortest_list_and_every_id_is_looked_up(
    rows: list[list[list[int]]],
) -> None:
    work = intersect_ids(*columns(rows)).work
    assert work.inserts == sum(min(map(len, row)) for row in rows)
    assert work.comparisons >= sum(map(len, (ids for row in rows for ids in row)))


def test_lists_that_do_not_fit_are_refused() -> None:
    one, two = np.array([1]), np.array([1, 2])
    with pytest.raises(ValueError, match="equally many rows"):
        intersect_ids([], [])
    with pytest.raises(ValueError, match="equally many rows"):
        intersect_ids([one, two], [one, two])
    with pytest.raises(ValueError, match="count 3 ids; it has 2"):
        intersect_ids([two], [two])
