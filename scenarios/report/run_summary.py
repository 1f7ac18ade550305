"""A finished run, as one JSON object with stable keys and in words.

``run.json`` and ``--json`` have the keys. Words are its verdict in a sentence and main figures.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from html import escape
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pydantic_core import to_jsonable_python

from actors.protocol import NS_PER_S
from actors.result_files import COLLECTORS_SCHEMA, collectors_path
from netsim.outcome import Injected, Recovered
from scenarios.config import plain_value
from scenarios.formatting import (
    VERDICT_WORDS,
    TextTable,
    format_bytes,
    format_digits,
    format_many,
    format_ms,
)
from scenarios.machine import versions
from scenarios.report.run_analysis import busy_ns
from scenarios.run import FinishedRun
from scenarios.run_directory import RUN_RECORD, TRACE, write_json
from scenarios.verdict import Verdict
from scenarios.verdict.judge import Approximated
from spark_bridge.prepared import PreparedStream

_PERCENTILES = (50, 75, 95, 99)
NEAR_SATURATION = 0.8
"""Share of the time from which on an actor that is busy makes queues: at 0.8 a tuple waits on
average for as long as four others are served, where both times are exponential (M/M/1)."""
_LOAD_COLUMNS = ["sender", "receiver", "rows", "first", "last", "started_ns", "done_ns"]
_VERDICT = (
    "passed", "exact", "expected", "produced", "missing", "duplicate", "spurious", "expired",
    "wrong", "invented", "late", "unknown",
)  # fmt: skip


def summary(finished: FinishedRun) -> dict[str, Any]:
    """Return the stable keys: what was run and what came out."""
    plan, outcome, verdict = finished.plan, finished.outcome, finished.verdict
    config = plan.config
    return {
        "scenario": config.name,
        "topology": config.topology,
        "query": str(plan.query),
        "streams": [
            {
                "name": stream.name,
                "path": str(stream.path),
                "rows": rows,
                "rejected": stream.rejected,
            }
            for stream, rows in zip(plan.streams, plan.rows, strict=True)
        ],
        "backend": config.backend,
        "clock": config.clock,
        "seed": config.seed,
        "digest": outcome.digest,
        "tuples": outcome.tuples,
        "virtual_seconds": outcome.virtual_ns / 1e9 if config.clock == "virtual" else None,
        "wall_seconds": finished.clock.seconds,
        "wall_parts": dict(finished.clock.parts),
        "throughput_tps": finished.throughput_tps,
        "latency_ms": latency_ms(finished),
        "network": {"messages": outcome.messages, "bytes": outcome.nbytes},
        "faults": _injected_faults(outcome.injected),
        "recovery": asdict(outcome.recovered) if outcome.recovered else None,
        "memory_bytes": finished.memory_bytes,
        "collectors": collectors(finished),
        "verdict": {key: getattr(verdict, key) for key in _VERDICT},
        "approximation": _approximation(finished),
    }


def _injected_faults(injected: Injected | None) -> dict[str, Any] | None:
    """Return what went wrong, ``counts`` by kind, and what the transport did; None without any."""
    return vars(injected) | {"counts": dict(injected.counts)} if injected else None


def latency_ms(finished: FinishedRun) -> dict[str, float | None]:
    """Return percentiles of the tuples' latency in milliseconds of its clock; None without any."""
    found = {f"p{p}": finished.latencies.percentile(p) for p in _PERCENTILES}
    found["max"] = finished.latencies.percentile(100)
    return {name: None if ns is None else ns / 1e6 for name, ns in found.items()}


def _approximation(finished: FinishedRun) -> dict[str, Any]:
    """Return what an approximate run says of its recall; None where nothing is left out."""
    names = [field.name for field in fields(Approximated)]
    return asdict(finished.approximated) if finished.approximated else dict.fromkeys(names)


def collectors(finished: FinishedRun) -> dict[str, float | None]:
    """Return what the collectors of an interval join did; None where there are none.

    ``most_tuples`` waited in one of them at once, ``delay_ms`` is what a tuple waited for its turn
    on average and ``longest_ms`` at the most; ``backward_watermarks`` were ignored.
    """
    path = collectors_path(finished.directory)
    rows = pq.read_table(path) if path.exists() else COLLECTORS_SCHEMA.empty_table()
    most, tuples, waited_ns, longest_ns, backward = (
        rows[name].to_numpy()
        for name in ("most_tuples", "tuples", "waited_ns", "longest_ns", "backward")
    )
    some = len(rows) > 0
    passed = int(tuples.sum())
    return {
        "most_tuples": int(most.max()) if some else None,
        "delay_ms": float(waited_ns.sum()) / passed / 1e6 if passed else None,
        "longest_ms": float(longest_ns.max()) / 1e6 if some else None,
        "backward_watermarks": int(backward.sum()) if some else None,
    }


