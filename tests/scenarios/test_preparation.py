"""Which streams are prepared in memory, which by Spark, and that both are alike."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from joins.queries.parser import parse_query
from scenarios import preparation
from scenarios.config import RunConfig, StreamConfig
from scenarios.preparation import Preparation, prepare_by_spark, prepare_tables
from scenarios.scenario_files import ConfigError
from scenarios.synthetic import SyntheticStream
from scenarios.tables import TableStream
from spark_bridge.prepared import PreparedStream


def config_of(*streams: StreamConfig) -> RunConfig:
    return RunConfig(query="each test has its own", streams=streams)


def test_streams_are_prepared_again_for_a_query_over_other_event_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        preparation, "prepare_by_spark", lambda config, query, **_: prepared.append(query.times)
    )
    prepare, config = Preparation(), config_of(synthetic(5, where="x > 2"))
    for time in ("sent", "seen", "sent"):
        within = f"B.{time} BETWEEN A.{time} - INTERVAL '1 s' AND A.{time}"
        prepare(config, parse_query(f"SELECT A.k FROM A, B WHERE A.k = B.k AND {within}"))
    assert prepared == [("sent", "sent"), ("seen", "seen")]


def test_synthetic_streams_are_made_in_memory_as_spark_prepares_them(
    spark: Any, prepared_once: None
) -> None:
    fields = {"x": "normal(3, 1)", "y": "uniform(1, 9)"}
    streams = tuple(
        StreamConfig(
            name=name,
            synthetic=SyntheticStream(rows=500, seed=seed, fields=fields, every=3_000_000),
        )
        for name, seed in (("A", 1), ("B", 5))
    )
    config = config_of(*streams)
    query = parse_query(
        "SELECT A.x FROM A, B WHERE A.x < B.x AND A.y = B.y WINDOW AS (SLIDE INTERVAL '1' ON '9')"
    )
    check_alike(Preparation()(config, query), prepare_by_spark(config, query))


def check_alike(
    in_memory: tuple[PreparedStream, ...], by_spark: tuple[PreparedStream, ...]
) -> None:
    """Check that both have the same tuples, in the same order, and say the same of them."""
    for one, other in zip(in_memory, by_spark, strict=True):
        assert isinstance(one, TableStream)
        assert not isinstance(other, TableStream)
        about = ("name", "rows", "rejected", "schema", "first_ts", "last_ts", "delays", "codes")
        assert [getattr(one, name) for name in about] == [getattr(other, name) for name in about]
        stored = pq.read_table(other.path)
        recorded = ["_arrival"] * ("_arrival" in stored.column_names)
        for name in ("ts", *recorded, *one.schema.fields):
            kind = one.table.schema.field(name).type
            assert one.table[name].equals(stored[name].cast(kind)), name
        if recorded:  # places order what arrives at one time, from 0 or from 1
            places = [table["_place"].to_numpy() for table in (one.table, stored)]
            assert (np.diff(places[0] - places[1]) == 0).all()
        assert {"ts", *one.schema.fields} <= set(one.names)


MOMENTS = np.datetime64("2024-02-28T23:59:59.123456789", "ns") + np.arange(0, 900, 9)
SHUFFLED = np.random.default_rng(5).permutation(100)
PARQUET: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "times in ns, out of order": ({}, {"ts": MOMENTS[SHUFFLED]}),
    "times in us, found by their type": (
        {},
        {"n": np.arange(100), "t": pa.array(MOMENTS[SHUFFLED]).cast("timestamp[us]", safe=False)},
    ),
    "times in ms, of a zone, most of them equal": (
        {"time": "t"},
        {"t": pa.array(MOMENTS).cast(pa.timestamp("ms", "Asia/Tokyo"), safe=False)},
    ),
    "dates": ({"time": "d"}, {"d": pa.array(SHUFFLED.astype("M8[D]"))}),
    "whole numbers as times": ({"time": "n"}, {"n": SHUFFLED.astype("u2")}),
    "floats as times": ({"time": "n"}, {"n": SHUFFLED * 1e15}),
    "rows as times": ({"time": "rows"}, {"rows": SHUFFLED}),
    "an order of arrival": (
        {"time": "n", "arrival": "late"},
        {"n": SHUFFLED, "late": SHUFFLED + 7},
    ),
    "rows as order of arrival": ({"time": "n", "arrival": "rows"}, {"n": SHUFFLED}),
}
JOIN = "SELECT P.x FROM P WHERE P.x1 < P.x2 AND P.y1 = P.y2 WINDOW AS (SLIDE INTERVAL '5' ON '20')"


def write_stream(
    folder: Path, keys: dict[str, Any], columns: Mapping[str, Any], **fields: Any
) -> StreamConfig:
    """Write a Parquet file of 100 rows, with join fields x and y; return the stream of it."""
    x, y = np.arange(100) * 0.3, SHUFFLED % 9
    path = folder / "p.parquet"
    table = {"z": ["text"] * 100, "x": x, "y": y, **columns, **fields}
    pq.write_table(pa.table(table), path)
    return StreamConfig(files=(str(path),), **keys)


@pytest.mark.parametrize("case", PARQUET)
def test_parquet_is_read_in_memory_as_spark_prepares_it(
    case: str, spark: Any, tmp_path: Path
) -> None:
    config = config_of(write_stream(tmp_path, *PARQUET[case]))
    query = parse_query(JOIN)
    check_alike(Preparation()(config, query), prepare_by_spark(config, query))


FIELDS = {
    "float32": np.arange(100, dtype="f4") / 3,
    "uint8": np.arange(100, dtype="u1"),
    "uint64": np.arange(100, dtype="u8") << 56,
    "int16": -np.arange(100, dtype="i2"),
    "bool": SHUFFLED % 2 == 0,
    "timestamp": MOMENTS,
    "date": pa.array(SHUFFLED.astype("M8[D]")),
}


@pytest.mark.parametrize("kind", FIELDS)
def test_a_join_field_is_read_in_memory_as_spark_prepares_it(
    kind: str, spark: Any, tmp_path: Path
) -> None:
    stream = write_stream(tmp_path, {"time": "rows"}, {}, x=FIELDS[kind], y=FIELDS[kind])
    query = parse_query(JOIN)
    config = config_of(stream)
    check_alike(Preparation()(config, query), prepare_by_spark(config, query))


def synthetic(rows: int, *, seed: int = 1, **others: Any) -> StreamConfig:
    made = SyntheticStream(rows=rows, seed=seed, fields={"x": "zipf(1, 9)"})
    return StreamConfig(synthetic=made, **others)


@pytest.mark.parametrize(
    ("other", "how"),
    [
        (synthetic(5, seed=9), "in memory"),
        (synthetic(16, seed=9), "by Spark"),
        (synthetic(5, seed=9, where="x > 2"), "by Spark"),
        (StreamConfig(files=("a.csv",)), "by Spark"),
    ],
)
def test_only_small_synthetic_streams_are_made_in_memory(
    other: StreamConfig, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "prepare_by_spark", lambda *_, **__: "by Spark")
    monkeypatch.setattr(preparation, "_MOST_IN_MEMORY", 20)
    query = parse_query(
        "SELECT A.x FROM A, B WHERE A.x < B.x WINDOW AS (SLIDE INTERVAL '1' ON '9')"
    )
    prepared: Any = Preparation()(config_of(synthetic(5), other), query)
    assert how == ("by Spark" if prepared == "by Spark" else "in memory")


def test_streams_made_in_memory_are_bounded_over_all_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preparation, "prepare_by_spark", lambda *_, **__: "by Spark")
    monkeypatch.setattr(preparation, "_MOST_IN_MEMORY", 12)
    query = parse_query("SELECT A.x FROM A WHERE A.x1 < A.x2 WINDOW AS (SLIDE INTERVAL '1' ON '9')")
    prepare = Preparation()
    prepared: list[Any] = [prepare(config_of(synthetic(rows)), query) for rows in (4, 5, 6, 4)]
    assert [one == "by Spark" for one in prepared] == [False, False, True, False]


def test_more_synthetic_streams_than_the_query_has_are_refused() -> None:
    query = parse_query("SELECT A.x FROM A WHERE A.x1 < A.x2 WINDOW AS (SLIDE INTERVAL '1' ON '9')")
    with pytest.raises(ConfigError, match=r"the query has 1 stream\(s\), A, but data"):
        Preparation()(config_of(synthetic(5), synthetic(5, seed=9)), query)


TEXTS = pa.array([f"{number % 9}" for number in range(100)])
LEFT_TO_SPARK: dict[str, tuple[dict[str, str], dict[str, Any]]] = {
    "a condition": ({"time": "rows", "where": "x > 3"}, {}),
    "an expression as time": ({"time": "n + 1"}, {"n": SHUFFLED}),
    "no column of times": ({}, {}),
    "a date before a time": ({}, {"d": SHUFFLED.astype("M8[D]"), "t": MOMENTS}),
    "texts as times": ({"time": "t"}, {"t": MOMENTS.astype(str)}),
    "texts as a join field": ({"time": "rows"}, {"y": TEXTS}),
    "decimals as a join field": (
        {"time": "rows"},
        {"x": pa.array(SHUFFLED).cast(pa.decimal128(30, 2))},
    ),
    "a null": (
        {"time": "rows"},
        {"x": pa.array(SHUFFLED, mask=np.arange(100) == 98)},
    ),
    "an infinite number": ({"time": "rows"}, {"x": np.r_[np.ones(99), np.inf]}),
    "a fraction as time": ({"time": "n"}, {"n": np.r_[0.5, np.arange(99)]}),
    "a column called id": ({"time": "rows"}, {"ID": SHUFFLED}),
    "a column with a dot": ({"time": "a.b"}, {"a.b": SHUFFLED}),
}


@pytest.mark.parametrize("case", LEFT_TO_SPARK)
def test_what_is_not_simple_is_left_to_spark(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "prepare_by_spark", lambda *_, **__: "by Spark")
    config = config_of(write_stream(tmp_path, *LEFT_TO_SPARK[case]))
    query = parse_query(JOIN.replace("P.x FROM", "* FROM"))
    assert Preparation()(config, query) == "by Spark"  # type: ignore[comparison-overlap]


def test_large_files_csv_and_folders_are_left_to_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "prepare_by_spark", lambda *_, **__: "by Spark")
    small = write_stream(tmp_path, {"time": "rows"}, {})
    csv = tmp_path / "p.csv"
    csv.write_text("x,y\n1,2\n3,4\n")
    folder = tmp_path / "folder"
    folder.mkdir()
    write_stream(folder, {}, {})
    query = parse_query(JOIN)
    assert isinstance(Preparation()(config_of(small), query), tuple)
    for path in (csv, folder):
        config = config_of(StreamConfig(files=(str(path),), time="rows"))
        assert Preparation()(config, query) == "by Spark"  # type: ignore[comparison-overlap]
    monkeypatch.setattr(preparation, "_MOST_IN_MEMORY", 99)
    assert Preparation()(config_of(small), query) == "by Spark"  # type: ignore[comparison-overlap]


def write_old_times(path: Path, times: list[dt.datetime]) -> None:
    """Write a file as Hive and Impala do, with times of 96 bits."""
    numbers = list(range(len(times)))
    table = pa.table({"t": pa.array(times, pa.timestamp("us")), "x": numbers, "y": numbers})
    pq.write_table(table, path, use_deprecated_int96_timestamps=True)


def test_times_of_96_bits_are_read_to_the_microsecond(spark: Any, tmp_path: Path) -> None:
    moment = dt.datetime(2024, 2, 29, 12, 0, 0, 123_456)
    file = tmp_path / "old.parquet"
    write_old_times(file, [moment + dt.timedelta(microseconds=7 * n) for n in (3, 1, 2)])
    config, query = config_of(StreamConfig(files=(str(file),))), parse_query(JOIN)
    check_alike(Preparation()(config, query), prepare_by_spark(config, query))


def test_a_time_of_96_bits_beyond_int64_is_rejected(spark: Any, tmp_path: Path) -> None:
    file = tmp_path / "old.parquet"
    write_old_times(file, [dt.datetime(2024, 2, 29), dt.datetime(9999, 12, 31)])
    query = parse_query(JOIN)
    (by_spark,) = Preparation()(config_of(StreamConfig(files=(str(file),))), query)
    (in_memory,) = prepare_tables(query, [file], ["t"])
    assert not isinstance(by_spark, TableStream)
    for stream in (by_spark, in_memory):
        assert (stream.rows, stream.rejected) == (1, 1)


@pytest.mark.parametrize(("values", "words"), [([1, None], "1 row"), ([None, 1, None], "2 rows")])
def test_rejected_rows_are_counted_in_words(values: list[int | None], words: str) -> None:
    query = parse_query("SELECT * FROM T WHERE T.x1 < T.x2 WINDOW AS (SLIDE INTERVAL '1' ON '2')")
    (stream,) = prepare_tables(query, [{"x": values}], [None])
    assert any(note.startswith(f"{words} rejected, the first is row") for note in stream.notes)
