"""Matches of several structures add up to those of one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.hashing import mix
from joins.matches import Matches


def matches(rows: list[list[int]]) -> Matches:
    return Matches(
        stream=0,
        probe_id=np.arange(len(rows)),
        count=np.array([len(row) for row in rows], np.int64),
        fingerprint=np.array(
            [mix(np.array(row, np.int64)).sum(dtype=np.uint64) for row in rows], np.uint64
        ),
        match_id=np.array([i for row in rows for i in row], np.int64),
    )


@given(data=st.data(), probes=st.integers(0, 5), parts=st.integers(1, 4))
def test_a_sum_has_every_row_of_every_part(data: st.DataObject, probes: int, parts: int) -> None:
    row = st.lists(st.integers(0, 99), max_size=4)
    found = [
        data.draw(st.lists(row, min_size=probes, max_size=probes), label=f"part {part}")
        for part in range(parts)
    ]
    total = Matches.sum([matches(rows) for rows in found])
    whole = [[i for rows in found for i in rows[probe]] for probe in range(probes)]
    assert total.match_id is not None
    assert total.match_id.tolist() == [i for row in whole for i in row]
    assert total.count.tolist() == [len(row) for row in whole]
    assert total.fingerprint.tolist() == matches(whole).fingerprint.tolist()


@given(rows=st.lists(st.lists(st.lists(st.integers(0, 99), max_size=4), max_size=3), max_size=5))
def test_what_is_split_has_each_probes_own(rows: list[list[list[int]]]) -> None:
    whole = matches([row for part in rows for row in part])
    parts = whole.split([len(part) for part in rows])
    assert len(parts) == len(rows)
    for found, part in zip(parts, map(matches, rows), strict=True):
        assert found.match_id is not None
        assert part.match_id is not None
        assert found.match_id.tolist() == part.match_id.tolist()
        assert found.fingerprint.tolist() == part.fingerprint.tolist()
        assert found.count.tolist() == part.count.tolist()
    assert [i for found in parts for i in found.probe_id.tolist()] == whole.probe_id.tolist()


def test_counted_matches_have_no_pairs() -> None:
    counted = Matches(
        stream=0, probe_id=np.arange(1), count=np.ones(1, int), fingerprint=np.ones(1, np.uint64)
    )
    with pytest.raises(ValueError, match="counted, not enumerated"):
        counted.pairs()
