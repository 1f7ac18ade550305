"""Checks over the files that a run wrote, by what must hold in any of them, whatever the query is.

None is missing, none is there that a run does not write, and no figure in them is impossible.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
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
from netsim.trace import TRACE_SCHEMA
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
    _require(directory / TRACE, TRACE_SCHEMA)
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
