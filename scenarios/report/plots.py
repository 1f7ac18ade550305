"""The figures of a run's page: aggregated before they are drawn, so that a long run's are small."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, MaxNLocator

from scenarios.drawing.numbers import short
from scenarios.drawing.style import LIGHT
from scenarios.report.time_bins import TimeBins
from scenarios.report.trace_analysis import STAGES

_WIDTH = 11.0
_STAGE_COLOURS = ("purple", "blue", "orange", "green")
_PERCENTILE_COLOURS = ("blue", "orange", "red")
_SECONDS_FROM_MS = 10_000
_LOG_FROM_RATIO = 1_000
"""Values further apart than this cannot be read off one linear axis."""
_DEPTH = LinearSegmentedColormap.from_list(
    "depth",
    [
        to_rgba(LIGHT["orange"], 0.0),
        to_rgba(LIGHT["orange"], 0.7),
        to_rgba(LIGHT["red"], 1.0),
    ],
)
"""An empty queue lets the page through, so that it looks empty on light and on dark ground."""


def stage_figure(roles: Sequence[str], mean_ms: np.ndarray) -> Figure:
    """Return stacked bars, an operator a bar, of where the mean message spends its time.

    *mean_ms* is roles by stages.
    """
    figure = _figure(0.95 + 0.3 * len(roles), left=1.35, bottom=0.5, top=0.35)
    axes = figure.axes[0]
    rows = np.arange(len(roles))
    start = np.zeros(len(roles))
    for stage, colour in enumerate(_STAGE_COLOURS):
        axes.barh(
            rows, mean_ms[:, stage], left=start, height=0.68, color=LIGHT[colour],
            label=STAGES[stage],
        )  # fmt: skip
        start += mean_ms[:, stage]
    longest = start.max(initial=0.0) or 1.0
    for row, total in enumerate(start):
        axes.text(total + 0.006 * longest, row, f"{total:,.3g} ms", va="center", size=8)
    axes.set_yticks(rows, roles)
    axes.tick_params(axis="y", length=0, labelcolor=LIGHT["ink"])
    axes.set(xlim=(0, longest * 1.09), ylim=(len(roles) - 0.4, -0.6))
    axes.set_xlabel("time of a message, mean (ms)")
    axes.grid(axis="x")
    _legend(axes)
    return figure


def time_figure(
    bins: TimeBins,
    percents: Sequence[int],
    *,
    latency_ms: np.ndarray,
    answered_tps: np.ndarray,
    waiting: np.ndarray,
    matches_ps: np.ndarray,
) -> Figure:
    """Return panels over virtual time: latency, tuples answered, tuples waiting, matches.

    *latency_ms* is percents by bins, NaN where no tuple was answered; the others are per bin,
    *waiting* at its end.
    """
    height = 6.2
    figure = Figure(figsize=(_WIDTH, height))
    latency, *others = panels = figure.subplots(4, 1, sharex=True)
    figure.subplots_adjust(
        left=0.09, right=0.985, bottom=0.48 / height, top=1 - 0.3 / height, hspace=0.3
    )
    scale, unit = _time_unit(bins)
    edges = bins.edges_ns / scale
    known = latency_ms[np.isfinite(latency_ms)]
    in_seconds = known.max(initial=0.0) >= _SECONDS_FROM_MS
    values = latency_ms / 1000 if in_seconds else latency_ms
    for percent, line, colour in zip(percents, values, _PERCENTILE_COLOURS, strict=True):
        _steps(latency, line, edges, colour, f"p{percent}")
    _latency_scale(latency, values)
    latency.set_ylabel("latency (s)" if in_seconds else "latency (ms)")
    _legend(latency)
    for panel, line, colour, label in zip(
        others,
        (answered_tps, waiting, matches_ps),
        ("green", "teal", "purple"),
        ("tuples/s", "tuples inside", "matches/s"),
        strict=True,
    ):
        _steps(panel, line, edges, colour, None)
        panel.set_ylabel(label)
    for panel in panels:
        panel.grid(axis="y")
        panel.yaxis.set_label_coords(-0.062, 0.5)
        if panel.get_yscale() == "linear":
            highest = panel.dataLim.y1
            panel.set_ylim(0, highest * 1.1 if np.isfinite(highest) and highest > 0 else 1)
            panel.yaxis.set_major_locator(MaxNLocator(4))
            panel.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    panels[-1].set(xlim=(0, edges[-1]), xlabel=f"time of the run ({unit})")
    return figure


def depth_figure(bins: TimeBins, names: Sequence[str], depth: np.ndarray) -> Figure:
    """Return a heat map of the mean depth of queues, *names* by bins."""
    height = 0.85 + 0.19 * len(names)
    figure = _figure(height, left=1.35, bottom=0.48, top=0.08, right=1.1)
    axes = figure.axes[0]
    scale, unit = _time_unit(bins)
    deepest = depth.max(initial=0.0)
    top = deepest or 1.0
    extent = (0, bins.edges_ns[-1] / scale, len(names) - 0.5, -0.5)
    look: dict[str, Any] = {"cmap": _DEPTH, "aspect": "auto", "interpolation": "none"}
    axes.imshow(depth, extent=extent, vmin=0, vmax=top, **look)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0, labelcolor=LIGHT["ink"])
    axes.set_xlabel(f"time of the run ({unit})")
    for spine in axes.spines.values():
        spine.set_visible(True)

    bar_height = min(1.4, height - 0.6)
    bar = figure.add_axes(
        ((_WIDTH - 0.85) / _WIDTH, 1 - (0.08 + bar_height) / height, 0.14 / _WIDTH,
         bar_height / height)
    )  # fmt: skip
    bar.imshow(np.linspace(1, 0, 64)[:, None], extent=(0, 1, 0, top), vmin=0, vmax=1, **look)
    bar.set_xticks([])
    bar.yaxis.tick_right()
    bar.yaxis.set_major_locator(MaxNLocator(3))
    bar.set_ylabel("messages waiting", size=8)
    bar.yaxis.set_label_position("right")
    return figure


def load_bars(groups: Sequence[tuple[str, Sequence[str], np.ndarray, float]]) -> Figure:
    """Return bars of the share of time each PE was busy, operators side by side.

    Parameters
    ----------
    groups
        Per operator its name, its PEs' names, their shares from 0 to 1, and max/mean of these.
    """
    shown = sum(len(names) for _, names, _, _ in groups)
    bar = min(0.8, 9.0 / max(1, shown))
    widths = [max(len(names) * bar, 0.085 * len(role) + 0.1) for role, names, _, _ in groups]
    gap = 0.14
    width = max(_WIDTH, 0.9 + sum(widths) + gap * len(groups))
    figure = _figure(3.0, left=0.75, bottom=0.62, top=0.3, width=width)
    axes = figure.axes[0]
    top = max([*(shares.max(initial=0.0) for _, _, shares, _ in groups), 1e-9])
    label_pes = bar >= 0.25
    at, ticks, labels = gap, [], []
    for (role, names, shares, skew), room in zip(groups, widths, strict=True):
        middle = at + room / 2
        first = middle - len(names) * bar / 2
        _bars(axes, first, bar, shares)
        if len(names) > 1 and shares.any():
            mean = float(shares.mean())
            ends = [first, first + len(names) * bar]
            axes.plot(ends, [mean, mean], color=LIGHT["ink"], linewidth=1)
            told = f"max/mean {skew:.2f}"
            axes.text(middle, shares.max() + 0.02 * top, told, size=8, ha="center", va="bottom")
        below = axes.get_xaxis_transform()
        axes.text(
            middle, -0.19, role, size=8.5, weight="bold", ha="center", va="center", transform=below
        )
        if label_pes and len(names) > 1:
            ticks += [first + (i + 0.5) * bar for i in range(len(names))]
            labels += [name.removeprefix(f"{role}.") for name in names]
        at += room + gap
    axes.set_xticks(ticks, labels)
    axes.tick_params(axis="x", length=0)
    axes.set(xlim=(0, at), ylim=(0, top * 1.12), ylabel="busy (share of the run)")
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g} %"))
    axes.grid(axis="y")
    return figure


def _bars(axes: Axes, left: float, width: float, heights: np.ndarray) -> None:
    """Draw bars as one mark, so that a thousand cost no more than one."""
    start = left + np.arange(len(heights)) * width + 0.1 * width
    stop = start + 0.8 * width
    zero = np.zeros(len(heights))
    corners = [(start, zero), (start, heights), (stop, heights), (stop, zero)]
    polygons = np.stack([np.stack(corner, axis=1) for corner in corners], axis=1)
    path = Path.make_compound_path_from_polys(polygons)
    axes.add_patch(PathPatch(path, facecolor=LIGHT["blue"], linewidth=0))


def _figure(
    height: float,
    *,
    left: float,
    bottom: float,
    top: float,
    right: float = 0.2,
    width: float = _WIDTH,
) -> Figure:
    """Return a figure with one pair of axes; lengths and margins are inches."""
    figure = Figure(figsize=(width, height))
    figure.add_axes(
        (left / width, bottom / height, (width - left - right) / width,
         (height - bottom - top) / height)
    )  # fmt: skip
    return figure


def _legend(axes: Axes) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderaxespad=0.2, handlelength=1.2
    )


def _steps(
    axes: Axes, values: np.ndarray, edges: np.ndarray, colour: str, label: str | None
) -> None:
    axes.stairs(values, edges, baseline=None, color=LIGHT[colour], linewidth=1.6, label=label)


def _latency_scale(axes: Axes, latency: np.ndarray) -> None:
    known = latency[np.isfinite(latency) & (latency > 0)]
    if len(known) and known.max() > _LOG_FROM_RATIO * known.min():
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _time_unit(bins: TimeBins) -> tuple[float, str]:
    whole_ns = bins.edges_ns[-1]
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if whole_ns >= 2 * scale:
            return scale, unit
    return 1.0, "ns"
