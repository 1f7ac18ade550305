"""The oracle against other statements of the same meaning: plain Python, and SQL in DuckDB."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.hashing import mix, mix_rows
from joins.oracle import match
from joins.oracle.evaluation import expected
from joins.queries.conditions import ComparisonOperator
from joins.queries.parser import parse_query

COMPARE = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "=": operator.eq,
    "!=": operator.ne,
}
FIELDS = {"x": "float64", "y": "int64"}
Pair = tuple[int, int, int]
"""Probing stream, probe id, match id."""


@dataclass(frozen=True)
class Test:
    """One predicate, in no language yet: of the probing stream 0 (or the newer tuple) and another.

    *width* is None for a comparison.
    """

    __test__ = False

    left: str
    op: str
    right: str
    width: str | None = None

    def spelt(self, left: str, right: str) -> str:
        """Return it with the two sides spelt by these patterns."""
        sides = left.format(self.left), right.format(self.right)
        if self.width is None:
            return f"{sides[0]} {self.op} {sides[1]}"
        return f"ABS({sides[0]} - {sides[1]}) {self.op} {self.width}"

    def holds(self, left: dict[str, Any], right: dict[str, Any]) -> bool:
        a, b = left[self.left], right[self.right]
        if self.left != self.right:  # int64 against float64 is compared as float64
            a, b = float(a), float(b)
        if self.width is None:
            return COMPARE[self.op](a, b)
        width = Fraction(self.width) if isinstance(a, int) else float(self.width)
        return COMPARE[self.op](abs(a - b), width)


@dataclass(frozen=True)
class Case:
    """A join: predicates, a window, and per stream the columns of its tuples and their order."""

    tests: list[Test]
    unit: str
    slide: int
    length: int
    precise: bool
    streams: list[dict[str, np.ndarray]]

    @property
    def query(self) -> str:
        two_way = len(self.streams) == 2
        sides = ("R.{}", "S.{}") if two_way else ("{}1", "{}2")
        return (
            f"SELECT * FROM {'R, S' if two_way else 'T'} "
            f"WHERE {' AND '.join(test.spelt(*sides) for test in self.tests)} WINDOW AS "
            f"(SLIDE INTERVAL '{self.slide}{self.unit}' ON '{self.length}{self.unit}'"
            f"{' PRECISE' if self.precise else ''})"
        )

    def chunks(self, rows: int) -> Iterator[Arrivals]:
        """Cut the arrivals into chunks of *rows*."""
        total = sum(len(stream["seq"]) for stream in self.streams)
        for begin in range(0, total, rows):
            parts, numbers = [], []
            for columns in self.streams:
                start, stop = np.searchsorted(columns["seq"], [begin, begin + rows])
                ids = np.arange(start, stop)
                cut = {name: column[start:stop] for name, column in columns.items()}
                fields = {name: cut[name] for name in FIELDS}
                parts.append(Batch(id=ids, ts=cut["ts"], key=np.zeros_like(ids), fields=fields))
                numbers.append(cut["seq"])
            yield Arrivals(parts=tuple(parts), seq=tuple(numbers))

    def pairs(self, rows: int) -> list[Pair]:
        """Return the oracle's pairs; check that its sums are those of its pairs."""
        query = parse_query(self.query)
        schemas = [Schema(stream=name, fields=FIELDS) for name in query.streams]
        counted = list(expected(query, schemas, self.chunks(rows)))
        listed = list(expected(query, schemas, self.chunks(rows), enumerate_ids=True))
        found: list[Pair] = []
        for stream, columns in enumerate(self.streams):
            probes = [m.probe_id for m in counted if m.stream == stream]
            assert np.concatenate(probes).tolist() == list(range(len(columns["seq"])))
        assert all(sums.match_id is None for sums in counted)
        sums_of = {
            (sums.stream, probe): (count, fingerprint)
            for sums in counted
            for probe, count, fingerprint in zip(
                *(column.tolist() for column in (sums.probe_id, sums.count, sums.fingerprint)),
                strict=True,
            )
        }
        for matches in listed:
            probe, match = matches.pairs()
            for row, probe_id in enumerate(matches.probe_id.tolist()):
                mine = match[probe == probe_id]
                assert (np.diff(mine) > 0).all()
                sums_ = (int(matches.count[row]), int(mix(mine).sum(dtype=np.uint64)))
                assert sums_of[matches.stream, probe_id] == sums_
                assert sums_[0] == len(mine)
            streams = np.full(len(probe), matches.stream)
            found += zip(streams.tolist(), probe.tolist(), match.tolist(), strict=True)
        return sorted(found)


