"""`joinsim.run` over tables in memory: any kind of table, the same pairs; no file and no Java."""

from __future__ import annotations

import datetime as dt
import gc
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import joinsim as js
from scenarios.run_directory import POINTS

QUERY = "SELECT * FROM R, S WHERE R.x < S.x AND R.y = S.y WINDOW AS (SLIDE INTERVAL '1' ON '50')"
KINDS = ("arrow", "pandas", "polars", "duckdb", "parquet", "columns", "records")


@pytest.fixture(scope="module")
def columns() -> dict[str, dict[str, np.ndarray]]:
    rng = np.random.default_rng(3)
    return {
        name: {
            "ts": np.arange(300) * 10 + shift,
            "x": rng.integers(0, 40, 300) / 4,
            "y": rng.integers(0, 5, 300),
        }
        for name, shift in (("R", 0), ("S", 5))
    }


def as_kind(kind: str, name: str, columns: dict[str, np.ndarray], folder: Path) -> Any:
    table = pa.table(columns)
    if kind == "parquet":
        pq.write_table(table, folder / f"{name}.parquet")
        return folder / f"{name}.parquet"
    if kind == "records":
        dtype = [(field, column.dtype) for field, column in columns.items()]
        records = np.empty(len(columns["ts"]), dtype)
        for field, column in columns.items():
            records[field] = column
        return records
    make = {
        "arrow": lambda: table,
        "pandas": lambda: pd.DataFrame(columns),
        "polars": lambda: pl.DataFrame(columns),
        "duckdb": lambda: duckdb.from_arrow(table),
        "columns": lambda: columns,
    }
    return make[kind]()


def pairs_of(run: js.Run) -> list[tuple[int, int, int]]:
    return sorted(tuple(row.values()) for row in run.pairs.to_pylist())


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_table_gives_the_pairs_of_a_nested_loop(
    kind: str, columns: dict[str, dict[str, np.ndarray]], tmp_path: Path
) -> None:
    """Expected pairs are computed here, tuple by tuple, from what the window means."""
    streams = {name: as_kind(kind, name, each, tmp_path) for name, each in columns.items()}
    run = js.run(QUERY, streams, topology="split_join", pes=2)
    r, s = columns["R"], columns["S"]
    expected = []
    for i in range(300):
        # R's tuple i comes after k = i tuples of S, S's after k = i + 1 of R. A count window of 50
        # that slides by 1 begins at position k - 49.
        for j in range(max(0, i - 49), i):
            if r["x"][i] < s["x"][j] and r["y"][i] == s["y"][j]:
                expected.append((0, i, j))
        for j in range(max(0, i + 1 - 49), i + 1):
            if r["x"][j] < s["x"][i] and r["y"][j] == s["y"][i]:
                expected.append((1, i, j))
    assert pairs_of(run) == sorted(expected)
    assert run.verdict.passed
    assert run.verdict.produced == len(expected) > 500


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_band_as_wide_as_floats_go_is_judged_without_a_warning() -> None:
    query = "SELECT * FROM R, S WHERE ABS(R.x - S.x) <= 1.7e308 "
    query += "WINDOW AS (SLIDE INTERVAL '1' ON '5')"
    streams = {"R": {"x": [1.7e308, -1.7e308, 0.5]}, "S": {"x": [-1.7e308, 1.0]}}
    run = js.run(query, streams, topology="nested_loop")
    assert run.verdict.exact
    assert run.pairs.num_rows == 5


def test_rows_come_in_the_order_of_their_time_and_keep_their_place() -> None:
    texts = pa.array(["2026-03-01T10:00:02Z", "2026-03-01T10:00:01Z"])
    times = texts.cast(pa.timestamp("ms", "UTC"))
    table = pa.table({"at": times, "x": [1.5, 2.5]})
    run = js.run(
        "SELECT * FROM T WHERE T.x1 < T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '5')",
        {"T": table},
        topology="nested_loop",
    )
    assert run.streams["T"]["row"].to_pylist() == [1, 0]
    assert run.streams["T"]["ts"].to_pylist() == [1772359201 * 10**9, 1772359202 * 10**9]
    assert pairs_of(run) == [(0, 1, 0)]


INTERVAL = (
    "SELECT * FROM orders, payments WHERE orders.id = payments.order_id "
    "AND payments.paid_at BETWEEN orders.placed_at AND orders.placed_at + INTERVAL '1 hour'"
)


def shop() -> dict[str, dict[str, list[str]]]:
    """Return orders and payments with times as texts in several zones; order b is paid late."""
    return {
        "orders": {
            "id": ["a", "b", "c"],
            "placed_at": ["2026-03-01T12:00:00+02:00", "2026-03-01T10:30:00Z", "at noon"],
        },
        "payments": {
            "order_id": ["b", "a"],
            "paid_at": ["2026-03-01T11:30:01Z", "2026-03-01T05:30:00-05:00"],
        },
    }


