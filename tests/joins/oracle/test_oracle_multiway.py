"""The multi-way oracle against the definition, spelt out in plain Python."""

from __future__ import annotations

import operator
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.hashing import mix_rows
from joins.oracle import match
from joins.oracle.evaluation import expected
from joins.queries.parser import parse_query

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
