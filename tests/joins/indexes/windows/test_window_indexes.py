"""Every window index against brute force over the tuples it was given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins import matches
from joins.codes import encode
from joins.hashing import mix, partition
from joins.indexes.index import make_ranges
from joins.indexes.structures import WINDOW_INDEXES, make_window_index
from joins.indexes.windows import window_tree
from joins.indexes.windows.chain_index import ChainIndex
from joins.indexes.windows.hash_index import HashIndex
from joins.indexes.windows.ie_join import IeJoin
from joins.indexes.windows.nested_loop import NestedLoop
from joins.indexes.windows.window_tree import WindowTree
from joins.queries.conditions import OPERATORS, Condition
from tests.joins.codes import GREATEST, LEAST, draw_codes

OPTIONS = {"chain_index": {"length": 7}}
EVERY_INDEX = pytest.mark.parametrize("name", WINDOW_INDEXES)


def condition(operator):
    return Condition(probe_field="a", stored_field="a", operator=OPERATORS[operator], dtype="int64")


def make(name, predicates, **options):
    """Return an index; the hash table's first predicate is an equality."""
    conditions = [condition(operator) for operator in ("=", *"<" * (predicates - 1))]
    return make_window_index(name, conditions, **{**OPTIONS.get(name, {}), **options})


def brute_force(columns, positions, low, high, negated, start, stop):
    """Return the matching positions of each probe."""
    found = []
    for i in range(len(start)):
        ok = (start[i] <= positions) & (positions < stop[i])
        for column, least, most, flip in zip(columns, low, high, negated, strict=True):
            ok &= ((least[i] <= column) & (column <= most[i])) != flip
        found.append(positions[ok])
    return found


def assert_found(found, expected):
    assert found.count.tolist() == [len(ids) for ids in expected]
    assert found.fingerprint.dtype == np.uint64
    assert found.fingerprint.tolist() == [int(mix(ids).sum(dtype=np.uint64)) for ids in expected]
    assert found.work.matches == sum(map(len, expected))
    if found.match_id is not None:
        listed = np.split(found.match_id, np.cumsum(found.count)[:-1]) if expected else []
        assert [sorted(ids.tolist()) for ids in listed] == [ids.tolist() for ids in expected]


@dataclass
class Values:
    """Draws codes: few, extreme, and dense with ties; or many, close together or far apart."""

    rng: np.random.Generator
    many: bool
    wide: bool

    def column(self, n):
        if not self.many:
            return draw_codes(self.rng, n)
        whole = self.rng.integers(-500, 500, n)
        return encode(whole.astype(float)) if self.wide else whole


@EVERY_INDEX
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    predicates=st.integers(1, 3),
    flags=st.tuples(*[st.booleans()] * 3),
    one_sided=st.booleans(),
    many=st.booleans(),
    wide=st.booleans(),
    step=st.sampled_from([1, 3]),
    first=st.sampled_from([0, 2**62]),
    batches=st.lists(
        st.tuples(st.integers(0, 90), st.integers(0, 12), st.booleans()), min_size=1, max_size=8
    ),
    window=st.integers(1, 120),
    enumerate_=st.booleans(),
)
def test_probes_find_what_brute_force_finds(
    name, seed, predicates, flags, one_sided, many, wide, step, first, batches, window, enumerate_
):
    """Over batches stored, probed and expired in turns, and restored from snapshots in between."""
    rng = np.random.default_rng(seed)
    values = Values(rng, many, wide)
    index = make(name, predicates)
    negated = [False if name == "hash" and i == 0 else flags[i] for i in range(predicates)]
    columns = list(np.empty((predicates, 0), np.int64))
    positions = np.empty(0, np.int64)
    horizon = first
    for tuples, probes, is_restored in batches:
        begin = int(positions[-1]) + 1 if len(positions) else first
        fresh = begin + int(rng.integers(0, 4)) + step * np.arange(tuples)
        added = [values.column(tuples) for _ in columns]
        index.insert(added, fresh)
        positions = np.concatenate([positions, fresh])
        columns = [np.concatenate(pair) for pair in zip(columns, added, strict=True)]

        low, high = zip(*(ends(values, probes, one_sided) for _ in columns), strict=True)
        if name == "hash":
            low, high = ((low[0], *low[1:]), (points(rng, low[0], high[0]), *high[1:]))
        last = int(positions[-1]) if len(positions) else first
        start, stop = np.sort(rng.integers(horizon, last + 6, (2, probes)), axis=0)
        stop = np.where(rng.random(probes) < 0.3, 2**63 - 1, stop)
        if horizon == first:
            start = np.where(rng.random(probes) < 0.3, -(2**63), start)
        ranges = make_ranges(low, high, negated=negated, start=start, stop=stop)
        found = index.probe(ranges, enumerate=enumerate_)
        assert_found(found, brute_force(columns, positions, *ranges))
        assert (found.match_id is not None) == enumerate_

        if is_restored:
            index = type(index).from_snapshot(index.snapshot())
            again = index.probe(ranges)
            assert again.work == found.work
        horizon = max(horizon, last + 1 - step * window)
        index.expire(horizon)
        assert len(index) >= np.sum(positions >= horizon)
        if name != "chain_index":
            assert len(index) == np.sum(positions >= horizon)


