"""What is compared, drawn: a row of bars for each system or engine, a panel per measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from scenarios.engines.comparison import EngineComparison
from scenarios.formatting import format_value
from scenarios.many_runs import Result
from scenarios.measures import look_up
from scenarios.report.colours import LIGHT, WIDTH
from scenarios.report.style import name_rows, use_short_numbers

_LABEL_WIDTH, _ROW, _TOP, _BOTTOM = 1.9, 0.34, 0.45, 0.75

_SYSTEM_PANELS = {
    "throughput, tuples/s": "throughput_tps",
    "latency p95, ms": "latency_ms.p95",
    "network, bytes": "network.bytes",
    "state at the end, bytes": "state_bytes.total",
    "kernel time, s": "kernel_seconds.total",
}
_SYSTEM_COLOURS = {
    "blue": "exact",
    "orange": "not exact, and does not claim to be",
    "red": "not exact, though it claims to be",
}
_ENGINE_COLOURS = {"blue": "found exactly the expected pairs", "red": "found others"}


@dataclass(frozen=True, kw_only=True)
class _Row:
    """One of those compared: a value per panel's title, and the colour of its bars."""

    values: Mapping[str, float | None]
    colour: str


def comparison_figure(results: Mapping[str, Result]) -> Figure:
    """Return a figure of the systems that ran, in the order given."""
    rows = {}
    for label, result in results.items():
        if result.record:
            inexact = "red" if result.claims_exact else "orange"
            rows[label] = _Row(
                values={title: _value(result, name) for title, name in _SYSTEM_PANELS.items()},
                colour="blue" if result.record["verdict"]["exact"] else inexact,
            )
    return _bar_figure(rows, list(_SYSTEM_PANELS), _SYSTEM_COLOURS)


def _value(result: Result, name: str) -> float | None:
    try:
        return look_up(result.record, name)
    except KeyError:  # actors in other processes are not timed
        return None


def engines_figure(comparison: EngineComparison) -> Figure:
    """Return a figure of the engines that ran, the fastest first.

    A measure that none of them has is left out.
    """
    rows = {
        name: _Row(
            values={
                "throughput, tuples/s": comparison.throughput_tps(name),
                "steady, tuples/s": one.steady_tps,
                "latency p95, ms": (one.latency_ms or {}).get("p95"),
                "shuffled, bytes": one.shuffled_bytes,
                "memory, bytes": one.memory_bytes,
            },
            colour="blue" if comparison.equals(name) else "red",
        )
        for name, one in comparison.measured.items()
    }
    measured = {title for row in rows.values() for title, v in row.values.items() if v is not None}
    titles = next((list(row.values) for row in rows.values()), [])
    panels = [title for title in titles if title in measured] or ["throughput, tuples/s"]
    return _bar_figure(rows, panels, _ENGINE_COLOURS)


def _bar_figure(
    rows: Mapping[str, _Row], panels: Sequence[str], colours: Mapping[str, str]
) -> Figure:
    """Return a figure of *rows* by label; *colours* is the meaning of each colour."""
    places = np.arange(len(rows))
    height = _TOP + _BOTTOM + _ROW * max(1, len(rows))
    figure = Figure(figsize=(WIDTH, height))
    all_axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
    figure.subplots_adjust(
        left=_LABEL_WIDTH / WIDTH,
        right=0.985,
        top=1 - _TOP / height,
        bottom=_BOTTOM / height,
        wspace=0.14,
    )
    for axes, title in zip(all_axes, panels, strict=True):
        widths = np.array([row.values[title] for row in rows.values()], np.float64)  # None is NaN
        axes.barh(
            places,
            np.nan_to_num(widths),
            height=0.68,
            color=[LIGHT[row.colour] for row in rows.values()],
        )
        longest = np.nanmax(widths, initial=0.0) or 1.0
        for place, width in zip(places, widths, strict=True):
            x = np.nan_to_num(width) + 0.02 * longest
            axes.text(x, place, format_value(width), va="center", size=8)
        axes.set(xlim=(0, longest * 1.32), title=title)
        use_short_numbers(axes.xaxis, ticks=3)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="x")
    name_rows(all_axes[0], list(rows))
    left = _LABEL_WIDTH / WIDTH
    for colour, meaning in colours.items():
        figure.text(left, 0.14 / height, "■", color=LIGHT[colour], size=9)
        figure.text(left + 0.014, 0.14 / height, meaning, color=LIGHT["muted"], size=8)
        left += 0.024 + 0.0068 * len(meaning)
    return figure
