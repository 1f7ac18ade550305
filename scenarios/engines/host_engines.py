"""joinsim's operators as engines, in this process, on Ray and in Spark; and Spark's own joins.

The clock of those that joinsim runs itself goes from the first event until results and trace are
whole files on disk.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from actors.hosting.process_memory import keep_freed_memory
from actors.hosting.processes import RayUnavailableError
from actors.protocol import ActorError
from actors.result_files import pairs_path, part_files, summary_path
from scenarios.engines import STEP_ROWS, Engine, PairEngine
from scenarios.plan import Plan
from scenarios.report.run_summary import latency_ms
from scenarios.run import execute
from scenarios.subprocesses import run_alone, tree_peak_bytes
from spark_bridge.engines import EngineFailed, EngineResult, SparkFailed, Totals
from spark_bridge.session import SessionOptions, spark_session
from topologies.semijoin import with_tuple_bytes

if TYPE_CHECKING:
    from spark_bridge.sql.semijoin_batch import Shipping

_MEMORY = "4g"
_FEW_CORES = 2
"""Up to so many, exchanges between stages take longer than what a second core saves: on two, one
stage takes half to four fifths of the time, in all systems tried (`benchmarks.engines`)."""


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
        measured, peak_bytes = run_alone(_run, plan.with_settings(backend="inline"), directory)
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
        return run_alone(_run, plan.with_settings(backend="ray", clock="live"), directory)[0]


def _run(plan: Plan, directory: Path) -> EngineResult:
    keep_freed_memory()  # as every command does
    try:
        finished = execute(plan, directory, judging="after")
    except (ActorError, RayUnavailableError) as error:
        raise EngineFailed(str(error)) from error
    wrong = [one.name for one in finished.verdict.checks if one.passed is False]
    failed = f"; its verdict is FAIL, by {', '.join(wrong)}" if wrong else ""
    parts = finished.clock.parts
    return EngineResult(
        totals=_totals(plan, directory),
        start_seconds=parts["compile"] + parts["start"],
        wall_seconds=parts["run"] + parts["write"],
        latency_ms=latency_ms(finished),
        shuffled_bytes=finished.outcome.nbytes,
        memory_bytes=finished.memory_bytes,
        note=f"topology {plan.topology.name}{failed}",
        failed=bool(wrong),
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


class _SparkEngine(PairEngine):
    """An engine that runs in Spark.

    Parameters
    ----------
    warm
        Whether its session runs the query once before, as part of its start.
    """

    package = "pyspark"
    install = "pip install 'joinsim[spark]'"

    def __init__(self, *, warm: bool = False) -> None:
        self._warm = warm

    def _measure(
        self,
        work: Callable[[Any, Path], EngineResult],
        directory: Path,
        *,
        quick_start: bool = False,
    ) -> EngineResult:
        """Start Spark for *work* in a *directory*, and measure that, too."""
        began_s = time.perf_counter()
        with spark_session(SessionOptions(memory=_MEMORY, quick_start=quick_start)) as spark:
            if self._warm:
                before = directory / "before"
                before.mkdir()
                work(spark, before)
            start_seconds = time.perf_counter() - began_s
            from spark_bridge.query_runs import process_id

            run = work(spark, directory)
            peak_bytes = tree_peak_bytes(process_id(spark))
            return replace(run, start_seconds=start_seconds, memory_bytes=peak_bytes)


class SparkHosted(_SparkEngine):
    """The plan's topology inside Structured Streaming, its state in Spark's checkpoint.

    Parameters
    ----------
    fold
        Whether all of it runs in one stage; None: where Spark has few cores.
    """

    name = "spark"

    def __init__(self, *, fold: bool | None = None, warm: bool = False) -> None:
        super().__init__(warm=warm)
        self._fold = fold

    def cannot(self, plan: Plan) -> str | None:
        """Refuse to write results of more than two streams, which it can only count."""
        return super().cannot(plan) if plan.config.pairs else None

    def run(self, plan: Plan, directory: Path) -> EngineResult:
        """Run the plan's topology over a log of its arrivals; writing the log is timed too."""
        from spark_bridge.hosted.host import run_hosted, write_arrivals
        from spark_bridge.hosted.stage import HostedQuery

        feeding = plan.config.feeding.model_copy(update={"batch_rows": STEP_ROWS})
        plan = plan.with_settings(feeding=feeding)
        began_s = time.perf_counter()
        write_arrivals(plan.stored_files, plan.feeding, directory / "arrivals", rows=STEP_ROWS)
        wrote_s = time.perf_counter() - began_s
        job = replace(plan.job(pairs=plan.config.pairs), live=True)
        graph = plan.topology.build(job, plan.parameters)

        def hosted(spark: Any, folder: Path) -> EngineResult:
            cores = spark.sparkContext.defaultParallelism
            folds = cores <= _FEW_CORES if self._fold is None else self._fold
            query = HostedQuery(
                text=str(plan.query),
                schemas=tuple(file.schema for file in plan.files),
                specs=graph.specs,
                wiring=graph.wiring,
                pairs=plan.config.pairs,
                seed=plan.config.seed,
                fold=f"in one stage (Spark has {cores} cores)" if folds else None,
            )
            run = run_hosted(query, directory / "arrivals", folder / "hosted", spark=spark)
            folded = f"; {run.note}" if run.note else ""
            note = f"topology {plan.topology.name}{folded}"
            return replace(run, wall_seconds=wrote_s + run.wall_seconds, note=note)

        return self._measure(hosted, directory, quick_start=True)


