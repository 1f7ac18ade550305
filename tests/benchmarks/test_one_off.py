"""Probes of tuples that no segment has, against brute force, scanned and sealed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks import one_off
from benchmarks.one_off import probe_once
from joins.indexes.index import make_ranges
from joins.matches import ProbeResult
from tests.joins.indexes.immutable.segment_cases import assert_found, brute_force, random_case


@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(0, 20) | st.sampled_from([1023, 1024, 1025, 2300]),
    m=st.integers(1, 5) | st.just(80),
    predicates=st.integers(1, 3),
    domain=st.sampled_from([1, 40, 5000]),
    first=st.sampled_from([0, 1 << 40]),
    flags=st.tuples(*[st.booleans()] * 3),
    scanned=st.booleans(),
    listed=st.booleans(),
    threads=st.sampled_from([1, 2]),
)
def test_probes_find_what_brute_force_finds(
    seed, n, m, predicates, domain, first, flags, scanned, listed, threads
):
    rng = np.random.default_rng(seed)
    columns, lo, hi, start, stop = random_case(rng, n, predicates, domain, m, first)
    negated = flags[:predicates]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(one_off, "SCANNED_PROBES", m if scanned else -1)
        found = ProbeResult.concat(
            probe_once(
                columns,
                make_ranges(lo, hi, negated=negated, start=start, stop=stop),
                first=first,
                enumerate=listed,
                threads=threads,
            )
        )
    assert (found.match_id is not None) == listed
    assert_found(found, brute_force(columns, lo, hi, negated, start, stop, first))


def test_few_probes_are_compared_with_every_tuple_and_more_are_not():
    n = 5000
    columns = [np.arange(n), np.arange(n) % 7]
    for m, scans in ((one_off.SCANNED_PROBES, True), (one_off.SCANNED_PROBES + 1, False)):
        ends = np.zeros(m, np.int64), np.full(m, 3)
        parts = probe_once(columns, make_ranges([ends[0]] * 2, [ends[1]] * 2))
        assert sum(int(part.count.sum()) for part in parts) == 4 * m
        compared = sum(part.work.comparisons for part in parts)
        assert (compared == 2 * n * m) == scans


@pytest.mark.parametrize("listed", [False, True])
def test_no_probes_find_nothing(listed):
    none = [np.empty(0, np.int64)] * 2
    (found,) = probe_once([np.arange(9), np.arange(9)], make_ranges(none, none), enumerate=listed)
    assert len(found.count) == 0
    assert found.match_id is None or len(found.match_id) == 0


def test_wrong_input_is_named():
    ranges = make_ranges([np.zeros(1, np.int64)], [np.zeros(1, np.int64)])
    with pytest.raises(TypeError, match="column 0: dtype is float64"):
        probe_once([np.array([0.0, 1.0])], ranges)
    with pytest.raises(ValueError, match="ranges: 1 given for 2 predicates"):
        probe_once([np.array([0, 1])] * 2, ranges)
    with pytest.raises(ValueError, match="threads is 0"):
        probe_once([np.array([0, 1])], ranges, threads=0)
