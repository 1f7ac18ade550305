"""Two inequalities over a stored stream, all at once: our segments, DuckDB and Polars.

In the clock: from tables in memory to pairs counted, or to all pairs as columns in memory. Sorting
and sealing are included, since the others sort, too; see `benchmarks.contest`.

*W2* probes 50,000 uniform tuples with 2,000: 24,505,143 pairs. *One-off* counts the matches of 200
probes among 500,000 stored tuples, where what is built is used once. DuckDB joins by its IEJoin,
Polars by ``join_where``; all run on one thread and on two, which take some probes at a time.

Run: ``python -m benchmarks.inequality_join [--turns 5] [--json]``
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa

from actors.hosting.process_memory import keep_freed_memory
from benchmarks.contest import take_turns
from benchmarks.inequality_work import InequalityWork, NumpyScan, counted, listed, uniform_work
from benchmarks.measure import Result, check_equal, command_line, report
from joins.batch import Schema
from joins.indexes.structures import SEGMENTS
from joins.matches import ProbeResult
from joins.queries.parser import parse_query
from joins.threads import side_by_side
from scenarios.engines.embedded_engines import polars_predicates
from scenarios.subprocesses import run_alone
from spark_bridge.engines import EngineResult, Totals
from spark_bridge.sql.statement import ProbeSide, probe_sides

_QUERY = parse_query(
    "SELECT * FROM S, P WHERE S.distance < P.distance AND S.fare > P.fare "
    "WINDOW AS (SLIDE INTERVAL '1' ON '1000000')"
)
_SCHEMAS = [Schema(stream=name, fields={"distance": "int64", "fare": "int64"}) for name in "SP"]
_STRUCTURES = {"po_join": "PO-Join", "prefix_grid": "prefix grid"}
_THREADS = (1, 2)
_BATCH = 64
"""Probes that a thread takes at a time."""


def segment_run(
    work: InequalityWork, structure: str, threads: int, *, listing: bool
) -> EngineResult:
    """Answer all probes on so many threads, from columns in memory."""
    began_s = time.perf_counter()
    segment = SEGMENTS[structure].from_columns(work.stored, threads=threads)
    probe = partial(segment.probe, enumerate=listing)
    parts = side_by_side(probe, work.batches(_BATCH), threads)
    seconds = time.perf_counter() - began_s
    found = ProbeResult.concat(parts)
    totals = listed(found) if listing else counted(found)
    return EngineResult(totals=totals, start_seconds=0.0, wall_seconds=seconds)


def duckdb_run(work: InequalityWork, threads: int, *, listing: bool) -> EngineResult:
    """Join in DuckDB, in this process."""
    began_s = time.perf_counter()
    import duckdb

    connection = duckdb.connect(config={"threads": threads})
    started_s = time.perf_counter()
    for place, table in enumerate(_tables(work)):
        connection.register(f"s{place}", table)
    side = _side()
    predicates = " AND ".join(side.predicates("p.", "m."))
    join = f"FROM s{side.probing} p, s{side.stored} m WHERE {predicates}"
    pairs = f"SELECT p.id AS probe, m.id AS stored {join}"
    if listing:
        columns = connection.execute(pairs).fetchnumpy()
        ended_s = time.perf_counter()
    else:
        ((count,),) = connection.execute(f"SELECT count(*) {join}").fetchall()
        ended_s = time.perf_counter()
        columns = connection.execute(pairs).fetchnumpy()
    totals = Totals.of_pairs(*(np.asarray(columns[name]) for name in ("probe", "stored")))
    if not listing:
        totals.check_counted(count)
    return EngineResult(
        totals=totals, start_seconds=started_s - began_s, wall_seconds=ended_s - started_s
    )


def polars_run(work: InequalityWork, threads: int, *, listing: bool) -> EngineResult:
    """Join in Polars, in this process, where it has not been imported."""
    began_s = time.perf_counter()
    os.environ["POLARS_MAX_THREADS"] = str(threads)  # read when it is imported
    import polars as pl

    started_s = time.perf_counter()
    side, tables = _side(), _tables(work)
    probes, stored = (
        pl.LazyFrame(pl.from_arrow(tables[stream])).select(pl.all().name.prefix(prefix))
        for stream, prefix in ((side.probing, "p_"), (side.stored, "m_"))
    )
    joined = probes.join_where(stored, *polars_predicates(side))
    pairs = joined.select("p_id", "m_id")
    if listing:
        found = pairs.collect(engine="streaming")
        ended_s = time.perf_counter()
    else:
        count = joined.select(pl.len()).collect(engine="streaming").item()
        ended_s = time.perf_counter()
        found = pairs.collect(engine="streaming")
    totals = Totals.of_pairs(*(found[name].to_numpy() for name in ("p_id", "m_id")))
    if not listing:
        totals.check_counted(count)
    return EngineResult(
        totals=totals, start_seconds=started_s - began_s, wall_seconds=ended_s - started_s
    )


def contest(
    title: str, work: InequalityWork, *, listing: bool, turns: int, target: float
) -> list[Result]:
    """Return probes a second of all, and ours over theirs at equal threads."""
    wanted = NumpyScan(work).count()
    runs: dict[str, Callable[[], EngineResult]] = {}
    run: Callable[[], EngineResult]
    over: list[tuple[str, str, float | None]] = []
    for threads in _THREADS:
        suffix = f", {threads} thread{'s' if threads > 1 else ''}"
        for structure, name in _STRUCTURES.items():
            run = partial(segment_run, work, structure, threads, listing=listing)
            run()  # compiles
            runs[name + suffix] = partial(_checked, name, run, wanted)
        for name, peer in (("DuckDB", duckdb_run), ("Polars", polars_run)):
            run = partial(_alone, partial(peer, listing=listing), work, threads)
            runs[name + suffix] = partial(_checked, name, run, wanted)
            over += [
                (ours + suffix, name + suffix, target if threads > 1 else None)
                for ours in _STRUCTURES.values()
            ]
    count = len(work.probes[0])
    return take_turns(title, runs, turns=turns, count=count, unit="probes/s", over=over)


def _alone(
    peer: Callable[[InequalityWork, int], EngineResult], work: InequalityWork, threads: int
) -> EngineResult:
    return run_alone(peer, work, threads)[0]


def _checked(name: str, run: Callable[[], EngineResult], wanted: Totals) -> EngineResult:
    measured = run()
    check_equal(name, measured.totals, wanted)
    return measured


def _side() -> ProbeSide:
    """Return the join in which the second stream probes the first."""
    return probe_sides(_QUERY, _SCHEMAS)[1]


def _tables(work: InequalityWork) -> list[pa.Table]:
    return [
        pa.table({"id": np.arange(len(distance)), "f0": distance, "f1": fare})
        for distance, fare in (work.stored, work.probes)
    ]


def main() -> None:
    """Measure, verify and print."""
    parser = command_line(__doc__)
    parser.add_argument("--turns", type=int, default=5, help="of each engine (5)")
    options = parser.parse_args()
    keep_freed_memory()
    w2, one_off = uniform_work(), uniform_work(stored=500_000, probes=200)
    turns = options.turns
    results = contest("W2, all pairs", w2, listing=True, turns=turns, target=15)
    results += contest("W2, counted", w2, listing=False, turns=turns, target=15)
    results += contest("one-off, counted", one_off, listing=False, turns=turns, target=3)
    report("two inequalities, sort and seal included", results)


if __name__ == "__main__":
    # By its name: peers run in processes of their own, which know modules, but no script.
    from benchmarks import inequality_join

    inequality_join.main()