class SparkNative(_SparkEngine):
    """A stream-stream join of Spark's own; in batch where Spark has no such stream."""

    name = "native-spark"

    def run(self, plan: Plan, directory: Path) -> EngineResult:
        """Run the query as a stream; if Spark refuses, in batch, with Spark's reason as a note."""
        from spark_bridge.sql.native import run_batch, run_streaming

        def native(spark: Any, folder: Path) -> EngineResult:
            try:
                run = run_streaming(plan.query, plan.stored_files, folder, spark=spark)
                return replace(run, note="stream-stream join, pairs written")
            except SparkFailed as error:
                run = run_batch(plan.query, plan.stored_files, spark=spark)
                return replace(run, note=f"batch, bucketed, pairs counted; as a stream: {error}")

        return self._measure(native, directory)


class SparkShipping(_SparkEngine):
    """A batch join of Spark's own that ships full tuples, or reduces them by semijoins first.

    Tuples are as wide as the plan's parameter ``tuple_bytes`` makes them, if it has one; else they
    have their join fields alone.
    """

    def __init__(self, shipping: Shipping) -> None:
        super().__init__()
        self._shipping = shipping
        self.name = f"spark-{shipping}"

    def cannot(self, plan: Plan) -> str | None:
        """Refuse queries whose tuples no partial tuples reduce."""
        from spark_bridge.sql.semijoin_batch import join_keys

        keys = join_keys(plan.query, [file.schema for file in plan.files])
        return keys if isinstance(keys, str) else None

    def run(self, plan: Plan, directory: Path) -> EngineResult:
        """Join the whole streams; pairs are counted."""
        from spark_bridge.sql.semijoin_batch import run_shipping

        job = with_tuple_bytes(plan.job(pairs=False), getattr(plan.parameters, "tuple_bytes", {}))
        files = replace(plan, files=job.files).stored_files
        width = " and ".join(f"{file.schema.width_bytes:,}" for file in files)
        note = f"batch, pairs counted; tuples have {width} further bytes"

        def shipping(spark: Any, folder: Path) -> EngineResult:
            run = run_shipping(plan.query, files, self._shipping, spark=spark)
            return replace(run, note=note)

        return self._measure(shipping, directory)