def write_run_json(finished: FinishedRun, replay: str) -> None:
    """Write the summary, the whole configuration, the checks and the versions."""
    config = finished.plan.config
    whole = summary(finished) | {
        # What was measured of each; nothing where they lived in other processes.
        "actors": {
            name: {"seconds": round(seconds, 6), "state_bytes": finished.state_bytes[name]}
            for name, seconds in finished.kernel_seconds.items()
        },
        "configuration": config.model_dump(mode="json"),
        "parameters": to_jsonable_python(
            {name: plain_value(value) for name, value in asdict(finished.plan.parameters).items()},
            fallback=str,
        ),
        "warnings": list(finished.plan.warnings),
        "checks": [asdict(check) for check in finished.verdict.checks],
        "offenders": [asdict(offender) for offender in finished.verdict.offenders],
        "versions": versions(),
        "replay": replay,
    }
    write_json(finished.directory / RUN_RECORD, whole)


def describe_verdict(verdict: Verdict) -> str:
    """Return in a sentence or two what came out, against what should have."""
    tuples = "tuple" if verdict.inconsistent == 1 else "tuples"
    errors = [
        (verdict.missing, "missing"),
        (verdict.duplicate, "duplicate"),
        (verdict.expired, "outside the window"),
        (verdict.wrong, "not satisfying the query"),
        (verdict.inconsistent, f"{tuples} whose counts or fingerprints are of other pairs"),
    ]
    if not verdict.tested:
        text = "No pair was expected and none came out: exactness was not tested."
    elif verdict.exact and verdict.misread:
        pairs = format_many(verdict.expected, "pair")
        text = (
            f"{pairs} came out, as the joins read the query, which another parser reads otherwise."
        )
    elif verdict.exact:
        pairs = format_many(verdict.expected, "expected pair")
        text = f"Exactly the {pairs} came out, {'' if verdict.expected == 1 else 'each '}once."
    else:
        listed = ", ".join(f"{count:,} {kind}" for count, kind in errors if count)
        # A live run's pairs are not known, where it only counted them.
        listed = listed or format_many(
            verdict.differing_tuples,
            "tuple has others than it should",
            "tuples have others than they should",
        )
        expected = format_many(verdict.expected, "pair was", "pairs were")
        text = f"{expected} expected, {verdict.produced:,} came out: {listed}."
    if not verdict.claims_exact and not verdict.exact:
        text += (
            " The run promised less than exactness, and kept that promise."
            if verdict.as_promised
            else " The run makes no claim to exactness: whether it should differ so is unknown."
        )
    failed = [check.name for check in verdict.checks if check.passed is False]
    if failed:
        text += f" Failed: {', '.join(failed)}."
    unknown = [check.name for check in verdict.checks if check.passed is None]
    if unknown:
        text += f" Not looked at: {', '.join(unknown)}."
    if verdict.late:
        text += f" {format_many(verdict.late, 'late tuple was', 'late tuples were')} dropped."
    return text


def summary_rows(finished: FinishedRun) -> list[tuple[str, str]]:
    """Return the run's main figures, as names and values."""
    outcome, clock = finished.outcome, finished.plan.config.clock
    seconds = outcome.virtual_ns / 1e9
    latency = "  ".join(f"{name} {format_ms(ms)}" for name, ms in latency_ms(finished).items())
    rows = [
        ("tuples", f"{outcome.tuples:,} in {format_digits(seconds, 4)} {clock} seconds"),
        *_rejected(finished.plan.streams),
        ("throughput", f"{finished.throughput_tps:,.0f} tuples/s ({clock})"),
        ("latency", f"{latency}  ms ({clock})"),
        ("network", f"{format_many(outcome.messages, 'message')}, {format_bytes(outcome.nbytes)}"),
    ]
    if load := measure_load(finished):
        rows += [("batching", load.batching), ("load", load.saturation)]
    if outcome.injected:
        rows += _faults(outcome.injected, outcome.recovered)
    collected = collectors(finished)
    if collected["delay_ms"]:
        most = format_many(int(collected["most_tuples"] or 0), "tuple")
        waited = f"at most {most} waited in one of them"
        mean, longest = format_ms(collected["delay_ms"]), format_ms(collected["longest_ms"])
        each = f"each tuple {mean} ms on average, at most {longest}"
        rows.append(("collectors", f"{waited}, {each}"))
    rows.append(("wall time", str(finished.clock)))
    rows.append(("peak memory", format_bytes(finished.memory_bytes)))
    return rows


