"""Checks over the trace: nothing lost, nothing overtaken; and where a tuple was when."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from netsim.outcome import Outcome
from scenarios.verdict.verdict import CheckResult


def _groups(trace: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(trace) as file:
        yield from file.iter_batches(columns=columns)


def check_conservation(outcome: Outcome, trace: Path) -> CheckResult:
    """Check that each message was received once, but for those that faults lost and doubled."""
    received = 0
    for rows in _groups(trace, ["sender", "receiver"]):
        received += pc.sum(pc.not_equal(_names(rows["sender"]), _names(rows["receiver"]))).as_py()
    known = received + outcome.in_flight + outcome.lost - outcome.doubled
    detail = f"{outcome.messages:,} sent, {received:,} received, {outcome.in_flight:,} in flight"
    if outcome.lost or outcome.doubled:
        detail += f", {outcome.lost:,} lost, {outcome.doubled:,} received twice"
    if outcome.standstill:
        circle = [*outcome.standstill, outcome.standstill[0]]
        detail += f"; {' waits for room at '.join(circle)}, for ever"
    whole = outcome.messages == known and not outcome.in_flight
    return CheckResult(
        name="conservation",
        passed=whole if outcome.messages else None,
        detail=detail,
    )


def check_fifo(trace: Path) -> CheckResult:
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
    return CheckResult(
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
