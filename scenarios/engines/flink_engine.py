"""Flink by way of PyFlink, which lives in a Python environment of its own."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from actors.feed import StreamFile
from joins.queries.query import JoinQuery
from scenarios.engines import flink_job, flink_sql
from scenarios.engines.engine import EngineFailed, Measured, Totals, needs_two_sides
from scenarios.engines.flink_sql import Side
from scenarios.engines.looking import lookings
from scenarios.engines.memory import peak_bytes
from scenarios.plan import Plan
from scenarios.streams import REPOSITORY
from spark_bridge.errors import EngineUnavailable
from spark_bridge.java import find_java

PYTHON_VARIABLE = "JOINSIM_FLINK_PYTHON"
"""Names the interpreter of the environment that has PyFlink; ``make flink`` makes the default."""

_DEFAULT_PYTHON = REPOSITORY / ".venv-flink" / "bin" / "python"
_VERSION = "from importlib.metadata import version; print(version('apache-flink'))"
_SETTINGS = {
    "parallelism.default": str(os.cpu_count() or 1),
    # Files that are written are shown at a checkpoint; the last one is at the end.
    "execution.checkpointing.interval": "10 s",
    "table.local-time-zone": "UTC",
}


class Flink:
    """A join within an interval of event time, by Flink's Table API; both its streams ordered."""

    name = "flink"
    install = f"make flink, or set {PYTHON_VARIABLE} to a Python that has apache-flink"

    def version(self) -> str | None:
        """Return PyFlink's version."""
        return _version(_python())

    def cannot(self, plan: Plan) -> str | None:
        """Say that it joins by pairs."""
        return needs_two_sides(plan)

    def run(self, plan: Plan, directory: Path) -> Measured:
        """Count all pairs, or write them where the plan asks for them.

        Writing the streams as Flink reads them is not timed.
        """
        return join(plan.query, plan.files, directory, pairs=plan.config.pairs)


def join(
    query: JoinQuery, files: Sequence[StreamFile], directory: Path, *, pairs: bool
) -> Measured:
    """Evaluate *query* on Flink.

    Raise :exc:`EngineFailed` with Flink's last words, or that there is no Java for it.
    """
    found = directory / "found"
    tables, joins = _sides(query, files, directory)
    told: dict[str, Any] = {"settings": _SETTINGS, "statements": tables}
    if pairs:
        create, told["insert"] = flink_sql.written(joins, found)
        told["statements"].append(create)
    else:
        told["select"] = flink_sql.counted(joins)
    said, memory_bytes = _ask(told, directory / "flink.txt")
    if pairs:
        totals = _read(found)
    else:
        parts = (Totals(count, checksum % (1 << 64)) for count, checksum in said["rows"])
        totals = sum(parts, Totals())
    return Measured(totals=totals, wall_seconds=said["seconds"], memory_bytes=memory_bytes)


def _sides(
    query: JoinQuery, files: Sequence[StreamFile], directory: Path
) -> tuple[list[str], list[str]]:
    """Write the sides of all joins; return what makes them known, and the joins."""
    streams = [flink_sql.read(file) for file in files]
    tables, joins = [], []
    for looking in lookings(query, [file.schema for file in files]):
        sides = []
        numbers = flink_sql.numbers(looking, streams)
        for role, stream, at in zip("pm", (looking.probing, looking.stored), numbers, strict=True):
            name = f"{role}{looking.probing}"
            side = Side(name, files[stream].schema, directory / f"{name}.csv")
            flink_sql.write_side(streams[stream], at, by_time=looking.key == "ts", path=side.path)
            sides.append(side)
            tables.append(side.create())
        joins.append(flink_sql.joined(looking, *sides))
    return tables, joins


def _ask(told: dict[str, Any], log: Path) -> tuple[dict[str, Any], int]:
    """Run the job; return what it says, and the peak memory of its processes."""
    try:
        find_java(wanted_by="Flink")
    except EngineUnavailable as error:
        raise EngineFailed(str(error)) from None
    with (
        log.open("w") as errors,
        subprocess.Popen(
            [_python(), flink_job.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as job,
    ):
        assert job.stdin is not None
        assert job.stdout is not None
        try:
            with suppress(BrokenPipeError):  # it has ended already; its last words say why
                job.stdin.write(json.dumps(told) + "\n")
                job.stdin.flush()
            said = next((line for line in job.stdout if line.startswith("{")), None)
            memory_bytes = peak_bytes(job.pid)
            with suppress(BrokenPipeError):
                job.stdin.close()
        except BaseException:
            job.terminate()  # its JVM ends with it
            raise
    if said is None:
        raise EngineFailed(_last_words(log))
    return json.loads(said), memory_bytes


def _last_words(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    return (causes or lines or ["Flink ended without a word"])[-1]


def _read(folder: Path) -> Totals:
    names = ["probe_id", "match_id"]
    schema = pa.schema([(name, pa.int64()) for name in names])
    shape = ds.CsvFileFormat(read_options=pa.csv.ReadOptions(column_names=names))
    found = ds.dataset(folder, schema=schema, format=shape).to_table()
    return Totals.of_pairs(*(found[name].to_numpy() for name in names))


def _python() -> str:
    return os.environ.get(PYTHON_VARIABLE) or str(_DEFAULT_PYTHON)


@cache
def _version(python: str) -> str | None:
    try:
        told = subprocess.run([python, "-c", _VERSION], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return told.stdout.strip()