def by_definition(case: Case) -> list[Pair]:
    """Evaluate *case* pair by pair, as DESIGN's definitions read."""
    rows = [
        [dict(zip(s, map(_python, row), strict=True)) for row in zip(*s.values(), strict=True)]
        for s in case.streams
    ]
    found = []
    for probing, probes in enumerate(rows):
        other = len(rows) - 1 - probing
        for p, probe in enumerate(probes):
            k = sum(stored["seq"] < probe["seq"] for stored in rows[other])
            at = probe["ts"] if case.unit else k
            oldest = at // case.slide * case.slide - (case.length - case.slide)
            for s, stored in enumerate(rows[other][:k]):
                if case.precise:
                    seen = probe["ts"] - case.length <= stored["ts"] < probe["ts"]
                else:
                    seen = (stored["ts"] if case.unit else s) >= oldest
                left, right = (probe, stored) if probing == 0 else (stored, probe)
                if seen and all(test.holds(left, right) for test in case.tests):
                    found.append((probing, p, s))
    return found


def _python(value: np.generic) -> int | float:
    return value.item()


def by_duckdb(case: Case) -> list[Pair]:
    """Evaluate *case* as one theta join in SQL for each probing stream."""
    found: list[Pair] = []
    for probing, columns in enumerate(case.streams):
        other = len(case.streams) - 1 - probing
        probe = pa.table({"id": np.arange(len(columns["seq"])), **columns})
        columns = case.streams[other]
        stored = pa.table({"id": np.arange(len(columns["seq"])), **columns})
        sides = ("p.{}", "s.{}") if probing == 0 else ("s.{}", "p.{}")
        predicates = " AND ".join(test.spelt(*sides) for test in case.tests)
        seen, at = ("s.ts", "p.ts") if case.unit else ("s.id", "p.k")
        window = (
            f"{seen} >= {at} // {case.slide} * {case.slide} - ({case.length} - {case.slide})"
            if not case.precise
            else f"s.ts >= p.ts - {case.length} AND s.ts < p.ts"
        )
        with duckdb.connect() as connection:
            connection.register("probe", probe)
            connection.register("stored", stored)
            rows = connection.execute(
                "WITH p AS (SELECT *, (SELECT count(*) FROM stored WHERE stored.seq < probe.seq) "
                "AS k FROM probe) SELECT p.id, s.id FROM p JOIN stored AS s "
                f"ON {predicates} AND s.seq < p.seq AND {window}"
            ).fetchall()
        found += [(probing, probe_id, match_id) for probe_id, match_id in rows]
    return sorted(found)


def streams_of(
    stream: np.ndarray, ts: np.ndarray, x: np.ndarray, y: np.ndarray
) -> list[dict[str, np.ndarray]]:
    """Put rows into arrival order (event time, then stream) and split them by stream."""
    order = np.lexsort((stream, ts))
    seq = np.arange(len(ts))
    found = []
    for number in range(int(stream.max(initial=0)) + 1):
        mine = stream[order] == number
        columns = {"ts": ts[order], "x": x[order], "y": y[order], "seq": seq}
        found.append({name: column[mine] for name, column in columns.items()})
    return found


