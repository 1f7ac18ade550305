"""What is run to measure: each system on each kind of join, at several loads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from scenarios import scenario_files
from scenarios.many_runs import Preparation
from scenarios.plan import Plan, make_plan
from topologies import TOPOLOGIES, TopologyError

_QUERIES = {
    "inequality": "WHERE A.x < B.x AND A.y > B.y WINDOW AS (SLIDE INTERVAL 'S' ON 'W')",
    "equality": "WHERE A.key = B.key WINDOW AS (SLIDE INTERVAL 'S' ON 'W')",
    "interval": "WHERE A.key = B.key "
    "AND B.ts BETWEEN A.ts - INTERVAL '100 ms' AND A.ts + INTERVAL '100 ms'",
}
_FIELDS = {"key": "uniform(0, 49)", "x": "uniform(0, 99999)", "y": "uniform(0, 999)"}
_LOADS = ((500, 1_000, 4_000), (4_000, 1_000, 4_000), (2_000, 2_500, 10_000))
"""Tuples a message, slide, and window."""


def plans(
    rows: int,
    prepare: Preparation,
    *,
    topologies: Sequence[str] = tuple(TOPOLOGIES),
) -> Iterator[Plan]:
    """Give a plan for every system, kind of join it can evaluate, and load.

    Parameters
    ----------
    rows
        Tuples of each of the two streams; they are synthetic, equal on every machine.
    prepare
        Prepares them.
    topologies
        Names of the systems.
    """
    for topology in topologies:
        for kind, where in _QUERIES.items():
            for batch_rows, slide, length in _LOADS:
                bind = {"S": slide, "W": length} if "WINDOW" in where else {}
                own = {
                    "name": f"calibrate-{kind}",
                    "query": f"SELECT * FROM A, B {where}",
                    "bind": bind,
                    "topology": topology,
                    "streams": [_stream(1, rows, "0 s"), _stream(11, rows, "501 us")],
                    "feeding": {"batch_rows": batch_rows},
                    "network": {"preset": "same-host"},
                }
                config = scenario_files.build(own, where="calibration")
                try:
                    yield make_plan(config, prepare=prepare)
                except TopologyError:
                    break


def _stream(seed: int, rows: int, start: str) -> dict[str, Any]:
    return {"synthetic": {"rows": rows, "seed": seed, "start": start, "fields": _FIELDS}}