def test_times_have_their_own_names_in_queries_and_may_be_texts_with_zones() -> None:
    run = js.run(INTERVAL, shop())
    assert [pair[1:] for pair in pairs_of(run)] == [(0, 0)]
    assert run.verdict.exact
    (orders, payments) = run.summary["streams"]
    assert (orders["rows"], orders["rejected"], payments["rows"]) == (2, 1, 2)


@pytest.mark.parametrize(
    ("time", "message"),
    [
        ({"order": "placed_at"}, "knows no stream 'order', only orders, payments"),
        ({"orders": "id"}, "compares orders.placed_at, but the event time of orders is 'id'"),
    ],
)
def test_times_that_do_not_fit_the_query_are_refused(time: dict[str, str], message: str) -> None:
    with pytest.raises(js.ConfigError, match=message):
        js.run(INTERVAL, shop(), time=time)


@pytest.mark.parametrize("name", ["id", "row", "key", "ts_"])
def test_a_join_field_may_have_any_name(name: str) -> None:
    table = {"ts": [40, 30, 20, 10], name: [1, 2, 3, 4]}
    query = f"SELECT * FROM A, B WHERE A.{name} = B.{name} WINDOW AS (SLIDE INTERVAL '1' ON '9')"
    run = js.run(query, {"A": table, "B": {"ts": [5, 35], name: [4, 2]}})
    assert run.verdict.exact
    assert pairs_of(run) == [(0, 0, 0), (1, 1, 2)]


def test_a_time_or_an_arrival_may_be_called_id() -> None:
    streams = {"T": {"id": [30, 10, 20], "x": [3, 1, 2]}}
    query = "SELECT T.x1, T.x2 FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '2')"
    run = js.run(query, streams, time="id")
    assert run.streams["T"]["ts"].to_pylist() == [10, 20, 30]
    assert run.streams["T"]["row"].to_pylist() == [1, 2, 0]
    two = {name: {"ts": [1, 2], "k": [1, 1], "id": [5, 3]} for name in ("A", "B")}
    between = "B.ts BETWEEN A.ts - INTERVAL '1 ns' AND A.ts + INTERVAL '1 ns'"
    run = js.run(f"SELECT * FROM A, B WHERE A.k = B.k AND {between}", two, arrival="id")
    assert run.verdict.exact


def test_a_time_with_its_zone_in_words_is_refused_with_what_to_do() -> None:
    streams = shop()
    streams["orders"]["placed_at"][2] = "2026-03-01 12:00:00 Europe/Berlin"
    with pytest.raises(js.DataError, match=r"'2026-03-01 12:00:00 Europe/Berlin' .* its offset"):
        js.run(INTERVAL, streams)


def test_rows_that_are_not_valid_are_rejected_by_name_and_the_others_joined() -> None:
    table = {"x": pa.array([1.0, None, float("nan"), float("inf"), 2.0])}
    run = js.run(
        "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '5')",
        {"T": table},
        topology="nested_loop",
    )
    (stream,) = run.summary["streams"]
    assert (stream["rows"], stream["rejected"]) == (2, 3)
    assert pairs_of(run) == [(0, 1, 0)]
    notes = " ".join(run.finished.plan.streams[0].notes)
    assert "3 rows rejected, the first is row 1" in notes
    for reason in ("x is null (1)", "x is NaN (1)", "x is infinite (1)"):
        assert reason in notes
    assert "rejected     3 rows of T (x is null, x is NaN, x is infinite)" in repr(run)


def test_texts_are_equal_where_they_are_equal_across_streams() -> None:
    left = pa.table({"who": ["b", "a", None, "c"]})
    right = pa.table({"who": pa.array(["c", "x", "a"]).dictionary_encode()})
    run = js.run(
        "SELECT * FROM L, R WHERE L.who = R.who WINDOW AS (SLIDE INTERVAL '1' ON '10')",
        {"L": left, "R": right},
        topology="hash_join",
    )
    found = set()
    for probe_stream, probe, match in pairs_of(run):
        left_id, right_id = (probe, match) if probe_stream == 0 else (match, probe)
        found.add((left_id, right_id))
    # The null of the left stream is rejected, so "c" is its tuple 2.
    assert found == {(1, 2), (2, 0)}


