"""The B+-tree against a plain list of (key, position) pairs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from joins.codes import encode
from joins.hashing import mix
from joins.indexes.b_plus.b_plus_tree import BPlusTree
from joins.indexes.b_plus.nodes import FIRST_LEAF
from joins.indexes.index import NONE, make_ranges
from tests.joins.codes import GREATEST, LEAST, codes

KEYS = codes
BIG = 1 << 40


def fingerprint(positions):
    return int(mix(np.array(positions, np.int64)).sum(dtype=np.uint64))


def assert_well_formed(tree):
    """Nodes are a quarter full, separators separate, and the leaves are linked in order."""
    nodes = tree.nodes
    leaves, inners = [], []

    def descend(node, depth, low, high):
        if depth == nodes.tree["height"][0]:
            leaves.append(node)
            size, room = nodes.leaves.size[node], nodes.leaves.keys.shape[1]
            keys, positions = nodes.leaves.keys[node, :size], nodes.leaves.positions[node, :size]
            entries = list(zip(keys.tolist(), positions.tolist(), strict=True))
            assert entries == sorted(entries)
            assert not entries or (low <= entries[0] and entries[-1] < high)
        else:
            inners.append(node)
            size, room = nodes.inners.size[node], nodes.inners.child.shape[1]
            assert size >= 2
            if low[0] != -np.inf:
                assert (nodes.inners.keys[node, 0], nodes.inners.positions[node, 0]) == low
            keys, positions = nodes.inners.keys[node, 1:size], nodes.inners.positions[node, 1:size]
            ends = [low, *zip(keys.tolist(), positions.tolist(), strict=True), high]
            for slot, (left, right) in enumerate(pairwise(ends)):
                assert left < right
                descend(nodes.inners.child[node, slot], depth + 1, left, right)
        assert size < room
        assert depth == 0 or size >= room // 4

    descend(nodes.tree["root"][0], 0, (-np.inf, 0), (np.inf, 0))
    linked, leaf = [], FIRST_LEAF
    while leaf != NONE:
        linked.append(leaf)
        leaf = nodes.leaves.next[leaf]
    assert linked == leaves
    assert nodes.leaves.used["live"][0] == len(leaves)
    assert nodes.inners.used["live"][0] == len(inners)


class Machine(RuleBasedStateMachine):
    @initialize(base=st.sampled_from([0, BIG]))
    def start(self, base):
        self.tree = BPlusTree(leaf_entries=8, fanout=8)
        self.base = base
        self.next = base
        self.entries = []

    def values(self, keys):
        return np.array(keys, np.int64)

    @rule(keys=st.lists(KEYS, max_size=60))
    def insert(self, keys):
        positions = np.arange(self.next, self.next + len(keys))
        work = self.tree.insert(self.values(keys), positions)
        self.next += len(keys)
        self.entries = sorted(self.entries + list(zip(keys, positions.tolist(), strict=True)))
        assert work.inserts == len(keys)

    @rule(data=st.data(), share=st.floats(0, 1))
    def delete_some(self, data, share):
        seed = data.draw(st.integers(0, 999))
        order = np.random.default_rng(seed).permutation(len(self.entries))
        gone = [self.entries[i] for i in order[: int(share * len(order))]]
        keys = self.values([key for key, _ in gone])
        self.tree.delete(keys, np.array([position for _, position in gone], np.int64))
        self.entries = sorted(set(self.entries) - set(gone))

    @rule(key=KEYS)
    def delete_what_is_not_there(self, key):
        with pytest.raises(KeyError, match="row 0"):
            self.tree.delete(self.values([key]), np.array([self.next]))

    @precondition(lambda self: self.entries)
    @rule(data=st.data())
    def insert_what_is_there(self, data):
        key, position = data.draw(st.sampled_from(self.entries))
        with pytest.raises(ValueError, match="already"):
            self.tree.insert(self.values([key]), np.array([position]))

    @rule(ranges=st.lists(st.tuples(KEYS, KEYS), max_size=4), negated=st.booleans())
    def mark(self, ranges, negated):
        lo, hi = (self.values([r[side] for r in ranges]) for side in (0, 1))
        bits = self.next - self.base + 3
        rows, _ = self.tree.mark(lo, hi, base=self.base, bits=bits, negated=negated)
        assert rows.shape == (len(ranges), -(-bits // 64))
        marked = np.unpackbits(rows.view(np.uint8), axis=1, bitorder="little")
        for (low, high), row in zip(ranges, marked, strict=True):
            expected = {p - self.base for k, p in self.entries if (low <= k <= high) != negated}
            assert set(np.flatnonzero(row).tolist()) == expected

    @rule(
        ranges=st.lists(st.tuples(KEYS, KEYS, st.integers(0, 80), st.integers(0, 80)), max_size=4),
        negated=st.booleans(),
        windowed=st.booleans(),
    )
    def probe(self, ranges, negated, windowed):
        lo, hi = (self.values([r[side] for r in ranges]) for side in (0, 1))
        start = stop = None
        if windowed:
            start = np.array([self.base + r[2] for r in ranges], np.int64)
            stop = np.array([self.base + r[3] for r in ranges], np.int64)
        probes = make_ranges([lo], [hi], negated=[negated], start=start, stop=stop)
        found = self.tree.probe(probes, enumerate=True)
        counted = self.tree.probe(probes)
        assert counted.match_id is None
        assert found.match_id is not None
        assert counted.work == found.work
        at = 0
        for i, (low, high, first, end) in enumerate(ranges):
            expected = [
                p
                for k, p in self.entries
                if (low <= k <= high) != negated and (not windowed or first <= p - self.base < end)
            ]
            assert found.count[i] == counted.count[i] == len(expected)
            assert found.match_id[at : at + len(expected)].tolist() == expected
            assert found.fingerprint[i] == counted.fingerprint[i] == fingerprint(expected)
            at += len(expected)
        assert len(found.match_id) == at == found.work.matches

    @rule()
    def restore(self):
        snapshot = self.tree.snapshot()
        again = BPlusTree.from_snapshot(snapshot)
        np.testing.assert_equal(again.snapshot(), snapshot)
        self.tree = again

    @rule()
    def clear(self):
        self.tree.clear()
        self.entries = []

    @invariant()
    def scan_is_sorted_and_complete(self):
        keys, positions, _ = self.tree.scan()
        assert list(zip(keys.tolist(), positions.tolist(), strict=True)) == self.entries
        assert len(self.tree) == len(self.entries)
        assert_well_formed(self.tree)


def test_tree_behaves_like_a_sorted_list():
    run_state_machine_as_test(
        Machine, settings=settings(max_examples=80, stateful_step_count=25, deadline=None)
    )


@pytest.mark.parametrize("order", ["random", "ascending", "descending", "equal"])
def test_a_sliding_window_does_not_leak_memory(order):
    """The tree's memory after forty windows is what it was after three."""
    window = 500
    n = 40 * window
    keys = {
        "random": np.random.default_rng(3).integers(0, 1 << 30, n),
        "ascending": np.arange(n),
        "descending": -np.arange(n),
        "equal": np.zeros(n, np.int64),
    }[order]
    positions = np.arange(n)
    tree = BPlusTree(leaf_entries=16, fanout=8)
    nbytes = 0
    for at in range(0, n, 25):
        tree.insert(keys[at : at + 25], positions[at : at + 25])
        if at >= window:
            old = slice(at - window, at - window + 25)
            tree.delete(keys[old], positions[old])
        if at <= 3 * window:
            nbytes = tree.nbytes
    # A quarter of 16 entries in every leaf at the least; the peak is one batch above the window.
    assert tree.nodes.leaves.used["live"][0] <= (window + 25) // 4
    assert tree.nbytes <= nbytes * 1.6
    assert_well_formed(tree)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), domain=st.sampled_from([1, 4, 100, 10**9]))
