"""Runs SQL on Flink; a program for the interpreter of the environment that has PyFlink.

It imports nothing of joinsim. The job comes as one line of JSON on standard input, the answer goes
as one line to standard output. Then the program waits for the end of its input, so that its memory
can be measured.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any


def main() -> None:
    """Run a job: ``settings``, ``statements``, and an ``insert``, or a ``select`` with a ``check``.

    The check runs when the clock has stopped.
    """
    job = json.loads(sys.stdin.readline())
    began = time.perf_counter()
    from pyflink.table import EnvironmentSettings, TableEnvironment

    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in job["settings"].items():
        tables.get_config().set(name, value)
    for statement in job["statements"]:
        tables.execute_sql(statement)
    started = time.perf_counter()
    answer: dict[str, Any] = {"start_seconds": started - began}
    if "insert" in job:
        tables.execute_sql(job["insert"]).wait()
    else:
        answer["counted"] = _rows(tables, job["select"])
    answer["seconds"] = time.perf_counter() - started
    if "check" in job:
        answer["checked"] = _rows(tables, job["check"])
    print(json.dumps(answer), flush=True)
    sys.stdin.read()


def _rows(tables: Any, select: str) -> list[list[int]]:
    with tables.execute_sql(select).collect() as results:
        return [list(row) for row in results]


if __name__ == "__main__":
    main()
