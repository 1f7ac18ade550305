"""A comparison of engines drawn."""

from __future__ import annotations

from matplotlib.figure import Figure

from scenarios.comparison.bars import Row, bar_figure
from scenarios.engines.comparison import EngineComparison

_PANELS = (
    "throughput, tuples/s",
    "steady, tuples/s",
    "latency p95, ms",
    "shuffled, bytes",
    "memory, bytes",
)
_MEANINGS = {"blue": "found exactly the expected pairs", "red": "found others"}


def engines_figure(comparison: EngineComparison) -> Figure:
    """Return a figure of the engines that ran, the fastest first."""
    rows = {}
    for name, one in comparison.measured.items():
        values = (
            comparison.throughput_tps(name),
            one.steady_tps,
            (one.latency_ms or {}).get("p95"),
            one.shuffled_bytes,
            one.memory_bytes,
        )
        rows[name] = Row(values=values, colour="blue" if comparison.equals(name) else "red")
    return bar_figure(rows, _PANELS, _MEANINGS)
