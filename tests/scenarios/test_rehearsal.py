from __future__ import annotations

from pathlib import Path
from typing import Any

import psutil
import pytest

from joins.machine.compiling import CACHE_VARIABLE
from joins.queries.parser import parse_query
from scenarios import scenario_files
from scenarios.config import RunConfig
from scenarios.rehearsal import _first_rows, rehearsing_ahead
from scenarios.streams import PREPARED_VARIABLE, prepare_streams
from tests.spark_bridge.helpers import write_csv, write_parquet

QUERY = (
    "SELECT * FROM orders, payments WHERE orders.id = payments.id AND orders.price <= payments.paid"
    " WINDOW AS (SLIDE INTERVAL '2' ON '4')"
)


def asked(folder: Path, topology: str) -> RunConfig:
    """Return what joins a CSV and a Parquet file, with texts, fractions and times in words."""
    orders = [(f"2026-03-01T09:30:{i:02}+02:00", f"o{i}", i + 0.5) for i in range(20)]
    payments = {
        "at": [1_000_000_000 * i for i in range(20)],
        "id": [f"o{i % 7}" for i in range(20)],
        "paid": list(range(20)),
    }
    return scenario_files.build(
        {
            "name": "payments",
            "query": QUERY,
            "topology": topology,
            "streams": [
                {
                    "files": [str(write_csv(folder / "o.csv", ["at", "id", "price"], orders))],
                    "time": "at",
                },
                {"files": [str(write_parquet(folder / "p.parquet", payments))], "time": "at"},
            ],
        },
        where="test",
    )


def test_first_rows_have_the_types_that_spark_will_give_them(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PREPARED_VARIABLE, str(tmp_path / "prepared"))
    config = asked(tmp_path, "nested_loop")
    query = parse_query(config.query)
    waited: list[None] = []
    prepared = prepare_streams(config, query, on_spark=lambda: waited.append(None))
    assert [one.schema for one in _first_rows(config, query)] == [one.schema for one in prepared]
    assert len(waited) == 1
    prepare_streams(config, query, on_spark=lambda: waited.append(None))
    assert len(waited) == 1, "Spark was not needed again"


def test_another_process_stores_kernels_and_the_script_of_reports_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path / "kernels"))
    waits: list[None] = []
    with rehearsing_ahead(asked(tmp_path, "hash_join"), lambda: waits.append(None)) as rehearse:
        assert not list(tmp_path.glob("kernels/*/*.nbc"))
        rehearse()
    assert waits
    assert list(tmp_path.glob("kernels/*/*.nbc"))
    assert list(tmp_path.glob("kernels/vega-*.js"))


def test_a_run_that_is_interrupted_meanwhile_does_not_wait(tmp_path: Path) -> None:
    before = psutil.Process().children()
    waits: list[None] = []

    def interrupted() -> None:
        with rehearsing_ahead(asked(tmp_path, "hash_join"), lambda: waits.append(None)) as rehearse:
            rehearse()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not waits
    assert psutil.Process().children() == before