def test_a_prepared_stream_has_its_texts_beside_a_table() -> None:
    left, right = {"k": ["b", "a", "c"]}, {"k": ["c", "x", "a"], "n": [1, 2, 3]}
    whole = js.run(EQUAL, {"R": left, "S": right})
    assert whole.streams["S"]["k"].to_pylist() == right["k"]
    mixed = js.run(EQUAL, {"R": left, "S": whole.finished.plan.streams[1]})
    assert mixed.joined.sort_by("R.k").to_pydict() == whole.joined.sort_by("R.k").to_pydict()
    assert sorted(mixed.joined["S.n"].to_pylist()) == [1, 3]
    with pytest.raises(js.DataError, match="compared with text and holds none itself"):
        js.run(EQUAL, {"R": {"k": [0, 1]}, "S": whole.finished.plan.streams[1]})


def test_texts_of_streams_that_were_prepared_apart_are_equal_where_they_are_equal(
    spark: Any, tmp_path: Path
) -> None:
    prepared = {}
    for name, towns in (("R", ["Bern", "Oslo"]), ("S", ["Oslo", "Paris"])):
        file = tmp_path / f"{name}.csv"
        file.write_text("\n".join(["ts,k", *(f"{at},{town}" for at, town in enumerate(towns))]))
        prepared[name] = js.prepare(file, time="ts", fields=["k"], out=tmp_path / "prepared")
    found = js.run(EQUAL, prepared, topology="hash_join")
    assert found.verdict.exact
    assert found.joined.select(["R.k", "S.k"]).to_pylist() == [{"R.k": "Oslo", "S.k": "Oslo"}]


@pytest.mark.parametrize("settled", [{"time": "n"}, {"arrival": "n"}, {"arrival": {"R": "rows"}}])
def test_a_time_or_an_arrival_is_refused_of_streams_that_are_prepared(
    settled: dict[str, Any],
) -> None:
    whole = js.run(EQUAL, {"R": {"k": [1]}, "S": {"k": [1]}})
    prepared = {stream.name: stream for stream in whole.finished.plan.streams}
    (key,) = settled
    with pytest.raises(js.ConfigError, match=rf"{key} = '\w+': stream 'R' is prepared, and its"):
        js.run(EQUAL, prepared, **settled)


@pytest.mark.parametrize("time", ["pickup", "rows"])
def test_ts_is_the_event_time_where_a_table_has_a_column_of_that_name(time: str) -> None:
    trips = {"ts": [300, 100, 200], "pickup": [0, 1, 2], "k": [1, 1, 2]}
    query = f"SELECT R.ts, R.source_ts {EQUAL.removeprefix('SELECT *')}"
    run = js.run(query, {"R": trips, "S": {"k": [1, 2]}}, time={"R": time})
    found = run.joined.sort_by("R.ts")
    assert found.to_pydict() == {"R.ts": [0, 1, 2], "R.source_ts": [300, 100, 200]}


def test_event_times_that_are_joined_by_are_whole_numbers_whatever_their_column() -> None:
    late = 1_709_286_000_000_000_000  # of two neighbours beyond 2^53, floats make one
    streams = {"R": {"ts": np.array([float(late)])}, "S": {"ts": np.array([late + 1])}}
    run = js.run(
        "SELECT * FROM R, S WHERE R.ts < S.ts WINDOW AS (SLIDE INTERVAL '1' ON '9')", streams
    )
    assert run.verdict.produced == 1


def test_who_asks_for_the_order_of_the_rows_is_not_told_of_it() -> None:
    run = js.run(EQUAL, {"R": {"k": [1]}, "S": {"k": [1]}}, time="rows")
    assert not any(stream.notes for stream in run.finished.plan.streams)


def test_rows_that_are_sorted_by_their_times_are_noted() -> None:
    run = js.run(EQUAL, {"R": {"ts": [5, 3, 5], "k": [1, 1, 1]}, "S": {"ts": [1], "k": [1]}})
    notes = " ".join(run.finished.plan.streams[0].notes)
    assert "input was not in time order: sorted" in notes
    assert "1 timestamp repeated" in notes


@pytest.mark.parametrize("what", ["time", "arrival"])
def test_a_time_called_ts_that_is_not_there_is_refused(what: str) -> None:
    arguments: dict[str, Any] = {what: "ts"}
    with pytest.raises(js.DataError, match="stream 'R': there is no column 'ts'; there are k"):
        js.run(EQUAL, {"R": {"k": [1]}, "S": {"k": [1]}}, **arguments)


def test_an_id_that_is_not_there_is_refused_as_it_is_spelt() -> None:
    with pytest.raises(js.DataError, match="stream 'R': there is no column 'id' or 'source_id';"):
        js.run(EQUAL.replace("R.k", "R.id"), {"R": {"k": [1]}, "S": {"k": [1]}})


