"""joinsim's own operators as an engine: the plan's topology in this process, or live on Ray.

Their clock runs from the first event until results and trace are whole files on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from actors.hosting.processes import RayUnavailableError
from actors.protocol import ActorError
from actors.result_files import pairs_path, part_files, summary_path
from joins.machine.memory import keep_freed_memory
from scenarios.engines.engine import Engine, EngineResult
from scenarios.plan import Plan
from scenarios.process_pool import run_alone
from scenarios.run import execute
from scenarios.run_json import latency_ms
from spark_bridge.engines import EngineFailed, Totals


class _JoinsimEngine(Engine):
    def cannot(self, plan: Plan) -> str | None:
        """Refuse a topology of the caller's script, which another process cannot import."""
        kind = type(plan.topology)
        if kind.__module__ != "__main__":
            return None
        return (
            f"it runs in a process of its own, which does not know the class {kind.__name__} of "
            "your script: define it in a module, and import it"
        )


class Inline(_JoinsimEngine):
    """All operators in one process, one after the other; the simulated clock is not reported."""

    name = "inline"
    package = "joinsim"
    install = "it is part of joinsim"

    def run(self, plan: Plan, directory: Path) -> EngineResult:
        """Run the plan's topology in a process of its own."""
        measured, peak_bytes = run_alone(_run, plan, directory, {"backend": "inline"})
        # Its latencies are those of the simulated clock, and nothing leaves the process.
        return replace(measured, memory_bytes=peak_bytes, latency_ms=None, shuffled_bytes=None)


class Ray(_JoinsimEngine):
    """The same operators live, in Ray's processes, sending to each other directly."""

    name = package = "ray"
    install = "pip install 'joinsim[ray]'"

    def run(self, plan: Plan, directory: Path) -> EngineResult:
        """Run the plan's topology live.

        It runs in a process of its own: one that is interrupted while it starts Ray may crash.
        """
        return run_alone(_run, plan, directory, {"backend": "ray", "clock": "live"})[0]


def _run(plan: Plan, directory: Path, settings: dict[str, Any]) -> EngineResult:
    keep_freed_memory()  # as every command does
    plan = replace(plan, config=plan.config.model_copy(update=settings))
    try:
        report = execute(plan, directory, undisturbed=True)
    except (ActorError, RayUnavailableError) as error:
        raise EngineFailed(str(error)) from error
    parts = report.clock.parts
    return EngineResult(
        totals=_totals(plan, directory),
        start_seconds=parts["compile"] + parts["start"],
        wall_seconds=parts["run"] + parts["write"],
        latency_ms=latency_ms(report),
        shuffled_bytes=report.outcome.nbytes,
        memory_bytes=report.memory_bytes,
        note=f"topology {plan.topology.name}",
    )


def _totals(plan: Plan, directory: Path) -> Totals:
    """Add up what a run wrote: the listed pairs, where there are any, else its counts."""
    streams = plan.query.streams
    if plan.config.pairs and len(streams) <= 2:
        paths, columns = [pairs_path(directory)], ["probe_id", "match_id"]
        totals_of: Callable[..., Totals] = Totals.of_pairs
    else:
        paths = [summary_path(directory, stream) for stream in range(len(streams))]
        columns, totals_of = ["probe_id", "count", "fingerprint"], Totals.of_counts
    totals = Totals()
    for path in paths:
        for part in part_files(path):
            for group in pq.ParquetFile(part).iter_batches(columns=columns):
                totals += totals_of(*(column.to_numpy() for column in group.columns))
    return totals
