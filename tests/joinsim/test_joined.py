"""A query's columns come out of a run, by value, whatever kind of stream they are in."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import joinsim as js
from scenarios import result_readers
from scenarios.wall_clock import WallClock
from tests.end_to_end.conftest import write_prepared

ORDERS = {"id": ["a", "b", "c"], "total": [9.5, None, 7.5], "ts": [30, 10, 20]}
PAYMENTS = {"order_id": ["c", "a", "x"], "amount": [7, 9, 1], "ts": [25, 35, 40]}
WINDOW = "WINDOW AS (SLIDE INTERVAL '1' ON '9')"
QUERY = "SELECT {} FROM orders, payments WHERE orders.id = payments.order_id " + WINDOW
SELF = "SELECT {} FROM T WHERE T.x1 > T.x2 " + WINDOW


def run(select: str) -> js.Run:
    return js.run(QUERY.format(select), {"orders": ORDERS, "payments": PAYMENTS})


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in table.to_pylist())


def test_the_columns_asked_for_come_out_by_value() -> None:
    joined = run("payments.amount, orders.id, orders.total").joined
    assert joined.column_names == ["payments.amount", "orders.id", "orders.total"]
    assert rows(joined) == [(7, "c", 7.5), (9, "a", 9.5)]


def test_a_star_is_every_column_of_every_stream() -> None:
    joined = run("*").joined
    own = ["orders.id", "orders.total", "orders.ts", "payments.order_id", "payments.amount"]
    assert joined.column_names == [*own, "payments.ts", "payments.id"]
    assert sorted(joined["payments.amount"].to_pylist()) == [7, 9]
    assert sorted(joined["orders.id"].to_pylist()) == ["a", "c"]


def test_in_a_self_join_1_is_newer_and_2_earlier() -> None:
    table = {"x": [3, 1, 2], "name": ["three", "one", "two"], "tag1": [0, 0, 0]}
    joined = js.run(SELF.format("T.name1, T.name2, x2, T.tag1"), {"T": table}).joined
    assert rows(joined) == [("two", "one", 1, 0)]


def test_what_select_names_in_a_self_join_is_what_where_means_by_it() -> None:
    table = {"x": [3, 1, 2], "x1": [30, 10, 20], "x2": [300, 100, 200]}
    joined = js.run(SELF.format("x2, T.x1, x22, x12, x21"), {"T": table}).joined
    assert rows(joined) == [(1, 2, 100, 10, 200)]
    position = {"x": [3, 1, 2], "id1": ["a", "b", "c"]}  # of which no predicate can be
    assert rows(js.run(SELF.format("id1, id2"), {"T": position}).joined) == [("c", 1)]


def test_three_streams_have_their_columns_too() -> None:
    query = f"SELECT C.w, A.v FROM A, B, C WHERE A.k = B.k AND B.k = C.k {WINDOW}"
    streams = {
        "A": {"k": [1, 2], "v": ["one", "two"]},
        "B": {"k": [2, 3]},
        "C": {"k": [3, 2], "w": ["x", "y"]},
    }
    assert rows(js.run(query, streams).joined) == [("y", "two")]


def test_without_a_pair_there_are_columns_all_the_same() -> None:
    payments = PAYMENTS | {"order_id": ["p", "q", "r"]}
    found = js.run(QUERY.format("orders.total"), {"orders": ORDERS, "payments": payments}).joined
    assert found.schema == pa.schema([("orders.total", pa.float64())])
    assert len(found) == 0


def test_a_name_in_quotes_may_have_dots() -> None:
    streams = {"A": {"k": [1, 2], "user.name": ["one", "two"]}, "B": {"b.k": [2, 3]}}
    for select, name in (('A."user.name"', 'A."user.name"'), ('"user.name"', '"user.name"')):
        query = f'SELECT {select} FROM A, B WHERE A.k = B."b.k" {WINDOW}'
        assert js.run(query, streams).joined.to_pylist() == [{name: "two"}]


def test_an_id_beside_a_source_id_is_not_taken_for_it() -> None:
    edges = {"id": [1, 2], "source_id": [10, 20]}
    streams = {"A": edges, "B": {"id": [2, 1], "source_id": [10, 30]}}
    select = f"SELECT A.id, A.source_id, B.id FROM A, B WHERE {{}} {WINDOW}"
    joined = js.run(select.format("A.source_id = B.source_id"), streams).joined
    assert joined.to_pylist() == [{"A.id": 1, "A.source_id": 10, "B.id": 2}]
    with pytest.raises(js.QueryError, match="stream 'A' has columns 'id' and 'source_id', and"):
        js.run(select.format("A.id = B.id"), streams)
    with pytest.raises(js.QueryError, match=r"A.source_id = B.id: stream 'B' has columns"):
        js.run(select.format("A.source_id = B.id"), streams)


def test_a_source_id_is_not_taken_for_an_id_that_is_not_there() -> None:
    streams = {"A": {"source_id": [10, 20], "k": [1, 2]}, "B": {"k": [2, 10]}}
    select = f"SELECT {{}} FROM A, B WHERE A.{{}} = B.k {WINDOW}"
    joined = js.run(select.format("A.id, A.source_id", "k"), streams).joined
    assert joined.to_pylist() == [{"A.id": 1, "A.source_id": 20}]
    with pytest.raises(js.QueryError, match=r"A.id = B.k: stream 'A' has no column 'id'; there"):
        js.run(select.format("A.k", "id"), streams)


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("orders.totl", r"SELECT orders\.totl: there is no such column; did you mean 'total'\? "),
        ("offers.total", "there is no stream 'offers' in FROM, only orders, payments"),
        ('"offers".total', "there is no stream 'offers' in FROM, only orders, payments"),
        ("orders.amount", r"SELECT orders\.amount: there is no such column"),
        ("ts", r"SELECT ts: orders, payments have such a column each; name one, as in orders\.ts"),
    ],
)
def test_a_column_that_no_stream_has_is_refused(select: str, message: str) -> None:
    with pytest.raises(js.QueryError, match=message):
        run(select)


def test_prepared_streams_give_their_columns_in_a_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    fields = {"a": rng.integers(0, 50, 300), "b": rng.random(300)}
    write_prepared(tmp_path / "s", fields, ts=np.arange(300) * 1_000)
    query = f"SELECT s.a1, s.b2, s.ts2 FROM s WHERE s.a1 > s.a2 AND s.b1 < s.b2 {WINDOW}"
    run = js.run(query, {"s": tmp_path / "s"}, out=tmp_path / "run")
    joined = pq.read_table(tmp_path / "run" / "joined.parquet")
    newer, earlier = run.pairs["probe_id"], run.pairs["match_id"]
    source = pq.read_table(tmp_path / "s" / "segments")
    assert joined["s.a1"].to_pylist() == source["a"].take(newer).to_pylist()
    assert joined["s.b2"].to_pylist() == source["b"].take(earlier).to_pylist()
    assert joined["s.ts2"].to_pylist() == source["ts"].take(earlier).to_pylist()
    assert len(joined) > 10
    assert run.joined.equals(joined)


def test_a_prepared_stream_is_found_from_any_other_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_prepared(tmp_path / "s", {"a": np.arange(30)}, ts=np.arange(30) * 1_000)
    query = f"SELECT s.a1, s.a2 FROM s WHERE s.a1 > s.a2 {WINDOW}"
    run = js.run(query, {"s": "s"})
    (tmp_path / "other").mkdir()
    monkeypatch.chdir("other")
    assert len(run.joined) == run.pairs.num_rows > 0
    assert len(run.streams["s"]) == 30


def test_values_of_every_type_and_missing_ones_are_in_the_file_as_in_the_table(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(5)
    whole = rng.integers(0, 100, 400)
    missing = rng.random(400) < 0.2
    columns = {
        "number": pa.array(whole, mask=missing),
        "small": pa.array(whole.astype(np.int8)),
        "real": pa.array(whole / 3, pa.float32()),
        "flag": pa.array(whole > 50),
        "text": pa.array([f"n {n}" for n in whole], mask=missing),
        "price": pa.array(whole).cast(pa.decimal128(21, 2)),
        "day": pa.array(whole.astype(np.int32), pa.date32()),
        "at": pa.array(whole, pa.timestamp("us", "UTC")),
    }
    table = pa.table({"ts": np.arange(400), "key": whole, **columns})
    query = "SELECT * FROM A, B WHERE A.key = B.key WINDOW AS (SLIDE INTERVAL '10' ON '100')"
    run = js.run(query, {"A": table, "B": table}, out=tmp_path / "run")
    assert len(run.joined) > 100
    assert pq.read_table(tmp_path / "run" / "joined.parquet").equals(run.joined)
    for stream, ids in (("A", "probe_id"), ("B", "match_id")):
        first = run.pairs.filter(pa.compute.equal(run.pairs["probe_stream"], 0))
        mine = run.joined.filter(pa.compute.equal(run.pairs["probe_stream"], 0))
        for name, values in columns.items():
            assert mine[f"{stream}.{name}"].to_pylist() == values.take(first[ids]).to_pylist()


def test_writing_joined_rows_is_part_of_writing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    laps: list[str] = []
    monkeypatch.setattr(WallClock, "lap", lambda _, part: laps.append(part))
    monkeypatch.setattr(result_readers, "write_joined", lambda *_: laps.append("joined rows"))
    js.run(QUERY.format("*"), {"orders": ORDERS, "payments": PAYMENTS}, out=tmp_path / "run")
    assert laps[laps.index("joined rows") + 1] == "write"