@pytest.mark.parametrize("kind", [pl.Categorical(), pl.Enum(["a", "b", "c"])])
def test_categories_of_polars_are_texts(kind: pl.DataType) -> None:
    column = pl.Series("k", ["b", None, "a"]).cast(kind)
    run = js.run(EQUAL, {"R": pl.DataFrame([column]), "S": {"k": ["a", "c"]}})
    assert run.joined.select(["R.k", "S.k"]).to_pydict() == {"R.k": ["a"], "S.k": ["a"]}


@pytest.mark.parametrize(
    "store", [pa.Array.dictionary_encode, pc.run_end_encode], ids=["dictionary", "runs"]
)
@pytest.mark.parametrize(
    "values",
    [[1.5, 1.5, float("nan"), 0.25], [3, 3, None, 2], [Decimal("0.3"), Decimal("0.3"), None]],
    ids=["floats", "integers", "decimals"],
)
def test_numbers_that_arrow_stores_once_are_what_they_are(
    store: Callable[[pa.Array], pa.Array], values: list[Any]
) -> None:
    column = pa.array(values)
    runs = [
        js.run(
            "SELECT R.k, S.k FROM R, S WHERE R.k >= S.k WINDOW AS (SLIDE INTERVAL '1' ON '10')",
            {"R": {"k": stored}, "S": {"k": column}},
        )
        for stored in (column, store(column))
    ]
    plain, stored = (run.joined.to_pydict() for run in runs)
    assert plain == stored
    assert plain["R.k"]


def test_texts_bytes_and_lists_of_polars_are_among_what_is_joined() -> None:
    trips = pl.DataFrame(
        {
            "k": [1, 2],
            "name": ["a", None],
            "raw": [b"a", b"b"],
            "tags": [["x", "y"], []],
            "at": [{"place": "here", "floor": 1}, {"place": "there", "floor": 2}],
            "pair": pl.Series([["a", "b"], ["c", "d"]], dtype=pl.Array(pl.String, 2)),
        }
    )
    joined = js.run(
        EQUAL, {"R": trips, "S": pl.DataFrame({"k": [2, 1], "name": ["c", "d"]})}
    ).joined
    assert joined["S.name"].to_pylist() == ["d", "c"]
    for name, values in trips.to_dict(as_series=False).items():
        assert joined[f"R.{name}"].to_pylist() == values


def test_the_same_seed_has_the_same_digest_and_a_query_picks_a_system() -> None:
    streams = {"T": {"x": np.arange(50) % 7}}
    query = "SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"
    runs = [js.run(query, streams, seed=4) for _ in range(2)]
    assert runs[0].digest == runs[1].digest
    assert runs[0].summary["topology"] == "join_matrix"
    interval = "SELECT * FROM A, B WHERE A.ts BETWEEN B.ts - INTERVAL '1 ns' AND B.ts"
    chosen = js.run(interval, {"A": {"ts": [1, 2]}, "B": {"ts": [2, 3]}})
    assert chosen.summary["topology"] == "dp_oij"


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"streams": {"R": {}}}, js.ConfigError, "no data for S"),
        ({"streams": {"R": {}, "S": {}, "T": {}}}, js.ConfigError, "knows no T"),
        ({"streams": {"R": {"y": [1]}, "S": {}}}, js.DataError, "no column 'x'; there are y"),
        ({"streams": {"R": 7, "S": 7}}, js.DataError, "'R' is of type int: pass a pyarrow"),
        ({"streams": {"R": {"x": 5}, "S": {}}}, js.DataError, "stream 'R', column 'x': 'int' obj"),
        (
            {"streams": {"R": "none/r.parquet", "S": {}}},
            js.DataError,
            "none/r.parquet does not exist: there is no folder none",
        ),
        ({"topology": "splitjoin"}, js.TopologyError, "did you mean 'split_join'"),
        ({"topology": "split_join", "pse": 3}, js.ConfigError, "did you mean 'pes'"),
        ({"network": "moon"}, js.ConfigError, "network.preset"),
        ({"feeding": {"batch_rows": "x"}}, js.ConfigError, "feeding.batch_rows = 'x'"),
        ({"query": "SELECT * FROM"}, js.QueryError, "FROM"),
        ({"bind": {"W": "ten"}}, js.ConfigError, "bind.W = 'ten': it must be a number of tuples"),
        ({"rows": -5}, js.ConfigError, "rows = -5"),
        ({"time": "when"}, js.DataError, "no column 'when'"),
    ],
)
def test_a_mistake_is_an_error_with_the_message_of_the_command_line(
    arguments: dict[str, Any],
    error: type[Exception],
    words: str,
    columns: dict[str, dict[str, np.ndarray]],
) -> None:
    whole = {"query": QUERY, "streams": columns} | arguments
    with pytest.raises(error, match=words) as raised:
        js.run(**whole)
    assert isinstance(raised.value, js.JoinsimError)


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array([[1], [2]]), "stream 'R', column 'x': list<item: int64> cannot be compared so"),
        (pa.nulls(2), r"stream 'R': no row is valid \(x is null in 2\)"),
        (pa.nulls(2, pa.string()), r"stream 'R': no row is valid \(x is null in 2\)"),
        (pa.array([b"1", b"2"]), "column 'x': binary cannot be compared so"),
    ],
)
def test_a_column_that_cannot_be_joined_is_named(column: pa.Array, message: str) -> None:
    table = pa.table({"x": column, "y": [1, 2]})
    with pytest.raises(js.DataError, match=message):
        js.run(QUERY, {"R": table, "S": table})


