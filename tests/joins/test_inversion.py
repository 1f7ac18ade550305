"""Matches inverted, against pairs in plain lists."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.hashing import mix
from joins.inversion import invert
from joins.matches import ProbeResult
from joins.work import NO_WORK


@pytest.mark.parametrize("enumerate", [True, False])
@given(
    rows=st.lists(st.sets(st.integers(20, 29)), max_size=8),
    first=st.integers(0, 2**62),
)
def test_every_pair_is_there_from_the_other_side(
    enumerate: bool, rows: list[set[int]], first: int
) -> None:
    probes = np.arange(first, first + len(rows))
    listed = [sorted(row, reverse=True) for row in rows]
    found = ProbeResult(
        count=np.array([len(row) for row in listed], np.int64),
        fingerprint=np.zeros(len(rows), np.uint64),
        match_id=np.array(list(chain(*listed)), np.int64),
        work=NO_WORK,
    )
    ids, inverted = invert(probes, found, enumerate=enumerate)
    by = inverted.match_id
    wanted = {
        match: [first + i for i in range(len(rows)) if match in rows[i]]
        for match in sorted(set().union(*rows))
    }
    assert ids.tolist() == list(wanted)
    assert inverted.count.tolist() == [len(probing) for probing in wanted.values()]
    assert inverted.fingerprint.tolist() == [
        int(np.sum(mix(np.array(probing)), dtype=np.uint64)) for probing in wanted.values()
    ]
    assert (by is None) == (not enumerate)
    if by is not None:
        assert by.tolist() == list(chain(*wanted.values()))
