"""A comparison of systems drawn."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from scenarios.comparison.bars import Row, bar_figure
from scenarios.many_runs import Result
from scenarios.measures import look_up

_PANELS = {
    "throughput, tuples/s": "throughput_tps",
    "latency p95, ms": "latency_ms.p95",
    "network, bytes": "network.bytes",
    "state at the end, bytes": "state_bytes.total",
    "kernel time, s (real)": "kernel_seconds.total",
}
_MEANINGS = {
    "blue": "exact",
    "orange": "not exact, and does not claim to be",
    "red": "not exact, though it claims to be",
}


def comparison_figure(results: Mapping[str, Result]) -> Figure:
    """Return a figure of the systems that ran, in the order given."""
    rows = {
        label: Row(
            values=[_value(result, name) for name in _PANELS.values()], colour=_colour(result)
        )
        for label, result in results.items()
        if result.record
    }
    return bar_figure(rows, list(_PANELS), _MEANINGS)


def _value(result: Result, name: str) -> float | None:
    try:
        return look_up(result.record, name)
    except KeyError:  # actors in other processes are not timed
        return None


def _colour(result: Result) -> str:
    if result.record["verdict"]["exact"]:
        return "blue"
    return "red" if result.claims_exact else "orange"
