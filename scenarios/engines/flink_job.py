"""Runs SQL on Flink; a program for the interpreter of the environment that has PyFlink.

It imports nothing of joinsim. The job comes as one line of JSON on standard input, the answer goes
as one line to standard output. Then the program waits for the end of its input, so that its memory
can be measured.
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    """Run the job: ``settings``, ``statements``, and an ``insert`` or a ``select``."""
    from pyflink.table import EnvironmentSettings, TableEnvironment

    job = json.loads(sys.stdin.readline())
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in job["settings"].items():
        tables.get_config().set(name, value)
    for statement in job["statements"]:
        tables.execute_sql(statement)
    start = time.perf_counter()
    rows: list[list[int]] = []
    if "insert" in job:
        tables.execute_sql(job["insert"]).wait()
    else:
        with tables.execute_sql(job["select"]).collect() as results:
            rows += map(list, results)
    print(json.dumps({"seconds": time.perf_counter() - start, "rows": rows}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
