"""What the tests of the data pipeline share: writing raw files, reading streams back."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from spark_bridge.pipeline.pipeline import prepare
from spark_bridge.pipeline.raw_source import RawSource
from spark_bridge.prepared import PreparedStream


def write_csv(path: Path, header: Sequence[str], rows: Sequence[Sequence[Any]]) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_parquet(path: Path, columns: Mapping[str, Any]) -> Path:
    pq.write_table(pa.table(dict(columns)), path)
    return path


def prepare_one(out: Path, spark: Any, *, segment_rows: int = 1000, **said: Any) -> PreparedStream:
    source = RawSource(**({"name": "R"} | said))
    return prepare(source, out, spark=spark, segment_rows=segment_rows)[0]


def tuples(stream: PreparedStream) -> pa.Table:
    return pq.read_table(stream.path)


def rejects(stream: PreparedStream) -> dict[int, str]:
    """Return source row to reason."""
    folder = stream.path.parent / "rejected"
    if not folder.exists():
        return {}
    table = pq.read_table(folder)
    return dict(zip(table["source_row"].to_pylist(), table["reason"].to_pylist(), strict=True))
