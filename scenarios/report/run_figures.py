"""The pictures of a run's page, and the numbers that its captions mention.

Traces and results are aggregated before they are drawn, so that a long run's pictures are small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, MaxNLocator

from scenarios.report.run_analysis import (
    STAGES,
    ResultFigures,
    TimeBins,
    TraceFigures,
    analyse_results,
    analyse_trace,
    born_at_rate,
    split_by_stream,
)
from scenarios.report.style import LIGHT, WIDTH, name_rows, style, svg_markup, use_short_numbers
from scenarios.report.topology_drawing import load_figure
from scenarios.run import Report
from topologies.actor_graph import ActorGraph

PERCENTS = (50, 95, 99)
"""Percentiles of latency over time: the usual case, the bad one, the worst that still counts."""

_QUEUES_MAX = 40
"""More queues than this are shown an operator a row."""
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
_DESCRIPTIONS = {
    "topology": "Graph of the topology with its traffic and load",
    "stages": "Stacked bars of where messages spend their time",
    "time": "Latency and throughput over the time of the run",
    "queues": "Heat map of queue depths over the time of the run",
    "load": "Bars of the busy share of each processing element",
}


@dataclass(frozen=True, kw_only=True)
class OperatorStages:
    """How long the mean message to an operator spends in each of `STAGES`."""

    role: str
    messages: int
    mean_ms: list[float]


@dataclass(frozen=True, kw_only=True)
class RunFigures:
    """The pictures of a run's page and the numbers in its captions.

    Attributes
    ----------
    svg
        The pictures as markup, by name.
    stages
        Of the operators that received a message.
    busiest, busiest_share
        The PE that was busy for the greatest share of the run.
    fullest, fullest_bytes
        The channel that carried most, as ``sender to receiver``; None where none carried anything.
    deepest
        Most messages in an inbox, on average over a bin.
    queues_by_operator
        Whether queues are shown an operator a row.
    bin_ns
        Length of the steps in which curves over time are drawn.
    """

    svg: dict[str, Markup]
    stages: list[OperatorStages]
    busiest: str
    busiest_share: float
    fullest: str | None
    fullest_bytes: int
    deepest: float
    queues_by_operator: bool
    bin_ns: int


def run_figures(report: Report) -> RunFigures:
    """Read the run's trace and results and draw them."""
    graph = report.plan.graph(pairs=report.plan.config.pairs)
    trace = _trace_figures(report, graph)
    born = _born(report, trace)
    results = analyse_results(
        report.directory, trace.bins, split_by_stream(report.plan.files, born)
    )
    pes: dict[str, list[int]] = {}
    for place, (_, role) in enumerate(graph.nodes(data="role")):
        pes.setdefault(role, []).append(place)
    utilisation = trace.utilisation(report.outcome.virtual_ns)
    stages = _stages(trace, pes)
    depth, rows = trace.queue_depth, list(trace.actors)
    by_operator = len(depth) > _QUEUES_MAX
    if by_operator:
        depth, rows = np.stack([depth[places].max(axis=0) for places in pes.values()]), list(pes)
    else:
        order = [place for places in pes.values() for place in places]
        depth, rows = depth[order], [rows[place] for place in order]
    drawings: dict[str, Callable[[], Figure]] = {
        "topology": lambda: load_figure(
            graph, dict(zip(trace.actors, utilisation.tolist(), strict=True)), trace.channel_bytes
        ),
        "stages": lambda: _stage_figure(stages),
        "time": lambda: _time_figure(trace.bins, born, results),
        "queues": lambda: _depth_figure(trace.bins, rows, depth),
        "load": lambda: _load_bars(trace.actors, pes, utilisation),
    }
    with style():
        svg = {
            name: Markup(svg_markup(draw(), name, _DESCRIPTIONS[name]))
            for name, draw in drawings.items()
        }
    busiest = int(np.argmax(utilisation))
    fullest = max(trace.channel_bytes.items(), key=lambda item: item[1], default=None)
    return RunFigures(
        svg=svg,
        stages=stages,
        busiest=trace.actors[busiest],
        busiest_share=float(utilisation[busiest]),
        fullest=None if fullest is None else f"{fullest[0][0]} to {fullest[0][1]}",
        fullest_bytes=0 if fullest is None else fullest[1],
        deepest=float(trace.queue_depth.max(initial=0.0)),
        queues_by_operator=by_operator,
        bin_ns=trace.bins.width_ns,
    )


