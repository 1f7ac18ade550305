"""Real data: the committed samples, and the full files where they lie beside the checkout."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from scenarios.streams import SAMPLES
from tests.spark_bridge.helpers import prepare_one, tuples

ROOT = Path(__file__).parents[2]
SHARED = ROOT.parent / "shared" / "data"


def full_or_sample(full: str, sample: str) -> Path:
    return SHARED / full if (SHARED / full).exists() else SAMPLES / sample


def test_taxi_trips_keep_every_valid_value_in_time_order(spark: Any, tmp_path: Path) -> None:
    file = full_or_sample("taxi_nyc_yellow_monthly_sample.parquet", "yellow_taxi_sample.parquet")
    source = pq.read_table(file)
    stream = prepare_one(
        tmp_path, spark, paths=[file], fields=["trip_distance", "fare_amount"], segment_rows=50_000
    )
    table = tuples(stream)
    ns = source["pickup_datetime"].to_numpy().astype("datetime64[ns]").astype(np.int64)
    order = np.argsort(ns, kind="stable")
    assert (stream.rows, stream.rejected) == (source.num_rows, 0)
    assert np.array_equal(table["ts"].to_numpy(), ns[order])
    for name in ("trip_distance", "fare_amount", "tip_amount"):
        assert np.array_equal(table[name].to_numpy(), source[name].to_numpy()[order])
        assert table.schema.field(name).type == source.schema.field(name).type
    assert any("pickup_datetime" in note for note in stream.notes)


def test_power_readings_of_a_year_start_at_zero(spark: Any, tmp_path: Path) -> None:
    year = 2008
    file = full_or_sample("power_household_uci_1min.parquet", "household_power_sample.parquet")
    stream = prepare_one(
        tmp_path,
        spark,
        paths=[file],
        fields=["Global_active_power", "Sub_metering_3"],
        time="date_time - date_trunc('year', date_time)",
        where=f"year(date_time) = {year} and month(date_time) <= 2",
        segment_rows=400_000,
    )
    source = pq.read_table(file)
    at = source["date_time"].to_numpy().astype("datetime64[ns]")
    mine = (at >= np.datetime64("2008-01-01")) & (at < np.datetime64("2008-03-01"))
    start = np.datetime64(f"{year}-01-01", "ns")
    table = tuples(stream)
    assert np.array_equal(table["ts"].to_numpy(), (at[mine] - start).astype(np.int64))
    assert np.array_equal(
        table["Sub_metering_3"].to_numpy(), source["Sub_metering_3"].to_numpy()[mine]
    )
    assert stream.schema.fields == {"Global_active_power": "float64", "Sub_metering_3": "int64"}


@pytest.mark.parametrize(
    ("name", "rows"), [("yellow_taxi_sample", 130_000), ("household_power_sample", 161_271)]
)
def test_the_committed_samples_are_what_their_provenance_says(name: str, rows: int) -> None:
    file = SAMPLES / f"{name}.parquet"
    provenance = (SAMPLES / "PROVENANCE.md").read_text()
    assert hashlib.sha256(file.read_bytes()).hexdigest() in provenance
    assert pq.read_metadata(file).num_rows == rows
    assert f"{rows:,} yellow" in provenance or f"{rows - 80_636:,} rows" in provenance
