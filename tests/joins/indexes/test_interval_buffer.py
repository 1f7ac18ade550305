"""State buffers of interval joins against a plain list, in any order of what is done to them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from joins.hashing import mix
from joins.indexes.index import Ranges
from joins.indexes.interval_buffer import IntervalBuffer, JoinedPairs, Reach, first_from
from joins.indexes.key_groups import KeyGroups, group_by_key
from joins.machine.lanes import LOOKAHEAD
from joins.work import new_counters
from tests.joins.in_kernel import in_kernel

find_first_from = in_kernel(first_from)

INT64 = np.iinfo(np.int64)
rows_of = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30), st.integers(0, 3)), max_size=12)


class Stored(NamedTuple):
    """A tuple as the model keeps it."""

    key: int
    ts: int
    value: int
    id: int


def grouped(rows: list[Stored]) -> KeyGroups:
    columns = np.array([(r.key, r.ts, r.id) for r in rows], np.int64).reshape(-1, 3).T
    return group_by_key(*(np.ascontiguousarray(column) for column in columns))


def as_pairs(found: JoinedPairs) -> list[tuple[int, int]]:
    """Return (id of the row, id of its match); check that count, sum and match ids agree."""
    matches, match_id = found.matches, found.matches.match_id
    assert match_id is not None
    ends = np.cumsum(matches.count)
    assert (matches.count > 0).all()
    assert found.work.matches == len(match_id) == matches.count.sum()
    pairs = []
    for one, end, count, fingerprint in zip(
        matches.probe_id.tolist(), ends, matches.count, matches.fingerprint, strict=True
    ):
        mine = match_id[end - count : end]
        assert fingerprint == mix(mine).sum(dtype=np.uint64)
        pairs += [(one, other) for other in mine.tolist()]
    return pairs


class Buffer(RuleBasedStateMachine):
    """A buffer, and the list of what it must still find."""

    @initialize(conditions=st.integers(0, 2))
    def begin(self, conditions: int) -> None:
        self.conditions = conditions
        self.buffer = IntervalBuffer(conditions)
        self.stored: list[Stored] = []
        self.horizon = 0
        self.now = 0
        self.next_id = 0

    def made(self, rows: list[tuple[int, int, int]]) -> list[Stored]:
        made = [
            Stored(key, self.now + ago, value, self.next_id + i)
            for i, (key, ago, value) in enumerate(rows)
        ]
        self.next_id += len(rows)
        return made

    def values(self, rows: list[Stored]) -> np.ndarray:
        return np.array([[r.value + c for r in rows] for c in range(self.conditions)]).reshape(
            self.conditions, len(rows)
        )

    @rule(rows=rows_of, own=st.integers(0, 3))
    def insert(self, rows: list[tuple[int, int, int]], own: int) -> None:
        """Store some of a batch, tuples in any order of time."""
        made = self.made(rows)
        chosen = np.array([r.id % 4 >= own for r in made], np.bool_)
        groups = grouped(made) if own == 0 else grouped(made).only(chosen)
        work = self.buffer.insert(
            groups, self.values(made), horizon=self.horizon, floor=self.horizon
        )
        assert work.inserts == chosen.sum()
        self.stored += [r for r, mine in zip(made, chosen, strict=True) if mine]

    @rule(by=st.integers(0, 40))
    def advance(self, by: int) -> None:
        """Let time go on; what is behind the horizon may leave at any moment."""
        self.now += by
        self.horizon = max(self.horizon, self.now - 20)
        self.stored = [r for r in self.stored if r.ts >= self.horizon]

    @rule()
    def expire(self) -> None:
        self.buffer.expire(self.horizon)
        assert len(self.buffer) == len(self.stored)

    @rule()
    def restore(self) -> None:
        """Go on with a buffer made from a snapshot."""
        self.buffer = IntervalBuffer.from_snapshot(self.buffer.snapshot())

    @rule(rows=rows_of, bounds=st.tuples(st.integers(0, 15), st.integers(0, 15)).map(sorted))
    def probe(self, rows: list[tuple[int, int, int]], bounds: list[int]) -> None:
        """Look from both sides for pairs whose values are within one of each other."""
        probing, (lower, upper) = self.made(rows), bounds
        groups = grouped(probing)
        values = self.values(probing)
        negated = np.zeros(self.conditions, np.bool_)
        nothing = np.empty(0, np.int64)
        ranges = Ranges(values - 1, values + 1, negated, nothing, nothing)
        reach = Reach(lower, upper + 1)
        expected = sorted(
            (p.id, s.id)
            for p in probing
            for s in self.stored
            if p.key == s.key
            and lower <= s.ts - p.ts <= upper
            and (not self.conditions or abs(p.value - s.value) <= 1)
        )
        found = self.buffer.probe(0, groups, reach, ranges, enumerate=True)
        assert sorted(as_pairs(found)) == expected
        assert [probing[i].id for i in found.row] == found.matches.probe_id.tolist()
        turned = self.buffer.probe_stored(1, groups, reach, ranges, enumerate=True)
        assert (found.matches.stream, turned.matches.stream) == (0, 1)
        pairs = as_pairs(turned)
        assert sorted((p, s) for s, p in pairs) == expected
        ts = {p.id: p.ts for p in probing}
        for stored, row in zip(turned.matches.probe_id.tolist(), turned.row.tolist(), strict=True):
            assert probing[row].ts == min(ts[p] for s, p in pairs if s == stored)

    @invariant()
    def holds_no_less_than_it_must(self) -> None:
        assert len(self.buffer) >= len(self.stored)


Buffer.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
TestBuffer = Buffer.TestCase


@given(
    keys=st.lists(st.one_of(st.integers(0, 3), st.integers(INT64.min, INT64.max)), max_size=40),
    data=st.data(),
)
def test_groups_hold_each_row_once_by_key_and_time(keys: list[int], data: st.DataObject) -> None:
    n = len(keys)
    ts = np.array(data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), np.int64)
    key, ids = np.array(keys, np.int64), np.arange(n) + 7
    groups = group_by_key(key, ts, ids)
    begins = [0, *groups.ends.tolist()[:-1]] if n else []
    assert sorted(groups.keys.tolist()) == sorted(set(keys))
    assert (groups.ids == groups.order + 7).all()
    assert (groups.ts[:n] == ts[groups.order]).all()
    assert (np.diff(groups.sums) == mix(groups.ids)).all()
    found = []
    for number, begin, end in zip(groups.keys, begins, groups.ends, strict=True):
        rows = groups.order[begin:end].tolist()
        assert (key[rows] == number).all()
        assert rows == sorted(rows, key=lambda row: (ts[row], row))
        found += rows
    assert sorted(found) == list(range(n))


@given(times=st.lists(st.integers(-50, 50), max_size=70), value=st.integers(-60, 60))
@pytest.mark.parametrize("begin", [0, 1, 7])
def test_the_first_place_from_a_time_is_found_from_anywhere_before_it(
    times: list[int], value: int, begin: int
) -> None:
    column, end = np.array([*sorted(times), *[0] * LOOKAHEAD], np.int64), len(times)
    begin = min(begin, end)
    counters = new_counters()
    place = find_first_from(column, begin, end, value, 0, counters)
    assert place == max(begin, int(np.searchsorted(column[:end], value)))
    assert counters.sum() <= 2 * max(1, end - begin).bit_length() + 2
