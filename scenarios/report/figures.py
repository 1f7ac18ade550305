"""The figures of a run's page: what its trace and results say, drawn, and the numbers beside."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from scenarios.drawing.painting import load_figure
from scenarios.drawing.style import style, svg_markup
from scenarios.report.plots import depth_figure, load_bars, stage_figure, time_figure
from scenarios.report.result_analysis import (
    ResultFigures,
    analyse_results,
    born_at_rate,
    split_by_stream,
)
from scenarios.report.time_bins import TimeBins
from scenarios.report.trace_analysis import STAGES, TraceFigures, analyse_trace
from scenarios.run import Report
from topologies.actor_graph import ActorGraph

PERCENTS = (50, 95, 99)
"""Percentiles of latency over time: the usual case, the bad one, the worst that still counts."""

_QUEUES_MAX = 40
"""More queues than this are shown an operator a row."""


_DESCRIPTIONS = {
    "topology": "Graph of the topology with its traffic and load",
    "stages": "Stacked bars of where messages spend their time",
    "time": "Latency and throughput over the time of the run",
    "queues": "Heat map of queue depths over the time of the run",
    "load": "Bars of the busy share of each processing element",
}


def report_figures(report: Report) -> dict[str, Any]:
    """Return the figures by name under ``svg``, and the numbers that captions and tables tell."""
    graph = report.plan.graph(pairs=report.plan.config.pairs)
    virtual_ns = report.outcome.virtual_ns
    trace = _trace_figures(report, graph)
    born = _born(report, trace)
    results = analyse_results(
        report.directory, trace.bins, split_by_stream(report.plan.files, born)
    )
    pes = _pes(graph)
    utilisation = trace.utilisation(virtual_ns)
    stages = _stages(trace, pes)
    loads = _loads(trace, pes, utilisation)
    queues, depth = _queues(trace, pes)
    busiest = int(np.argmax(utilisation))
    widest = max(trace.channels.items(), key=lambda item: item[1].nbytes, default=None)
    with style():
        drawn = {
            "topology": load_figure(
                graph,
                dict(zip(trace.actors, utilisation.tolist(), strict=True)),
                {channel: traffic.nbytes for channel, traffic in trace.channels.items()},
            ),
            "stages": stage_figure(
                [stage["role"] for stage in stages],
                np.array([stage["mean_ms"] for stage in stages]).reshape(-1, len(STAGES)),
            ),
            "time": _time_figure(trace.bins, born, results),
            "queues": depth_figure(trace.bins, queues, depth),
            "load": load_bars(
                [(load["role"], load["pes"], load["shares"], load["skew"]) for load in loads]
            ),
        }
        markup = {
            name: Markup(svg_markup(figure, name, _DESCRIPTIONS[name]))
            for name, figure in drawn.items()
        }
    return {
        "svg": markup,
        "stages": stages,
        "loads": loads,
        "busiest": {"name": trace.actors[busiest], "share": float(utilisation[busiest])},
        "deepest": float(trace.queue_depth.max(initial=0.0)),
        "widest": widest and {"channel": widest[0], "bytes": widest[1].nbytes},
        "by_operator": len(queues) < len(trace.actors),
        "bin_ns": trace.bins.width_ns,
    }


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


def _time_figure(bins: TimeBins, born: np.ndarray, results: ResultFigures) -> Any:
    seconds = bins.width_ns / 1e9
    return time_figure(
        bins,
        PERCENTS,
        latency_ms=results.latency_ms(PERCENTS),
        answered_tps=results.answered / seconds,
        waiting=born[1:] - np.cumsum(results.answered),
        matches_ps=results.matches / seconds,
    )


def _pes(graph: ActorGraph) -> dict[str, list[int]]:
    """Return per operator the places of its PEs among the actors."""
    pes: dict[str, list[int]] = {}
    for place, (_, role) in enumerate(graph.nodes(data="role")):
        pes.setdefault(role, []).append(place)
    return pes


def _stages(trace: TraceFigures, pes: dict[str, list[int]]) -> list[dict[str, Any]]:
    stages = []
    for role, places in pes.items():
        messages = int(trace.messages[places].sum())
        if messages:
            mean_ms = trace.stage_ns[places].sum(axis=0) / messages / 1e6
            stages.append({"role": role, "messages": messages, "mean_ms": mean_ms.tolist()})
    return stages


def _loads(
    trace: TraceFigures, pes: dict[str, list[int]], utilisation: np.ndarray
) -> list[dict[str, Any]]:
    loads = []
    for role, places in pes.items():
        shares = utilisation[places]
        mean = float(shares.mean())
        loads.append(
            {
                "role": role,
                "pes": [trace.actors[place] for place in places],
                "shares": shares,
                "mean": mean,
                "max": float(shares.max()),
                "skew": float(shares.max()) / mean if mean else 1.0,
            }
        )
    return loads


def _queues(trace: TraceFigures, pes: dict[str, list[int]]) -> tuple[list[str], np.ndarray]:
    """Return the rows of the heat map: each queue, or each operator's deepest one."""
    depth = trace.queue_depth
    if len(depth) <= _QUEUES_MAX:
        order = [place for places in pes.values() for place in places]
        return [trace.actors[place] for place in order], depth[order]
    return list(pes), np.stack([depth[places].max(axis=0) for places in pes.values()])
