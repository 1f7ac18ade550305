"""The pictures of a run's page, and the numbers that its captions mention.

Traces and results are aggregated before they are drawn, so that a long run's pictures are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from markupsafe import Markup

from scenarios.formatting import format_value
from scenarios.report.colours import WIDTH
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
from scenarios.report.svg import INCH, Drawing, Panel, decades, nice_ticks, number
from scenarios.report.topology_drawing import draw_load
from scenarios.run import Report
from topologies.actor_graph import ActorGraph

PERCENTS = (50, 95, 99)
"""Percentiles of latency over time: the usual case, the bad one, the worst that still counts."""

_QUEUES_MAX = 40
"""More queues than this are shown an operator a row."""
_STAGE_COLOURS = ("purple", "blue", "orange", "green")
_PERCENTILE_COLOURS = ("blue", "orange", "red")
_SPANS_MAX = 200
"""Of a fault that comes back more often, the pictures show one span."""
_SECONDS_FROM_MS = 10_000
_LOG_FROM_RATIO = 1_000
"""Values further apart than this cannot be read off one linear axis."""
FaultSpans = dict[str, list[tuple[int, int]]]
"""When faults were there, virtual nanoseconds, by their kind."""

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
    faults
        Kinds of faults whose spans are shaded.
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
    faults: list[str]


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
    faults = _fault_spans(report)
    loads = dict(zip(trace.actors, utilisation.tolist(), strict=True))
    drawings = {
        "topology": draw_load(graph, loads, trace.channel_bytes),
        "stages": _draw_stages(stages),
        "time": _draw_time(trace.bins, born, results, faults),
        "queues": _draw_depths(trace.bins, rows, depth, faults),
        "load": _draw_loads(trace.actors, pes, utilisation),
    }
    svg = {name: Markup(one.markup(_DESCRIPTIONS[name])) for name, one in drawings.items()}
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
        faults=list(faults),
    )


def _fault_spans(report: Report) -> FaultSpans:
    """Return when the run's faults were there, by their kind."""
    end_ns = report.outcome.virtual_ns
    found: dict[str, dict[tuple[int, int], None]] = {}
    for fault, spans in report.plan.faults.rows:
        listed = list(islice(spans.until(end_ns), _SPANS_MAX + 1))
        if len(listed) > _SPANS_MAX:
            listed = [(listed[0][0], end_ns)]
        found.setdefault(fault.kind, {}).update(dict.fromkeys(listed))
    return {kind: [(a, min(b, end_ns)) for a, b in listed] for kind, listed in found.items()}


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


def _draw_stages(stages: Sequence[OperatorStages]) -> Drawing:
    """Draw stacked bars, an operator a bar, of where the mean message spends its time."""
    drawing, corner, size = _one_panel(0.95 + 0.3 * len(stages), left=1.35, bottom=0.5, top=0.35)
    longest = max((sum(stage.mean_ms) for stage in stages), default=0.0) or 1.0
    panel = Panel(drawing, corner, size, xlim=(0, longest * 1.09), ylim=(len(stages) - 0.4, -0.6))
    panel.x_axis("time of a message, mean (ms)", nice_ticks(0, longest * 1.09, 9), grid=True)
    height = 0.68 * (panel.y(1) - panel.y(0))
    for row, stage in enumerate(stages):
        start = 0.0
        for colour, length in zip(_STAGE_COLOURS, stage.mean_ms, strict=True):
            left, right = panel.x(start), panel.x(start + length)
            top = panel.y(row) - height / 2
            drawing.rectangle(left, top, right - left, height, fill=colour)
            start += length
        drawing.text(panel.x(start) + 4, panel.y(row), f"{start:,.3g} ms", size=8)
    panel.name_rows([stage.role for stage in stages])
    panel.frame()
    drawing.legend(panel.left, panel.top - 9, _named(STAGES, _STAGE_COLOURS), thick=True)
    return drawing


