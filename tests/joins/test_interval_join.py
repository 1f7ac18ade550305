"""Interval joins: the oracle and the state buffers against comparing each pair with each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.hashing import mix
from joins.indexes.interval_buffer import IntervalBuffer, first_from
from joins.indexes.key_groups import group_by_key
from joins.interval_join import IntervalJoin, with_key
from joins.machine.lanes import LOOKAHEAD
from joins.matches import Matches
from joins.oracle.evaluation import expected
from joins.queries.interval import Interval
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery
from joins.work import new_counters
from tests.joins.in_kernel import in_kernel

find_first_from = in_kernel(first_from)

INT64 = np.iinfo(np.int64)
SCHEMAS = [Schema(stream=name, fields={"k": "int64", "f": "float64"}) for name in "AB"]
PREDICATES = {
    "A.k = B.k": lambda a, b: a[1] == b[1],
    "B.f = A.f": lambda a, b: a[2] == b[2],
    "A.f = B.k": lambda a, b: a[2] == float(b[1]),
    "A.f < B.f": lambda a, b: a[2] < b[2],
    "A.f != B.f": lambda a, b: a[2] != b[2],
    "A.k >= B.f": lambda a, b: float(a[1]) >= b[2],
    "ABS(A.k - B.k) <= 1": lambda a, b: abs(a[1] - b[1]) <= 1,
}
Tuple = tuple[int, int, float]

ordinary = st.integers(-6, 6)
times = st.one_of(ordinary, st.sampled_from([INT64.min, INT64.min + 2, INT64.max - 1, INT64.max]))
keys = st.one_of(st.integers(0, 2), st.sampled_from([INT64.min, INT64.max]))
floats = st.sampled_from([0.0, -0.0, 1.0, 2.0, 0.5, float("nan"), float("inf"), float("-inf")])
streams = st.lists(st.tuples(times, keys, floats), max_size=25)


@dataclass(frozen=True)
class Case:
    """Two streams of tuples (ts, k, f), predicates, and an interval around one of them."""

    a: list[Tuple]
    b: list[Tuple]
    predicates: list[str]
    base: str
    lower: int
    upper: int

    @property
    def query(self) -> JoinQuery:
        probe = "B" if self.base == "A" else "A"
        ends = [
            f"{self.base}.ts {'-' if by < 0 else '+'} INTERVAL '{abs(by)} ns'"
            for by in (self.lower, self.upper)
        ]
        conditions = [*self.predicates, f"{probe}.ts BETWEEN {ends[0]} AND {ends[1]}"]
        return parse_query(f"SELECT * FROM A, B WHERE {' AND '.join(conditions)}")

    @property
    def batches(self) -> list[Batch]:
        return [
            Batch(
                id=np.arange(len(rows)),
                ts=np.array([row[0] for row in rows], np.int64),
                key=np.zeros(len(rows), np.int64),
                fields={
                    "k": np.array([row[1] for row in rows], np.int64),
                    "f": np.array([row[2] for row in rows], np.float64),
                },
            )
            for rows in (self.a, self.b)
        ]

    def pairs(self, late: tuple[set[int], set[int]] = (set(), set())) -> list[tuple[int, int]]:
        """Return (base id, probe id) of all pairs, by the definition."""
        found = []
        for i, a in enumerate(self.a):
            for j, b in enumerate(self.b):
                base, probe = (a, b) if self.base == "A" else (b, a)
                inside = base[0] + self.lower <= probe[0] <= base[0] + self.upper
                holds = all(PREDICATES[text](a, b) for text in self.predicates)
                if inside and holds and i not in late[0] and j not in late[1]:
                    found.append((i, j) if self.base == "A" else (j, i))
        return sorted(found)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    bounds = sorted(draw(st.tuples(ordinary, ordinary)))
    return Case(
        a=sorted(draw(streams), key=lambda row: row[0]),
        b=sorted(draw(streams), key=lambda row: row[0]),
        predicates=draw(st.lists(st.sampled_from(list(PREDICATES)), max_size=2, unique=True)),
        base=draw(st.sampled_from("AB")),
        lower=bounds[0],
        upper=bounds[1],
    )


def contradicts(case: Case) -> bool:
    return {"A.f < B.f", "B.f = A.f"} <= set(case.predicates) or {
        "A.f != B.f",
        "B.f = A.f",
    } <= set(case.predicates)


def listed(matches: Matches) -> list[tuple[int, int]]:
    """Return the pairs; check that count and fingerprint are theirs."""
    probe, match = matches.pairs()
    for row, base in enumerate(matches.probe_id):
        mine = match[probe == base]
        assert matches.count[row] == len(mine)
        assert matches.fingerprint[row] == mix(mine).sum(dtype=np.uint64)
    return list(zip(probe.tolist(), match.tolist(), strict=True))


def chunks(case: Case, rows: int) -> Iterator[Arrivals]:
    """Cut the streams, merged by time, into chunks of *rows*."""
    batches = case.batches
    ts = np.concatenate([batch.ts for batch in batches])
    stream = np.repeat([0, 1], [len(batch) for batch in batches])
    seq = np.empty(len(ts), np.int64)
    seq[np.lexsort((stream, ts))] = np.arange(len(ts))
    numbers = [seq[stream == place] for place in (0, 1)]
    for begin in range(0, len(ts), rows):
        cuts = [np.searchsorted(number, [begin, begin + rows]) for number in numbers]
        yield Arrivals(
            parts=tuple(b.slice(*cut) for b, cut in zip(batches, cuts, strict=True)),
            seq=tuple(n[slice(*cut)] for n, cut in zip(numbers, cuts, strict=True)),
        )


@given(case=cases().filter(lambda case: not contradicts(case)), data=st.data())
def test_the_oracle_finds_the_pairs_of_the_definition(case: Case, data: st.DataObject) -> None:
    """Whatever the chunks, a row per base tuple in order; late tuples have no pairs."""
    base = "AB".index(case.base)
    rows = data.draw(st.integers(1, 20))
    late_a, late_b = (
        data.draw(st.sets(st.integers(0, 24), max_size=4)) & set(range(len(stream)))
        for stream in (case.a, case.b)
    )
    late = (late_a, late_b)
    found = list(
        expected(
            case.query,
            SCHEMAS,
            chunks(case, rows),
            late=[np.array(sorted(ids), np.int64) for ids in late],
            enumerate_ids=True,
        )
    )
    assert [i for part in found for i in part.probe_id] == list(range(len((case.a, case.b)[base])))
    assert all(part.stream == base for part in found)
    assert sorted(pair for part in found for pair in listed(part)) == case.pairs(late)


@given(case=cases().filter(lambda case: not contradicts(case)), data=st.data())
def test_state_buffers_find_every_pair_once_in_any_order_of_arrival(
    case: Case, data: st.DataObject
) -> None:
    """Batches of any size, tuples of each stream in any order, restored on the way."""
    join = IntervalJoin(case.query, SCHEMAS)
    queues = []
    for stream, batch in enumerate(case.batches):
        order = np.array(data.draw(st.permutations(range(len(batch)))), np.int64)
        queues.append(with_key(case.query, SCHEMAS, stream, batch.take(order)))
    found = []
    while any(len(queue) for queue in queues):
        stream = data.draw(st.sampled_from([s for s in (0, 1) if len(queues[s])]))
        size = data.draw(st.integers(1, 8))
        batch, queues[stream] = queues[stream].slice(0, size), queues[stream].slice(size, 99)
        every, ever = np.ones(len(batch), np.bool_), INT64.min
        counted = join.join(stream, batch, ~every, watermark=ever, low_watermark=ever)
        joined = join.join(
            stream, batch, ~every, watermark=ever, low_watermark=ever, enumerate=True
        )
        assert (counted.matches.fingerprint == joined.matches.fingerprint).all()
        assert counted.work == joined.work
        assert joined.work.matches == joined.matches.total
        for row, base in zip(joined.row.tolist(), joined.matches.probe_id, strict=True):
            ids = [b for a, b in listed(joined.matches) if a == base]
            assert batch.id[row] == base or batch.id[row] in ids
        found += listed(joined.matches)
        join.join(stream, batch, every, watermark=ever, low_watermark=ever)
        state = join.snapshot()
        join = IntervalJoin(case.query, SCHEMAS)
        join.restore(state)
    assert sorted(found) == case.pairs()


@given(
    ts=st.lists(times, min_size=1, max_size=10),
    bounds=st.tuples(st.integers(-(2**62), 2**62), st.integers(-(2**62), 2**62)).map(sorted),
    stream=st.integers(0, 1),
    other=times,
)
def test_offsets_and_horizon_are_exact_at_the_ends_of_time(
    ts: list[int], bounds: list[int], stream: int, other: int
) -> None:
    interval = Interval(base=0, lower_ns=bounds[0], upper_ns=bounds[1])
    lower, upper = interval.offsets(stream)
    beside = np.append(other, np.zeros(LOOKAHEAD, np.int64))
    counters = new_counters()
    for t in ts:
        base, probe = (t, other) if stream == 0 else (other, t)
        joins = base + bounds[0] <= probe <= base + bounds[1]
        from_lower, from_past = (
            bool(find_first_from(beside, 0, 1, t, by, counters) == 0) for by in (lower, upper + 1)
        )
        assert (from_lower and not from_past) == joins
        # A stored tuple must stay while a tuple as new as the watermark may join it.
        if joins:
            assert t >= interval.horizon(stream, other)


def w1(rows: int) -> list[Batch]:
    """Return the streams of the published comparison: 50 keys, one tuple a millisecond each."""
    ids = np.arange(rows)
    return [
        Batch(
            id=ids,
            ts=ids * 1_000_000 + shift,
            key=np.zeros(rows, np.int64),
            fields={"k": (mix((seed << 48) ^ ids) % np.uint64(50)).astype(np.int64)},
        )
        for seed, shift in ((1, 0), (2, 501_000))
    ]


W1 = (
    "SELECT * FROM A, B WHERE A.k = B.k "
    "AND B.ts BETWEEN A.ts - INTERVAL '100 ms' AND A.ts + INTERVAL '100 ms'"
)


def test_a_hundred_thousand_tuples_a_stream_have_the_known_number_of_pairs() -> None:
    """399,272, by the oracle and by the state buffers, which hold no more than the interval."""
    rows, step = 100_000, 2_000
    query = parse_query(W1)
    schemas = [Schema(stream=name, fields={"k": "int64"}) for name in "AB"]
    a, b = w1(rows)
    arrivals = [
        Arrivals(
            parts=(a.slice(i, i + step), b.slice(i, i + step)),
            seq=(2 * a.id[i : i + step], 2 * b.id[i : i + step] + 1),
        )
        for i in range(0, rows, step)
    ]
    oracle = list(expected(query, schemas, arrivals))
    assert sum(matches.total for matches in oracle) == 399_272
    join = IntervalJoin(query, schemas)
    sums = {"count": np.zeros(rows, np.int64), "fingerprint": np.zeros(rows, np.uint64)}
    most_bytes = 0
    for chunk in arrivals:
        for stream, part in enumerate(chunk.parts):
            batch = with_key(query, schemas, stream, part)
            watermark = int(part.ts[0])
            every = np.ones(len(batch), np.bool_)
            joined = join.join(stream, batch, every, watermark=watermark, low_watermark=watermark)
            matches = joined.matches
            for name, total in sums.items():
                np.add.at(total, matches.probe_id, getattr(matches, name))
            most_bytes = max(most_bytes, sum(buffer.nbytes for buffer in join.buffers))
    for name, total in sums.items():
        assert (np.concatenate([getattr(part, name) for part in oracle]) == total).all()
    assert len(join) < 3 * step
    assert most_bytes < 100 * 10 * step


def test_keys_that_are_no_longer_seen_take_no_room() -> None:
    """Two hundred thousand keys of one tuple each pass through a buffer of some thousand tuples."""
    buffer = IntervalBuffer(0)
    step = 1_000
    for begin in range(0, 200_000, step):
        ids = np.arange(begin, begin + step)
        groups = group_by_key(ids * 7, ids, ids)
        nothing = np.empty((0, step), np.int64)
        buffer.insert(groups, nothing, horizon=begin, floor=begin)
    assert buffer.nbytes < 1_000_000
    buffer.expire(200_000)
    assert len(buffer) == 0


@pytest.mark.parametrize("horizon", [0, 5, 10])
def test_what_is_before_the_horizon_leaves_and_nothing_else(horizon: int) -> None:
    buffer = IntervalBuffer(0)
    ids = np.arange(10)
    nothing = np.empty((0, 10), np.int64)
    buffer.insert(group_by_key(ids % 3, ids, ids), nothing, horizon=0, floor=0)
    buffer.expire(horizon)
    assert len(buffer) == 10 - horizon
