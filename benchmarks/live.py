"""W1 live: whole calls on a Ray that is running, and latency at a rate.

In the clock of a whole call: all that a person waits for but the start of Ray's cluster, from
prepared files to pairs in files and a verdict (its parts are printed beside it). Latency is that of
a base tuple, from its birth to the last report of it. (Rates beside other engines:
`benchmarks.engines`.)

W1 is `benchmarks.interval_work`'s: 2 x 1,000,000 tuples, keys and an interval. Every run is judged,
and one has its pairs counted and their checksum taken as the published comparison does, or nothing
is reported.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from actors.hosting.ray_cluster import ray_cluster
from actors.result_files import pairs_path
from benchmarks.interval_work import AT_FULL_SPEED, PUBLISHED, Totals
from benchmarks.measure import Result, check_equal, report
from scenarios import scenario_files
from scenarios.plan import make_plan
from scenarios.preparation import prepare_by_spark
from scenarios.run import FinishedRun, execute

_ROWS = 1_000_000
_REPEATS = 5
_TARGET_TPS = 3_000_000
_AT_A_RATE = {
    "feeding.batch_rows": 4_096,
    "feeding.rate_tps": 1_000_000,
    "batch_rows": 2_048,
    "linger_turns": 0,
}
LIVE = {"backend": "ray", "clock": "live"}


def run(settings: dict[str, Any], directory: Path) -> FinishedRun:
    """Return one run of W1, judged."""
    settings = {"rows": _ROWS} | settings
    plan = make_plan(
        scenario_files.change(scenario_files.load("oij-w1"), settings), prepare=prepare_by_spark
    )
    # The driver joins nothing: it needs no rehearsal.
    finished = execute(plan, directory, rehearsal=False, judging="after")
    if not finished.verdict.exact or finished.verdict.produced != PUBLISHED["W1", _ROWS].pairs:
        raise SystemExit("a run did not have the right pairs")
    return finished


def runs(settings: dict[str, Any], repeats: int = _REPEATS) -> list[FinishedRun]:
    """Return several runs of W1; what they wrote is gone."""
    finished = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            finished.append(run(settings, Path(folder)))
    return finished


def check_pairs() -> None:
    """Stop unless the pairs that a live run writes have the published checksum."""
    with tempfile.TemporaryDirectory() as folder:
        run(AT_FULL_SPEED | LIVE | {"pairs": True}, Path(folder))
        pairs = pq.read_table(pairs_path(Path(folder)), columns=["probe_id", "match_id"])
        found = Totals.of(pairs["probe_id"].to_numpy(), pairs["match_id"].to_numpy())
    check_equal("pairs", found, PUBLISHED["W1", _ROWS])


def whole_calls() -> Result:
    """Return tuples of both streams per second of whole calls, pairs written."""
    finished = runs(AT_FULL_SPEED | LIVE | {"processes": 2, "pairs": True})
    return Result.rate(
        "W1 live, two processes, whole call, Ray running",
        2 * _ROWS,
        [one.clock.seconds for one in finished],
        unit="tuples/s",
        target=_TARGET_TPS,
        note=f"last: {finished[-1].clock}",
    )


def latencies() -> list[Result]:
    """Return the latency at a rate that the system can take."""
    finished = runs(_AT_A_RATE | LIVE, repeats=3)
    return [
        Result.of(
            f"W1 live at 1,000,000 tuples/s, latency p{percent}",
            [(one.latencies.percentile(percent) or 0) / 1e6 for one in finished],
            unit="ms",
        )
        for percent in (50, 99)
    ]


def measure() -> list[Result]:
    """Return the rate of whole calls, and the latency."""
    with ray_cluster(processes=2):
        check_pairs()
        return [whole_calls(), *latencies()]


if __name__ == "__main__":
    report("live", measure())
