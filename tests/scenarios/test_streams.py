"""Where streams are looked for and prepared, and what is prepared of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from joins.queries.parser import parse_query
from joins.queries.query import QueryError
from scenarios import scenario_files, streams
from scenarios.preparation import prepare_by_spark
from scenarios.scenario_files import ConfigError
from spark_bridge.prepared import PreparedStream

QUERY = "SELECT * FROM S WHERE S.x1 > S.x2 WINDOW AS (SLIDE INTERVAL '1' ON '5')"


def test_streams_are_prepared_where_the_environment_says(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JOINSIM_PREPARED", str(tmp_path / "shared"))
    stream = {"name": "S", "synthetic": {"rows": 9, "fields": {"x": "uniform(1, 5)"}}}
    config = scenario_files.build(
        {"name": "elsewhere", "query": QUERY, "topology": "nested_loop", "streams": [stream]},
        where="this test",
    )
    (prepared,) = prepare_by_spark(config, parse_query(QUERY))
    assert prepared.rows == 9
    assert prepared.path.is_relative_to(tmp_path / "shared")
    assert [path.name for path in tmp_path.iterdir()] == ["shared"]


def test_a_run_prepares_the_columns_that_its_query_reads(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOINSIM_PREPARED", str(tmp_path))
    fields = {"x": "uniform(1, 5)", "y": "uniform(1, 5)", "z": "uniform(1, 5)"}
    stream = {"name": "S", "synthetic": {"rows": 9, "fields": fields}}

    def prepared(selected: str) -> PreparedStream:
        text = QUERY.replace("*", selected)
        config = scenario_files.build(
            {"name": "n", "query": text, "topology": "nested_loop", "streams": [stream]},
            where="this test",
        )
        return prepare_by_spark(config, parse_query(text))[0]

    whole, narrow, y = prepared("*"), prepared("S.id"), prepared("S.y2, S.ts")
    assert whole.columns == ["id", "ts", "x", "y", "z"]
    assert narrow.columns == ["id", "ts", "x"]
    assert y.columns == ["id", "ts", "x", "y"]
    assert y.values("y").equals(whole.values("y"))
    assert len({one.path for one in (whole, narrow, y)}) == 3
    with pytest.raises(QueryError, match=r"SELECT S\.zz: .*did you mean 'z'"):
        prepared("S.zz")


def test_only_folders_that_are_there_are_named_where_a_file_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "REPOSITORY", tmp_path / "site-packages")
    with pytest.raises(ConfigError, match=r"no nope.csv, neither here nor in") as raised:
        streams.find_file(("nope.csv",))
    assert str(tmp_path) not in str(raised.value)
