"""A sealed segment against brute force over the same tuples."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.hashing import mix
from joins.indexes import po_join
from joins.indexes.b_plus_tree import BPlusTree
from joins.indexes.permutation import permutation
from joins.indexes.po_join import PoJoinSegment, bitmap_spacing
from joins.indexes.search import make_brackets


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
        listed = [p.tolist() for p in np.split(found.match_id, np.cumsum(found.count)[:-1])]
        assert [sorted(ids) for ids in listed] == [sorted(ids) for ids in expected]


def random_case(rng, n, predicates, domain, probes, first):
    """Return columns with ties, and ranges and windows of every kind, empty and whole included."""
    dtypes = rng.choice(["int64", "float64"], predicates)
    columns = [rng.integers(0, domain, n).astype(dtype) for dtype in dtypes]
    lo, hi = [], []
    for dtype in dtypes:
        ends = np.sort(rng.integers(-1, domain + 1, (2, probes)), axis=0)
        kind = rng.integers(0, 5, probes)
        low = np.where(kind == 0, -(2**62), ends[0])
        high = np.where(kind == 1, 2**62, np.where(kind == 2, ends[0], ends[1]))
        swap = kind == 3
        lo.append(np.where(swap, high, low).astype(dtype))
        hi.append(np.where(swap, low, high).astype(dtype))
    start, stop = np.sort(rng.integers(first - 5, first + n + 5, (2, probes)), axis=0)
    unbounded = rng.random(probes) < 0.4
    start = np.where(unbounded, np.iinfo(np.int64).min, start)
    stop = np.where(unbounded, np.iinfo(np.int64).max, stop)
    return columns, lo, hi, start, stop


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(0, 20) | st.integers(0, 700),
    predicates=st.integers(1, 3),
    domain=st.sampled_from([1, 3, 40, 5000]),
    first=st.sampled_from([0, 1000, 1 << 40]),
    every=st.sampled_from([None, 1, 7, 64, 100, 10_000]),
    flags=st.tuples(*[st.booleans()] * 3),
    enumerate_=st.booleans(),
)
def test_a_probe_finds_what_brute_force_finds(
    seed, n, predicates, domain, first, every, flags, enumerate_
):
    rng = np.random.default_rng(seed)
    columns, lo, hi, start, stop = random_case(rng, n, predicates, domain, 12, first)
    negated = flags[:predicates]
    segment = PoJoinSegment.from_columns(columns, first=first, bitmap_every=every)
    expected = brute_force(columns, lo, hi, negated, start, stop, first)
    window = {"start": start, "stop": stop, "negated": negated, "enumerate": enumerate_}
    found = segment.probe(lo, hi, **window)
    assert_found(found, expected)
    assert (found.match_id is not None) == enumerate_

    own = [np.sort(rng.integers(0, domain, n // 2).astype(c.dtype)) for c in columns]
    brackets, _ = make_brackets(own, segment.keys)
    assert_found(segment.probe(lo, hi, brackets=brackets, **window), expected)

    again = PoJoinSegment.restore(segment.snapshot())
    assert again.probe(lo, hi, **window).work == found.work
    assert again.nbytes == segment.nbytes
    assert again.work == segment.work


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
    found = segment.probe(lo, hi, start=start, stop=stop, enumerate=True)
    assert_found(found, brute_force(columns, lo, hi, [False] * predicates, start, stop, 0))
    assert (found.work.bits > 0) == uses_bits


@pytest.mark.parametrize("every", [64, 200, 4000])
def test_a_fill_flips_no_more_than_half_the_way_between_two_bitmaps_at_each_end(every):
    """With no bitmap but the empty and the full one, that is half the segment in all."""
    n, probes = 4000, 200
    rng = np.random.default_rng(every)
    columns = [rng.permutation(n), rng.permutation(n)]
    segment = PoJoinSegment.from_columns(columns, bitmap_every=every)
    lo = [np.zeros(probes, np.int64), rng.integers(0, n // 4, probes)]
    hi = [np.full(probes, n), lo[1] + rng.integers(n // 2, n, probes)]
    words = probes * -(-n // 64)
    filled_and_read = 2 * words
    flips = segment.probe(lo, hi).work.bits - filled_and_read
    assert 0 < flips <= probes * 2 * (every // 2)


def test_enumeration_in_chunks_gives_the_same_list(monkeypatch):
    rng = np.random.default_rng(11)
    columns, lo, hi, start, stop = random_case(rng, 500, 2, 30, 40, 0)
    segment = PoJoinSegment.from_columns(columns)
    window = {"start": start, "stop": stop, "enumerate": True}
    whole = segment.probe(lo, hi, **window)
    monkeypatch.setattr(po_join, "_LISTED_MAX", 1)
    assert np.array_equal(segment.probe(lo, hi, **window).match_id, whole.match_id)


def test_a_segment_sealed_from_trees_equals_one_sealed_from_columns():
    rng = np.random.default_rng(2)
    first = 300
    columns = [rng.integers(0, 50, 1000), rng.normal(size=1000).round(1)]
    scans = []
    for column in columns:
        tree = BPlusTree(column.dtype, leaf_entries=16, fanout=8)
        tree.insert(column, np.arange(first, first + 1000))
        scans.append(tree.scan())
    array, _ = permutation(scans[0][1], scans[1][1], first=first)
    sealed = PoJoinSegment([s[0] for s in scans], scans[0][1], [array], first=first)
    built = PoJoinSegment.from_columns(columns, first=first)
    assert len(sealed) == 1000
    for name in ("position", "to_lead"):
        assert np.array_equal(sealed.snapshot()[name], built.snapshot()[name])
    assert all(np.array_equal(a, b) for a, b in zip(sealed.keys, built.keys, strict=True))


def test_bitmaps_stay_within_sixteen_bytes_per_tuple():
    for n in (1, 1000, 200_000):
        rng = np.random.default_rng(1)
        columns = [rng.random(n), rng.random(n)]
        plain = PoJoinSegment.from_columns(columns)
        indexed = PoJoinSegment.from_columns(columns, bitmap_every=bitmap_spacing(n))
        assert indexed.nbytes - plain.nbytes <= 16 * n
        assert n / bitmap_spacing(n) <= po_join.BITMAPS_MAX


def test_input_is_not_changed_and_may_be_read_only():
    keys = [np.array([1, 2, 3]), np.array([1.0, 2.0, 3.0])]
    lead = np.array([2, 0, 1])
    # The second field's order is 0, 1, 2: places 1, 2 and 0 of the lead's.
    array = np.array([1, 2, 0], np.int32)
    for values in (*keys, lead, array):
        values.flags.writeable = False
    segment = PoJoinSegment(keys, lead, [array], first=0)
    found = segment.probe(keys, keys, enumerate=True)
    # Position 0 has fields (2, 1.0), 1 has (3, 2.0), 2 has (1, 3.0): no tuple has two equal fields.
    assert found.count.tolist() == [0, 0, 0]
    assert segment.probe(keys, [keys[0], keys[1] + 2]).count.tolist() == [1, 0, 0]


@pytest.mark.parametrize(
    ("keys", "lead", "permutations", "text"),
    [
        ([], [], [], "at least one predicate"),
        ([[2, 1]], [0, 1], [], "row 1 is less"),
        ([[1, 2]], [0], [], "positions in lead order: shape"),
        ([[1, 2], [1, 2]], [0, 1], [], "an array for every predicate but the first"),
        ([[1, 2], [1]], [0, 1], [[0, 1]], "predicate 1: shape"),
        ([[1, 2], [1, 2]], [0, 1], [[0]], "permutation 0: shape"),
        ([[0.0, float("nan")]], [0, 1], [], "NaN"),
    ],
)
def test_what_is_not_one_sealed_epoch_is_refused(keys, lead, permutations, text):
    arrays = [np.array(p, np.int32) for p in permutations]
    with pytest.raises(ValueError, match=text):
        PoJoinSegment([np.array(k) for k in keys], np.array(lead), arrays, first=0)


def test_a_probe_for_another_number_of_predicates_is_refused():
    segment = PoJoinSegment.from_columns([np.arange(3), np.arange(3)])
    bound = np.array([1])
    with pytest.raises(ValueError, match="lo has 1 entries for 2 predicates"):
        segment.probe([bound], [bound, bound])
    with pytest.raises(TypeError, match="hi of predicate 1: dtype is float64"):
        segment.probe([bound, bound], [bound, bound * 1.0])
