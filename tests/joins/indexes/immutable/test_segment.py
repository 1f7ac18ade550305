"""Every immutable structure against brute force over the same tuples, and lists of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import matches
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.immutable import css_segments, prefix_grid
from joins.indexes.immutable.order_arrays import permutation
from joins.indexes.immutable.segment import probe_all
from joins.indexes.index import make_ranges
from joins.indexes.structures import SEGMENTS
from tests.joins.codes import draw_codes
from tests.joins.indexes.bracketing import brackets_of
from tests.joins.indexes.immutable.segment_cases import assert_found, brute_force, random_case

structures = pytest.mark.parametrize("segment_type", SEGMENTS.values(), ids=SEGMENTS)


@structures
@settings(max_examples=120, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(0, 20) | st.sampled_from([63, 64, 65, 72, 73]) | st.integers(0, 700),
    predicates=st.integers(1, 3),
    domain=st.sampled_from([1, 3, 40, 5000]),
    first=st.sampled_from([0, 1000, 1 << 40]),
    flags=st.tuples(*[st.booleans()] * 3),
    enumerate_=st.booleans(),
)
def test_a_probe_finds_what_brute_force_finds(
    segment_type, seed, n, predicates, domain, first, flags, enumerate_
):
    rng = np.random.default_rng(seed)
    columns, lo, hi, start, stop = random_case(rng, n, predicates, domain, 12, first)
    negated = flags[:predicates]
    segment = segment_type.from_columns(columns, first=first)
    expected = brute_force(columns, lo, hi, negated, start, stop, first)
    ranges = make_ranges(lo, hi, negated=negated, start=start, stop=stop)
    found = segment.probe(ranges, enumerate=enumerate_)
    assert_found(found, expected)
    assert (found.match_id is not None) == enumerate_
    counted = segment.probe(ranges)
    assert found.work == counted.work, "what a run costs must not depend on keeping its pairs"

    own = [
        np.sort(rng.permutation(np.append(*both))[: n // 2])
        for both in zip(columns, lo, strict=True)
    ]
    brackets = brackets_of(own, segment.keys)
    assert_found(segment.probe(ranges, brackets=brackets, enumerate=enumerate_), expected)

    again = segment_type.from_snapshot(segment.snapshot())
    assert again.probe(ranges, enumerate=enumerate_).work == found.work
    assert again.nbytes == segment.nbytes
    assert again.work == segment.work


@structures
@pytest.mark.parametrize("block_bits", [1, 6])
@pytest.mark.parametrize("predicates", [1, 2, 3])
def test_large_segments_and_small_blocks_find_the_same(
    segment_type, block_bits, predicates, monkeypatch
):
    monkeypatch.setattr(prefix_grid, "_BLOCK_BITS_MIN", block_bits)
    rng = np.random.default_rng(predicates)
    for n, domain in ((4000, 60), (7001, 10**6)):
        columns, lo, hi, start, stop = random_case(rng, n, predicates, domain, 40, 77)
        segment = segment_type.from_columns(columns, first=77)
        for negated in ([False] * predicates, [True] + [False] * (predicates - 1)):
            ranges = make_ranges(lo, hi, negated=negated, start=start, stop=stop)
            found = segment.probe(ranges, enumerate=True)
            assert_found(found, brute_force(columns, lo, hi, negated, start, stop, 77))
            counted = segment.probe(ranges)
            assert np.array_equal(counted.count, found.count)
            assert np.array_equal(counted.fingerprint, found.fingerprint)


@structures
def test_no_probes_find_nothing(segment_type):
    segment = segment_type.from_columns([np.arange(9), np.arange(9)])
    none = [np.empty(0, np.int64)] * 2
    for enumerate_ in (False, True):
        found = segment.probe(make_ranges(none, none), enumerate=enumerate_)
        assert len(found.count) == len(found.fingerprint) == 0
        assert found.match_id is None or found.match_id.dtype == np.int64


@structures
def test_enumeration_in_chunks_gives_the_same_list(segment_type, monkeypatch):
    rng = np.random.default_rng(11)
    columns, lo, hi, start, stop = random_case(rng, 500, 2, 30, 40, 0)
    segment = segment_type.from_columns(columns)
    ranges = make_ranges(lo, hi, start=start, stop=stop)
    whole = segment.probe(ranges, enumerate=True)
    monkeypatch.setattr(matches, "_LARGEST_CHUNK", 1)
    monkeypatch.setattr(css_segments, "_ROW_WORDS_MAX", 1)
    again = segment.probe(ranges, enumerate=True)
    assert np.array_equal(again.match_id, whole.match_id)
    assert again.work == whole.work


@structures
def test_a_segment_sealed_from_trees_equals_one_sealed_from_columns(segment_type):
    rng = np.random.default_rng(2)
    first = 300
    columns = [rng.integers(0, 50, 1000), draw_codes(rng, 1000)]
    scans = []
    for column in columns:
        tree = BPlusTree(leaf_entries=16, fanout=8)
        tree.insert(column, np.arange(first, first + 1000))
        scans.append(tree.scan())
    array, _ = permutation(scans[0][1], scans[1][1], first=first)
    sealed = segment_type([s[0] for s in scans], scans[0][1], [array], first=first)
    built = segment_type.from_columns(columns, first=first)
    assert len(sealed) == 1000
    for name in ("lead", "to_lead"):
        assert np.array_equal(sealed.snapshot()[name], built.snapshot()[name])
    assert all(np.array_equal(a, b) for a, b in zip(sealed.keys, built.keys, strict=True))


@structures
def test_input_is_not_changed_and_may_be_read_only(segment_type):
    keys = [np.array([1, 2, 3]), np.array([1, 2, 3])]
    lead = np.array([2, 0, 1])
    # The second field's order is 0, 1, 2: places 1, 2 and 0 of the lead's.
    array = np.array([1, 2, 0], np.int32)
    for values in (*keys, lead, array):
        values.flags.writeable = False
    segment = segment_type(keys, lead, [array], first=0)
    found = segment.probe(make_ranges(keys, keys), enumerate=True)
    # Position 0 has fields (2, 1), 1 has (3, 2), 2 has (1, 3): no tuple has two equal fields.
    assert found.count.tolist() == [0, 0, 0]
    wider = [keys[0], keys[1] + 2]
    assert segment.probe(make_ranges(keys, wider)).count.tolist() == [1, 0, 0]


@structures
@pytest.mark.parametrize(
    ("keys", "lead", "permutations", "text"),
    [
        ([], [], [], "at least one predicate"),
        ([[2, 1]], [0, 1], [], "row 1 is less"),
        ([[1, 2]], [0], [], "positions in lead order: shape"),
        ([[1, 2]], [0, 2], [], "positions in lead order: row 1 is 2, expected every value from 0"),
        ([[1, 2], [1, 2]], [0, 1], [], "an array for every predicate but the first"),
        ([[1, 2], [1]], [0, 1], [[0, 1]], "predicate 1: shape"),
        ([[1, 2], [1, 2]], [0, 1], [[0]], "permutation 0: shape"),
        ([[1, 2], [1, 2]], [0, 1], [[-1, 0]], "permutation 0: row 0 is -1"),
    ],
)
def test_what_is_not_one_sealed_epoch_is_refused(segment_type, keys, lead, permutations, text):
    arrays = [np.array(p, np.int32) for p in permutations]
    with pytest.raises(ValueError, match=text):
        segment_type([np.array(k) for k in keys], np.array(lead), arrays, first=0)


@structures
def test_a_probe_for_another_number_of_predicates_is_refused(segment_type):
    segment = segment_type.from_columns([np.arange(3), np.arange(3)])
    bound = np.array([1])
    with pytest.raises(ValueError, match="ranges: 1 given for 2 predicates"):
        segment.probe(make_ranges([bound], [bound]))


@structures
def test_keys_that_are_no_codes_are_refused(segment_type):
    with pytest.raises(TypeError, match="keys: dtype is float64, expected int64"):
        segment_type.from_columns([np.arange(3.0)])
    with pytest.raises(TypeError, match="keys of predicate 0: dtype is float64"):
        segment_type([np.arange(3.0)], np.arange(3), [], first=0)


# Probing a list of segments with several threads.


@pytest.mark.parametrize("segment_type", SEGMENTS.values(), ids=SEGMENTS)
@pytest.mark.parametrize("epochs", [0, 1, 5])
@pytest.mark.parametrize("bracketed", [False, True])
def test_threads_change_neither_what_is_found_nor_the_work(segment_type, epochs, bracketed):
    rng = np.random.default_rng(epochs)
    n, negated = 200, [False, True]
    columns, lo, hi, start, stop = random_case(rng, n * max(1, epochs), 2, 50, 30, 0)
    parts = [[column[i * n : (i + 1) * n] for column in columns] for i in range(epochs)]
    segments = [segment_type.from_columns(part, first=i * n) for i, part in enumerate(parts)]
    own = [np.sort(column[:40]) for column in columns]
    brackets = [brackets_of(own, segment.keys) for segment in segments]
    ranges = make_ranges(lo, hi, negated=negated, start=start, stop=stop)
    by_brackets = brackets if bracketed else None
    alone = probe_all(segments, ranges, brackets=by_brackets, enumerate=True)
    for i, found in enumerate(alone):
        assert_found(found, brute_force(parts[i], lo, hi, negated, start, stop, i * n))
    for threads in (2, 3):
        together = probe_all(
            segments, ranges, brackets=by_brackets, threads=threads, enumerate=True
        )
        assert [found.work for found in together] == [found.work for found in alone]
        for one, other in zip(alone, together, strict=True):
            assert one.match_id is not None
            assert other.match_id is not None
            assert np.array_equal(one.match_id, other.match_id)
            assert np.array_equal(one.fingerprint, other.fingerprint)


def test_an_error_in_a_thread_is_raised():
    segments = [SEGMENTS["po_join"].from_columns([np.arange(4)], first=f) for f in (0, 4)]
    bounds = [np.array([2])] * 2
    with pytest.raises(ValueError, match="ranges: 2 given for 1 predicates"):
        probe_all(segments, make_ranges(bounds, bounds), threads=2)


def test_what_cannot_be_dealt_out_is_refused():
    segments = [SEGMENTS["po_join"].from_columns([np.arange(4)])]
    ranges = make_ranges([np.array([1])], [np.array([1])])
    with pytest.raises(ValueError, match="threads is 0, must be at least 1"):
        probe_all(segments, ranges, threads=0)
    with pytest.raises(ValueError, match="2 brackets for 1 segments"):
        probe_all(segments, ranges, brackets=[None, None])
