"""Small jobs for the hosted operators; run as a program, one that can be killed."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from actors.feed import Feed, StreamFile
from actors.source import Feeding
from joins.oracle.evaluation import expected
from joins.queries.parser import parse_query
from joins.queries.query import JoinQuery
from scenarios.worlds import WorldStream
from spark_bridge.hosted.host import write_arrivals
from spark_bridge.hosted.stage import HostedQuery
from topologies import TOPOLOGIES
from topologies.topology import Job

WINDOW = "SELECT * FROM R, S WHERE R.x < S.x AND R.y > S.y WINDOW AS (SLIDE INTERVAL '50' ON '100')"
SELF = "SELECT * FROM T WHERE T.x1 < T.x2 AND T.y1 > T.y2 WINDOW AS (SLIDE INTERVAL '40' ON '80')"
INTERVAL = (
    "SELECT * FROM R, S WHERE R.y = S.y "
    "AND S.ts BETWEEN R.ts - INTERVAL '30 ns' AND R.ts + INTERVAL '20 ns'"
)


def streams(query: JoinQuery, folder: Path, *, rows: int, seed: int = 1) -> tuple[StreamFile, ...]:
    """Write random streams for *query*."""
    rng = np.random.default_rng(seed)
    return tuple(
        WorldStream(
            np.cumsum(rng.integers(0, 3, rows)).tolist(),
            (rng.integers(-5, 12, rows) / 10).tolist(),
            rng.integers(-4, 7, rows).tolist(),
        ).write(name, folder / name, 10_000)
        for name in query.streams
    )


def hosted(
    topology: str,
    text: str,
    folder: Path,
    *,
    rows: int,
    run_rows: int,
    pairs: bool = True,
    **said: object,
) -> tuple[HostedQuery, tuple[StreamFile, ...]]:
    """Return a query to host; its arrivals are written to ``folder/arrivals`` unless they are."""
    query = parse_query(text)
    files = streams(query, folder / "streams", rows=rows)
    feeding = Feeding(batch_rows=60)
    system = TOPOLOGIES[topology]
    job = Job(query=query, files=files, feeding=feeding, pairs=pairs)
    graph = system.build(job, system.parameters_type(**said))
    if not (folder / "arrivals").exists():
        write_arrivals(files, feeding, folder / "arrivals", rows=run_rows)
    schemas = tuple(file.schema for file in files)
    return (
        HostedQuery(
            text=text, schemas=schemas, specs=graph.specs, wiring=graph.wiring, pairs=pairs
        ),
        files,
    )


def pairs_by_numpy(text: str, files: tuple[StreamFile, ...]) -> list[tuple[int, int, int]]:
    """Return the expected pairs, in order: probing stream, probe id, match id."""
    schemas = [file.schema for file in files]
    arrivals = Feed(files).take(10**6)
    assert arrivals is not None
    found = []
    for matches in expected(parse_query(text), schemas, [arrivals], enumerate_ids=True):
        probe, match = matches.pairs()
        found += [(matches.stream, *p) for p in zip(probe.tolist(), match.tolist(), strict=True)]
    return sorted(found)


def to_be_killed(folder: Path) -> tuple[HostedQuery, tuple[StreamFile, ...]]:
    """Return the query that the recovery test kills: 6 triggers, two stages."""
    return hosted("chain_index", WINDOW, folder, rows=300, run_rows=100)


def main() -> None:
    """Run the query in the folder that is named; say which process the JVM is."""
    from spark_bridge.hosted.host import run_hosted
    from spark_bridge.session import SessionOptions, spark_session

    folder = Path(sys.argv[1])
    query, _ = to_be_killed(folder)
    with spark_session(SessionOptions(quick_start=True)) as spark:
        print(spark.sparkContext._gateway.proc.pid, flush=True)
        run_hosted(query, folder / "arrivals", folder / "run", spark=spark)
    print("done", flush=True)


if __name__ == "__main__":
    main()
