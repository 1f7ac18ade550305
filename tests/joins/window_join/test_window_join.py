"""Window join drivers against comparing every tuple with all it sees."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.indexes.pim_tree.b_chain import TreeChain
from joins.indexes.pim_tree.forest import Forest
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.window_join.b_plus_join import BPlusTreeJoin
from joins.window_join.forest_join import ForestJoin
from joins.window_join.nested_loop_join import NestedLoopJoin
from joins.window_join.rows import make_rows
from joins.window_join.sorted_runs.join import SortedRunsJoin
from joins.window_join.window_join import LOOKUP_ROWS
from joins.work import NO_WORK
from scenarios.calibration.window_workload import expected_matches
from tests.joins.window_join.ibwj_cases import arrivals, assert_join_is_exact, matches_of

SMALL = {"run_width": 4, "tree_width": 4}


def merge_trees(sides):
    return st.builds(
        lambda ratio, depth, lookup_rows: ForestJoin(
            PimTree(sides=sides, merge_ratio=ratio, insertion_depth=depth, **SMALL),
            lookup_rows=lookup_rows,
        ),
        st.floats(0, 1, exclude_min=True),
        st.integers(0, 9),
        st.integers(1, LOOKUP_ROWS),
    )


def chains(sides):
    return st.builds(
        lambda length, immutable, lookup_rows: ForestJoin(
            TreeChain(sides=sides, length=length, immutable=immutable, **SMALL),
            lookup_rows=lookup_rows,
        ),
        st.integers(2, 6),
        st.booleans(),
        st.integers(1, LOOKUP_ROWS),
    )


def nested_loops(sides):
    return st.just(sides).map(lambda sides: NestedLoopJoin(self_join=sides == 1))


def b_plus_trees(sides):
    return st.integers(1, LOOKUP_ROWS).map(
        lambda lookup_rows: BPlusTreeJoin(
            self_join=sides == 1, leaf_entries=8, fanout=8, lookup_rows=lookup_rows
        )
    )


def sorted_runs(sides):
    return st.integers(2, 9).map(lambda ratio: SortedRunsJoin(self_join=sides == 1, ratio=ratio))


@pytest.mark.parametrize("drivers", [merge_trees, chains, b_plus_trees, nested_loops, sorted_runs])
@settings(max_examples=150, deadline=None)
@given(data=st.data(), case=arrivals(), enumerate_ids=st.booleans())
def test_every_tuple_finds_exactly_what_it_sees(drivers, data, case, enumerate_ids):
    join = data.draw(drivers(1 if case[0] else 2))
    assert_join_is_exact(join, case, enumerate_ids)


@pytest.mark.parametrize("lookup_rows", [1, 5, LOOKUP_ROWS])
@pytest.mark.parametrize("run_width", [4, 32])
@pytest.mark.parametrize(
    "index",
    [
        lambda **options: PimTree(merge_ratio=0.9, insertion_depth=2, **options),
        lambda **options: PimTree(merge_ratio=0.5, insertion_depth=0, **options),
        lambda **options: TreeChain(length=2, **options),
        lambda **options: TreeChain(length=3, immutable=False, **options),
    ],
)
@pytest.mark.parametrize("sides", [1, 2])
def test_looking_ahead_changes_no_answer_nor_work_nor_tree(index, sides, run_width, lookup_rows):
    """One call looks a block of tuples up before the first is joined; a call a tuple cannot."""
    n = 3000
    rng = np.random.default_rng(sides)
    key = rng.integers(0, 400, n)
    row = np.arange(n)
    stop = (row + sides - 1) // sides
    rows = make_rows(
        side=row % sides,
        position=row // sides,
        key=key,
        low=key - rng.integers(0, 3, n),
        high=key + rng.integers(0, 3, n),
        start=np.maximum(0, stop - 500),
        stop=stop,
    )
    joins = [
        ForestJoin(index(sides=sides, run_width=run_width, tree_width=4), lookup_rows=lookup_rows)
        for _ in range(2)
    ]
    for join in joins:
        # Where memory has to grow, the tuples left are looked up and counted once more.
        join.index.reserve(run_entries=2000, tree_nodes=3000, subindexes=200)
    together = joins[0].join(rows)
    alone = [joins[1].join(rows.part(i, i + 1)) for i in range(n)]
    assert together.count.tolist() == [found.count[0] for found in alone]
    assert together.fingerprint.tolist() == [found.fingerprint[0] for found in alone]
    assert together.work == sum((found.work for found in alone), NO_WORK)
    forests = [join.index.forest for join in joins]
    for name, one, other in zip(Forest._fields, *forests, strict=True):
        assert np.all(one == other), name


@pytest.mark.parametrize("lookup_rows", [1, 5, LOOKUP_ROWS])
@pytest.mark.parametrize("distinct", [7, 400, 1 << 40])
@pytest.mark.parametrize("sides", [1, 2])
def test_leaves_looked_up_ahead_change_no_answer_nor_work_nor_tree(sides, distinct, lookup_rows):
    """Leaves of eight entries are split, merged and freed within nearly every block of tuples."""
    n, window = 1500, 300
    rng = np.random.default_rng(sides)
    key = rng.integers(0, distinct, n)
    reach = max(1, distinct // 200)
    row = np.arange(n)
    stop = (row + sides - 1) // sides
    rows = make_rows(
        side=row % sides,
        position=row // sides,
        key=key,
        low=key - rng.integers(-1, reach, n),
        high=key + rng.integers(0, reach, n),
        # The window shrinks and grows, so that none or many expire at once.
        start=np.maximum.accumulate(np.maximum(0, stop - rng.integers(window // 2, window, n))),
        stop=stop,
    )
    small = {"self_join": sides == 1, "leaf_entries": 8, "fanout": 8}
    joins = [BPlusTreeJoin(**small, lookup_rows=lookup_rows), BPlusTreeJoin(**small)]
    together = joins[0].join(rows, enumerate=True)
    alone = [joins[1].join(rows.part(i, i + 1), enumerate=True) for i in range(n)]
    count, fingerprint = expected_matches(rows, self_join=sides == 1)
    assert np.array_equal(together.count, count)
    assert np.array_equal(together.fingerprint, fingerprint)
    listed = [found.match_id for found in alone if found.match_id is not None]
    assert together.match_id is not None
    assert np.array_equal(together.match_id, np.concatenate(listed))
    assert together.work == sum((found.work for found in alone), NO_WORK)
    one, other = ([tree.scan() for tree in join._trees] for join in joins)
    np.testing.assert_equal(one, other)


@pytest.mark.parametrize("length", [2, 3, 5])
def test_a_window_that_fills_up_seldom_stops_a_chain(length, monkeypatch):
    stops: list[int] = []
    maintain = TreeChain.maintain

    def counted(*args):
        stops.append(0)
        return maintain(*args)

    monkeypatch.setattr(TreeChain, "maintain", counted)
    n = 20_000
    row = np.arange(n)
    stop = (row + 1) // 2
    key = row * 7919 % n
    join = ForestJoin(TreeChain(sides=2, length=length))
    join.join(
        make_rows(
            side=row % 2,
            position=row // 2,
            key=key,
            low=key,
            high=key,
            start=np.zeros(n, np.int64),
            stop=stop,
        )
    )
    assert 0 < len(stops) < n // 20


def consecutive(keys, first):
    """Return a self join's arrivals from position *first* on: each sees all before it, close by."""
    position = np.arange(first, first + len(keys))
    return {
        "side": np.zeros(len(keys), np.int64),
        "position": position,
        "key": keys,
        "low": keys - 1,
        "high": keys + 1,
        "start": np.maximum(0, position - 40),
        "stop": position,
    }


