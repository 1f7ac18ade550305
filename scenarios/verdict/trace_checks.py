"""Checks over the trace: nothing lost, nothing overtaken; and where a tuple was when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.disorder import open_feed
from actors.feed import StreamData
from actors.source import Feeding
from joins.queries.query import JoinQuery
from netsim.outcome import Outcome
from scenarios.results import late_path
from scenarios.verdict.verdict import Check


def _groups(trace: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(trace) as file:
        yield from file.iter_batches(columns=columns)


def check_conservation(outcome: Outcome, trace: Path) -> Check:
    """Check that every message sent was received, but for those still in flight."""
    received = 0
    for rows in _groups(trace, ["sender", "receiver"]):
        received += pc.sum(pc.not_equal(_names(rows["sender"]), _names(rows["receiver"]))).as_py()
    return Check(
        name="conservation",
        passed=outcome.messages == received + outcome.in_flight if outcome.messages else None,
        detail=(
            f"{outcome.messages:,} sent, {received:,} received, {outcome.in_flight:,} in flight"
        ),
    )


def check_fifo(trace: Path) -> Check:
    """Check that on no channel a message arrived before one that was sent earlier.

    Timers are no messages: each fires when it was set for.
    """
    last: dict[str, tuple[int, int]] = {}
    overtaken = 0
    for rows in _groups(trace, ["sender", "receiver", "seq", "arrived_ns"]):
        rows = rows.filter(pc.not_equal(_names(rows["sender"]), _names(rows["receiver"])))
        if not rows.num_rows:
            continue
        channels = pc.binary_join_element_wise(
            _names(rows["sender"]), _names(rows["receiver"]), ">"
        ).dictionary_encode()
        channel = channels.indices.to_numpy()
        order = np.argsort(channel, kind="stable")
        channel = channel[order]
        seq = rows["seq"].to_numpy()[order]
        arrived = rows["arrived_ns"].to_numpy()[order]
        same = channel[1:] == channel[:-1]
        overtaken += int(np.sum(same & ((np.diff(seq) <= 0) | (np.diff(arrived) < 0))))
        starts = np.flatnonzero(np.concatenate([[True], ~same]))
        stops = np.append(starts[1:], len(channel)) - 1
        for start, stop in zip(starts, stops, strict=True):
            name = channels.dictionary[int(channel[start])].as_py()
            before = last.get(name)
            if before and (seq[start] <= before[0] or arrived[start] < before[1]):
                overtaken += 1
            last[name] = (seq[stop], arrived[stop])
    return Check(
        name="fifo",
        passed=overtaken == 0 if last else None,
        detail=f"{overtaken:,} messages overtaken on {len(last):,} channels",
    )


def arrivals_of(seq: int, trace: Path) -> dict[str, float]:
    """Return when the tuple of arrival number *seq* first reached each actor, in virtual ms."""
    first_ns: dict[str, int] = {}
    for rows in _groups(trace, ["receiver", "first", "last", "arrived_ns"]):
        about = pc.and_(pc.less_equal(rows["first"], seq), pc.greater_equal(rows["last"], seq))
        rows = rows.filter(about)
        for actor, arrived_ns in zip(
            rows["receiver"].to_pylist(), rows["arrived_ns"].to_pylist(), strict=True
        ):
            first_ns[actor] = min(arrived_ns, first_ns.get(actor, arrived_ns))
    return {actor: arrived_ns / 1e6 for actor, arrived_ns in first_ns.items()}


def _names(column: pa.DictionaryArray) -> pa.StringArray:
    """Decode names: each column and row group has a dictionary of its own."""
    return column.dictionary_decode()


_CHUNK_ROWS = 8_192
_INT64 = np.iinfo(np.int64)


def read_late(directory: Path, streams: int) -> tuple[np.ndarray, ...]:
    """Return per stream the tuples that a run dropped as late, int64, ascending."""
    late = pq.read_table(late_path(directory), columns=["stream", "id"])
    stream, ids = late["stream"].to_numpy(), late["id"].to_numpy()
    return tuple(np.sort(ids[stream == place]) for place in range(streams))


def check_watermarks(
    query: JoinQuery,
    files: tuple[StreamData, ...],
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
    files: tuple[StreamData, ...], feeding: Feeding, late: tuple[np.ndarray, ...]
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