def ends(values, probes, one_sided):
    """Return ranges of every kind: one-sided or not, of one value, and empty."""
    low, high = values.column(probes), values.column(probes)
    if one_sided:
        if values.rng.random() < 0.5:
            high = np.full_like(high, GREATEST)
        else:
            low = np.full_like(low, LEAST)
        return low, high
    kind = values.rng.random(probes)
    return np.where(kind < 0.7, np.minimum(low, high), low), np.where(
        kind < 0.2, low, np.where(kind < 0.7, np.maximum(low, high), high)
    )


def points(rng, low, high):
    """Return *low*, or now and then *high* where that makes the range empty."""
    return np.where((high < low) & (rng.random(len(low)) < 0.5), high, low)


@EVERY_INDEX
def test_an_index_without_tuples_and_probes_without_rows(name):
    index = make(name, 2)
    one, none = list(np.ones((2, 1), np.int64)), list(np.empty((2, 0), np.int64))
    everything = (np.array([-(2**63)]), np.array([2**63 - 1]))
    nothing = (np.empty(0, np.int64), np.empty(0, np.int64))

    def probe(low, high, window):
        start, stop = window
        ranges = make_ranges(low, high, negated=[False, True], start=start, stop=stop)
        return index.probe(ranges, enumerate=True)

    assert_found(probe(one, one, everything), [np.empty(0, np.int64)])
    index.insert(none, np.empty(0, np.int64))
    assert index.expire(10).matches == 0
    assert len(index) == 0
    index.insert(one, np.array([3]))
    assert len(probe(none, none, nothing).count) == 0
    assert_found(probe(one, [one[0], one[1] - 1], everything), [np.array([3])])


@EVERY_INDEX
def test_buffers_and_bit_arrays_of_the_least_size_give_the_same_list(name, monkeypatch):
    rng = np.random.default_rng(3)
    index = make(name, 2)
    columns = list(rng.integers(0, 5, (2, 300)))
    index.insert(columns, np.arange(300))
    low = [rng.integers(0, 5, 40), rng.integers(0, 3, 40)]
    high = [low[0], low[1] + 1]
    start, stop = rng.integers(0, 100, 40), rng.integers(100, 310, 40)
    ranges = make_ranges(low, high, start=start, stop=stop)
    whole = index.probe(ranges, enumerate=True)
    assert whole.match_id.size > 300
    monkeypatch.setattr(matches, "_LARGEST_CHUNK", 1)
    monkeypatch.setattr(window_tree, "_MARKED_BYTES_MAX", 1)
    again = index.probe(ranges, enumerate=True)
    assert np.array_equal(again.match_id, whole.match_id)
    assert np.array_equal(again.count, whole.count)


@EVERY_INDEX
def test_memory_follows_the_window_however_long_the_stream(name):
    rng = np.random.default_rng(5)
    index = make(name, 2, **({"length": 100} if name == "chain_index" else {}))
    most = 0
    for position in range(0, 15_000, 100):
        index.insert(
            [rng.integers(0, 9, 100), encode(rng.random(100))],
            np.arange(position, position + 100),
        )
        index.expire(position - 900)
        if position == 3_000:
            most = index.nbytes
    assert len(index) <= 1100
    assert index.nbytes <= 1.2 * most


@EVERY_INDEX
def test_a_snapshot_is_not_changed_by_what_comes_later(name):
    index = make(name, 1)
    index.insert([np.arange(20)], np.arange(20))
    snapshot = index.snapshot()
    index.expire(11)
    index.insert([np.arange(100)], np.arange(20, 120))
    before = type(index).from_snapshot(snapshot)
    values = np.arange(20)
    ranges = make_ranges([values], [values], stop=np.full(20, 200))
    found = before.probe(ranges, enumerate=True)
    assert found.match_id.tolist() == list(range(20))
    assert len(before) == 20


