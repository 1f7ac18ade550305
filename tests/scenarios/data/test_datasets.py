"""Where streams are looked for, and where they are prepared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from joins.queries.parser import parse_query
from scenarios import scenario_files
from scenarios.streams import prepare_streams

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
    (prepared,) = prepare_streams(config, parse_query(QUERY))
    assert prepared.rows == 9
    assert prepared.path.is_relative_to(tmp_path / "shared")
    assert [path.name for path in tmp_path.iterdir()] == ["shared"]
