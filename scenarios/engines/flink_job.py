"""Runs SQL on Flink; a program for the interpreter of the environment that has PyFlink.

It knows nothing of joinsim: what to do comes as one line of JSON on standard input, and what came
out goes as one line to standard output. Then it waits for the end of its input, so that its memory
can be looked at.
"""

from __future__ import annotations

import json
import sys
import time


def main() -> None:
    """Do what the input says: ``settings``, ``statements``, and an ``insert`` or a ``select``."""
    from pyflink.table import EnvironmentSettings, TableEnvironment

    told = json.loads(sys.stdin.readline())
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for name, value in told["settings"].items():
        tables.get_config().set(name, value)
    for statement in told["statements"]:
        tables.execute_sql(statement)
    start = time.perf_counter()
    rows: list[list[int]] = []
    if "insert" in told:
        tables.execute_sql(told["insert"]).wait()
    else:
        with tables.execute_sql(told["select"]).collect() as found:
            rows += map(list, found)
    print(json.dumps({"seconds": time.perf_counter() - start, "rows": rows}), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
