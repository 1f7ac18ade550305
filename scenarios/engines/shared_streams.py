"""The streams of a comparison, written once so that every engine reads the same files.

Engines that are no part of joinsim, in SQL or Polars' expressions, state the joins that
`spark_bridge.sql.statement` makes of a query. To all of them a stream is a table of ``id``, ``ts``
in nanoseconds, and its join fields ``f0``, ``f1`` and so on. (Spark's own statement is
`spark_bridge.sql.native`.)
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from actors.feed import StreamData, StreamFile
from joins.batch import Batch, Schema
from scenarios.plan import Plan
from spark_bridge.engines import EngineFailed, Totals
from spark_bridge.prepared import ROW_GROUP_ROWS
from spark_bridge.sql.statement import ProbeSide, predicate_sql

STEP_ROWS = 500_000
"""Tuples that an engine inside Spark takes at a time, and that a file of a stream has: a step takes
some tenths of a second, whatever it contains, and its tuples are in memory at once."""


def with_own_streams(plan: Plan, folder: Path) -> Plan:
    """Return *plan* over copies of its streams in *folder*: only the rows and fields it joins."""
    files = tuple(_copy(file, folder / file.schema.stream) for file in plan.files)
    return replace(plan, files=files)


def read_whole(file: StreamData) -> Batch:
    """Return a whole stream."""
    return Batch.concat([Batch.empty(file.schema), *file.batches()])


def column(schema: Schema, field: str) -> str:
    """Return what a *field* of a stream is called in all statements."""
    return f"f{list(schema.fields).index(field)}"


def columns(schema: Schema) -> dict[str, str]:
    """Return the columns of a prepared stream that are read: name in the file to name here."""
    return {"id": "id", "ts": "ts"} | {field: column(schema, field) for field in schema.fields}


def predicates(
    side: ProbeSide, schemas: Sequence[Schema], *, nan_is_greatest: bool = True
) -> list[str]:
    """Return the predicates of *side* in SQL, between a table ``p`` that probes and one ``m``."""
    return [
        predicate_sql(
            condition,
            f"p.{column(schemas[side.probing], condition.probe_field)}",
            f"m.{column(schemas[side.stored], condition.stored_field)}",
            nan_is_greatest=nan_is_greatest,
        )
        for condition in side.conditions
    ]


def quote(text: str) -> str:
    """Return *text* as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def pair_totals(pairs: pa.Table) -> Totals:
    """Return the totals of a table with the columns ``probe_id`` and ``match_id``."""
    return Totals.of_pairs(*(pairs[name].to_numpy() for name in ("probe_id", "match_id")))


def check_counted(counted: int, totals: Totals) -> None:
    """Raise :exc:`EngineFailed` where what an engine *counted* is not what its check came to."""
    if counted != totals.pairs:
        raise EngineFailed(f"it counted {counted:,} pairs, and then {totals.pairs:,}")


def write_segments(rows: pa.Table, folder: Path, segment_rows: int) -> None:
    """Write a stream as segments of *segment_rows* tuples into *folder*, which is created."""
    folder.mkdir(parents=True)
    for part, begin in enumerate(range(0, max(1, len(rows)), segment_rows)):
        path = folder / f"part-{part:05d}.parquet"
        _write_segment(rows.slice(begin, segment_rows), path)
        # Spark takes files in the order of their times of change.
        os.utime(path, (part, part))


def _write_segment(rows: pa.Table, path: Path) -> None:
    """Write *rows* as preparation does (`spark_bridge.pipeline.stages`)."""
    counting = ["id", "ts"]
    pq.write_table(
        rows,
        path,
        row_group_size=ROW_GROUP_ROWS,
        compression="zstd",
        data_page_version="2.0",
        use_dictionary=[name for name in rows.column_names if name not in counting],
        column_encoding=dict.fromkeys(counting, "DELTA_BINARY_PACKED"),
    )


def _copy(file: StreamData, folder: Path) -> StreamFile:
    tuples = read_whole(file)
    by_name = {"id": tuples.id, "ts": tuples.ts, **tuples.fields}
    rows = pa.table({name: pa.array(np.asarray(values)) for name, values in by_name.items()})
    write_segments(rows, folder, STEP_ROWS)
    return StreamFile(schema=file.schema, directory=folder.resolve())
