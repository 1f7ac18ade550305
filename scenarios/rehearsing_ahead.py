"""Rehearsing a run in another process, while Spark prepares its data here.

Where Spark has to prepare the data first, and nothing is compiled yet, both take long, and Spark
seldom keeps all cores busy. So another process rehearses meanwhile, and stores what it compiles.
Not a thread: numba compiles in Python, which would keep this process from talking to Spark.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from joins.queries.query import JoinQuery
from scenarios.config import RunConfig
from scenarios.plan import make_plan
from scenarios.preparation import prepare_tables
from scenarios.rehearsal import REHEARSED_ROWS, rehearse
from scenarios.streams import raw_file
from scenarios.subprocesses import start_program
from scenarios.tables import TableStream

_LONGEST_S = 120.0


@contextmanager
def rehearsing_ahead(
    config: RunConfig, on_wait: Callable[[], None] = lambda: None
) -> Iterator[Callable[[], None]]:
    """Yield a function that has another process rehearse a run of *config* from now on.

    The end of the ``with`` waits for that process, after calling *on_wait*; where something has
    failed here, it is killed. What fails there is ignored: the run itself will meet it again.
    """
    begun: list[subprocess.Popen[bytes]] = []

    def start() -> None:
        process = start_program(__name__, stdin=subprocess.PIPE)
        begun.append(process)
        assert process.stdin
        with suppress(OSError):  # it has died at once
            process.stdin.write(config.model_dump_json().encode() + b"\n")
            process.stdin.flush()

    try:
        yield start
        for process in begun:
            if process.poll() is None:
                on_wait()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(_LONGEST_S)
    finally:
        for process in begun:
            process.kill()
            with process:  # closes its pipe
                pass


def _first_rows(config: RunConfig, query: JoinQuery) -> tuple[TableStream, ...]:
    """Prepare the first rows of the raw files of *config*."""
    tables = [_head(raw_file(stream)) for stream in config.streams]
    return prepare_tables(query, tables, [stream.time for stream in config.streams])


def _head(path: Path) -> pa.Table:
    """Return the first rows of a Parquet or CSV file."""
    if path.suffix == ".parquet":
        with pq.ParquetFile(path) as file:
            return pa.Table.from_batches([next(file.iter_batches(REHEARSED_ROWS))])
    with pa_csv.open_csv(path) as file:
        return pa.Table.from_batches([file.read_next_batch()]).slice(0, REHEARSED_ROWS)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()  # until the other end is closed, by whatever
    os._exit(1)


if __name__ == "__main__":
    request = sys.stdin.buffer.readline()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(Exception):  # the run itself will meet it again
        config = RunConfig.model_validate_json(request)
        rehearse(*make_plan(config, prepare=_first_rows).rehearsal)
    os._exit(0)
