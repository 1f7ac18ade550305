"""Which streams are made in memory, which by Spark, and that both are alike."""

from __future__ import annotations

from typing import Any

import pyarrow.parquet as pq
import pytest

from joins.queries.parser import parse_query
from scenarios import preparation
from scenarios.config import RunConfig, StreamConfig
from scenarios.preparation import Preparation
from scenarios.streams import prepare_streams
from scenarios.synthetic import SyntheticStream
from scenarios.tables import TableStream


def config_of(*streams: StreamConfig) -> RunConfig:
    return RunConfig(query="each test has its own", streams=streams)


def test_streams_are_prepared_again_for_a_query_over_other_event_times(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prepared: list[tuple[str, ...]] = []
    monkeypatch.setattr(
        preparation, "prepare_streams", lambda config, query, **_: prepared.append(query.times)
    )
    prepare = Preparation()
    for time in ("sent", "seen", "sent"):
        within = f"B.{time} BETWEEN A.{time} - INTERVAL '1 s' AND A.{time}"
        prepare(config_of(), parse_query(f"SELECT A.k FROM A, B WHERE A.k = B.k AND {within}"))
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
    made = Preparation()(config, query)
    for one, by_spark in zip(made, prepare_streams(config, query), strict=True):
        assert isinstance(one, TableStream)
        assert not isinstance(by_spark, TableStream)
        assert one.schema == by_spark.schema
        names = ["ts", *one.schema.fields]
        assert one.table.select(names).equals(pq.read_table(by_spark.path).select(names))


def synthetic(rows: int, *, seed: int = 1, **others: Any) -> StreamConfig:
    made = SyntheticStream(rows=rows, seed=seed, fields={"x": "zipf(1, 9)"})
    return StreamConfig(synthetic=made, **others)


@pytest.mark.parametrize(
    ("other", "how"),
    [
        (synthetic(5, seed=9), "in memory"),
        (synthetic(1 << 22, seed=9), "by Spark"),
        (synthetic(5, seed=9, where="x > 2"), "by Spark"),
        (StreamConfig(files=("a.csv",)), "by Spark"),
    ],
)
def test_only_small_synthetic_streams_are_made_in_memory(
    other: StreamConfig, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(preparation, "prepare_streams", lambda *_, **__: "by Spark")
    monkeypatch.setattr(preparation, "prepare_tables", lambda *_: "in memory")
    config = config_of(synthetic(5), other)
    query = parse_query(
        "SELECT A.x FROM A, B WHERE A.x < B.x WINDOW AS (SLIDE INTERVAL '1' ON '9')"
    )
    assert Preparation()(config, query) == how  # type: ignore[comparison-overlap]


def test_streams_made_in_memory_are_bounded_over_all_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(preparation, "prepare_streams", lambda *_, **__: "by Spark")
    monkeypatch.setattr(preparation, "prepare_tables", lambda *_: "in memory")
    query = parse_query("SELECT A.x FROM A WHERE A.x1 < A.x2 WINDOW AS (SLIDE INTERVAL '1' ON '9')")
    prepare = Preparation()
    third = (1 << 22) // 3
    prepared: list[Any] = [
        prepare(config_of(synthetic(third + number)), query) for number in (0, 1, 2, 0)
    ]
    assert prepared == ["in memory", "in memory", "by Spark", "in memory"]
