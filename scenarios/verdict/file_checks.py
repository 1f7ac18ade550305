"""Checks over the files that a run wrote, by what must hold in any of them, whatever the query is.

None is missing, none is there that a run does not write, no figure in them is impossible; and in
the trace no message is lost or overtaken.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.result_files import (
    COLLECTORS_SCHEMA,
    LATE_SCHEMA,
    SUMMARY_SCHEMA,
    collectors_path,
    late_path,
    pairs_path,
    pairs_schema,
    part_files,
    summary_path,
)
from joins.errors import DataError
from netsim.outcome import Outcome
from scenarios.plan import Plan
from scenarios.run_directory import TRACE
from scenarios.verdict import CheckResult

_AGAIN = "the run is judged by what it wrote, so run it again"


def require_files(plan: Plan, directory: Path) -> None:
    """Raise :exc:`DataError` naming a file of results that is missing or not as it was written."""
    for path, schema in _results(plan, directory).items():
        parts = part_files(path)
        if not parts:
            raise DataError(f"{path} has no parts: {_AGAIN}")
        for part in parts:
            _require(part, schema)
    trace = directory / TRACE
    if not trace.is_file():
        raise DataError(f"{trace} is missing: {_AGAIN}")
    for path in (late_path(directory), collectors_path(directory)):
        table = pq.read_table(path)
        for name in table.column_names:
            if table[name].null_count:
                raise DataError(f"{path}: column {name} has missing values; {_AGAIN}")


def check_files(plan: Plan, directory: Path, odd_rows: int) -> CheckResult:
    """Check that there is no other file of results, and that figures are possible.

    *odd_rows* are those of reports that no actor can have sent, see
    `scenarios.result_readers.Summaries`.
    """
    expected = _results(plan, directory)
    others = set(directory.glob("probes-*")) - expected.keys()
    for path in expected:
        if path.is_dir():
            others |= set(path.iterdir()) - set(part_files(path))
    collectors = pq.read_table(collectors_path(directory))
    negative = sum(any(figure < 0 for figure in row.values()) for row in collectors.to_pylist())
    wrong = []
    if others:
        names = ", ".join(sorted(str(path.relative_to(directory)) for path in others))
        wrong.append(f"the run does not write {names}")
    if odd_rows:
        wrong.append(f"{odd_rows:,} rows have a sender that is no actor, or a negative latency")
    if negative:
        wrong.append(f"{negative:,} rows of collectors have negative figures")
    detail = "they are those that a run writes, and no sender, latency or collector is impossible"
    return CheckResult(name="files", passed=not wrong, detail="; ".join(wrong) or detail)


def _results(plan: Plan, directory: Path) -> dict[Path, pa.Schema]:
    streams = plan.query.streams
    files = {summary_path(directory, stream): SUMMARY_SCHEMA for stream in range(len(streams))}
    files |= {late_path(directory): LATE_SCHEMA, collectors_path(directory): COLLECTORS_SCHEMA}
    return files | ({pairs_path(directory): pairs_schema(streams)} if plan.config.pairs else {})


def _require(path: Path, schema: pa.Schema) -> None:
    """Raise :exc:`DataError` where *path* is no file with the columns of *schema*."""
    if not path.is_file():
        raise DataError(f"{path} is missing: {_AGAIN}")
    try:
        found = pq.read_schema(path)
    except pa.ArrowInvalid as error:
        raise DataError(f"{path} is damaged ({error}): {_AGAIN}") from None
    if found.names != schema.names:
        names = ", ".join(schema.names)
        raise DataError(f"{path} has columns {', '.join(found.names)}, not {names}: {_AGAIN}")
    for column, written in zip(found, schema, strict=True):
        if column.type != written.type:
            raise DataError(
                f"{path}: column {column.name} is {column.type}, not {written.type}; {_AGAIN}"
            )


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


def _groups(trace: Path, columns: list[str]) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(trace) as file:
        yield from file.iter_batches(columns=columns)


def _names(column: pa.DictionaryArray) -> pa.StringArray:
    """Decode names: each column and row group has a dictionary of its own."""
    return column.dictionary_decode()
