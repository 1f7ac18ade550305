"""How a PO-Join probe is answered; what it finds is tested with the other structures."""

from __future__ import annotations

import numpy as np
import pytest

from joins.indexes.immutable.po_join import PoJoinSegment
from joins.indexes.index import make_ranges
from tests.joins.indexes.immutable.segment_cases import assert_found, brute_force


@pytest.mark.parametrize("predicates", [2, 3])
@pytest.mark.parametrize(("width", "uses_bits"), [(4, False), (1900, True)])
@pytest.mark.parametrize("narrow", [0, 1])
def test_short_ranges_are_looked_up_and_long_ones_read_from_bits(
    predicates, width, uses_bits, narrow
):
    """The work says which way was taken; both give the matches of brute force."""
    n, probes = 3000, 20
    rng = np.random.default_rng(predicates)
    columns = [rng.permutation(n) for _ in range(predicates)]
    lo = [rng.integers(0, n // 3, probes) for _ in columns]
    hi = [low + 2000 for low in lo]
    hi[narrow] = lo[narrow] + width
    start, stop = np.full(probes, 0), np.full(probes, n)
    start[::3], stop[1::3] = 700, 2200
    segment = PoJoinSegment.from_columns(columns)
    found = segment.probe(make_ranges(lo, hi, start=start, stop=stop), enumerate=True)
    assert_found(found, brute_force(columns, lo, hi, [False] * predicates, start, stop, 0))
    assert (found.work.bits > 0) == uses_bits


def test_a_fill_sets_the_range_or_its_complement_whichever_is_shorter():
    n, probes = 4096, 200
    rng = np.random.default_rng(1)
    columns = [rng.permutation(n), rng.permutation(n)]
    segment = PoJoinSegment.from_columns(columns)
    width = rng.integers(n // 2, n, probes)
    lo = [np.zeros(probes, np.int64), rng.integers(0, n - width)]
    hi = [np.full(probes, n), lo[1] + width - 1]
    words_filled_and_read = 2 * probes * n // 64
    assert segment.probe(make_ranges(lo, hi)).work.bits == words_filled_and_read + (n - width).sum()
