"""What a prefix grid's probe costs; what it finds is tested with the other structures."""

from __future__ import annotations

import numpy as np
import pytest

from joins.indexes.immutable.prefix_grid import PrefixGridSegment, block_bits, list_rectangle
from joins.indexes.index import make_ranges
from joins.machine.lanes import LANES
from joins.work import COMPARISONS, Work, new_counters


def probe_quadrants(n, share, **options):
    """Probe an epoch of *n* with ranges that hold *share* of it and are counted alone."""
    rng = np.random.default_rng(5)
    columns = [rng.permutation(n), rng.permutation(n)]
    segment = PrefixGridSegment.from_columns(columns)
    low = [rng.integers(0, n // 10, 50) for _ in columns]
    high = [part + int(share * n) for part in low]
    return segment.probe(make_ranges(low, high), **options)


def test_counting_costs_the_same_however_much_is_found():
    few, many = (probe_quadrants(40_000, share) for share in (0.1, 0.8))
    assert many.work.matches > 30 * few.work.matches
    assert many.work.comparisons < 1.2 * few.work.comparisons
    assert many.work.bits == many.work.moves == 0


def test_counting_compares_no_more_than_four_strips():
    n = 40_000
    work = probe_quadrants(n, 0.6).work
    searches_and_cells = 50 * (4 * 8 * 6 + 4)
    assert work.comparisons <= 50 * 4 * (1 << block_bits(n)) + searches_and_cells


def test_listing_costs_four_strips_and_a_logarithm_of_runs():
    n = 40_000
    rng = np.random.default_rng(6)
    grid = PrefixGridSegment.from_columns([rng.permutation(n), rng.permutation(n)])._grid
    groups = 2 * 3 * len(grid.run)
    for begin, end in ((0, n), (1000, 30_000), (77, 39_999), (20_000, 20_100)):
        counters = new_counters()
        out = np.empty(n + LANES, np.int64)
        listed = list_rectangle(grid, (begin, end), (begin, end), 7, out, 0, counters)
        inside = grid.to_lead[begin:end]
        assert listed == ((begin <= inside) & (inside < end)).sum()
        assert len(np.unique(out[:listed])) == listed
        assert counters[COMPARISONS] <= 4 * ((1 << block_bits(n)) + groups)


def test_one_predicate_has_its_window_as_an_axis():
    n = 40_000
    keys = np.random.default_rng(3).permutation(n)
    segment = PrefixGridSegment.from_columns([keys])
    low, high = np.array([100]), np.array([30_000])
    window = np.array([7]), np.array([21_000])
    found = segment.probe(make_ranges([low], [high], start=window[0], stop=window[1]))
    inside = keys[7:21_000]
    assert found.count[0] == ((inside >= 100) & (inside <= 30_000)).sum() > 10_000
    assert found.work.comparisons < 4_000


def test_a_selective_third_predicate_gives_the_candidates():
    n = 20_000
    rng = np.random.default_rng(4)
    columns = [rng.permutation(n) for _ in range(3)]
    segment = PrefixGridSegment.from_columns(columns)
    low = [np.array([0]), np.array([0]), np.array([500])]
    high = [np.array([n]), np.array([n]), np.array([510])]
    found = segment.probe(make_ranges(low, high), enumerate=True)
    assert sorted(columns[2][found.match_id]) == list(range(500, 511))
    assert found.work.comparisons < 3_000


@pytest.mark.parametrize("n", [0, 1, 100, 4096, 30_000, 300_000])
def test_the_table_takes_no_more_than_eight_cells_a_tuple(n):
    bits = block_bits(n)
    assert (n >> bits) ** 2 <= 8 * n
    assert bits == 6 or (n >> (bits - 1)) ** 2 > 8 * n


def test_work_of_sealing_counts_a_pass_for_every_level_of_runs():
    small, large = (
        PrefixGridSegment.from_columns([np.arange(n), np.arange(n)]).work for n in (1000, 30_000)
    )
    assert isinstance(small, Work)
    # Ids, places and lowest runs move each tuple four times; 30,000 have three more levels of runs.
    assert small.moves >= 4 * 1000
    assert large.moves >= 7 * 30_000
