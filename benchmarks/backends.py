"""Inline against Ray on the demo and on a heavier run, and the kernel's own share of the demo.

In the clock: from the first event to results and trace in files; start and compilation are not.
Equal digests and exact verdicts, or nothing is reported.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from actors.hosting.ray_cluster import ray_cluster
from actors.result_files import ResultWriter
from benchmarks.measure import Result, report
from scenarios import run as running
from scenarios import scenario_files
from scenarios.plan import Plan, make_plan
from scenarios.run import FinishedRun, execute

_REPEATS = 5
_PROCESSES = 2

_DEMO: dict[str, Any] = {}
# Twelve segments of 16,000 tuples on eight PEs: tens of milliseconds of work in every message.
_COMPUTE_BOUND = {
    "rows": 200_000,
    "bind.W": 192_000,
    "bind.D": 16_000,
    "po_join_pes": 8,
    "feeding.batch_rows": 16_000,
    "feeding.rate_tps": 50_000,
    "network.preset": "infiniband",
}


class _TimedWriter(ResultWriter):
    """Adds up the seconds spent in writing results."""

    seconds = 0.0

    def collect(self, outputs: list[Any]) -> None:
        start = time.perf_counter()
        super().collect(outputs)
        _TimedWriter.seconds += time.perf_counter() - start


def _plan(settings: dict[str, Any], backend: str) -> Plan:
    settings = settings | {"backend": backend, "processes": _PROCESSES}
    return make_plan(scenario_files.change(scenario_files.load("spo-q3"), settings))


def _run(plan: Plan, *, rehearsal: bool = True) -> FinishedRun:
    with tempfile.TemporaryDirectory() as folder:
        finished = execute(plan, Path(folder), rehearsal=rehearsal)
    if not finished.verdict.exact:
        raise SystemExit("a run was not exact")
    return finished


def in_the_clock(finished: FinishedRun) -> float:
    """Return the seconds of a run until its files are whole."""
    return finished.clock.parts["run"] + finished.clock.parts["write"]


def compare(name: str, settings: dict[str, Any], *, target: float) -> Result:
    """Return Ray's wall time over inline's, run by run in turns."""
    plans = {backend: _plan(settings, backend) for backend in ("inline", "ray")}
    ratios, seconds = [], {}
    with ray_cluster(processes=_PROCESSES):
        for _ in range(_REPEATS):
            reports = {backend: _run(plan) for backend, plan in plans.items()}
            if len({finished.outcome.digest for finished in reports.values()}) > 1:
                raise SystemExit("digests differ")
            seconds = {backend: in_the_clock(finished) for backend, finished in reports.items()}
            ratios.append(seconds["ray"] / seconds["inline"])
    note = f"last: ray {seconds['ray']:.2f} s, inline {seconds['inline']:.2f} s"
    return Result.of(name, ratios, unit="x", target=target, at_least=False, note=note)


def kernel_share() -> Result:
    """Return the share of the demo's wall time that is neither actors' work nor writing results."""
    plan = _plan(_DEMO, "inline")
    shares = []
    running.ResultWriter = _TimedWriter  # type: ignore[attr-defined]
    try:
        for _ in range(_REPEATS):
            _TimedWriter.seconds = 0.0
            finished = _run(plan, rehearsal=False)
            others = sum(finished.kernel_seconds.values()) + _TimedWriter.seconds
            shares.append(1 - others / in_the_clock(finished))
    finally:
        running.ResultWriter = ResultWriter  # type: ignore[attr-defined]
    return Result.of(
        "kernel's share of the demo's wall time, inline",
        shares,
        unit="",
        target=0.2,
        at_least=False,
    )


def measure() -> list[Result]:
    """Return the two comparisons and the kernel's share."""
    return [
        compare("Ray over inline, demo", _DEMO, target=1.5),
        compare("Ray over inline, compute-bound", _COMPUTE_BOUND, target=1 / 1.6),
        kernel_share(),
    ]


if __name__ == "__main__":
    report("backends", measure())