@EVERY_INDEX
@pytest.mark.parametrize(
    ("columns", "positions", "text"),
    [
        ([[1.0, 2.0], [1, 2]], [5, 6], "column 0: dtype is float64, expected int64"),
        ([[1, 2]], [5, 6], "columns: 1 given for 2 predicates"),
        ([[1, 2], [1, 2]], [6, 6], "row 1: position 6 follows 6"),
        ([[1, 2], [1, 2]], [4, 5], "row 0: position 4 follows 4"),
        ([[1, 2], [1, 2]], [5, 5], "row 1: position 5 follows 5"),
        ([[1], [1, 2]], [5, 6], "column 0: shape"),
        ([[1, 2], [1, 2, 3]], [5, 6], "column 1: shape"),
        ([[*range(9)], [*range(9)]], [*range(5, 13), 3], "row 8: position 3 follows 12"),
    ],
)
@pytest.mark.parametrize("stored", [1, OPTIONS["chain_index"]["length"]])
def test_what_is_not_a_batch_of_tuples_is_refused(name, stored, columns, positions, text):
    """After one tuple, and after as many as fill a chain's sub-index; the last is at position 4."""
    index = make(name, 2)
    index.insert(list(np.ones((2, stored), np.int64)), np.arange(5 - stored, 5))
    with pytest.raises((TypeError, ValueError), match=text):
        index.insert([np.array(values) for values in columns], np.array(positions))
    assert len(index) == stored


@EVERY_INDEX
def test_ranges_of_another_number_of_predicates_are_refused(name):
    bounds = [np.array([1])]
    with pytest.raises(ValueError, match="ranges: 1 given for 2 predicates"):
        make(name, 2).probe(make_ranges(bounds, bounds))


def test_work_is_what_each_structure_does():
    """A thousand tuples with keys 0 to 999 in two fields; one probe for 100 to 199 in both."""
    n = 1024
    keys = np.arange(n)
    low, high = [np.array([100])] * 2, [np.array([199])] * 2

    def work(index, low=low, high=high):
        inserted = index.insert([keys, keys], np.arange(n))
        ranges = make_ranges(low, high, start=np.array([0]), stop=np.array([n]))
        return inserted, index.probe(ranges).work

    searched = 2 * 11  # both ends of the window
    inserted, probed = work(NestedLoop(2))
    assert (inserted.inserts, inserted.comparisons) == (n, 0)
    assert probed.comparisons - searched in range(n + 100 - 4, n + 101)

    inserted, probed = work(WindowTree(2))
    assert inserted.inserts == 2 * n
    assert probed.bits >= 2 * 100 + n // 64
    assert probed.comparisons < n

    inserted, chained = work(ChainIndex(2, length=64))
    assert inserted.inserts == 2 * n
    assert chained.comparisons > probed.comparisons

    inserted, probed = work(IeJoin(2))
    assert inserted.inserts == n
    assert probed.moves >= 4 * n
    assert probed.comparisons >= 2 * n * 10
    assert probed.bits >= 200

    inserted, probed = work(HashIndex([True, False]), high=low)
    assert inserted.inserts == n
    assert probed.comparisons - searched <= 10


def test_a_chain_drops_whole_sub_indexes():
    index = ChainIndex(1, length=10)
    index.insert([np.arange(35)], np.arange(0, 70, 2))
    index.expire(18)
    assert len(index) == 35
    index.expire(19)
    assert len(index) == 25
    index.expire(1000)
    assert len(index) == 5


def test_a_hash_table_spreads_the_keys_of_one_of_many_pes():
    keys = np.arange(400_000)
    keys = keys[partition(keys, 64) == 5]
    index = HashIndex([True])
    index.insert([keys], np.arange(len(keys)))
    ends = np.zeros(len(keys), np.int64)
    found = index.probe(make_ranges([keys], [keys], start=ends, stop=ends + len(keys)))
    assert (found.count == 1).all()
    tests_a_probe = found.work.comparisons / len(keys) - 2 * np.log2(len(keys))
    assert tests_a_probe < 4


@pytest.mark.parametrize("equal", [[], [False, False]])
def test_a_hash_table_needs_an_equality(equal):
    with pytest.raises(ValueError, match="needs an equality"):
        HashIndex(equal)


@pytest.mark.parametrize(
    ("high", "negated", "text"), [(4, False, "range in row 0"), (3, True, "is negated")]
)
def test_a_hash_table_refuses_what_is_no_equality(high, negated, text):
    index = HashIndex([True])
    bound = np.array([3])
    with pytest.raises(ValueError, match=f"predicate 0 .*{text}"):
        index.probe(make_ranges([bound], [np.array([high])], negated=[negated]))


def test_a_sub_index_holds_a_tuple_at_least():
    with pytest.raises(ValueError, match="length is 0"):
        ChainIndex(1, length=0)