EQUAL = "SELECT * FROM R, S WHERE R.k = S.k WINDOW AS (SLIDE INTERVAL '1' ON '9')"


def test_decimals_without_fraction_are_compared_digit_by_digit() -> None:
    # As float64 the first two would be equal.
    keys = [Decimal(2**53), Decimal(2**53 + 1), Decimal(7)]
    run = js.run(EQUAL, {"R": {"k": keys}, "S": {"k": [2**53 + 1, 7]}}, topology="nested_loop")
    table = run.joined
    assert sorted(table["R.k"].to_pylist()) == sorted(table["S.k"].to_pylist()) == [7, 2**53 + 1]


def test_decimals_with_fraction_digits_are_floats_and_a_note_says_so() -> None:
    money = [Decimal("0.10"), Decimal("2.25")]
    run = js.run(EQUAL, {"R": {"k": money}, "S": {"k": [2.25]}}, topology="nested_loop")
    assert run.pairs.num_rows == 1
    notes = [stream.notes for stream in run.finished.plan.streams]
    assert any("k: decimal128(3, 2) as float64, which keeps 15 digits" in one for one in notes[0])
    assert not any("as float64" in one for one in notes[1])


@pytest.mark.parametrize("decimal", [pa.decimal128(9, 2), pa.decimal256(40, 2)])
def test_a_decimal_is_the_float_that_is_written_like_it(decimal: pa.DataType) -> None:
    written = [f"{cents / 100:.2f}" for cents in range(-300, 300)]
    money = pa.array([Decimal(one) for one in written], decimal)
    floats = np.array([float(one) for one in written])
    run = js.run(EQUAL, {"R": {"k": money}, "S": {"k": floats}}, topology="nested_loop")
    assert run.pairs.num_rows == len(written)
    assert run.streams["R"]["k"].to_pylist() == floats.tolist()


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([Decimal(2**70), Decimal(7)], pa.decimal128(38, 0)), "k overflows int64"),
        (pa.array([2**63, 7], pa.uint64()), "k overflows int64"),
        (
            pa.array([dt.datetime(9999, 12, 31), dt.datetime(2026, 1, 1)], pa.timestamp("us")),
            "k is outside of the years 1677 to 2262",
        ),
        (pa.array([2**62, 7], pa.duration("s")), "k overflows int64"),
    ],
)
def test_a_row_whose_number_int64_cannot_hold_is_rejected(column: pa.Array, reason: str) -> None:
    run = js.run(EQUAL, {"R": {"k": column}, "S": {"k": column}}, topology="nested_loop")
    assert run.pairs.num_rows == 1
    assert run.streams["R"]["row"].to_pylist() == [1]
    assert reason in " ".join(run.finished.plan.streams[0].notes)


def test_times_of_day_in_different_units_are_compared_in_nanoseconds() -> None:
    noon = [dt.time(12)]
    seconds, micros = pa.array(noon, pa.time32("s")), pa.array(noon, pa.time64("us"))
    run = js.run(EQUAL, {"R": {"k": seconds}, "S": {"k": micros}}, topology="nested_loop")
    assert run.pairs.num_rows == 1


@pytest.mark.parametrize("text", ["soon", "9999-12-31"])
def test_a_column_of_texts_that_are_no_times_is_refused_with_one_of_them(text: str) -> None:
    streams = {"R": {"ts": [text, "2026-01-01"], "k": [1, 2]}, "S": {"k": [1]}}
    with pytest.raises(js.DataError, match=rf"'ts': text .* row 0 is '{text}'"):
        js.run(EQUAL, streams)


