"""Tuples that watermarks made late: which were dropped, and whether they might be."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from actors.disorder import open_feed
from actors.feed import StreamFile
from actors.source import Feeding
from joins.queries.query import JoinQuery
from scenarios.output.result_files import late_path
from scenarios.verdict.verdict import Check

_CHUNK_ROWS = 8_192
_INT64 = np.iinfo(np.int64)


def read_late(directory: Path, streams: int) -> tuple[np.ndarray, ...]:
    """Return per stream the tuples that a run dropped as late, int64, ascending."""
    late = pq.read_table(late_path(directory), columns=["stream", "id"])
    stream, ids = late["stream"].to_numpy(), late["id"].to_numpy()
    return tuple(np.sort(ids[stream == place]) for place in range(streams))


def check_watermarks(
    query: JoinQuery,
    files: tuple[StreamFile, ...],
    feeding: Feeding,
    late: tuple[np.ndarray, ...],
) -> Check:
    """Check that no tuple was dropped but such as arrived behind the watermark, each once.

    A joiner's watermark may be behind that of the sources, so it may take a tuple that they would
    call late; it may not drop one that they would not.
    """
    if query.interval is None and not feeding.disorder:
        return Check(name="watermarks", passed=None, detail="this run had none")
    dropped = sum(len(ids) for ids in late)
    repeated = dropped - sum(len(np.unique(ids)) for ids in late)
    behind, unjustified = 0, dropped
    if feeding.disorder or dropped:
        behind, justified = _behind(files, feeding, late)
        unjustified = dropped - repeated - justified
    return Check(
        name="watermarks",
        passed=not repeated and not unjustified,
        detail=(
            f"{behind:,} tuples arrived behind the watermark, {dropped:,} dropped as late: "
            f"{unjustified:,} without cause, {repeated:,} twice"
        ),
    )


def _behind(
    files: tuple[StreamFile, ...], feeding: Feeding, late: tuple[np.ndarray, ...]
) -> tuple[int, int]:
    """Return how many arrivals were behind the watermark, and how many of *late* were."""
    feed = open_feed(files, feeding.disorder)
    latest = int(_INT64.min)
    behind = justified = 0
    while (arrivals := feed.take(_CHUNK_ROWS)) is not None:
        order = np.argsort(np.concatenate(arrivals.seq))
        ts = np.concatenate([part.ts for part in arrivals.parts])[order]
        dropped = [np.isin(part.id, ids) for part, ids in zip(arrivals.parts, late, strict=True)]
        before = np.maximum.accumulate(np.concatenate([[latest], ts[:-1]]))
        # A watermark before the beginning of time passes nothing.
        passed = before >= _INT64.min + feeding.lag_ns
        is_behind = passed & (ts < before - np.where(passed, feeding.lag_ns, 0))
        behind += int(is_behind.sum())
        justified += int((is_behind & np.concatenate(dropped)[order]).sum())
        latest = max(latest, int(ts.max()))
    return behind, justified
