"""Cut the committed samples from the full files: python scenarios/samples/cut_samples.py FOLDER.

FOLDER holds taxi_nyc_yellow_monthly_sample.parquet and power_household_uci_1min.parquet, whose
origin is in PROVENANCE.md.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

HERE = Path(__file__).parent
TAXI_ROWS = 130_000  # the first 13 months of 10,000 trips each: what fits in 1.6 MB
TAXI_COLUMNS = [
    "pickup_datetime",
    "dropoff_datetime",
    "passenger_count",
    "trip_distance",
    "pickup_location_id",
    "dropoff_location_id",
    "fare_amount",
    "tip_amount",
    "total_amount",
]
POWER_COLUMNS = ["date_time", "Global_active_power", "Voltage", "Sub_metering_3"]
POWER_DAYS = 56  # from 1 January of each year: the same minutes of 2007 and 2008


def cut_taxi(folder: Path) -> pa.Table:
    """Return the first trips, rows and values as they are."""
    file = folder / "taxi_nyc_yellow_monthly_sample.parquet"
    return pq.read_table(file, columns=TAXI_COLUMNS).slice(0, TAXI_ROWS)


def cut_power(folder: Path) -> pa.Table:
    """Return the first days of 2007 and of 2008."""
    table = pq.read_table(folder / "power_household_uci_1min.parquet", columns=POWER_COLUMNS)
    parts = []
    for year in (2007, 2008):
        start = datetime(year, 1, 1)
        end = start + timedelta(days=POWER_DAYS)
        at = table["date_time"]
        parts.append(table.filter(pc.and_(pc.greater_equal(at, start), pc.less(at, end))))
    return pa.concat_tables(parts)


def write(table: pa.Table, name: str) -> None:
    """Write *table* beside this script, small and the same each time."""
    path = HERE / name
    # Delta encoding is what makes sorted timestamps small; the dictionary suits the rest.
    times = [column.name for column in table.schema if pa.types.is_timestamp(column.type)]
    pq.write_table(
        table.replace_schema_metadata(None),
        path,
        compression="zstd",
        compression_level=22,
        use_dictionary=[name for name in table.column_names if name not in times],
        column_encoding=dict.fromkeys(times, "DELTA_BINARY_PACKED"),
        store_schema=False,
    )
    print(f"{path.name}: {table.num_rows:,} rows, {path.stat().st_size:,} bytes")


def main() -> None:
    """Cut both samples from the folder named on the command line."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    folder = Path(sys.argv[1])
    write(cut_taxi(folder), "yellow_taxi_sample.parquet")
    write(cut_power(folder), "household_power_sample.parquet")


if __name__ == "__main__":
    main()
