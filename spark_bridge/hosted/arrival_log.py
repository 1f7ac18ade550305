"""Arrivals of all streams as a log of Parquet files, which Spark reads as its source.

Each file is a run of consecutive arrivals, whatever streams they are of, as a partition of a
message broker would hold them: their order is part of what a window join means, and Spark promises
none between two sources.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.disorder import open_feed
from actors.feed import StreamFile
from actors.source import ARRIVALS, Arriving, Feeding
from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from spark_bridge.hosted.parcels import Letter, pack, wrap

_PLACE = "run bigint, last boolean, seq bigint, stream byte, id bigint, ts bigint"
_SPARK_TYPES = {"int64": "bigint", "float64": "double"}


def columns(schemas: Sequence[Schema]) -> str:
    """Return the columns of the log as Spark spells them: fields are null where of other streams.

    ``run`` numbers the files, ``last`` marks the last row of all, ``seq`` numbers arrivals.
    """
    fields = [
        f"{_column(stream, name)} {_SPARK_TYPES[dtype]}"
        for stream, schema in enumerate(schemas)
        for name, dtype in schema.fields.items()
    ]
    return ", ".join([_PLACE, *fields])


def write_arrivals(
    files: tuple[StreamFile, ...], feeding: Feeding, folder: Path, *, rows: int
) -> int:
    """Write the arrivals of *files* as runs of *rows* into *folder*; return how many there are.

    Spark takes files by their time of change, so each is a second younger than the one before.
    """
    folder.mkdir(parents=True)
    feed = open_feed(files, feeding.disorder)
    schemas = [file.schema for file in files]
    run, total, arrivals = 0, 0, feed.take(rows)
    while arrivals is not None:
        following = feed.take(rows)
        path = folder / f"run-{run:06d}.parquet"
        table = _table(arrivals, schemas)
        table = table.append_column("run", pa.array(np.full(len(table), run)))
        last = np.zeros(len(table), np.bool_)
        last[-1] = following is None
        table = table.append_column("last", pa.array(last))
        pq.write_table(table, path, compression="zstd")
        os.utime(path, (run, run))
        run, total, arrivals = run + 1, total + arrivals.rows, following
    return total


class Packer:
    """Turns the log's rows into parcels for the shards that hold sources.

    Parameters
    ----------
    schemas
        The streams' fields.
    sources
        Per shard of the first stage that holds sources: its key in Spark, its number, and its
        sources' names.
    """

    def __init__(
        self, schemas: Sequence[Schema], sources: Sequence[tuple[int, int, tuple[str, ...]]]
    ) -> None:
        self._schemas = tuple(schemas)
        self._sources = tuple(sources)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Pack every stretch of one file's rows."""
        for batch in batches:
            runs = batch["run"].to_numpy()
            ends = [*(np.flatnonzero(np.diff(runs)) + 1).tolist(), len(runs)]
            begin = 0
            for end in ends:
                if begin < end:
                    yield self._pack(batch.slice(begin, end - begin))
                begin = end

    def _pack(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        seq = batch["seq"].to_numpy()
        arriving = wrap(Arriving(_arrivals(batch, self._schemas), bool(batch["last"][-1].as_py())))
        parcels = [
            pack([(Letter(int(seq[0]), 0, name, ARRIVALS, None, names), arriving)])
            for _, _, names in self._sources
            for name in names[:1]
        ]
        keys, shards = ([source[place] for source in self._sources] for place in (0, 1))
        return pa.record_batch(
            {
                "via": pa.array(keys, pa.int32()),
                "stage": pa.array([0] * len(keys), pa.int32()),
                "shard": pa.array(shards, pa.int32()),
                "parcel": pa.array(parcels, pa.binary()),
            }
        )


def _column(stream: int, field: str) -> str:
    return f"s{stream}_{field}"


def _table(arrivals: Arrivals, schemas: Sequence[Schema]) -> pa.Table:
    tables = []
    for stream, (part, seq) in enumerate(zip(arrivals.parts, arrivals.seq, strict=True)):
        head = {"seq": seq, "stream": np.full(len(seq), stream, np.int8)}
        fields = {_column(stream, name): part.fields[name] for name in schemas[stream].fields}
        tables.append(pa.table(head | {"id": part.id, "ts": part.ts} | fields))
    return pa.concat_tables(tables, promote_options="default").sort_by("seq")


def _arrivals(batch: pa.RecordBatch, schemas: Sequence[Schema]) -> Arrivals:
    parts, numbers = [], []
    for stream, schema in enumerate(schemas):
        rows = batch
        if len(schemas) > 1:
            rows = batch.filter(pc.equal(batch["stream"], stream))
        numbers.append(rows["seq"].to_numpy(zero_copy_only=False))
        columns = {name: rows[name] for name in ("id", "ts")}
        columns |= {name: rows[_column(stream, name)] for name in schema.fields}
        parts.append(Batch.from_arrow(pa.record_batch(columns), schema))
    return Arrivals(tuple(parts), tuple(numbers))
