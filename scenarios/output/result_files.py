"""The files of a run's output: where they are, and their columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

SUMMARY_SCHEMA = pa.schema(
    [
        ("probe_id", pa.int64()),
        ("count", pa.int64()),
        ("fingerprint", pa.uint64()),
        ("latency_ns", pa.int64()),
    ]
)
"""Of each probing tuple, in any number of rows: what was found, and how long after its birth."""

LATE_SCHEMA = pa.schema(
    [("stream", pa.int8()), ("id", pa.int64()), ("ts", pa.int64()), ("watermark", pa.int64())]
)
"""Tuples that were dropped as late, and the watermark that they came behind."""

COLLECTORS_SCHEMA = pa.schema(
    [
        ("replica", pa.int64()),
        ("most_tuples", pa.int64()),
        ("tuples", pa.int64()),
        ("waited_ns", pa.int64()),
        ("longest_ns", pa.int64()),
        ("backward", pa.int64()),
    ]
)
"""What collectors of interval joins did, a row per replica."""

_ID = "_id"


def id_columns(streams: Sequence[str], stream: int) -> list[str]:
    """Return the columns of a result's ids in ``results.parquet``: its newest tuple's, the others'.

    A pair of a self join or of two streams has ``probe_id`` and ``match_id``. In a join of more
    streams each has a column of its own, wherever the newest tuple, of stream *stream*, is from.
    """
    if len(streams) <= 2:
        return ["probe_id", "match_id"]
    columns = [name + _ID for name in streams]
    return [columns.pop(stream), *columns]


def pairs_schema(streams: Sequence[str]) -> pa.Schema:
    """Return the columns of ``results.parquet``."""
    ids = id_columns(streams, 0)
    return pa.schema([("probe_stream", pa.int8()), *((name, pa.int64()) for name in ids)])


def summary_path(directory: Path, stream: int) -> Path:
    """Return the file of per-probe counts of a probing stream."""
    return directory / f"probes-{stream}.parquet"


def late_path(directory: Path) -> Path:
    """Return the file of tuples that were dropped as late."""
    return directory / "late.parquet"


def collectors_path(directory: Path) -> Path:
    """Return the file of what collectors did, a row per replica."""
    return directory / "collectors.parquet"


def pairs_path(directory: Path) -> Path:
    """Return the file of pairs."""
    return directory / "results.parquet"
