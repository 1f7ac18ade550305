"""Random epochs and probes for sealed segments, and what brute force finds."""

from __future__ import annotations

import numpy as np

from joins.codes import encode
from joins.hashing import mix

INT = np.iinfo(np.int64)
ENDS = {"int64": (INT.min, INT.max), "float64": (-np.inf, np.inf)}


def brute_force(columns, lo, hi, negated, start, stop, first):
    """Return the set of matching positions of each probe."""
    result = []
    for i in range(len(lo[0])):
        ok = np.ones(len(columns[0]), bool)
        for column, low, high, flip in zip(columns, lo, hi, negated, strict=True):
            ok &= ((low[i] <= column) & (column <= high[i])) != flip
        result.append({p + first for p in np.flatnonzero(ok) if start[i] <= p + first < stop[i]})
    return result


def assert_found(found, expected):
    assert found.count.tolist() == [len(ids) for ids in expected]
    for ids, total in zip(expected, found.fingerprint, strict=True):
        assert mix(np.array(sorted(ids), np.int64)).sum(dtype=np.uint64) == total
    assert found.work.matches == sum(map(len, expected))
    if found.match_id is not None:
        assert found.match_id.dtype == np.int64
        listed = [p.tolist() for p in np.split(found.match_id, np.cumsum(found.count)[:-1])]
        assert [sorted(ids) for ids in listed] == [sorted(ids) for ids in expected]


def random_case(rng, n, predicates, domain, probes, first):
    """Return columns of codes with ties and extremes, and ranges and windows of every kind.

    Ranges are one-sided, two-sided, of one value, empty and of everything; windows cover all, cut
    through the epoch, or miss it.
    """
    dtypes = rng.choice(["int64", "float64"], predicates)
    columns, lo, hi = [], [], []
    for dtype in dtypes:
        least, greatest = ENDS[dtype]
        column = rng.integers(0, domain, n).astype(dtype)
        extreme = rng.random(n)
        column[extreme < 0.03] = least
        column[extreme > 0.97] = greatest
        columns.append(encode(column))
        ends = np.sort(rng.integers(-1, domain + 1, (2, probes)), axis=0).astype(dtype)
        kind = rng.integers(0, 6, probes)
        low = np.where((kind == 0) | (kind == 5), np.array(least, dtype), ends[0])
        high = np.where((kind == 1) | (kind == 5), np.array(greatest, dtype), ends[1])
        high = np.where(kind == 2, low, high)
        lo.append(encode(np.where(kind == 3, high, low)))
        hi.append(encode(np.where(kind == 3, low, high)))
    start, stop = np.sort(rng.integers(first - 5, first + n + 5, (2, probes)), axis=0)
    unbounded = rng.random(probes) < 0.4
    return (
        columns,
        lo,
        hi,
        np.where(unbounded, INT.min, start),
        np.where(unbounded, INT.max, stop),
    )