def test_booleans_are_no_event_times() -> None:
    streams = {"R": {"ts": [True, False], "k": [1, 2]}, "S": {"k": [1]}}
    with pytest.raises(js.DataError, match="event time 'ts' is of type bool; give timestamps"):
        js.run(EQUAL, streams)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([7.0, 1.5, float("nan"), 2.0**62, 2.0**63, -(2.0**70), -8.0]),
        pa.array([7, 1.5, None, 2.0**62, 2.0**63, -(2.0**70), -8], pa.float32()),
        pa.array(["7", "1.5", None, f"{2**62 + 1}.0", f"{2**63}", f"{-(2**70)}", "-8.0"]).cast(
            pa.decimal128(25, 2)
        ),
    ],
)
def test_a_time_between_two_nanoseconds_is_rejected(column: pa.Array) -> None:
    streams = {"R": {"ts": column, "k": [1] * 7}, "S": {"ts": [9], "k": [1]}}
    run = js.run(EQUAL, streams, topology="nested_loop")
    assert run.streams["R"]["ts"].to_pylist() == [-8, 7, int(column[3].as_py())]
    (note,) = [text for text in run.finished.plan.streams[0].notes if "rejected" in text]
    assert "ts is not a whole number of nanoseconds (1)" in note
    assert "ts overflows int64 (2)" in note


def test_a_timestamp_of_any_zone_is_the_moment_that_it_is() -> None:
    """The clocks of Berlin show 2:30 twice in that night."""
    moments = ["2026-10-25T00:30:00", "2026-10-25T01:30:00"]
    column = pa.array(np.array(moments, "M8[ns]")).cast(pa.timestamp("ns", "Europe/Berlin"))
    streams = {"R": {"ts": column, "k": [1, 1]}, "S": {"k": [1]}}
    run = js.run(EQUAL, streams, topology="nested_loop")
    assert (
        run.streams["R"]["ts"].to_numpy().astype("M8[ns]").astype("M8[s]").astype(str).tolist()
        == moments
    )


def test_only_a_scenario_has_scales() -> None:
    with pytest.raises(js.ConfigError, match="a scenario has scales; rows= takes fewer tuples"):
        js.advise(EQUAL, {"R": {"k": [1]}, "S": {"k": [1]}}, scale="smoke")


@pytest.mark.parametrize("table", [dict, pd.DataFrame])
def test_a_number_that_int64_cannot_hold_is_refused(table: Callable[..., Any]) -> None:
    streams = {"R": table({"x": [2**70, 1], "y": [1, 2]}), "S": {"x": [1], "y": [1]}}
    with pytest.raises(js.DataError, match=r"stream 'R'.* the range of int64"):
        js.run(QUERY, streams)


def test_a_file_is_found_where_the_command_finds_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"ts": [1, 2, 3], "x": [1, 2, 3], "y": [1, 1, 1]})
    pq.write_table(table, tmp_path / "some-rows.parquet")
    monkeypatch.setenv("JOINSIM_DATA", str(tmp_path))
    files = dict.fromkeys("RS", "some-rows.parquet")
    run = js.run(QUERY, files)
    assert run.pairs.equals(js.run(QUERY, dict.fromkeys("RS", table)).pairs)
    assert run.pairs.num_rows


def test_columns_of_one_name_are_refused() -> None:
    table = pa.table([pa.array([1]), pa.array([2]), pa.array([3])], names=["x", "y", "x"])
    with pytest.raises(js.DataError, match="stream 'R': 2 columns are called 'x'"):
        js.run(QUERY, {"R": table, "S": table})


def test_a_file_that_is_none_of_parquet_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("x,y\n1,2\n")
    for name, message in (
        ("r.csv", "r.csv is CSV, .* pass what joinsim.prepare makes of it"),
        ("r.csw", "r.csw does not exist; did you mean .*r.csv"),
    ):
        with pytest.raises(js.DataError, match=f"stream 'R': .*{message}"):
            js.run(QUERY, {"R": str(tmp_path / name), "S": {}})


def test_a_live_run_cannot_save_itself_wherever_it_would() -> None:
    streams = {"R": {"k": [1]}, "S": {"k": [1]}}
    with pytest.raises(js.ConfigError, match="save_every is for virtual time"):
        js.run(EQUAL, streams, save_every="1 s", clock="live", backend="ray")


def test_a_page_is_written_under_the_name_of_one_alone(tmp_path: Path) -> None:
    run = js.run(EQUAL, {"R": {"k": [1]}, "S": {"k": [1]}}, topology="nested_loop")
    compared = js.compare(EQUAL, {"R": {"k": [1]}, "S": {"k": [1]}}, topologies="nested_loop")
    pages: list[Callable[[Path], Path]] = [
        run.report,
        compared.report,
        lambda path: js.report([run, run], path),
    ]
    for write in pages:
        with pytest.raises(js.ConfigError, match=r"x.pdf: a report is a page .* \.html or \.htm"):
            write(tmp_path / "x.pdf")
        assert write(tmp_path / "x.HTM").stat().st_size > 1_000
    assert not (tmp_path / "x.pdf").exists()


