"""The Bw-Tree against a sorted list, and under threads that change and search it at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from joins.hashing import splitmix64
from joins.indexes.bw_tree import (
    DELETED,
    INSERTED,
    BwTree,
    begin_change,
    change,
    is_changing,
    prepare,
    probe_range,
    swap,
)
from joins.indexes.index import Sought
from joins.machine.compiling import allocating, kernel
from joins.machine.instructions import offer_core
from joins.matches import begin_row, commit_row, find_matches
from joins.work import COUNTERS, INSERTS, new_counters

EXTREME = [np.iinfo(np.int64).min, np.iinfo(np.int64).max]
KEYS = st.integers(-6, 6) | st.sampled_from(EXTREME)
ENTRIES = st.lists(st.tuples(KEYS, st.integers(0, 40)), max_size=60)


@kernel
def change_all(pages, thread, kind, keys, positions, counters):
    for i in range(len(keys)):
        change(pages, thread, kind, keys[i], positions[i], counters)


@kernel
def probe_all(pages, low, high, start, stop, begin, output, counters):
    for row in range(begin, len(low)):
        begin_row(output, counters)
        if low[row] <= high[row]:
            sought = Sought(low[row], high[row], start[row], stop[row], row)
            probe_range(pages, sought, output, counters)
        if not commit_row(output, row, counters):
            return row
    return len(low)


def probe(tree, low, high, start=0, stop=EXTREME[1]):
    """Find the entries with a key from *low* to *high* and a position from *start* to *stop* - 1.

    Each of them is one number, or an array of a number per probe.
    """
    lows, highs, starts, stops = (
        np.ascontiguousarray(column, np.int64)
        for column in np.broadcast_arrays(*map(np.atleast_1d, (low, high, start, stop)))
    )

    def step(row, output, counters):
        return probe_all(tree.pages, lows, highs, starts, stops, row, output, counters)

    return find_matches(step, len(lows), enumerate=True)


def listed(found):
    """Return the listed matches."""
    assert found.match_id is not None
    return found.match_id.tolist()


def change_pairs(tree, kind, pairs):
    """Insert or delete *pairs* of key and position; return the work counters."""
    counters = new_counters()
    keys, positions = np.array(pairs, np.int64).reshape(-1, 2).T.copy()
    tree.reserve(len(pairs))
    change_all(tree.pages, 0, kind, keys, positions, counters)
    return counters


class BwTreeMachine(RuleBasedStateMachine):
    """Inserts, deletes, rebuilds and snapshots in any order; probes after each."""

    @initialize(width=st.integers(4, 9), chain=st.integers(3, 4))
    def make(self, width, chain):
        self.options = {"width": width, "chain": chain}
        self.tree = BwTree(**self.options)
        self.entries = []

    @rule(pairs=ENTRIES)
    def insert(self, pairs):
        counters = change_pairs(self.tree, INSERTED, pairs)
        assert counters[INSERTS] == len(pairs)
        self.entries = sorted({*self.entries, *pairs})

    @rule(data=st.data())
    def delete(self, data):
        held = st.sampled_from(self.entries) if self.entries else st.nothing()
        pairs = data.draw(st.lists(held | st.tuples(KEYS, st.integers(0, 40)), max_size=60))
        change_pairs(self.tree, DELETED, pairs)
        self.entries = [entry for entry in self.entries if entry not in pairs]

    @rule()
    def put_away(self):
        saved = self.tree.snapshot()
        self.tree = BwTree(**self.options)
        self.tree.restore(saved)

    @rule(low=KEYS, high=KEYS, start=st.integers(0, 40), stop=st.integers(0, 41))
    def probe(self, low, high, start, stop):
        found = probe(self.tree, low, high, start, stop)
        seen = [p for key, p in self.entries if low <= key <= high and start <= p < stop]
        assert found.count.tolist() == [len(seen)]
        assert sorted(listed(found)) == sorted(seen)

    @invariant()
    def holds_every_entry(self):
        found = probe(self.tree, *EXTREME)
        assert sorted(listed(found)) == sorted(p for _, p in self.entries)


BwTreeMachine.TestCase.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
TestBwTree = BwTreeMachine.TestCase


@allocating
def change_with_pauses(pages, thread, kind, keys, positions, pauses):
    """Insert or delete, letting others run before one in *pauses* compare-and-swaps, at random."""
    counters = np.zeros(len(COUNTERS), np.int64)
    for i in range(len(keys)):
        begin_change(pages, thread, kind, keys[i], positions[i], counters)
        while is_changing(pages, thread):
            prepare(pages, thread, counters)
            drawn = splitmix64(counters.sum() + positions[i])
            if pauses and drawn % pauses == 0:
                for _ in range(drawn >> 32 & 63):
                    offer_core()
            swap(pages, thread, counters)


@pytest.mark.parametrize("kind", ["width", "chain", "threads"])
def test_what_cannot_be_is_named(kind):
    with pytest.raises(ValueError, match=f"{kind} is 0, must be at least"):
        BwTree(**{kind: 0})


@settings(max_examples=12, deadline=None)
@given(
    threads=st.integers(2, 6),
    width=st.integers(4, 8),
    chain=st.integers(3, 4),
    spread=st.sampled_from([1, 50, 10**6]),
    pauses=st.sampled_from([0, 60, 300]),
    seed=st.integers(0, 10**6),
)
def test_threads_lose_nothing_and_see_what_was_there_before(spread, pauses, seed, **options):
    threads = options["threads"]
    rows = 3000
    key = np.random.default_rng(seed).integers(-spread, spread + 1, threads * rows)
    position = np.arange(threads * rows)
    tree = BwTree(**options)
    tree.reserve(2 * threads * rows)
    # There from the beginning and never deleted: whoever searches meanwhile must find all of them.
    change_all(tree.pages, 0, INSERTED, key[::4], position[::4], new_counters())

    def work(thread):
        mine = (position % threads == thread) & (position % 4 > 0)
        gone = mine & (position % 4 == 1)
        for part in np.array_split(np.flatnonzero(mine), 20):
            change_with_pauses(tree.pages, thread, INSERTED, key[part], position[part], pauses)
            found = listed(probe(tree, -spread, spread))
            assert len(found) == len(set(found))
            assert np.isin(position[::4], found).all()
            assert np.isin(part, found).all()
            leaving = part[gone[part]]
            change_with_pauses(tree.pages, thread, DELETED, key[leaving], leaving, pauses)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(work, range(threads)))
    left = np.flatnonzero(position % 4 != 1)
    one_key = probe(tree, key[left], key[left], left, left + 1)
    assert (one_key.count == 1).all()
    assert sorted(listed(probe(tree, -spread, spread))) == left.tolist()
    tree.reserve(10**6)
    assert sorted(listed(probe(tree, -spread, spread))) == left.tolist()
