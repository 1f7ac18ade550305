"""The streams of a comparison, written once so that every engine reads the same files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.feed import StreamData, StreamFile
from joins.batch import Batch
from scenarios.plan import Plan
from spark_bridge.totals import Totals

SEGMENTS = 4
"""Files of a stream: what a streaming engine reads at a time, after a first for it to warm up."""


def with_own_streams(plan: Plan, folder: Path) -> Plan:
    """Return *plan* over copies of its streams in *folder*: only the rows and fields it joins."""
    files = tuple(_copy(file, folder / file.schema.stream) for file in plan.files)
    return replace(plan, files=files)


def whole(file: StreamData) -> Batch:
    """Return a whole stream."""
    return Batch.concat([Batch.empty(file.schema), *file.batches()])


def pair_totals(pairs: pa.Table) -> Totals:
    """Return the totals of a table with the columns ``probe_id`` and ``match_id``."""
    return Totals.of_pairs(*(pairs[name].to_numpy() for name in ("probe_id", "match_id")))


def write_segments(rows: pa.Table, folder: Path, segment_rows: int) -> None:
    """Write a stream as segments of *segment_rows* tuples into *folder*, which is created."""
    folder.mkdir(parents=True)
    for part, begin in enumerate(range(0, max(1, len(rows)), segment_rows)):
        path = folder / f"part-{part:05d}.parquet"
        _write_segment(rows.slice(begin, segment_rows), path)
        # Spark takes files in the order of their times of change.
        os.utime(path, (part, part))


def _write_segment(rows: pa.Table, path: Path) -> None:
    """Write *rows* as preparation does (`spark_bridge.pipeline.numbering`)."""
    counting = ["id", "ts"]
    pq.write_table(
        rows,
        path,
        compression="zstd",
        data_page_version="2.0",
        use_dictionary=[name for name in rows.column_names if name not in counting],
        column_encoding=dict.fromkeys(counting, "DELTA_BINARY_PACKED"),
    )


def _copy(file: StreamData, folder: Path) -> StreamFile:
    tuples = whole(file)
    columns = {"id": tuples.id, "ts": tuples.ts, **tuples.fields}
    rows = pa.table({name: pa.array(np.asarray(values)) for name, values in columns.items()})
    write_segments(rows, folder, max(1, -(-len(rows) // SEGMENTS)))
    return StreamFile(schema=file.schema, directory=folder.resolve())
