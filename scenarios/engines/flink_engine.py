"""Flink by way of PyFlink, which lives in a Python environment of its own.

Flink drops state in a stream-stream join only where it joins within an interval of event time, to
the millisecond. So each side has a clock of its own: the time of a tuple in milliseconds, or for
windows by count its position, a millisecond each. The interval of clocks is as wide as the window
can be; the exact bounds are further conditions. Buckets as for DuckDB take a fifth more processor
time here, and half as much again where the window is short: Flink joins tuple by tuple anyway.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from pyarrow import csv

from actors.feed import StreamFile
from joins.hashing import mix
from joins.queries.query import JoinQuery
from joins.threads import usable_cores
from scenarios.engines import (
    PairEngine,
    flink_job,
    pair_totals,
    quote,
    read_columns,
)
from scenarios.plan import Plan
from scenarios.streams import REPOSITORY
from scenarios.subprocesses import tree_peak_bytes
from spark_bridge.engines import EngineFailed, EngineResult, Totals
from spark_bridge.session import find_java
from spark_bridge.sql.statement import ProbeSide, probe_sides

PYTHON_VARIABLE = "JOINSIM_FLINK_PYTHON"
"""Names the interpreter of the environment that has PyFlink; ``make flink`` makes the default."""

_DEFAULT_PYTHON = REPOSITORY / ".venv-flink" / "bin" / "python"
_VERSION = "from importlib.metadata import version; print(version('apache-flink'))"
_MILLISECOND_NS = 1_000_000
_TYPES = {"int64": "BIGINT", "float64": "DOUBLE"}
_SETTINGS = {
    "parallelism.default": str(usable_cores()),
    # Written files appear at a checkpoint; the last one is at the end.
    "execution.checkpointing.interval": "10 s",
    "table.local-time-zone": "UTC",
}


class Flink(PairEngine):
    """A join within an interval of event time, by Flink's Table API; both its streams ordered."""

    name = "flink"
    package = "apache-flink"
    install = f"make flink, or set {PYTHON_VARIABLE} to a Python that has apache-flink"

    def version(self) -> str | None:
        """Return PyFlink's version, which is not installed in this Python."""
        return _version(_python())

    def run(self, plan: Plan, directory: Path) -> EngineResult:
        """Count all pairs, or write them where the plan asks for them.

        Writing the streams as Flink reads them is not timed.
        """
        return join(plan.query, plan.stored_files, directory, pairs=plan.config.pairs)


def join(
    query: JoinQuery, files: Sequence[StreamFile], directory: Path, *, pairs: bool
) -> EngineResult:
    """Evaluate *query* on Flink.

    Raise :exc:`EngineFailed` with Flink's last words, or with the reason why there is no Java.
    """
    results = directory / "found"
    tables, joins = _write_sides(query, files, directory)
    job: dict[str, Any] = {"settings": _SETTINGS, "statements": tables}
    if pairs:
        columns = "probe_id BIGINT, match_id BIGINT"
        tables.append(f"CREATE TABLE found ({columns}) WITH ({_csv_files(results)})")
        job["insert"] = f"INSERT INTO found {_union(joins, 'p.id, m.id')}"
    else:
        tick, mixed = "p.tick AS tick", "p.mixed * m.mixed AS mixed"
        job["select"] = _by_day("COUNT(*)", _union(joins, tick))
        # Checksums wrap.
        job["check"] = _by_day("COUNT(*), SUM(mixed)", _union(joins, f"{tick}, {mixed}"))
    answer, memory_bytes = _run_job(job, directory / "flink.txt")
    if pairs:
        totals = _read_pairs(results)
    else:
        parts = (Totals(count, checksum % (1 << 64)) for count, checksum in answer["checked"])
        totals = sum(parts, Totals())
        totals.check_counted(sum(count for (count,) in answer["counted"]))
    return EngineResult(
        totals=totals,
        start_seconds=answer["start_seconds"],
        wall_seconds=answer["seconds"],
        memory_bytes=memory_bytes,
        note="reads CSV, written before its clock starts",
    )


