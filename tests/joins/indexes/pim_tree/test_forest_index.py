"""PIM-Tree, IM-Tree and chains against a plain list of (key, position) pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from joins.codes import encode
from joins.hashing import mix
from joins.indexes.index import NONE, make_ranges
from joins.indexes.pim_tree import mutable_tree
from joins.indexes.pim_tree.b_chain import TreeChain
from joins.indexes.pim_tree.forest import (
    HEIGHT,
    KEYS,
    NEXT,
    ROOT,
    SIZE,
    Sizes,
    active_tree,
    first_node,
    make_forest,
    resize,
    run_slot,
    subindex_row,
    tree_slot,
)
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.work import new_counters
from tests.joins.codes import GREATEST, LEAST, draw_codes
from tests.joins.in_kernel import in_kernel

KINDS = {
    "pim": lambda **o: PimTree(merge_ratio=0.7, insertion_depth=2, **o),
    "pim, too deep": lambda **o: PimTree(merge_ratio=0.3, insertion_depth=9, **o),
    "im": lambda **o: PimTree(merge_ratio=1, insertion_depth=0, **o),
    "b-chain": lambda **o: TreeChain(length=3, immutable=False, **o),
    "ib-chain": lambda **o: TreeChain(length=2, **o),
}


def assert_well_formed(forest, slot):
    """Nodes are not too full, separators separate, and all leaves are linked in order."""
    base, width = first_node(forest, slot), (forest.pool.shape[1] - KEYS) // 2
    leaves, keys = [], []

    def descend(node, height, low, high):
        row = forest.pool[base + node]
        size = int(row[SIZE])
        assert size <= width
        if height == 0:
            held = row[KEYS : KEYS + size].tolist()
            assert held == sorted(held)
            assert all(low <= key <= high for key in held)
            assert (row[KEYS + size : KEYS + width] == GREATEST).all()
            leaves.append(node)
            keys.extend(held)
            return
        assert size >= 2
        assert (row[KEYS + size - 1 : KEYS + width] == GREATEST).all()
        ends = [low, *row[KEYS : KEYS + size - 1].tolist(), high]
        for child in range(size):
            assert ends[child] <= ends[child + 1]
            descend(row[KEYS + width + child], height - 1, ends[child], ends[child + 1])

    for subindex in range(forest.tree_subindexes[slot]):
        line = forest.subindexes[subindex_row(forest, slot, subindex)]
        before = len(leaves)
        descend(int(line[ROOT]), int(line[HEIGHT]), LEAST, GREATEST)
        assert leaves[before] == subindex
    assert keys == sorted(keys)
    assert len(keys) == forest.tree_entries[slot, 0]
    linked, leaf = [], 0
    while leaf != NONE:
        linked.append(leaf)
        leaf = forest.pool[base + leaf, NEXT]
    assert linked == leaves


class Machine(RuleBasedStateMachine):
    kind = "pim"

    @initialize(sides=st.integers(1, 2), is_wide=st.booleans())
    def start(self, sides, is_wide):
        self.index = KINDS[self.kind](sides=sides, run_width=4, tree_width=4)
        self.is_wide = is_wide
        self.sides = sides
        self.entries: list[list[tuple[int, int]]] = [[] for _ in range(sides)]
        self.next = [0] * sides
        self.horizon = [0] * sides

    def codes(self, values):
        """Return the codes of whole numbers, or as wide apart as those of floats are."""
        return encode(values.astype(float)) if self.is_wide else values

    def side(self, number):
        return number % self.sides

    @rule(
        number=st.integers(0, 1),
        n=st.integers(0, 90),
        spread=st.sampled_from([1, 5, 1000]),
        shift=st.integers(-500, 500),
        gap=st.integers(1, 3),
        seed=st.integers(0, 9999),
    )
    def insert(self, number, n, spread, shift, gap, seed):
        side = self.side(number)
        rng = np.random.default_rng(seed)
        keys = self.codes(rng.integers(0, spread, n) + shift)
        extreme = rng.random(n) < 0.05
        keys[extreme] = draw_codes(rng, np.sum(extreme))
        positions = self.next[side] + gap * np.arange(n)
        work = self.index.insert([keys], positions, side=side)
        assert work.inserts == n
        self.entries[side] += zip(keys.tolist(), positions.tolist(), strict=True)
        self.next[side] += gap * n

    @rule(number=st.integers(0, 1), share=st.floats(0, 1))
    def expire(self, number, share):
        side = self.side(number)
        self.horizon[side] += int(share * (self.next[side] - self.horizon[side]))
        self.index.expire(self.horizon[side], side=side)

    @rule(number=st.integers(0, 1))
    def maintain(self, number):
        self.index.maintain(self.side(number))

    @rule(
        number=st.integers(0, 1),
        ranges=st.lists(st.tuples(st.integers(-600, 1600), st.integers(-2, 700)), max_size=5),
        window=st.none() | st.tuples(st.floats(0, 1), st.floats(0, 1)),
    )
    def probe(self, number, ranges, window):
        side = self.side(number)
        entries = self.entries[side]
        lo = np.array([low for low, _ in ranges], np.int64)
        hi = lo + np.array([width for _, width in ranges], np.int64)
        lo, hi = self.codes(lo), self.codes(hi)
        if ranges:
            lo[0], hi[-1] = LEAST, GREATEST
        start, stop = self.horizon[side], self.next[side] + 1
        window_ends: dict[str, np.ndarray] = {}
        if window is not None:
            span = stop - start
            start, stop = start + int(window[0] * span), start + int(window[1] * span)
            window_ends = {"start": np.full(len(lo), start), "stop": np.full(len(lo), stop)}
        found = self.index.probe(make_ranges([lo], [hi], **window_ends), side=side, enumerate=True)
        assert found.match_id is not None
        assert found.work.matches == found.count.sum() == len(found.match_id)
        listed = np.split(found.match_id, np.cumsum(found.count)[:-1]) if ranges else []
        for i, ids in enumerate(listed):
            expected = sorted(p for k, p in entries if lo[i] <= k <= hi[i] and start <= p < stop)
            assert sorted(ids.tolist()) == expected
            sums = int(mix(np.array(expected, np.int64)).sum(dtype=np.uint64))
            assert int(found.fingerprint[i]) == sums

    @rule()
    def restart(self):
        kept = self.index.forest
        saved = self.index.snapshot()
        self.index = KINDS[self.kind](sides=self.sides, run_width=4, tree_width=4)
        self.index.restore(saved)
        assert self.index.forest.slots == kept.slots
        for name in set(kept._fields) - {"slots"}:
            old, new = getattr(kept, name), getattr(self.index.forest, name)
            assert new.dtype == old.dtype
            assert np.array_equal(new, old)

    @invariant()
    def trees_are_well_formed(self):
        for side in range(self.sides if hasattr(self, "sides") else 0):
            forest = self.index.forest
            for place in range(forest.sides[side]["tree_count"]):
                assert_well_formed(forest, tree_slot(forest, side, place))
            live = sum(p >= self.horizon[side] for _, p in self.entries[side])
            assert live <= self.index.entries(side) <= len(self.entries[side])


@pytest.mark.parametrize("kind", KINDS)
def test_a_tree_answers_like_a_list(kind):
    machine = type("Kind", (Machine,), {"kind": kind})
    run_state_machine_as_test(
        machine, settings=settings(max_examples=25, stateful_step_count=15, deadline=None)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_memory_is_bounded_by_the_window(kind):
    """A window that slides far leaves at most a few windows of entries, and no more memory."""
    index = KINDS[kind](run_width=8, tree_width=8)
    rng = np.random.default_rng(3)
    sizes = []
    for begin in range(0, 60_000, 500):
        index.insert([rng.integers(0, 10**6, 500)], np.arange(begin, begin + 500))
        index.expire(begin - 1500)
        assert len(index) <= 3 * 2500
        sizes.append(index.nbytes)
    assert max(sizes) <= 1.2 * sizes[len(sizes) // 4]


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        (lambda: PimTree(merge_ratio=0), ValueError, "above 0 and at most 1"),
        (lambda: PimTree(merge_ratio=1.1), ValueError, "merge_ratio is 1.1"),
        (lambda: PimTree(insertion_depth=-1), ValueError, "insertion_depth is -1"),
        (lambda: TreeChain(length=1), ValueError, "at least 2 trees"),
        (lambda: PimTree(run_width=5), ValueError, "run_width is 5"),
        (lambda: PimTree(sides=3), ValueError, "3 sides"),
        (lambda: PimTree().insert([np.arange(2.0)], np.arange(2)), TypeError, "expected int64"),
        (
            lambda: PimTree().insert([np.arange(3)], np.array([0, 2, 2])),
            ValueError,
            "row 2: position 2 follows 2",
        ),
        (lambda: PimTree().insert([], np.arange(3)), ValueError, "0 given for 1 predicates"),
        (
            lambda: PimTree().probe(make_ranges([np.arange(3)], [np.arange(3)], negated=[True])),
            ValueError,
            "the range is negated",
        ),
    ],
)
def test_wrong_input_is_named(act, error, text):
    with pytest.raises(error, match=text):
        act()


route = in_kernel(mutable_tree.route)


@pytest.mark.parametrize("are_floats", [False, True])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_keys_are_counted_where_an_insert_would_bring_them(are_floats: bool, depth: int) -> None:
    rng = np.random.default_rng(depth)

    def draw(mean: int, deviation: int, n: int) -> np.ndarray:
        values = rng.normal(mean, deviation, n)
        return encode(values if are_floats else values.astype(np.int64))

    index = PimTree(merge_ratio=1.0, insertion_depth=depth)
    index.insert([draw(0, 1000, 5000)], np.arange(5000))
    index.maintain(0)
    keys = draw(500, 3000, 700)
    counted = index.spread(keys)
    run, tree = run_slot(index.forest, 0, 0), active_tree(index.forest, 0)
    counters = new_counters()
    taken = [route(index.forest, run, tree, key, counters) for key in keys.tolist()]
    assert counted.sum() == len(keys)
    assert np.array_equal(counted, np.bincount(taken, minlength=len(counted)))
    assert (len(counted) == 1) == (depth == 0)


# The arrays of a forest.


room = st.fixed_dictionaries(
    {
        "run_entries": st.integers(0, 200),
        "tree_nodes": st.integers(1, 200),
        "subindexes": st.integers(1, 50),
    }
)


@given(room, room)
def test_what_has_room_is_not_copied(first, more):
    slots = Sizes(2, 2, run_width=8, nodes=first["tree_nodes"], subindexes=first["subindexes"])
    made = make_forest(slots, sides=2, run_entries=first["run_entries"], tree_width=4)
    forest = resize(made, **more)
    assert resize(forest, **first) is forest
    assert resize(forest, **more) is forest
