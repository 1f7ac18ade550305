"""A subwindow as a plain list of tuples, and the subwindows that are compared with it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joins.hashing import mix
from joins.indexes.panjoin.subwindow import Subwindow
from joins.matches import ProbeResult


def insert_in_order(subwindow: Subwindow, columns: Sequence[np.ndarray]) -> None:
    """Insert tuples, given in the order of their arrival, as one batch sorted as it must be."""
    order = np.argsort(columns[0], kind="stable")
    subwindow.insert([column[order] for column in columns], order + subwindow.stop)


def fits(values: np.ndarray, low: int, high: int, negated: bool) -> np.ndarray:
    """Whether each value is in the range, or not in it."""
    inside = (low <= values) & (values <= high)
    return ~inside if negated else inside


def assert_found(found: ProbeResult, expected: list[np.ndarray]) -> None:
    """Compare with the positions that each probe should have found."""
    assert found.count.tolist() == [len(positions) for positions in expected]
    for row, positions in enumerate(expected):
        assert found.fingerprint[row] == mix(positions.astype(np.int64)).sum(dtype=np.uint64)
    if found.match_id is not None:
        ends = np.cumsum(found.count)
        assert len(found.match_id) == (ends[-1] if len(ends) else 0)
        for begin, end, positions in zip(ends - found.count, ends, expected, strict=True):
            assert sorted(found.match_id[begin:end].tolist()) == positions.tolist()
