"""``run.json`` and ``--json``: a run as one JSON object with stable keys."""

from __future__ import annotations

import platform
from contextlib import suppress
from dataclasses import asdict, fields
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import pyarrow.parquet as pq

from actors.result_files import COLLECTORS_SCHEMA, collectors_path
from netsim.outcome import Injected
from scenarios.config import plain_value
from scenarios.run import Report
from scenarios.run_directory import RUN_RECORD, write_json
from scenarios.verdict.judge import Approximated

_PERCENTILES = (50, 75, 95, 99)
WORDS = ("scenario", "topology", "query", "streams", "backend", "clock", "digest")
"""Keys of `summary` that have no number, and none within them."""
_VERDICT = (
    "exact", "expected", "produced", "missing", "duplicate", "spurious", "expired", "wrong",
    "invented", "late", "unknown",
)  # fmt: skip
_LIBRARIES = ("joinsim", "numpy", "numba", "pyarrow", "pyspark", "ray", "simpy")


def summary(report: Report) -> dict[str, Any]:
    """Return the stable keys: what was run and what came out."""
    plan, outcome, verdict = report.plan, report.outcome, report.verdict
    config = plan.config
    seconds = outcome.virtual_ns / 1e9
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
        "virtual_seconds": seconds if config.clock == "virtual" else None,
        "wall_seconds": report.clock.seconds,
        "wall_parts": dict(report.clock.parts),
        "throughput_tps": outcome.tuples / seconds if seconds else 0.0,
        "latency_ms": latency_ms(report),
        "network": {"messages": outcome.messages, "bytes": outcome.nbytes},
        "faults": faults(outcome.injected),
        "recovery": asdict(outcome.recovered) if outcome.recovered else None,
        "memory_bytes": report.memory_bytes,
        "collectors": collectors(report),
        "verdict": {key: getattr(verdict, key) for key in _VERDICT},
        "approximation": approximation(report),
    }


def faults(injected: Injected | None) -> dict[str, Any] | None:
    """Return what went wrong, ``counts`` by kind, and what the transport did; None without any."""
    return vars(injected) | {"counts": dict(injected.counts)} if injected else None


def latency_ms(report: Report) -> dict[str, float | None]:
    """Return percentiles of the tuples' latency in milliseconds of its clock; None without any."""
    found = {f"p{p}": report.latencies.percentile(p) for p in _PERCENTILES}
    found["max"] = report.latencies.percentile(100)
    return {name: None if ns is None else ns / 1e6 for name, ns in found.items()}


def approximation(report: Report) -> dict[str, Any]:
    """Return what an approximate run says of its recall; None where nothing is left out."""
    names = [field.name for field in fields(Approximated)]
    return asdict(report.approximated) if report.approximated else dict.fromkeys(names)


def collectors(report: Report) -> dict[str, float | None]:
    """Return what the collectors of an interval join did; None where there are none.

    ``most_tuples`` waited in one of them at once, ``delay_ms`` is what a tuple waited for its turn
    on average and ``longest_ms`` at the most; ``backward_watermarks`` were ignored.
    """
    path = collectors_path(report.directory)
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


def write_run_json(report: Report, replay: str) -> None:
    """Write the summary, the whole configuration, the checks and the versions."""
    config = report.plan.config
    whole = summary(report) | {
        # What was measured of each; nothing where they lived in other processes.
        "actors": {
            name: {"seconds": round(seconds, 6), "state_bytes": report.state_bytes[name]}
            for name, seconds in report.kernel_seconds.items()
        },
        "configuration": config.model_dump(mode="json"),
        "parameters": {
            name: plain_value(value) for name, value in asdict(report.plan.parameters).items()
        },
        "warnings": list(report.plan.warnings),
        "checks": [asdict(check) for check in report.verdict.checks],
        "offenders": [asdict(offender) for offender in report.verdict.offenders],
        "versions": versions(),
        "replay": replay,
    }
    write_json(report.directory / RUN_RECORD, whole)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries that a run depends on, where they are."""
    found = {"python": platform.python_version()}
    for name in _LIBRARIES:
        with suppress(PackageNotFoundError):  # Spark and Ray are extras
            found[name] = version(name)
    return found
