"""joinsim's own operators as an engine: the plan's topology in this process, or live on Ray."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from actors.hosting.errors import RayUnavailableError
from actors.protocol import ActorError
from scenarios.engines.engine import EngineFailed, Measured, Totals, installed
from scenarios.engines.memory import alone
from scenarios.plan import Plan
from scenarios.results import summary_path
from scenarios.run import execute
from scenarios.run_json import latency_ms


class Inline:
    """All operators in one process, one after the other; of the simulated clock nothing is told."""

    name = "inline"
    install = "it is part of joinsim"

    def version(self) -> str | None:
        """Return joinsim's version."""
        return installed("joinsim")

    def cannot(self, plan: Plan) -> str | None:
        """Return None: the plan was made for it."""
        return None

    def run(self, plan: Plan, directory: Path) -> Measured:
        """Run the plan's topology in a process of its own."""
        measured, peak_bytes = alone(_run, plan, directory, {"backend": "inline"})
        # Its latencies are those of the simulated clock, and nothing leaves the process.
        return replace(measured, memory_bytes=peak_bytes, latency_ms=None, shuffled_bytes=None)


class Ray:
    """The same operators live, in Ray's processes, sending to each other directly."""

    name = "ray"
    install = "pip install ray"

    def version(self) -> str | None:
        """Return Ray's version."""
        return installed("ray")

    def cannot(self, plan: Plan) -> str | None:
        """Return None: the plan was made for it."""
        return None

    def run(self, plan: Plan, directory: Path) -> Measured:
        """Run the plan's topology live.

        In a process of its own, as the one that starts Ray may crash when it is interrupted then.
        """
        return alone(_run, plan, directory, {"backend": "ray", "clock": "live"})[0]


def _run(plan: Plan, directory: Path, settings: dict[str, Any]) -> Measured:
    plan = replace(plan, config=plan.config.model_copy(update=settings))
    try:
        report = execute(plan, directory)
    except (ActorError, RayUnavailableError) as error:
        raise EngineFailed(str(error)) from error
    totals = Totals()
    for stream in range(len(plan.query.streams)):
        file = pq.ParquetFile(summary_path(directory, stream))
        for group in file.iter_batches(columns=["probe_id", "count", "fingerprint"]):
            totals += Totals.of_counts(*(column.to_numpy() for column in group.columns))
    return Measured(
        totals=totals,
        wall_seconds=report.wall_seconds,
        latency_ms=latency_ms(report),
        shuffled_bytes=report.outcome.nbytes,
        memory_bytes=report.memory_bytes,
        note=f"topology {plan.topology.name}",
    )