def test_a_high_tree_stays_well_formed_while_it_grows_and_shrinks(seed, domain):
    """Thousands of entries in nodes of eight, so that inner nodes split, merge and share too."""
    rng = np.random.default_rng(seed)
    tree = BPlusTree(leaf_entries=8, fanout=8)
    keys = rng.integers(0, domain, 3000)
    positions = rng.permutation(3000)
    tree.insert(keys, positions)
    assert tree.nodes.tree["height"][0] >= 3
    order = rng.permutation(3000)
    if seed % 2:  # from one side, so that a node meets a neighbour much fuller than itself
        order = np.lexsort((positions, keys))[:: 1 if seed % 4 == 1 else -1]
    held = np.ones(3000, bool)
    for gone in np.array_split(order, 12):
        tree.delete(keys[gone], positions[gone])
        held[gone] = False
        assert_well_formed(tree)
        back = rng.permutation(gone)[:40]
        tree.insert(keys[back], positions[back])
        tree.delete(keys[back[10:]], positions[back[10:]])
        held[back[:10]] = True
        assert_well_formed(tree)
    left = np.lexsort((positions[held], keys[held]))
    assert np.array_equal(tree.scan()[0], keys[held][left])
    assert np.array_equal(tree.scan()[1], positions[held][left])


@settings(max_examples=30, deadline=None)
@given(
    keys=st.lists(st.integers(LEAST, GREATEST) | codes, min_size=1, max_size=300),
    cut=st.integers(0, 300),
)
def test_a_restored_tree_does_the_same_work(keys, cut):
    tree = BPlusTree(leaf_entries=8, fanout=8)
    keys = np.array(keys)
    positions = np.arange(len(keys))
    tree.insert(keys[:cut], positions[:cut])
    again = BPlusTree.from_snapshot(tree.snapshot())
    assert tree.insert(keys[cut:], positions[cut:]) == again.insert(keys[cut:], positions[cut:])
    probes = make_ranges([keys], [keys])
    assert tree.probe(probes).work == again.probe(probes).work
    assert tree.delete(keys, positions) == again.delete(keys, positions)
    assert len(tree) == len(again) == 0


