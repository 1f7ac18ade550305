"""``run.json`` and ``--json``: a run as one JSON object with stable keys."""

from __future__ import annotations

import json
import platform
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from scenarios.run import Report

_PERCENTILES = (50, 75, 95, 99)
_LIBRARIES = ("joinsim", "numpy", "numba", "pyarrow", "pyspark", "ray", "simpy")


def summary(report: Report) -> dict[str, Any]:
    """Return the stable keys: what was run and what came out."""
    plan, outcome, verdict = report.plan, report.outcome, report.verdict
    config = plan.config
    virtual_seconds = outcome.virtual_ns / 1e9
    return {
        "scenario": config.name,
        "topology": config.topology,
        "query": str(plan.query),
        "streams": [
            {
                "name": stream.name,
                "path": str(stream.path),
                "rows": min(stream.rows, config.rows or stream.rows),
                "rejected": stream.rejected,
            }
            for stream in plan.streams
        ],
        "backend": config.backend,
        "clock": "virtual",
        "seed": config.seed,
        "digest": outcome.digest,
        "tuples": outcome.tuples,
        "virtual_seconds": virtual_seconds,
        "wall_seconds": round(report.wall_seconds, 3),
        "throughput_tps": outcome.tuples / virtual_seconds if virtual_seconds else 0.0,
        "latency_ms": latency_ms(report),
        "network": {"messages": outcome.messages, "bytes": outcome.nbytes},
        "memory_bytes": report.memory_bytes,
        "verdict": {
            "exact": verdict.exact,
            "expected": verdict.expected,
            "produced": verdict.produced,
            "missing": verdict.missing,
            "duplicate": verdict.duplicate,
            "spurious": verdict.spurious,
            "expired": verdict.expired,
            "wrong": verdict.wrong,
            "late": verdict.late,
        },
    }


def latency_ms(report: Report) -> dict[str, float | None]:
    """Return percentiles of the tuples' latency in virtual milliseconds; None without tuples."""
    found = {f"p{p}": report.latencies.percentile(p) for p in _PERCENTILES}
    found["max"] = report.latencies.percentile(100)
    return {name: None if ns is None else ns / 1e6 for name, ns in found.items()}


def write_run_json(report: Report, replay: str) -> None:
    """Write the summary, the whole configuration, the checks and the versions."""
    config = report.plan.config
    whole = summary(report) | {
        "configuration": config.model_dump(mode="json"),
        "parameters": asdict(report.plan.parameters),
        "checks": [asdict(check) for check in report.verdict.checks],
        "offenders": [asdict(offender) for offender in report.verdict.offenders],
        "versions": versions(),
        "replay": replay,
    }
    path = report.directory / "run.json"
    path.write_text(json.dumps(whole, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries a run depends on."""
    return {"python": platform.python_version()} | {name: version(name) for name in _LIBRARIES}
