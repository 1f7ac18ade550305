"""Arrivals of all streams as a log of Parquet files, which Spark reads as its source.

Each file is a run of consecutive arrivals, whatever streams they are of, as a partition of a
message broker would hold them: their order is part of what a window join means, and Spark promises
none between two sources. As with a broker, what lies in the log is batches: Spark passes them on as
they are. Turning tuples into rows of the JVM's and back into columns took half of a trigger.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from actors.disorder import open_feed
from actors.feed import StreamFile
from actors.source import ARRIVALS, Arriving, Feeding
from joins.arrivals import Arrivals
from spark_bridge.hosted.parcels import Letter, pack, wrap

COLUMNS = "tuples bigint, parcel binary"
"""Columns of the log as Spark spells them: how many tuples arrive, and a parcel for the sources."""

_BATCH_ROWS = 1 << 17
"""Arrivals in a parcel: some megabytes, which Arrow and the JVM handle best."""


def write_arrivals(
    files: tuple[StreamFile, ...], feeding: Feeding, folder: Path, *, rows: int
) -> int:
    """Write the arrivals of *files* as runs of *rows* into *folder*; return how many there are.

    Spark takes files by their time of change, so each is a second younger than the one before.
    """
    folder.mkdir(parents=True)
    feed = open_feed(files, feeding.disorder)
    run, total, arrivals = 0, 0, feed.take(rows)
    while arrivals is not None:
        following = feed.take(rows)
        path = folder / f"run-{run:06d}.parquet"
        table = _batches(arrivals, last=following is None)
        pq.write_table(table, path, compression="none", use_dictionary=False)
        os.utime(path, (run, run))
        run, total, arrivals = run + 1, total + arrivals.rows, following
    return total


def parcel(arrivals: Arrivals, *, last: bool) -> bytes:
    """Return *arrivals* as a message for all sources of whatever shard takes it."""
    letter = Letter(arrivals.span[0], 0, ARRIVALS, ARRIVALS, None, ())
    return pack([(letter, wrap(Arriving(arrivals, last)))])


def _batches(arrivals: Arrivals, *, last: bool) -> pa.Table:
    begin, stop = arrivals.span[0], arrivals.span[1] + 1
    tuples, parcels = [], []
    for first in range(begin, stop, _BATCH_ROWS):
        batch = arrivals.between(first, min(first + _BATCH_ROWS, stop))
        tuples.append(batch.rows)
        parcels.append(parcel(batch, last=last and first + _BATCH_ROWS >= stop))
    return pa.table({"tuples": pa.array(tuples, pa.int64()), "parcel": pa.array(parcels)})