def test_wide_nodes_answer_like_numpy():
    """With the default node size, counts equal those of a sorted column."""
    rng = np.random.default_rng(5)
    keys = encode(rng.normal(size=30_000))
    tree = BPlusTree()
    tree.insert(keys, np.arange(len(keys)))
    lo = rng.normal(size=200)
    lo, hi = encode(lo), encode(lo + 0.1)
    ordered = np.sort(keys)
    expected = np.searchsorted(ordered, hi, "right") - np.searchsorted(ordered, lo, "left")
    assert np.array_equal(tree.probe(make_ranges([lo], [hi])).count, expected)


def test_extreme_keys_are_ordinary_ones():
    tree = BPlusTree(leaf_entries=8, fanout=8)
    keys = np.array([GREATEST, LEAST, 0, GREATEST])
    tree.insert(keys, np.arange(4))
    low, high = np.array([LEAST, GREATEST, 0]), np.array([GREATEST, GREATEST, LEAST])
    assert tree.probe(make_ranges([low], [high])).count.tolist() == [4, 2, 0]


def test_read_only_input_is_accepted_and_left_alone():
    keys, positions = np.array([3, 1, 2]), np.array([0, 1, 2])
    for array in (keys, positions):
        array.flags.writeable = False
    tree = BPlusTree()
    tree.insert(keys, positions)
    probes = make_ranges([keys], [keys], start=positions, stop=positions + 1)
    assert tree.probe(probes).count.tolist() == [1, 1, 1]
    assert keys.tolist() == [3, 1, 2]


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda t: t.insert(np.array([1.0, 2.0]), np.arange(2)), TypeError, "expected int64"),
        (lambda t: t.insert(np.array([1]), np.arange(2)), ValueError, "one column of 1"),
        (lambda t: t.insert(np.ones((1, 1), int), np.arange(1)), ValueError, "one column"),
        (
            lambda t: t.probe(make_ranges([np.arange(1)] * 2, [np.arange(1)] * 2)),
            ValueError,
            "2 given",
        ),
        (lambda _: BPlusTree(fanout=4), ValueError, "at least 8"),
    ],
)
def test_wrong_input_is_named(act, error, text):
    with pytest.raises(error, match=text):
        act(BPlusTree())


def test_marking_looks_at_one_key_of_a_leaf_that_lies_in_the_range():
    n, entries = 1000, 8
    tree = BPlusTree(leaf_entries=entries, fanout=8)
    tree.insert(np.arange(n), np.arange(n))
    _, work = tree.mark(np.array([3]), np.array([n - 3]), base=0, bits=n)
    assert work.bits == n - 5
    descent_and_ends = (tree.nodes.tree["height"][0] + 2) * entries
    assert 0 <= work.comparisons - tree.nodes.leaves.used["live"][0] <= descent_and_ends


@pytest.mark.parametrize("negated", [False, True])
@pytest.mark.parametrize("base", [1, -2])
def test_a_position_without_a_bit_is_an_error(base, negated):
    tree = BPlusTree()
    tree.insert(np.array([5, 5]), np.array([0, 1]))
    key = np.array([5])
    with pytest.raises(ValueError, match="outside"):
        tree.mark(key, key, base=base, bits=2, negated=negated)