def _rejected(streams: Sequence[PreparedStream]) -> list[tuple[str, str]]:
    """Return which rows of the data were left out, and why; nothing where all were taken."""
    left_out = [
        f"{format_many(one.rejected, 'row')} of {one.name} ({', '.join(one.rejected_reasons)})"
        for one in streams
        if one.rejected
    ]
    return [("rejected", ", ".join(left_out))] if left_out else []


def _faults(injected: Injected, recovered: Recovered | None) -> list[tuple[str, str]]:
    """Return what went wrong and what the transport did about it, as names and values."""
    counts = {"crash": recovered.crashes if recovered else 0, **injected.counts}
    words = ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count)
    rows = [("faults", words or "none of them hit anything")]
    if injected.acknowledgements:
        timeouts = format_many(injected.timeouts, "timeout")
        sent = f"{format_many(injected.retransmissions, 'frame')} sent again ({timeouts})"
        answers = format_many(injected.acknowledgements, "acknowledgement")
        rows.append(("transport", f"{sent}, {answers}: {format_bytes(injected.overhead_bytes)}"))
    rows += [("failed", f"{actor}: {why}") for actor, why in injected.failed.items()]
    return rows


def summary_text(finished: FinishedRun) -> str:
    """Return a run as a few lines of plain text: its verdict and main figures."""
    rows = summary_rows(finished)
    width = max(len(name) for name, _ in rows)
    verdict = f"{VERDICT_WORDS[finished.verdict.passed]}: {describe_verdict(finished.verdict)}"
    config = finished.plan.config
    opening = f"{config.name} on {config.topology}, seed {config.seed}"
    return "\n".join([opening, verdict, *(f"{name:<{width}}  {text}" for name, text in rows)])


def summary_html(finished: FinishedRun) -> str:
    """Return a run as a few lines of HTML for a notebook: what ran, its verdict, main figures."""
    config, verdict = finished.plan.config, finished.verdict
    word = VERDICT_WORDS[verdict.passed]
    return (
        f"<p><b>{escape(config.name)}</b> on {escape(config.topology)}, seed {config.seed}, "
        f"{config.backend} backend, {config.clock} clock<br>"
        f"<b>{word}</b>: {escape(describe_verdict(verdict))}</p>\n"
        f"{TextTable(columns=(), rows=summary_rows(finished)).html()}"
    )


@dataclass(frozen=True, kw_only=True)
class RunLoad:
    """How a run at a rate was loaded: what batches add to latency, how near saturation it is."""

    rate_tps: int
    throughput_tps: float
    """Tuples per virtual second, those that were fed and those that were taken."""
    batching_ms: float
    median_ms: float | None
    """How long a tuple waited on average for its batch to leave its source; and the median of the
    latencies, None where no tuple was reported."""
    busiest: str
    busy: float
    """The actor that was at work for the largest share of the run, and that share."""

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
    """Return how the run was loaded; None where it is live or was fed without a rate.

    Fed as fast as its system takes tuples, none waits for its batch, and queues are always full.
    """
    config, outcome = finished.plan.config, finished.outcome
    rate_tps = config.feeding.rate_tps
    if rate_tps is None or config.clock == "live" or not outcome.virtual_ns:
        return None
    graph = finished.plan.graph()
    sources = graph.sources
    tuples, waited_ns, served_ns = 0, 0.0, Counter(dict.fromkeys(graph, 0))
    with pq.ParquetFile(finished.directory / TRACE) as file:
        for block in file.iter_batches(columns=_LOAD_COLUMNS):
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
    return RunLoad(
        rate_tps=rate_tps,
        throughput_tps=finished.throughput_tps,
        batching_ms=waited_ns / max(1, tuples) / 1e6,
        median_ms=latency_ms(finished)["p50"],
        busiest=busiest,
        busy=working[busiest] / outcome.virtual_ns,
    )