def _draw_time(
    bins: TimeBins, born: np.ndarray, results: ResultFigures, faults: FaultSpans
) -> Drawing:
    """Draw panels over virtual time: latency, tuples answered, tuples waiting, matches.

    *born* are the tuples that had come into being by each edge of *bins*; *faults* are shaded.
    """
    drawing = Drawing(WIDTH * INCH, 6.2 * INCH)
    scale, unit = _time_unit(bins)
    edges = (bins.edges_ns / scale).tolist()
    seconds = bins.width_ns / 1e9
    latency = results.latency_ms(PERCENTS)
    in_seconds = np.nanmax(latency, initial=0.0) >= _SECONDS_FROM_MS
    if in_seconds:
        latency = latency / 1000
    curves = (
        ("latency (s)" if in_seconds else "latency (ms)", latency, _PERCENTILE_COLOURS),
        ("tuples/s", results.answered[None] / seconds, ("green",)),
        ("tuples inside", (born[1:] - np.cumsum(results.answered))[None], ("teal",)),
        ("matches/s", results.matches[None] / seconds, ("purple",)),
    )
    height = (6.2 - 0.78) * INCH / (len(curves) + 0.3 * (len(curves) - 1))
    left, width = 0.09 * WIDTH * INCH, 0.895 * WIDTH * INCH
    for place, (label, lines, colours) in enumerate(curves):
        corner = (left, 0.3 * INCH + 1.3 * place * height)
        log = place == 0 and _is_wide(lines)
        ylim = _log_limits(lines) if log else (0.0, _top(lines) * 1.1)
        limits = {"xlim": (0.0, edges[-1]), "ylim": ylim}
        panel = Panel(drawing, corner, (width, height), log=log, **limits)
        _shade_faults(panel, faults, scale, named=place == 0)
        ticks = decades(*ylim) if log else nice_ticks(*ylim, 4)
        panel.y_axis(label, ticks, "{:g}".format if log else format_value)
        for line, colour in zip(lines, colours, strict=True):
            panel.steps(line.tolist(), edges, colour)
        panel.frame()
    panel.x_axis(f"time of the run ({unit})", nice_ticks(0, edges[-1], 9))
    percents = [f"p{percent}" for percent in PERCENTS]
    drawing.legend(left, 0.3 * INCH - 9, _named(percents, _PERCENTILE_COLOURS), thick=False)
    return drawing


def _draw_depths(
    bins: TimeBins, names: Sequence[str], depth: np.ndarray, faults: FaultSpans
) -> Drawing:
    """Draw a heat map of the mean depth of queues, *names* by bins; *faults* are shaded."""
    height = 0.85 + 0.19 * len(names)
    drawing, corner, size = _one_panel(height, left=1.35, bottom=0.48, top=0.08, right=1.1)
    scale, unit = _time_unit(bins)
    edges = bins.edges_ns / scale
    top = depth.max(initial=0.0) or 1.0
    panel = Panel(drawing, corner, size, xlim=(0, edges[-1]), ylim=(len(names) - 0.5, -0.5))
    _shade_faults(panel, faults, scale, named=False)
    sides = [panel.x(edge) for edge in edges.tolist()]
    for row, shares in enumerate((depth / top).tolist()):
        for left, right, share in zip(sides, sides[1:], shares, strict=False):
            _shade(drawing, (left, panel.y(row - 0.5)), (right, panel.y(row + 0.5)), share)
    panel.name_rows(names)
    panel.x_axis(f"time of the run ({unit})", nice_ticks(0, edges[-1], 9))
    panel.frame(whole=True)

    bar_height = min(1.4, height - 0.6) * INCH
    bar = Panel(
        drawing,
        ((WIDTH - 0.85) * INCH, panel.top),
        (0.14 * INCH, bar_height),
        xlim=(0, 1),
        ylim=(0, top),
    )
    levels = 24
    for level in range(levels):
        above = bar.top + (1 - (level + 1) / levels) * bar_height
        _shade(
            drawing,
            (bar.left, above),
            (bar.right, above + bar_height / levels),
            (level + 0.5) / levels,
        )
    bar.frame(whole=True)
    for tick in nice_ticks(0, top, 3):
        drawing.text(bar.right + 6, bar.y(tick), f"{tick:g}", size=8, colour="muted")
    x, y = bar.right + 34, bar.top + bar_height / 2
    drawing.text(x, y, "messages waiting", size=8, anchor="middle", upwards=True)
    return drawing


def _shade_faults(panel: Panel, faults: FaultSpans, scale: float, *, named: bool) -> None:
    """Shade a panel over time where faults were there, and name each kind where it begins."""
    for row, (kind, spans) in enumerate(faults.items()):
        for start_ns, end_ns in spans:
            left, right = panel.x(start_ns / scale), panel.x(end_ns / scale)
            box = (left, panel.top, max(0.5, right - left), panel.bottom - panel.top)
            panel.drawing.rectangle(*box, fill="muted", opacity=0.18)
        if named and spans:
            x = panel.x(spans[0][0] / scale)
            panel.drawing.text(x + 3, panel.top + 6 + 10 * row, kind, size=8, colour="muted")


