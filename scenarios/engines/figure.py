"""A comparison of engines drawn."""

from __future__ import annotations

from dataclasses import replace

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
    """Return a figure of the engines that ran, the fastest first; of what some of them tell."""
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
    told = [
        place
        for place in range(len(_PANELS))
        if place == 0 or any(row.values[place] is not None for row in rows.values())
    ]
    rows = {
        name: replace(row, values=[row.values[place] for place in told])
        for name, row in rows.items()
    }
    return bar_figure(rows, [_PANELS[place] for place in told], _MEANINGS)