def test_a_run_shows_itself_and_writes_its_report(
    columns: dict[str, dict[str, np.ndarray]], tmp_path: Path
) -> None:
    run = js.run(QUERY, columns, topology="hash_join")
    assert "PASS" in repr(run)
    assert "PASS" in run._repr_html_()
    waited = run.summary["wall_parts"]
    assert run.summary["wall_seconds"] == pytest.approx(sum(waited.values()))
    assert waited["prepare"] > 0, "the caller's tables are a part of it"
    page = run.report(tmp_path / "run.html").read_text()
    assert run.digest is not None
    assert run.digest in page
    assert run.network["messages"].to_pylist()
    assert len(run.latency) >= 600
    assert run.late.num_rows == 0
    assert run.finished.clock.parts == waited, "a report that comes later is none"
    folder = run.directory
    assert (folder / "run.json").is_file()
    del run
    assert not folder.exists()


def test_a_text_is_no_column_of_its_letters() -> None:
    """As the name of a file, or of a column of another table."""
    for text in ("abc", b"abc"):
        with pytest.raises(
            js.DataError, match=r"stream 'T', column 'x': .*abc.* is one value; pass"
        ):
            js.run(
                "SELECT * FROM T WHERE T.x1 = T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '9')",
                {"T": {"x": text}},
            )


def test_an_id_in_capitals_beside_a_source_id_is_named() -> None:
    with pytest.raises(
        js.DataError, match="stream 'T' has columns 'ID' and 'source_id', and"
    ) as no:
        js.run(
            "SELECT * FROM T WHERE T.ID1 = T.ID2 WINDOW AS (SLIDE INTERVAL '1' ON '9')",
            {"T": {"ID": [1, 1], "source_id": [2, 3]}},
        )
    assert str(no.value).endswith("; rename one of them")


