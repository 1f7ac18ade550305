"""A comparison drawn: a bar per system, a panel per measure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from scenarios.batch import Result
from scenarios.drawing.numbers import short
from scenarios.drawing.style import LIGHT
from scenarios.measures import look_up

_PANELS = (
    ("throughput, tuples/s", "throughput_tps"),
    ("latency p95, ms", "latency_ms.p95"),
    ("network, bytes", "network.bytes"),
    ("state at the end, bytes", "state_bytes.total"),
    ("kernel time, s (real)", "kernel_seconds.total"),
)
_WIDTH, _LABEL_WIDTH, _ROW, _TOP, _BOTTOM = 11.0, 1.9, 0.34, 0.45, 0.75


def comparison_figure(results: Mapping[str, Result]) -> Figure:
    """Return a figure of the systems that ran, in the order given."""
    ran = {label: result for label, result in results.items() if result.record}
    rows = np.arange(len(ran))
    height = _TOP + _BOTTOM + _ROW * max(1, len(ran))
    figure = Figure(figsize=(_WIDTH, height))
    axes = figure.subplots(1, len(_PANELS), sharey=True, squeeze=False)[0]
    figure.subplots_adjust(
        left=_LABEL_WIDTH / _WIDTH,
        right=0.985,
        top=1 - _TOP / height,
        bottom=_BOTTOM / height,
        wspace=0.14,
    )
    colours = [LIGHT[_colour(result)] for result in ran.values()]
    for panel, (title, name) in zip(axes, _PANELS, strict=True):
        values = [_value(result, name) for result in ran.values()]
        widths = np.array([np.nan if value is None else value for value in values])
        panel.barh(rows, np.nan_to_num(widths), height=0.68, color=colours)
        longest = np.nanmax(widths, initial=0.0) or 1.0
        for row, width in zip(rows, widths, strict=True):
            told = "–" if np.isnan(width) else short(width)
            panel.text(np.nan_to_num(width) + 0.02 * longest, row, told, va="center", size=8)
        panel.set(xlim=(0, longest * 1.32), ylim=(len(ran) - 0.4, -0.6))
        panel.set_title(title)
        panel.xaxis.set_major_locator(MaxNLocator(3))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        panel.tick_params(axis="y", length=0, labelcolor=LIGHT["ink"])
        panel.grid(axis="x")
    axes[0].set_yticks(rows, list(ran))
    _key(figure, height)
    return figure


def _value(result: Result, name: str) -> float | None:
    try:
        return look_up(result.record, name)
    except KeyError:  # actors in other processes are not timed
        return None


def _colour(result: Result) -> str:
    if result.record["verdict"]["exact"]:
        return "blue"
    return "red" if result.claims_exact else "orange"


def _key(figure: Figure, height: float) -> None:
    at = _LABEL_WIDTH / _WIDTH
    for colour, told in (
        ("blue", "exact"),
        ("orange", "not exact, and does not claim to be"),
        ("red", "not exact, though it claims to be"),
    ):
        figure.text(at, 0.14 / height, "■", color=LIGHT[colour], size=9)
        figure.text(at + 0.014, 0.14 / height, told, color=LIGHT["muted"], size=8)
        at += 0.024 + 0.0068 * len(told)
