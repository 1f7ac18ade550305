"""Each structure under random lives, against a plain list of its tuples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import settings
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
from joins.indexes.index import make_ranges
from joins.indexes.panjoin.bi_sort import BiSort
from joins.indexes.panjoin.subwindow import STRUCTURES, Subwindow, SubwindowShape, probe_subwindows
from joins.indexes.panjoin.wib_tree import WibTree
from tests.joins.indexes.panjoin.plain import assert_found, fits, insert_in_order

BOUNDS = np.iinfo(np.int64)
EDGES = [np.iinfo(np.int32).min, np.iinfo(np.int32).max, BOUNDS.max - 1]
INTS = (
    st.integers(-3, 3)
    | st.integers(-60, 60)
    | st.sampled_from([BOUNDS.min, BOUNDS.max])
    | st.builds(lambda edge, by: int(edge) + by, st.sampled_from(EDGES), st.integers(-1, 1))
)
_FLOATS = [0.0, 0.1, 0.30000000000000004, -2.5, 1e300, 5e-324, np.inf, -np.inf]
CODES_OF_FLOATS = st.sampled_from(encode(np.array(_FLOATS)).tolist()) | st.integers(-40, 40).map(
    lambda i: int(encode(np.array([i / 10]))[0])
)
CODES = {"int64": INTS | CODES_OF_FLOATS, "float64": CODES_OF_FLOATS}
"""By the dtype in which a RaP-Table interpolates, codes that it may meet."""


class Life(RuleBasedStateMachine):
    """A chain of subwindows: the newest grows, the others are probed, the oldest goes."""

    kind: Any = "bi_sort"
    dtype = "int64"
    first = 70

    @initialize(capacity=st.integers(1, 90), data=st.data())
    def start(self, capacity: int, data: st.DataObject) -> None:
        partitions = data.draw(st.integers(1, capacity))
        sigma = data.draw(st.sampled_from([1.01, 1.25, 2.0]))
        self.shape = SubwindowShape(
            predicates=2,
            capacity=capacity,
            partitions=partitions,
            sigma=sigma,
            dtype=self.dtype,
        )
        self.chain: list[Subwindow] = []
        self.keys, self.others = np.empty((2, 0), np.int64)
        self.begin_subwindow(self.first)

    def begin_subwindow(self, first: int) -> None:
        splitters = self.chain[-1].sampled if self.chain else None
        subwindow = Subwindow(self.shape, self.kind, first=first, splitters=splitters)
        # Small enough for trees of several levels and buffers that run over.
        if isinstance(subwindow.structure, BiSort):
            structure = subwindow.structure
            subwindow.structure = BiSort(self.shape.capacity, self.shape.partitions, buffer=7)
            assert type(structure) is type(subwindow.structure)
        elif isinstance(subwindow.structure, WibTree):
            subwindow.structure = WibTree(
                self.shape.capacity, self.shape.partitions, self.shape.sigma, fanout=4
            )
        self.chain.append(subwindow)

    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        if len(self.chain[-1]) == self.shape.capacity:
            self.chain[-1].seal()
            self.begin_subwindow(self.chain[-1].stop)  # with splitters adjusted, if it has any
        room = min(40, self.shape.capacity - len(self.chain[-1]))
        keys = np.array(data.draw(st.lists(CODES[self.dtype], min_size=1, max_size=room)))
        if data.draw(st.booleans()):
            keys = np.sort(keys)  # values that rise with time
        others = np.array(data.draw(st.lists(INTS, min_size=len(keys), max_size=len(keys))))
        insert_in_order(self.chain[-1], [keys, others])
        self.keys = np.concatenate([self.keys, keys])
        self.others = np.concatenate([self.others, others])

    @rule(
        data=st.data(), negated=st.tuples(st.booleans(), st.booleans()), threads=st.integers(1, 2)
    )
    def probe(self, data: st.DataObject, negated: tuple[bool, bool], threads: int) -> None:
        value = CODES[self.dtype]
        position = st.integers(self.first - 5, self.first + len(self.keys) + 5)
        probes = data.draw(
            st.lists(st.tuples(value, value, INTS, INTS, position, position), max_size=12)
        )
        if data.draw(st.booleans()):
            probes.sort(key=lambda probe: probe[:2])
        columns = np.array(probes, np.int64).reshape(-1, 6).T
        low, high, least, most, start, stop = (np.ascontiguousarray(column) for column in columns)
        ranges = make_ranges([low, least], [high, most], negated=negated, start=start, stop=stop)
        found = probe_subwindows(self.chain, ranges, enumerate=True, threads=threads)
        positions = self.first + np.arange(len(self.keys))
        oldest = self.chain[0].first
        expected = [
            positions[
                fits(self.keys, low[i], high[i], negated[0])
                & fits(self.others, least[i], most[i], negated[1])
                & (start[i] <= positions)
                & (positions < stop[i])
                & (positions >= oldest)
            ]
            for i in range(len(probes))
        ]
        assert_found(found, expected)
        assert found.work.matches == sum(len(matches) for matches in expected)

    @precondition(lambda self: len(self.chain) > 1)
    @rule()
    def expire(self) -> None:
        del self.chain[0]

    @rule()
    def go_through_a_snapshot(self) -> None:
        self.chain = [Subwindow.from_snapshot(subwindow.snapshot()) for subwindow in self.chain]

    @invariant()
    def the_table_never_needs_more_than_its_entries(self) -> None:
        for subwindow in getattr(self, "chain", []):
            llat = getattr(subwindow.structure, "llat", None)
            if llat is not None:
                assert llat.used[0] <= 2 * self.shape.partitions == len(llat.size)
            assert len(subwindow.structure) == len(subwindow)


@pytest.mark.parametrize("dtype", ["int64", "float64"])
@pytest.mark.parametrize("kind", list(STRUCTURES))
def test_it_finds_what_a_plain_list_finds(kind: str, dtype: str) -> None:
    life = type(f"Life_{kind}_{dtype}", (Life,), {"kind": kind, "dtype": dtype})
    run_state_machine_as_test(
        life, settings=settings(max_examples=40, stateful_step_count=15, deadline=None)
    )


@pytest.mark.parametrize("kind", list(STRUCTURES))
@pytest.mark.parametrize("pattern", ["even", "one value", "rising", "descending beside a frequent"])
def test_the_table_suffices_and_the_answer_is_right_for_any_order_of_values(
    kind: Any, pattern: str
) -> None:
    count = 3_000
    rng = np.random.default_rng(3)
    keys = {
        "even": rng.integers(0, 10_000, count),
        "one value": np.full(count, 5),
        "rising": np.arange(count),
        "descending beside a frequent": np.where(rng.random(count) < 0.5, 0, -np.arange(count)),
    }[pattern].astype(np.int64)
    shape = SubwindowShape(predicates=1, capacity=count, partitions=60, sigma=1.05)
    subwindow = Subwindow(shape, kind, first=0, splitters=np.arange(59) * 17)
    for begin in range(0, count, 100):
        insert_in_order(subwindow, [keys[begin : begin + 100]])
    llat = getattr(subwindow.structure, "llat", None)
    assert llat is None or llat.used[0] <= 120
    low = np.sort(rng.integers(-count, 10_000, 600))
    high = low + rng.integers(0, 500, 600)
    found = probe_subwindows([subwindow], make_ranges([low], [high]))
    ordered = np.sort(keys)
    expected = np.searchsorted(ordered, high, "right") - np.searchsorted(ordered, low, "left")
    assert (found.count == expected).all()


@pytest.mark.parametrize("kind", list(STRUCTURES))
def test_threads_change_neither_the_answer_nor_the_work(kind: Any) -> None:
    rng, probes = np.random.default_rng(5), 25_000
    shape = SubwindowShape(predicates=1, capacity=5_000, partitions=100, sigma=1.25)
    chain = [Subwindow(shape, kind, first=first) for first in (0, 5_000)]
    for subwindow in chain:
        insert_in_order(subwindow, [rng.integers(0, 20_000, 5_000)])
    low = np.sort(rng.integers(0, 20_000, probes))
    asked = make_ranges([low], [low + 7], negated=[False], start=np.arange(probes) // 3)
    alone = probe_subwindows(chain, asked, enumerate=True)
    for threads in (2, 5):
        shared = probe_subwindows(chain, asked, enumerate=True, threads=threads)
        assert (shared.count == alone.count).all()
        assert (shared.fingerprint == alone.fingerprint).all()
        assert alone.match_id is not None
        assert shared.match_id is not None
        assert np.array_equal(shared.match_id, alone.match_id)
        assert shared.work == alone.work


@pytest.mark.parametrize(
    ("keys", "positions", "message"),
    [
        ([2, 1], [0, 1], "ascending order"),
        ([1, 2], [0, 2], "every position from 0 to 1"),
        ([1, 2], [0, 0], "every position from 0 to 1"),
        ([1, 2, 3, 4], [0, 1, 2, 3], "4 tuples do not fit"),
    ],
)
def test_a_batch_that_is_not_the_next_one_is_refused(
    keys: list[int], positions: list[int], message: str
) -> None:
    shape = SubwindowShape(predicates=1, capacity=3, partitions=1, sigma=1.25)
    subwindow = Subwindow(shape, "bi_sort", first=0)
    with pytest.raises(ValueError, match=message):
        subwindow.insert([np.array(keys)], np.array(positions))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"capacity": 0}, "capacity is 0"),
        ({"partitions": 9}, "partitions is 9, must be 1 to 8"),
        ({"partitions": 0}, "partitions is 0"),
        ({"sigma": 1.0}, "sigma is 1.0, must be above 1"),
    ],
)
def test_a_shape_that_cannot_be_is_refused(changes: dict[str, Any], message: str) -> None:
    shape: dict[str, Any] = {"predicates": 1, "capacity": 8, "partitions": 2, "sigma": 1.25}
    with pytest.raises(ValueError, match=message):
        SubwindowShape(**shape | changes)
