"""From arrivals of a query to rows: the drivers then agree with the oracle."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.oracle.evaluation import expected
from joins.queries.parser import parse_query
from joins.window_join.forest_join import ForestJoin
from joins.window_join.rows import KernelRows, RowMaker, make_rows

TWO = "SELECT R.x FROM R, S WHERE {} WINDOW AS (SLIDE INTERVAL '{}' ON '{}')"


SCHEMAS = [Schema(stream=name, fields={"x": "int64"}) for name in "RS"]


def chunks(seed, streams, n, dtype="int64"):
    """Return some chunks of arrivals with the field x."""
    rng = np.random.default_rng(seed)
    stream = rng.integers(0, streams, n)
    ts = np.cumsum(rng.integers(0, 3, n))
    values = rng.integers(-5, 6, n).astype(dtype)
    if dtype == "float64":
        special = rng.random(n) < 0.3
        values[special] = rng.choice([-0.0, 0.5, -0.5, np.inf, -np.inf, 1e300], special.sum())
    ids = np.zeros(n, np.int64)
    for s in range(streams):
        ids[stream == s] = np.arange((stream == s).sum())
    out = []
    for rows in np.array_split(np.arange(n), 4):
        parts, seqs = [], []
        for s in range(streams):
            mine = rows[stream[rows] == s]
            parts.append(
                Batch(
                    id=ids[mine],
                    ts=ts[mine],
                    key=np.zeros(len(mine), np.int64),
                    fields={"x": values[mine]},
                )
            )
            seqs.append(mine.astype(np.int64))
        out.append(Arrivals(tuple(parts), tuple(seqs)))
    return out


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 9999),
    n=st.integers(4, 120),
    predicate=st.sampled_from(
        ["ABS(R.x - S.x) <= 2", "R.x < S.x", "R.x >= S.x", "R.x = S.x", "ABS(R.x - S.x) < 1"]
    ),
    window=st.sampled_from([("1", "7"), ("3", "12"), ("1 ns", "9 ns"), ("4 ns", "8 ns")]),
    dtype=st.sampled_from(["int64", "float64"]),
)
def test_rows_of_a_query_give_the_oracles_answer(seed, n, predicate, window, dtype):
    query = parse_query(TWO.format(predicate, *window))
    schemas = [Schema(stream=name, fields={"x": dtype}) for name in "RS"]
    arrivals = chunks(seed, 2, n, dtype)
    right = {
        (part.stream, int(i)): int(c)
        for part in expected(query, schemas, arrivals)
        for i, c in zip(part.probe_id, part.count, strict=True)
    }
    maker, join = RowMaker(query, schemas), ForestJoin(PimTree(sides=2))
    found: dict[tuple[int, int], int] = {}
    for chunk in arrivals:
        rows = maker.make(chunk)
        counts = join.join(rows).count
        names = zip(rows.side.tolist(), rows.position.tolist(), strict=True)
        found |= dict(zip(names, counts.tolist(), strict=True))
    assert found == right


def test_what_no_index_can_answer_looks_for_everything():
    maker = RowMaker(parse_query(TWO.format("R.x != S.x", 1, 5)), SCHEMAS)
    assert maker.indexed is None
    (chunk,) = chunks(1, 2, 4)[:1]
    rows = maker.make(chunk)
    assert (rows.low < rows.key).all()
    assert (rows.key < rows.high).all()


@pytest.mark.parametrize("second", [0, 2], ids=["twice", "after a gap"])
def test_arrivals_that_do_not_follow_those_before_are_refused(second):
    maker = RowMaker(parse_query(TWO.format("R.x < S.x", 1, 5)), SCHEMAS)
    arrivals = chunks(1, 2, 12)
    maker.make(arrivals[0])
    with pytest.raises(ValueError, match="need all of them, in order"):
        maker.make(arrivals[second])


def test_a_key_that_is_nan_is_refused():
    schemas = [Schema(stream=name, fields={"x": "float64"}) for name in "RS"]
    maker = RowMaker(parse_query(TWO.format("R.x < S.x", 1, 5)), schemas)
    (chunk, *_) = chunks(1, 2, 12, "float64")
    chunk.parts[1].fields["x"][1] = np.nan
    with pytest.raises(ValueError, match="x: row 1 is NaN"):
        maker.make(chunk)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"position": [0, 2]}, "not consecutive"),
        ({"start": [1, 0]}, "start 0 follows 1"),
        ({"key": [0.5, 1.0]}, "key: dtype is float64"),
    ],
)
def test_rows_that_cannot_be_are_named(change, text):
    columns: dict[str, np.ndarray] = {}
    columns |= {name: np.zeros(2, np.int64) for name in KernelRows._fields}
    columns["position"] = np.arange(2)
    with pytest.raises((TypeError, ValueError), match=text):
        make_rows(**(columns | {name: np.array(values) for name, values in change.items()}))