def _trace_figures(report: Report, graph: ActorGraph) -> TraceFigures:
    sources = {name for name, degree in graph.in_degree() if not degree}
    bins = TimeBins.over(report.outcome.virtual_ns, report.outcome.messages)
    return analyse_trace(report.directory / "trace.parquet", list(graph), sources, bins)


def _born(report: Report, trace: TraceFigures) -> np.ndarray:
    """Return how many tuples had come into being by each edge of the time bins."""
    rate_tps = report.plan.config.feeding.rate_tps
    if rate_tps is None:  # then they come into being as they are sent
        return trace.entered
    return born_at_rate(trace.bins, rate_tps, int(trace.entered[-1]))


def _stages(trace: TraceFigures, pes: dict[str, list[int]]) -> list[OperatorStages]:
    stages = []
    for role, places in pes.items():
        messages = int(trace.messages[places].sum())
        if messages:
            mean_ms = trace.stage_ns[places].sum(axis=0) / messages / 1e6
            stages.append(OperatorStages(role=role, messages=messages, mean_ms=mean_ms.tolist()))
    return stages


def _stage_figure(stages: Sequence[OperatorStages]) -> Figure:
    """Return stacked bars, an operator a bar, of where the mean message spends its time."""
    figure, axes = _one_panel(0.95 + 0.3 * len(stages), left=1.35, bottom=0.5, top=0.35)
    rows = np.arange(len(stages))
    mean_ms = np.array([stage.mean_ms for stage in stages]).reshape(-1, len(STAGES))
    start = np.zeros(len(stages))
    for name, colour, length in zip(STAGES, _STAGE_COLOURS, mean_ms.T, strict=True):
        axes.barh(rows, length, left=start, height=0.68, color=LIGHT[colour], label=name)
        start += length
    longest = start.max(initial=0.0) or 1.0
    for row, total in enumerate(start):
        axes.text(total + 0.006 * longest, row, f"{total:,.3g} ms", va="center", size=8)
    name_rows(axes, [stage.role for stage in stages])
    axes.set(xlim=(0, longest * 1.09), xlabel="time of a message, mean (ms)")
    axes.grid(axis="x")
    _legend(axes)
    return figure


def _time_figure(bins: TimeBins, born: np.ndarray, results: ResultFigures) -> Figure:
    """Return panels over virtual time: latency, tuples answered, tuples waiting, matches.

    *born* are the tuples that had come into being by each edge of *bins*.
    """
    height = 6.2
    figure = Figure(figsize=(WIDTH, height))
    latency, *others = panels = figure.subplots(4, 1, sharex=True)
    figure.subplots_adjust(
        left=0.09, right=0.985, bottom=0.48 / height, top=1 - 0.3 / height, hspace=0.3
    )
    scale, unit = _time_unit(bins)
    edges = bins.edges_ns / scale
    values = results.latency_ms(PERCENTS)
    in_seconds = np.nanmax(values, initial=0.0) >= _SECONDS_FROM_MS
    if in_seconds:
        values = values / 1000
    for percent, line, colour in zip(PERCENTS, values, _PERCENTILE_COLOURS, strict=True):
        _steps(latency, line, edges, colour, f"p{percent}")
    _use_latency_scale(latency, values)
    latency.set_ylabel("latency (s)" if in_seconds else "latency (ms)")
    _legend(latency)
    seconds = bins.width_ns / 1e9
    curves = (
        ("green", "tuples/s", results.answered / seconds),
        ("teal", "tuples inside", born[1:] - np.cumsum(results.answered)),
        ("purple", "matches/s", results.matches / seconds),
    )
    for panel, (colour, label, line) in zip(others, curves, strict=True):
        _steps(panel, line, edges, colour, None)
        panel.set_ylabel(label)
    for panel in panels:
        panel.grid(axis="y")
        panel.yaxis.set_label_coords(-0.062, 0.5)
        if panel.get_yscale() == "linear":
            highest = panel.dataLim.y1
            panel.set_ylim(0, highest * 1.1 if np.isfinite(highest) and highest > 0 else 1)
            use_short_numbers(panel.yaxis, ticks=4)
    panels[-1].set(xlim=(0, edges[-1]), xlabel=f"time of the run ({unit})")
    return figure