def test_results_that_are_no_longer_used_warn_of_nothing(
    columns: dict[str, dict[str, np.ndarray]],
) -> None:
    """A test suite in which warnings are errors would fail by one."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run = js.run(QUERY, columns, topology="hash_join")
        over: dict[str, list[int]] = {"pes": [2]}
        swept = js.sweep(QUERY, columns, over=over, topology="hash_join", processes=1)
        folders = [run.directory, swept.directory]
        assert all(folder.is_dir() for folder in folders)
        del run, swept
        gc.collect()
    assert not any(folder.exists() for folder in folders)
    assert [str(one.message) for one in caught if one.category is ResourceWarning] == []


def test_a_folder_of_ones_own_is_found_from_any_other(
    columns: dict[str, dict[str, np.ndarray]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for out in ("run", "~/run"):
        run = js.run(QUERY, columns, topology="hash_join", out=out)
        monkeypatch.chdir("other")
        assert run.pairs.num_rows == len(run.joined)
        assert run.network["messages"].to_pylist()
        assert Path(run) == tmp_path / out.replace("~", "home")
        monkeypatch.chdir(tmp_path)


def test_a_run_that_another_was_written_over_is_not_taken_for_it(
    columns: dict[str, dict[str, np.ndarray]], tmp_path: Path
) -> None:
    first = js.run(QUERY, columns, topology="hash_join", out=tmp_path / "run")
    second = js.run(QUERY, columns, topology="split_join", out=tmp_path / "run")
    assert second.pairs.num_rows == len(second.joined)
    gone = f"{tmp_path}/run no longer has this run, of custom on hash_join: another was written"
    for read in (
        lambda: first.pairs,
        lambda: first.trace,
        lambda: first.summary,
        lambda: first.report(tmp_path / "run.html"),
        lambda: js.report([second, first], tmp_path / "runs.html"),
        lambda: js.diff(first, second),
    ):
        with pytest.raises(js.ConfigError, match=gone):
            read()
    assert gone in repr(first)
    assert gone in first._repr_html_()


def test_tables_need_no_java_and_a_help_imports_nothing_heavy(tmp_path: Path) -> None:
    code = (
        "import sys, joinsim as js; "
        "js.run(\"SELECT * FROM T WHERE T.x1 > T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '5')\", "
        "{'T': {'x': [1, 2]}}); "
        "assert not {'pyspark', 'ray', 'vl_convert', 'rich'} & set(sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2], timeout=120
    )
    code = (
        "import sys; sys.argv = ['joinsim', '--help']\n"
        "from joinsim.cli.command_line import main\n"
        "try: main()\nexcept SystemExit as end: assert end.code == 0\n"
        "assert not {'numpy', 'numba', 'pyarrow', 'scipy', 'rich'} & set(sys.modules)"
    )
    subprocess.run(
        [sys.executable, "-c", code], check=True, cwd=Path(__file__).parents[2], timeout=120
    )


def repeat(replay: str, streams: Any) -> Any:
    """Make the call that *replay* is, with *streams* in the place of the tables it leaves out."""
    call = replay.replace("{'R': ..., 'S': ...}", "streams")
    return eval(call, {"joinsim": js, "streams": streams})


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"pairs": False, "seed": 3, "rows": 100},
        {
            "topology": "split_join",
            "pes": 2,
            "network": {"preset": "wan", "latency": "2 ms", "jitter": "1 ms"},
            "feeding": {"rate_tps": 5_000, "batch_rows": 7},
            "faults": [{"kind": "loss", "rate": 0.2, "end": "30 ms"}],
        },
    ],
)
def test_what_repeats_a_run_is_its_whole_call(
    settings: dict[str, Any], columns: dict[str, dict[str, np.ndarray]]
) -> None:
    run = js.run(QUERY, columns, **settings)
    again = repeat(run.replay, columns)
    assert again.digest == run.digest
    assert again.finished.plan.config == run.finished.plan.config


def test_what_repeats_a_comparison_and_each_of_its_systems_is_its_whole_call(
    columns: dict[str, dict[str, np.ndarray]],
) -> None:
    names = ["split_join", "nested_loop"]
    compared = js.compare(QUERY, columns, topologies=names, network="wan", rows=100, pes=2)
    again = repeat(compared.replay, columns)
    for name in names:
        record = compared.result.results[name].record
        assert again.result.results[name].record["digest"] == record["digest"]
        alone = json.loads((compared.directory / POINTS / name / "run.json").read_text())
        assert repeat(alone["replay"], columns).digest == record["digest"]


def test_engines_are_compared_over_tables_in_memory(
    columns: dict[str, dict[str, np.ndarray]],
) -> None:
    compared = js.compare_engines(
        QUERY, columns, engines=["duckdb", "polars"], rows=100, pairs=True
    )
    assert compared.passed
    assert len(compared.table) == 2
    again = repeat(compared.replay, columns)
    assert again.result.plan.config == compared.result.plan.config
    assert again.result.expected == compared.result.expected


def test_engines_take_a_folder_s_name_for_no_pattern(
    columns: dict[str, dict[str, np.ndarray]], tmp_path: Path
) -> None:
    """Where ``a[1]`` is one, it is the name of ``a1``, which has other streams here."""
    for name in columns:
        streams = tmp_path / "a1" / POINTS / "streams" / name
        streams.mkdir(parents=True)
        one = {"id": [0], "ts": [0], "x": [0.0], "y": [0]}
        pq.write_table(pa.table(one), streams / "part-00000.parquet")
    for pairs in (False, True):
        compared = js.compare_engines(
            QUERY, columns, engines=["duckdb", "polars"], pairs=pairs, out=tmp_path / "a[1]"
        )
        assert compared.passed


def test_what_repeats_a_run_names_its_times_and_orders_of_arrival() -> None:
    rng = np.random.default_rng(5)
    tables = {
        name: {
            "at": (at := rng.permutation(90)),
            "seen": at + 5 + rng.integers(0, 5, 90),
            "k": rng.integers(0, 3, 90),
        }
        for name in ("R", "S")
    }
    query = "SELECT * FROM R, S WHERE R.k = S.k AND S.ts BETWEEN R.ts AND R.ts + INTERVAL '3 ns'"
    run = js.run(query, tables, time="at", arrival={"R": "seen"})
    again = repeat(run.replay, tables)
    assert again.digest == run.digest != js.run(query, tables, time="at").digest
    assert pairs_of(again) == pairs_of(run) != pairs_of(js.run(query, tables))


def test_every_key_that_a_command_can_set_can_be_set_in_a_call(
    columns: dict[str, dict[str, np.ndarray]],
) -> None:
    run = js.run(QUERY, columns, topology="split_join", silence="9 s", encrypt=True, pes=2)
    config = run.finished.plan.config
    assert (config.silence, config.encrypt) == (9 * 10**9, True)
    missing: dict[str, Any] = {"topology": "ibwj", "profile": "missing.toml"}
    with pytest.raises(js.JoinsimError, match="no cost profile 'missing"):
        js.plan(QUERY, columns, simulate=False, **missing)
    with pytest.raises(js.JoinsimError, match="no cost profile 'missing"):
        js.compare_engines(QUERY, columns, engines="duckdb", **missing)