def _shade(
    drawing: Drawing, corner: tuple[float, float], other: tuple[float, float], share: float
) -> None:
    """Fill a cell of a heat map: an empty queue lets the page through, on light and dark ground."""
    box = (*corner, other[0] - corner[0], other[1] - corner[1])
    if share > 0:
        drawing.rectangle(*box, fill="orange", opacity=min(0.7, 1.4 * share))
    if share > 0.5:
        drawing.rectangle(*box, fill="red", opacity=2 * share - 1)


def _draw_loads(
    actors: Sequence[str], pes: dict[str, list[int]], utilisation: np.ndarray
) -> Drawing:
    """Draw bars of the share of time each PE was busy, operators side by side."""
    bar = min(0.8, 9.0 / max(1, len(actors)))
    widths = [max(len(places) * bar, 0.085 * len(role) + 0.1) for role, places in pes.items()]
    gap = 0.14
    length = sum(widths) + gap * (len(pes) + 1)
    drawing, corner, size = _one_panel(
        3.0, left=0.75, bottom=0.62, top=0.3, width=max(WIDTH, 0.75 + length)
    )
    top = max(utilisation.max(initial=0.0), 1e-9)
    panel = Panel(drawing, corner, size, xlim=(0, length), ylim=(0, top * 1.12))
    panel.y_axis(
        "busy (share of the run)",
        nice_ticks(0, top * 1.12, 5),
        lambda share: f"{100 * share:.3g} %",
    )
    at = gap
    for (role, places), room in zip(pes.items(), widths, strict=True):
        shares, middle = utilisation[places], at + room / 2
        first = middle - len(places) * bar / 2
        _draw_bars(panel, first, bar, shares)
        if len(places) > 1 and shares.any():
            mean, most = shares.mean(), shares.max()
            ends = [number(panel.x(end)) for end in (first, first + len(places) * bar)]
            drawing.path(f"M{ends[0]} {number(panel.y(mean))}H{ends[1]}", stroke="ink")
            skew = f"max/mean {most / mean:.2f}"
            drawing.text(panel.x(middle), panel.y(most) - 6, skew, size=8, anchor="middle")
        below = panel.bottom + 28
        drawing.text(panel.x(middle), below, role, size=8.5, bold=True, anchor="middle")
        if bar >= 0.25 and len(places) > 1:
            ticks = [first + (i + 0.5) * bar for i in range(len(places))]
            names = [actors[place].removeprefix(f"{role}.") for place in places]
            panel.name_columns(ticks, names, marks=False)
        at += room + gap
    panel.frame()
    return drawing


def _draw_bars(panel: Panel, left: float, width: float, heights: np.ndarray) -> None:
    """Draw bars as one mark, so that a thousand cost no more than one."""
    bars = []
    for place, height in enumerate(heights.tolist()):
        start = panel.x(left + (place + 0.1) * width)
        stop = panel.x(left + (place + 0.9) * width)
        bars.append(
            f"M{number(start)} {number(panel.bottom)}V{number(panel.y(height))}"
            f"H{number(stop)}V{number(panel.bottom)}Z"
        )
    panel.drawing.path("".join(bars), fill="blue")


def _one_panel(
    height: float,
    *,
    left: float,
    bottom: float,
    top: float,
    right: float = 0.2,
    width: float = WIDTH,
) -> tuple[Drawing, tuple[float, float], tuple[float, float]]:
    """Return a drawing, and the corner and size of its one panel; lengths given are inches."""
    size = ((width - left - right) * INCH, (height - bottom - top) * INCH)
    return Drawing(width * INCH, height * INCH), (left * INCH, top * INCH), size


def _named(names: Sequence[str], colours: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(names, colours, strict=True))


def _top(lines: np.ndarray) -> float:
    """Return the greatest known value; 1 where there is none, or none above 0."""
    highest = np.nanmax(lines, initial=0.0, where=np.isfinite(lines))
    return float(highest) if highest > 0 else 1 / 1.1


def _is_wide(lines: np.ndarray) -> bool:
    known = lines[np.isfinite(lines) & (lines > 0)]
    return len(known) > 0 and bool(known.max() > _LOG_FROM_RATIO * known.min())


def _log_limits(lines: np.ndarray) -> tuple[float, float]:
    """Return the limits of a logarithmic axis: a twentieth more than the known values need."""
    known = lines[np.isfinite(lines) & (lines > 0)]
    low, high = float(known.min()), float(known.max())
    room = (high / low) ** 0.05
    return low / room, high * room


def _time_unit(bins: TimeBins) -> tuple[float, str]:
    whole_ns = bins.edges_ns[-1]
    for scale, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs")):
        if whole_ns >= 2 * scale:
            return scale, unit
    return 1.0, "ns"