def _write_sides(
    query: JoinQuery, files: Sequence[StreamFile], directory: Path
) -> tuple[list[str], list[str]]:
    """Write the sides of all joins; return the statements that declare them, and the joins."""
    streams = [read_columns(file) for file in files]
    declarations, joins = [], []
    for side in probe_sides(query, [file.schema for file in files]):
        names: list[str] = []
        numbers = _numbers(side, streams)
        clocks = [at // _MILLISECOND_NS if side.key == "ts" else at for at in numbers]
        # Flink silently loses pairs of times before its epoch.
        origin = min(int(clock.min(initial=0)) for clock in clocks)
        for role, stream, at, clock in zip(
            "pm", (side.probing, side.stored), numbers, clocks, strict=True
        ):
            name = f"{role}{side.probing}"
            path = directory / f"{name}.csv"
            own = streams[stream]
            columns = {"id": own["id"], "ts": own["ts"], "at": at}
            mixed = mix(~own["id"] if role == "p" else own["id"])  # as `Totals` has them
            columns |= {"mixed": mixed.view(np.int64), "clock": clock - origin, **own}
            _write_csv(columns, path)
            names.append(name)
            declarations.append(_table_statement(name, columns, path))
        joins.append(_join_clauses(side, *names))
    return declarations, joins


def _table_statement(name: str, columns: Mapping[str, np.ndarray], path: Path) -> str:
    """Return the statement that declares the CSV file of one side of a join.

    Beside a stream's own its columns are ``at`` (each tuple's number, see
    `spark_bridge.sql.statement.ProbeSide`), ``mixed`` (the id, mixed), and ``clock``, milliseconds.
    """
    kinds = [f"`{column}` {_TYPES[str(values.dtype)]}" for column, values in columns.items()]
    return (
        f"CREATE TABLE {name} ({', '.join(kinds)}, "
        "tick AS TO_TIMESTAMP_LTZ(`clock`, 3), "
        f"WATERMARK FOR tick AS tick - INTERVAL '1' SECOND) WITH ({_csv_files(path)})"
    )


def _union(joins: Iterable[str], columns: str) -> str:
    """Return the statement of all pairs of *joins*, with some *columns*."""
    return " UNION ALL ".join(f"SELECT {columns} {one}" for one in joins)


def _by_day(figures: str, pairs: str) -> str:
    """Return the statement of *figures* of *pairs*: a row for each day of the clock that has any.

    Without days, each change of a figure would be a row to pass on to Python, which took most of
    the time.
    """
    return f"SELECT {figures} FROM ({pairs}) GROUP BY TUMBLE(tick, INTERVAL '1' DAY)"


def _join_clauses(side: ProbeSide, probing: str, stored: str) -> str:
    """Return ``FROM ... WHERE ...`` of the pairs of *side*: probing ``p``, stored ``m``."""
    slid = f"MOD(MOD(p.`at`, {side.slide}) + {side.slide}, {side.slide})"
    low, high = side.least, side.above
    if side.key == "ts":  # milliseconds are rounded down on both sides
        low, high = low // _MILLISECOND_NS - 1, -(-high // _MILLISECOND_NS) + 1
    conditions = [
        *side.predicates("p.", "m.", nan_is_greatest=False),
        f"m.tick BETWEEN p.tick {_interval(low)} AND p.tick {_interval(high)}",
        f"m.`at` BETWEEN p.`at` - {slid} + ({side.below}) AND p.`at` + ({side.above})",
        *(["m.id < p.id"] if side.by_id else []),
    ]
    return f"FROM {probing} p, {stored} m WHERE {' AND '.join(conditions)}"


def _interval(ms: int) -> str:
    """Return ``+ INTERVAL ...`` or ``- INTERVAL ...``."""
    seconds, rest = divmod(abs(ms), 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    span = f"{days} {hours:02}:{minutes:02}:{seconds:02}.{rest:03}"
    return f"{'-' if ms < 0 else '+'} INTERVAL '{span}' DAY TO SECOND(3)"


def _csv_files(path: Path) -> str:
    where = quote(path.absolute().as_uri())
    return f"'connector' = 'filesystem', 'path' = {where}, 'format' = 'csv'"


def _write_csv(columns: Mapping[str, np.ndarray], path: Path) -> None:
    """Write one side of a join in its order; of several files, Flink drops what comes late."""
    table = pa.table({name: _text(values) for name, values in columns.items()})
    options = csv.WriteOptions(include_header=False, quoting_style="none")
    csv.write_csv(table, path, options)


def _numbers(
    side: ProbeSide, streams: Sequence[Mapping[str, np.ndarray]]
) -> tuple[np.ndarray, np.ndarray]:
    """Return each probing tuple's own number, and each stored tuple's."""
    probing, stored = streams[side.probing], streams[side.stored]
    if side.at == "preceding":
        at = stored["ts"].searchsorted(probing["ts"], "right" if side.ties_precede else "left")
    else:
        at = probing[side.at]
    return at, stored[side.key]


def _text(values: np.ndarray) -> pa.Array:
    """Return a column as Java reads it, without negative zeros: keys are compared bit by bit."""
    if values.dtype != np.float64:
        return pa.array(values)
    return pc.cast(pa.array(values + 0.0), pa.string())


def _run_job(job: dict[str, Any], log: Path) -> tuple[dict[str, Any], int]:
    """Run a job (see `flink_job`); return its answer, and the peak memory of its processes."""
    find_java(wanted_by="Flink")
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [_python(), flink_job.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with suppress(BrokenPipeError):  # it has ended already; its log shows why
                process.stdin.write(json.dumps(job) + "\n")
                process.stdin.flush()
            answer = next((line for line in process.stdout if line.startswith("{")), None)
            memory_bytes = tree_peak_bytes(process.pid)
            with suppress(BrokenPipeError):
                process.stdin.close()
        except BaseException:
            process.terminate()  # its JVM ends with it
            raise
    if answer is None:
        raise EngineFailed(_last_words(log))
    return json.loads(answer), memory_bytes


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes or lines or ["Flink ended without a message"])[-1]


def _read_pairs(folder: Path) -> Totals:
    names = ["probe_id", "match_id"]
    schema = pa.schema([(name, pa.int64()) for name in names])
    shape = ds.CsvFileFormat(read_options=csv.ReadOptions(column_names=names))
    return pair_totals(ds.dataset(folder, schema=schema, format=shape).to_table())


def _python() -> str:
    return os.environ.get(PYTHON_VARIABLE) or str(_DEFAULT_PYTHON)


@cache
def _version(python: str) -> str | None:
    try:
        found = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found.stdout.strip()