def _depth_figure(bins: TimeBins, names: Sequence[str], depth: np.ndarray) -> Figure:
    """Return a heat map of the mean depth of queues, *names* by bins."""
    height = 0.85 + 0.19 * len(names)
    figure, axes = _one_panel(height, left=1.35, bottom=0.48, top=0.08, right=1.1)
    scale, unit = _time_unit(bins)
    top = depth.max(initial=0.0) or 1.0
    extent = (0, bins.edges_ns[-1] / scale, len(names) - 0.5, -0.5)
    look: dict[str, Any] = {"cmap": _DEPTH, "aspect": "auto", "interpolation": "none"}
    axes.imshow(depth, extent=extent, vmin=0, vmax=top, **look)
    name_rows(axes, names)
    axes.set(ylim=(len(names) - 0.5, -0.5), xlabel=f"time of the run ({unit})")
    for spine in axes.spines.values():
        spine.set_visible(True)

    bar_height = min(1.4, height - 0.6)
    corner = ((WIDTH - 0.85) / WIDTH, 1 - (0.08 + bar_height) / height)
    bar = figure.add_axes((*corner, 0.14 / WIDTH, bar_height / height))
    bar.imshow(np.linspace(1, 0, 64)[:, None], extent=(0, 1, 0, top), vmin=0, vmax=1, **look)
    bar.set_xticks([])
    bar.yaxis.tick_right()
    bar.yaxis.set_major_locator(MaxNLocator(3))
    bar.set_ylabel("messages waiting", size=8)
    bar.yaxis.set_label_position("right")
    return figure


def _load_bars(actors: Sequence[str], pes: dict[str, list[int]], utilisation: np.ndarray) -> Figure:
    """Return bars of the share of time each PE was busy, operators side by side."""
    bar = min(0.8, 9.0 / max(1, len(actors)))
    widths = [max(len(places) * bar, 0.085 * len(role) + 0.1) for role, places in pes.items()]
    gap = 0.14
    width = max(WIDTH, 0.9 + sum(widths) + gap * len(pes))
    figure, axes = _one_panel(3.0, left=0.75, bottom=0.62, top=0.3, width=width)
    top = max(utilisation.max(initial=0.0), 1e-9)
    at, ticks, labels = gap, [], []
    for (role, places), room in zip(pes.items(), widths, strict=True):
        shares, middle = utilisation[places], at + room / 2
        first = middle - len(places) * bar / 2
        _bars(axes, first, bar, shares)
        if len(places) > 1 and shares.any():
            mean, most = shares.mean(), shares.max()
            ends = [first, first + len(places) * bar]
            axes.plot(ends, [mean, mean], color=LIGHT["ink"], linewidth=1)
            skew = f"max/mean {most / mean:.2f}"
            axes.text(middle, most + 0.02 * top, skew, size=8, ha="center", va="bottom")
        below: dict[str, Any] = {"transform": axes.get_xaxis_transform(), "va": "center"}
        axes.text(middle, -0.19, role, size=8.5, weight="bold", ha="center", **below)
        if bar >= 0.25 and len(places) > 1:
            ticks += [first + (i + 0.5) * bar for i in range(len(places))]
            labels += [actors[place].removeprefix(f"{role}.") for place in places]
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


def _one_panel(
    height: float,
    *,
    left: float,
    bottom: float,
    top: float,
    right: float = 0.2,
    width: float = WIDTH,
) -> tuple[Figure, Axes]:
    """Return a figure with one pair of axes; lengths and margins are inches."""
    figure = Figure(figsize=(width, height))
    inner = ((width - left - right) / width, (height - bottom - top) / height)
    return figure, figure.add_axes((left / width, bottom / height, *inner))


def _legend(axes: Axes) -> None:
    axes.legend(
        loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderaxespad=0.2, handlelength=1.2
    )


def _steps(
    axes: Axes, values: np.ndarray, edges: np.ndarray, colour: str, label: str | None
) -> None:
    axes.stairs(values, edges, baseline=None, color=LIGHT[colour], linewidth=1.6, label=label)


def _use_latency_scale(axes: Axes, latency: np.ndarray) -> None:
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
