"""How a run at a rate was loaded: what batches add to its latency, and how near saturation it is.

A run without a rate is fed as fast as its system takes tuples: none waits for its batch to fill,
and queues are always full.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from actors.protocol import NS_PER_S
from scenarios.formatting import format_ms
from scenarios.report.run_analysis import busy_ns
from scenarios.run import FinishedRun
from scenarios.run_directory import TRACE

NEAR_SATURATION = 0.8
"""Share of the time from which on an actor that is busy makes queues: at 0.8 a tuple waits on
average for as long as four others are served, where both times are exponential (M/M/1)."""

_COLUMNS = ["sender", "receiver", "rows", "first", "last", "started_ns", "done_ns"]


@dataclass(frozen=True, kw_only=True)
class RunLoad:
    """How a run at a rate was loaded.

    Attributes
    ----------
    rate_tps
        Tuples per virtual second that were fed.
    throughput_tps
        Tuples per virtual second of the whole run.
    batching_ms
        How long a tuple waited on average for the message that it left its source in.
    median_ms
        Of the latencies; None where no tuple was reported.
    busiest, busy
        The actor that was at work for the largest share of the run, and that share.
    """

    rate_tps: int
    throughput_tps: float
    batching_ms: float
    median_ms: float | None
    busiest: str
    busy: float

    @property
    def batching(self) -> str:
        """What batches add to latency, in words."""
        text = f"a tuple waits {format_ms(self.batching_ms)} ms on average for its batch to leave"
        if self.median_ms:
            text += f", {min(1, self.batching_ms / self.median_ms):.0%} of the median latency"
        return f"{text}; set by feeding.batch_rows or feeding.linger"

    @property
    def saturation(self) -> str:
        """How near the run is to the highest rate that its system sustains, in words."""
        about = f"{self.busiest} is busy for {self.busy:.0%} of the run"
        if (
            self.throughput_tps < NEAR_SATURATION * self.rate_tps
            and self.busy > NEAR_SATURATION / 2
        ):
            return (
                f"BEYOND SATURATION: fed {self.rate_tps:,} tuples/s, it takes "
                f"{self.throughput_tps:,.0f}, and queues and latencies grow with the run; {about}"
            )
        if self.busy > NEAR_SATURATION:
            about += f"; NEAR SATURATION: little more than {self.rate_tps:,} tuples/s is too much"
        return about


def measure_load(finished: FinishedRun) -> RunLoad | None:
    """Return how the run was loaded; None where it is live or was fed without a rate."""
    config, outcome = finished.plan.config, finished.outcome
    rate_tps = config.feeding.rate_tps
    if rate_tps is None or config.clock == "live" or not outcome.virtual_ns:
        return None
    graph = finished.plan.graph()
    sources = graph.sources
    tuples, waited_ns, served_ns = 0, 0.0, Counter(dict.fromkeys(graph, 0))
    with pq.ParquetFile(finished.directory / TRACE) as file:
        for block in file.iter_batches(columns=_COLUMNS):
            rows = pa.table(block)
            served_ns.update(busy_ns(rows))
            sent = pc.is_in(rows["sender"].cast(pa.string()), pa.array(list(sources)))
            fed = rows.filter(pc.and_(sent, pc.greater(rows["rows"], 0)))
            count, first, last = (fed[name].to_numpy() for name in ("rows", "first", "last"))
            # A batch leaves as its last tuple comes into being.
            waited_ns += float(((last - first) / 2 * count).sum()) * NS_PER_S / rate_tps
            tuples += int(count.sum())
    working = {name: ns for name, ns in served_ns.items() if name not in sources}
    busiest = max(working, key=working.__getitem__)
    median_ns = finished.latencies.percentile(50)
    return RunLoad(
        rate_tps=rate_tps,
        throughput_tps=finished.throughput_tps,
        batching_ms=waited_ns / max(1, tuples) / 1e6,
        median_ms=None if median_ns is None else median_ns / 1e6,
        busiest=busiest,
        busy=working[busiest] / outcome.virtual_ns,
    )
