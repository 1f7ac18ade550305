"""Rehearsal: the run in miniature, before it, which compiles the kernels that it needs.

numba compiles a kernel when it is first called in a process, or loads its stored machine code;
without a rehearsal the first messages of a run would pay for that, in every process.

Where Spark has to prepare the data first, and nothing is compiled yet, both take long, and Spark
seldom keeps all cores busy. So another process rehearses meanwhile, with this module as its
program, and stores what it compiles. Not a thread: numba compiles in Python, which would keep this
process from talking to Spark.

Processes of Ray import this module when they start: only functions that they do not call load
scenarios and data.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from actors.hosting.inline import InlineHost
from actors.source import Feeding
from joins.queries.query import JoinQuery
from joins.queries.windows import WindowClause
from netsim.cost import CostProfile, load_profile
from netsim.kernel import Kernel
from netsim.network import PRESETS, Link, full_mesh
from netsim.trace import Trace, trace_names
from topologies.actor_graph import ActorGraph
from topologies.topology import Job, Topology

if TYPE_CHECKING:
    from scenarios.config import RunConfig
    from scenarios.tables import TableStream

_REHEARSED_ROWS = 96
_WINDOW = WindowClause(slide="8", length="32")
_FEEDING = Feeding(batch_rows=12, rate_tps=1_000)
"""At a rate, for event times may be too far apart for any clock."""

_REHEARSED: set[tuple[Topology[Any], str]] = set()
"""What has been rehearsed in this process: systems, and all that their kernels depend on."""
_LONGEST_S = 120.0
"""How long the end of preparation waits for another process that rehearses."""


def run_inline(
    graph: ActorGraph,
    link: Link,
    profile: CostProfile,
    *,
    trace: Path | None = None,
    collect: Callable[[list[Any]], None] = lambda results: None,
) -> None:
    """Run the actors of *graph* in this process, with *link* between any two of their sites.

    *trace* is the Parquet file for the trace, if one is to be written; *collect* is called with
    what actors emit. Raise :exc:`ActorError` when an actor raised.
    """
    wiring = graph.wiring
    with Trace(trace_names(wiring), trace) as rows:
        Kernel(
            wiring=wiring,
            placement=graph.placement,
            network=full_mesh(dict.fromkeys(graph.placement.values()), link),
            profile=profile,
            host=InlineHost(graph.specs, wiring, 0),
            seed=0,
            trace=rows,
            collect=collect,
            only_emit=graph.only_emit,
        ).run()


def rehearse(topology: Topology[Any], parameters: Any, job: Job) -> None:
    """Run the first tuples of *job* in this process, windows made small, and forget the result.

    What has been rehearsed here before is warm, and is not run again: the points of a study differ
    mostly in what no kernel depends on.
    """
    small = replace(
        job,
        query=replace(job.query, window=_WINDOW) if job.query.window else job.query,
        files=tuple(replace(file, rows=_REHEARSED_ROWS) for file in job.files),
        feeding=_FEEDING,
    )
    with topology.naming_faults():
        few = topology.in_miniature(parameters)
    kernels = repr((few, small.query, small.schemas, small.pairs, small.live, small.sink))
    if (topology, kernels) in _REHEARSED:
        return
    run_inline(topology.build(small, few), PRESETS["same-host"], load_profile())
    _REHEARSED.add((topology, kernels))


@contextmanager
def rehearsing_ahead(
    config: RunConfig, on_wait: Callable[[], None] = lambda: None
) -> Iterator[Callable[[], None]]:
    """Yield a function that has another process rehearse a run of *config* from now on.

    The end of the ``with`` waits for that process, after calling *on_wait*; where something has
    failed here, it is killed. What fails there is ignored: the run itself will meet it again.
    """
    from scenarios.subprocesses import start_program

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
    from scenarios.preparation import prepare_tables
    from scenarios.streams import raw_file

    tables = [_head(raw_file(stream)) for stream in config.streams]
    return prepare_tables(query, tables, [stream.time for stream in config.streams])


def _head(path: Path) -> pa.Table:
    """Return the first rows of a Parquet or CSV file."""
    if path.suffix == ".parquet":
        with pq.ParquetFile(path) as file:
            return pa.Table.from_batches([next(file.iter_batches(_REHEARSED_ROWS))])
    import pyarrow.csv as pa_csv

    with pa_csv.open_csv(path) as file:
        return pa.Table.from_batches([file.read_next_batch()]).slice(0, _REHEARSED_ROWS)


def _end_with_parent() -> None:
    sys.stdin.buffer.read()  # until the other end is closed, by whatever
    os._exit(1)


if __name__ == "__main__":
    request = sys.stdin.buffer.readline()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(Exception):  # the run itself will meet it again
        from scenarios.config import RunConfig
        from scenarios.plan import make_plan

        config = RunConfig.model_validate_json(request)
        rehearse(*make_plan(config, prepare=_first_rows).rehearsal)
    os._exit(0)