def test_runs_of_narrow_keys_become_wide_when_one_does_not_fit():
    keys = np.concatenate([np.arange(50) % 7, np.arange(50) % 7 + (1 << 31), np.arange(50) % 7])
    join = SortedRunsJoin(self_join=True)
    assert_join_is_exact(join, (True, consecutive(keys, 0), [0, 30, 50, 75, 100, 150]))


@pytest.mark.parametrize("greatest", [6, 1 << 40])
def test_runs_hold_positions_beyond_32_bits(greatest):
    keys = np.arange(200) % 7
    keys[::40] = greatest
    for first in ((1 << 31) - 100, 1 << 40):
        join = SortedRunsJoin(self_join=True)
        assert_join_is_exact(join, (True, consecutive(keys, first), [0, 60, 120, 180, 200]))


def test_runs_are_probed_in_blocks_and_by_ranges_longer_than_one_instruction_looks_at():
    rng = np.random.default_rng(3)
    columns = consecutive(rng.integers(0, 20, 1500), 0)
    # The order of keys is not that of ranges: each looks for what lies opposite.
    columns["low"], columns["high"] = 18 - columns["key"], 20 - columns["key"]
    columns["start"] = np.maximum(0, columns["position"] - 400)
    join = SortedRunsJoin(self_join=True)
    assert_join_is_exact(join, (True, columns, [0, 700, 1400, 1500]))


def test_sorted_runs_go_on_from_a_snapshot():
    columns = consecutive(np.arange(300) % 11, 0)
    rows = make_rows(**columns)
    join = SortedRunsJoin(self_join=True, ratio=3)
    for begin in range(0, 200, 50):
        join.join(rows.part(begin, begin + 50))
    restored = SortedRunsJoin(self_join=True)
    restored.restore(join.snapshot())
    assert len(restored) == len(join)
    for one in (join, restored):
        found = one.join(rows.part(200, 300), enumerate=True)
        counts = [len(ids) for ids in matches_of(True, columns)[200:]]
        assert found.count.tolist() == counts
