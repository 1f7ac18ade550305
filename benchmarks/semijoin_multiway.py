"""A four-way join of 100,000 tuples a stream by semijoins: simulated inline, in processor time.

In the clock: the whole simulation, results counted, processor time.

Chain join graph over one attribute; 1,000 tuples a second in each stream, windows of 10 s, values
such that a tuple has about one match in each window. Linear plans by one algorithm everywhere, and
a bushy tree. All plans must find the same number of results.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from actors.feed import StreamFile
from actors.protocol import NS_PER_S
from actors.results import Output
from actors.source import Feeding
from benchmarks.measure import Result, report
from joins.batch import Schema
from joins.queries.parser import parse_query
from joins.semijoins.one_way_join import OneWayJoin
from netsim.network import PRESETS
from scenarios.rehearsal import run_inline
from scenarios.tables import write_segments
from topologies.semijoin import SemijoinParameters, SemijoinTopology
from topologies.topology import Job

_NAMES = ("A", "B", "C", "D")
_ROWS = 100_000
_RATE_TPS = 1_000
_VALUES = 10_000
_QUERY = """
SELECT * FROM A, B, C, D WHERE A.x = B.x AND B.x = C.x AND C.x = D.x
WINDOW AS (SLIDE INTERVAL '1 ns' ON '10 s' PRECISE)
"""
_TREE = "(A, B SP-S/SP-D, (C, D SM-S1/SM-D1) SP-D/SM-S1)"
_TARGET_S = 60


def main() -> None:
    """Time every algorithm, and the tree."""
    with tempfile.TemporaryDirectory() as folder:
        files = tuple(_write(Path(folder) / name, name, place) for place, name in enumerate(_NAMES))
        plans: dict[str, dict[str, Any]] = {str(join): {"algorithm": join} for join in OneWayJoin}
        plans["tree"] = {"plan": _TREE}
        spent = {name: _simulated(files, Path(folder), **plan) for name, plan in plans.items()}
    found = {results for _, results in spent.values()}
    if len(found) != 1:
        sys.exit(f"plans differ in their results: {spent}")
    report(
        f"semijoins, four streams of {_ROWS:,} tuples, {found.pop():,} results",
        [
            result
            for name, (seconds, _) in spent.items()
            for result in (
                Result.of(name, [seconds], unit="s", target=_TARGET_S, at_least=False),
                Result.rate(name, len(_NAMES) * _ROWS, [seconds], unit="tuples/s"),
            )
        ],
    )


def _write(directory: Path, name: str, place: int) -> StreamFile:
    rng = np.random.default_rng(place)
    ts = (np.arange(_ROWS) + place / len(_NAMES)) * (NS_PER_S // _RATE_TPS)
    columns = {
        "id": np.arange(_ROWS),
        "ts": ts.astype(np.int64),
        "x": rng.integers(0, _VALUES, _ROWS),
    }
    schema = Schema(stream=name, fields={"x": "int64"})
    return write_segments(schema, pa.table(columns), directory, _ROWS)


def _simulated(files: tuple[StreamFile, ...], folder: Path, **plan: Any) -> tuple[float, int]:
    """Return the seconds of a run, and how many results it found."""
    semijoin, query = SemijoinTopology(), parse_query(_QUERY)
    job = Job(query=query, files=files, feeding=Feeding())
    graph = semijoin.build(job, SemijoinParameters(**plan))
    found = 0

    def collect(outputs: list[Output]) -> None:
        nonlocal found
        found += sum(output.matches.total for output in outputs)

    start = time.process_time()
    trace = folder / "trace.parquet"
    run_inline(graph, PRESETS["rack"], job.profile, trace=trace, collect=collect)
    return time.process_time() - start, found


if __name__ == "__main__":
    main()