_tests = st.builds(
    Test, st.sampled_from("xy"), st.sampled_from(list(COMPARE)), st.sampled_from("xy")
) | st.builds(
    Test,
    st.sampled_from("xy"),
    st.sampled_from(["<", "<="]),
    st.sampled_from("xy"),
    st.sampled_from(["0.1", "0.5", "2", "2.5", "9223372036854775809"]),
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a small join, dense with ties, with values at the ends of int64."""
    fields = st.lists(
        _tests, min_size=1, max_size=3, unique_by=lambda test: (test.left, test.right)
    )
    slide = draw(st.integers(1, 6))
    unit = draw(st.sampled_from(["", " ns"]))
    size = draw(st.integers(2, 30))
    two_way = draw(st.booleans())

    def column(values: st.SearchStrategy, dtype: str) -> np.ndarray:
        return np.array(draw(st.lists(values, min_size=size, max_size=size)), dtype)

    stream = column(st.integers(0, 1 if two_way else 0), "int64")
    if two_way:
        stream[:2] = 0, 1
    floats = st.sampled_from([i / 10 for i in range(-3, 8)] + [0.30000000000000004, -0.0, 1e308])
    ints = st.integers(-3, 4) | st.sampled_from([-(2**63), 2**63 - 1])
    middle = draw(st.sampled_from([0, 10 - 2**63]))  # windows may begin before all of int64
    return Case(
        tests=draw(fields),
        unit=unit,
        slide=slide,
        length=slide * draw(st.integers(1, 5)),
        precise=bool(unit) and draw(st.booleans()),
        streams=streams_of(
            stream,
            column(st.integers(middle - 10, middle + 25), "int64"),
            column(floats, "float64"),
            column(ints, "int64"),
        ),
    )


@settings(deadline=None)  # the first call compiles
@given(case=cases(), rows=st.integers(1, 40))
def test_pairs_are_those_of_the_definitions(case: Case, rows: int) -> None:
    """However the arrivals are cut, the pairs are those found by comparing each with each."""
    assert case.pairs(rows) == by_definition(case)


TWO_INEQUALITIES = [Test("x", ">", "x"), Test("y", "<", "y")]
TWO_BANDS = [Test("x", "<", "x", "0.03"), Test("y", "<=", "y", "40")]
UNEQUAL = [Test("y", "!=", "y"), Test("x", "<=", "x", "0.1"), Test("y", ">=", "x")]


@pytest.mark.parametrize("tests", [TWO_INEQUALITIES, TWO_BANDS, UNEQUAL])
@pytest.mark.parametrize("streams", [1, 2])
@pytest.mark.parametrize(
    ("unit", "slide", "length", "precise"),
    [("", 1, 100, False), ("", 25, 150, False), (" ns", 50, 400, False), (" ns", 50, 400, True)],
)
def test_pairs_are_those_of_sql(
    tests: list[Test], streams: int, unit: str, slide: int, length: int, precise: bool
) -> None:
    """DuckDB finds the same pairs on random data with ties in time and in every field."""
    rng = np.random.default_rng([slide, length, streams, precise])
    rows = 1_500
    case = Case(
        tests=tests,
        unit=unit,
        slide=slide,
        length=length,
        precise=precise,
        streams=streams_of(
            rng.integers(0, streams, rows),
            rng.integers(0, 2 * rows, rows),
            rng.integers(0, 100, rows) / 100,
            rng.integers(0, 200, rows),
        ),
    )
    found = case.pairs(rows=400)
    assert len(found) > 500
    assert found == by_duckdb(case)


def test_two_inequalities_over_fifty_thousand_tuples_have_the_known_number_of_matches() -> None:
    """50,000 stored tuples, the next 2,000 as probes, two inequalities: 24,505,143 pairs."""

    def fields(start: int, stop: int) -> dict[str, np.ndarray]:
        rows = np.arange(start, stop, dtype=np.uint64)
        salted = {name: mix((np.uint64(salt) << np.uint64(48)) ^ rows) for name, salt in SALTS}
        return {k: (v % np.uint64(74_999)).astype(np.int64) + 1 for k, v in salted.items()}

    def batch(start: int, stop: int) -> Batch:
        ids = np.arange(stop - start)
        return Batch(id=ids, ts=ids + start, key=np.zeros_like(ids), fields=fields(start, stop))

    stored, probes = batch(0, 50_000), batch(50_000, 52_000)
    query = parse_query(
        "SELECT * FROM S, P WHERE S.D < P.D AND S.F > P.F "
        "WINDOW AS (SLIDE INTERVAL '50000' ON '100000')"
    )
    schemas = [Schema(stream=name, fields={"D": "int64", "F": "int64"}) for name in query.streams]
    arrivals = Arrivals(parts=(stored, probes), seq=(stored.ts, probes.ts))
    found = list(expected(query, schemas, [arrivals]))
    assert sum(matches.total for matches in found if matches.stream == 1) == 24_505_143
    assert sum(matches.total for matches in found if matches.stream == 0) == 0


SALTS = (("D", 11), ("F", 12))


@pytest.mark.parametrize(
    "extent",
    [
        "AND S.ts BETWEEN R.ts - INTERVAL '90 ns' AND R.ts + INTERVAL '90 ns'",
        "WINDOW AS (SLIDE INTERVAL '1' ON '90')",
    ],
)
def test_what_the_joins_take_for_an_equality_does_not_matter(
    extent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were they to look tuples up by an order, the verdict should find those that it misses."""
    query = parse_query(f"SELECT * FROM R, S WHERE R.x <= S.x AND R.y = S.y {extent}")
    rng = np.random.default_rng(3)
    schemas = [Schema(stream=name, fields={"x": "int64", "y": "int64"}) for name in "RS"]
    ids = np.arange(100)
    r, s = (
        Batch(id=ids, ts=2 * ids + shift, key=0 * ids, fields={"x": x, "y": ids % 5})
        for shift, x in enumerate(rng.integers(0, 1_000, (2, 100)))
    )

    def pairs() -> int:
        arrivals = Arrivals(parts=(r, s), seq=(r.ts, s.ts))
        return sum(matches.total for matches in expected(query, schemas, [arrivals]))

    found = pairs()
    monkeypatch.setattr(
        ComparisonOperator, "is_equality", property(lambda self: self.symbol != "=")
    )
    assert pairs() == found > 100


# The multi-way oracle against the definition, spelt out in plain Python.


SCHEMAS = tuple(Schema(stream=name, fields={"x": "int64", "y": "float64"}) for name in "ABC")
QUERIES = {
    "A.x = B.x AND B.y < C.y": lambda a, b, c: a[1] == b[1] and b[2] < c[2],
    "A.x = B.x AND B.x = C.x AND ABS(A.y - C.y) <= 0.5": lambda a, b, c: (
        a[1] == b[1] == c[1] and abs(a[2] - c[2]) <= 0.5
    ),
    "C.x >= A.x AND B.y != C.y": lambda a, b, c: operator.ge(c[1], a[1]) and b[2] != c[2],
}
WINDOWS = [
    "AS (SLIDE INTERVAL '2' ON '6')",
    "AS (SLIDE INTERVAL '1 ns' ON '5 ns' PRECISE)",
    "C AS (SLIDE INTERVAL '1' ON '4'), A AS (SLIDE INTERVAL '2 ns' ON '6 ns'), "
    "B AS (SLIDE INTERVAL '3' ON '3')",
]

Row = tuple[int, int, float]  # ts, x, y


@settings(max_examples=60)
@given(
    streams=st.tuples(
        *[
            st.lists(
                st.tuples(st.integers(0, 3), st.integers(0, 2), st.sampled_from([0.0, 0.5, 1.0])),
                max_size=14,
            )
        ]
        * 3
    ),
    condition=st.sampled_from(list(QUERIES)),
    window=st.sampled_from(WINDOWS),
    chunk=st.integers(1, 12),
    near=st.booleans(),
)
def test_every_result_once_at_its_newest_tuple(
    streams: tuple[list[Row], ...], condition: str, window: str, chunk: int, near: bool
) -> None:
    """All triples that satisfy the query and that their newest tuple saw in their windows.

    Whether only near values are compared, or all.
    """
    query = parse_query(f"SELECT * FROM A, B, C WHERE {condition} WINDOW {window}")
    rows = [
        [
            (int(ts), x, y)
            for ts, (_, x, y) in zip(np.cumsum([g for g, _, _ in part]), part, strict=True)
        ]
        for part in streams
    ]
    order = sorted(
        (row[0], stream, i) for stream, part in enumerate(rows) for i, row in enumerate(part)
    )
    arrived = {(stream, i): number for number, (_, stream, i) in enumerate(order)}

    def sees(newest: tuple[int, int], stream: int, i: int) -> bool:
        seq, ts = arrived[newest], rows[newest[0]][newest[1]][0]
        if arrived[stream, i] >= seq:
            return False
        w, own = query.windows[stream], rows[stream][i][0]
        if w.semantics == "precise":
            return ts - w.length <= own < ts
        preceding = sum(arrived[stream, j] < seq for j in range(len(rows[stream])))
        at, place = (preceding, i) if w.kind == "count" else (ts, own)
        return place >= at // w.slide * w.slide - (w.length - w.slide)

    want = set()
    for triple in product(*(range(len(part)) for part in rows)):
        newest = max(enumerate(triple), key=lambda item: arrived[item])
        others = [(s, i) for s, i in enumerate(triple) if s != newest[0]]
        if all(sees(newest, s, i) for s, i in others) and QUERIES[condition](
            *(rows[s][i] for s, i in enumerate(triple))
        ):
            want.add((newest[0], newest[1], *(i for _, i in others)))

    have = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(match, "_PAIRS_PER_CANDIDATE", 0 if near else 1 << 60)
        chunks = _chunks(rows, order, chunk)
        found = list(expected(query, SCHEMAS, chunks, enumerate_ids=True))
    for matches in found:
        probe, ids = matches.pairs()
        have += [
            (matches.stream, p, *row) for p, row in zip(probe.tolist(), ids.tolist(), strict=True)
        ]
        again = np.zeros(len(matches), np.uint64)
        row = np.repeat(np.arange(len(matches)), matches.count)
        np.add.at(again, row, mix_rows(list(ids.T)))
        assert np.array_equal(again, matches.fingerprint)
    assert len(have) == len(set(have))
    assert set(have) == want


def _chunks(rows: list[list[Row]], order: list[tuple[int, int, int]], size: int) -> list[Arrivals]:
    chunks = []
    for begin in range(0, len(order), size):
        parts, seqs = [], []
        for stream in range(3):
            mine = [
                (begin + place, i)
                for place, (_, s, i) in enumerate(order[begin : begin + size])
                if s == stream
            ]
            ids = np.array([i for _, i in mine], np.int64)
            parts.append(
                Batch(
                    id=ids,
                    ts=np.array([rows[stream][i][0] for i in ids], np.int64),
                    key=0 * ids,
                    fields={
                        "x": np.array([rows[stream][i][1] for i in ids], np.int64),
                        "y": np.array([rows[stream][i][2] for i in ids], np.float64),
                    },
                )
            )
            seqs.append(np.array([seq for seq, _ in mine], np.int64))
        chunks.append(Arrivals(parts=tuple(parts), seq=tuple(seqs)))
    return chunks
