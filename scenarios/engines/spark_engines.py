"""Spark: joinsim's operators hosted in it, and the query as Spark itself would do it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from scenarios.engines.engine import (
    EngineFailed,
    Measured,
    Totals,
    installed,
    needs_two_sides,
)
from scenarios.engines.memory import peak_bytes
from scenarios.engines.streams import SEGMENTS
from scenarios.plan import Plan
from spark_bridge.errors import DataError, EngineUnavailable, SparkFailed
from spark_bridge.session import SessionOptions, spark_session

_MEMORY = "4g"
_TRIGGER_ROWS_MAX = 500_000
"""A trigger costs half a second whatever it holds, and its tuples are in memory at once."""


class SparkHosted:
    """The plan's topology inside Structured Streaming, its state in Spark's checkpoint."""

    name = "spark"
    install = "pip install pyspark"

    def version(self) -> str | None:
        """Return Spark's version."""
        return installed("pyspark")

    def cannot(self, plan: Plan) -> str | None:
        """Say that it writes pairs."""
        return needs_two_sides(plan) if plan.config.pairs else None

    def run(self, plan: Plan, directory: Path) -> Measured:
        """Run the plan's topology over a log of its arrivals, which is not timed."""
        from spark_bridge.hosted.arrival_log import write_arrivals
        from spark_bridge.hosted.host import HostedQuery, run_hosted

        rows = sum(stream.rows for stream in plan.streams)
        rows = min(rows, (plan.config.rows or rows) * len(plan.streams))
        trigger_rows = min(_TRIGGER_ROWS_MAX, max(1, -(-rows // SEGMENTS)))
        feeding = plan.config.feeding.model_copy(update={"batch_rows": trigger_rows})
        plan = replace(plan, config=plan.config.model_copy(update={"feeding": feeding}))
        write_arrivals(plan.files, plan.feeding, directory / "arrivals", rows=trigger_rows)
        job = replace(plan.job(pairs=plan.config.pairs), live=True)
        graph = plan.topology.build(job, plan.parameters)
        with _measuring(quick_start=True) as (spark, measured):
            run = run_hosted(
                HostedQuery(
                    text=str(plan.query),
                    schemas=tuple(file.schema for file in plan.files),
                    specs=graph.specs,
                    wiring=graph.wiring,
                    pairs=plan.config.pairs,
                    seed=plan.config.seed,
                ),
                directory / "arrivals",
                directory / "hosted",
                spark=spark,
            )
            folded = f"; {run.note}" if run.note else ""
            return measured(run, f"topology {plan.topology.name}{folded}")


class SparkNative:
    """A stream-stream join of Spark's own; in batch where Spark has no such stream."""

    name = "native-spark"
    install = "pip install pyspark"

    def version(self) -> str | None:
        """Return Spark's version."""
        return installed("pyspark")

    def cannot(self, plan: Plan) -> str | None:
        """Say that it joins by pairs."""
        return needs_two_sides(plan)

    def run(self, plan: Plan, directory: Path) -> Measured:
        """Run the query as a stream; where Spark refuses, in batch, with Spark's reason told."""
        from spark_bridge.sql.native import run_batch, run_streaming

        with _measuring(quick_start=False) as (spark, measured):
            try:
                run = run_streaming(plan.query, plan.files, directory, spark=spark)
                return measured(run, "stream-stream join, pairs written")
            except SparkFailed as error:
                run = run_batch(plan.query, plan.files, spark=spark, bucketed=True)
                return measured(run, f"batch, bucketed, pairs counted; as a stream: {error}")


@contextmanager
def _measuring(*, quick_start: bool) -> Iterator[tuple[Any, Any]]:
    """Give Spark, and what makes a measurement of a run on it; its failures are the engine's."""
    from spark_bridge.totals import EngineRun, process_id

    with (
        _as_engines_fail(),
        spark_session(SessionOptions(memory=_MEMORY, quick_start=quick_start)) as spark,
    ):

        def measured(run: EngineRun, note: str) -> Measured:
            return Measured(
                totals=Totals(run.totals.pairs, run.totals.checksum),
                wall_seconds=run.wall_seconds,
                steady_tps=run.steady_tps,
                shuffled_bytes=run.shuffled_bytes,
                memory_bytes=peak_bytes(process_id(spark)),
                note=note,
            )

        yield spark, measured


@contextmanager
def _as_engines_fail() -> Iterator[None]:
    """Pass on as the engine's what Spark, or what is missing for it, says."""
    try:
        yield
    except (DataError, SparkFailed, EngineUnavailable) as error:
        raise EngineFailed(str(error)) from error
