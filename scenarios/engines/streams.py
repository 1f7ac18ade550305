"""The streams of a comparison, written once so that every engine reads the same files."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.feed import StreamFile
from joins.batch import Batch, Schema
from joins.hashing import mix
from scenarios.plan import Plan

SEGMENTS = 4
"""Files of a stream: what a streaming engine takes at a time, after a first for it to warm up."""


def with_own_streams(plan: Plan, folder: Path) -> Plan:
    """Return *plan* over copies of its streams in *folder*: only the rows and fields it joins."""
    files = tuple(_copied(file, folder / file.schema.stream) for file in plan.files)
    return replace(plan, files=files)


def table(file: StreamFile) -> pa.Table:
    """Read a stream that `with_own_streams` wrote, its fields named ``f0``, ``f1``, ...

    The column ``mixed`` is ``splitmix64(id)``, for engines to add up.
    """
    columns = ["id", "ts", *file.schema.fields]
    found = pq.read_table(sorted(file.directory.glob("*.parquet")), columns=columns)
    found = found.rename_columns(["id", "ts", *(f"f{i}" for i in range(len(columns) - 2))])
    return found.append_column("mixed", pa.array(mix(found["id"].to_numpy())))


def column(schema: Schema, field: str) -> str:
    """Return what `table` calls *field* of a stream."""
    return f"f{list(schema.fields).index(field)}"


def _copied(file: StreamFile, folder: Path) -> StreamFile:
    folder.mkdir(parents=True)
    whole = Batch.concat([Batch.empty(file.schema), *file.batches()])
    columns = {"id": whole.id, "ts": whole.ts, **whole.fields}
    rows = pa.table({name: pa.array(np.asarray(values)) for name, values in columns.items()})
    step = max(1, -(-len(rows) // SEGMENTS))
    for part, begin in enumerate(range(0, max(1, len(rows)), step)):
        path = folder / f"part-{part:05d}.parquet"
        pq.write_table(rows.slice(begin, step), path)
        # Spark takes files by their time of change.
        os.utime(path, (part, part))
    return StreamFile(schema=file.schema, directory=folder.resolve())
