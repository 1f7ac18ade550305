"""The page of a run, with its pictures, and that of several runs side by side.

Traces and results are aggregated before they are drawn, so that a long run's page is small. A page
of several runs has their figures, and their pictures on one axis.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from pydantic import BaseModel

from scenarios.formatting import VERDICT_WORDS, TextTable, format_bytes, format_count, format_ms
from scenarios.measures import look_up
from scenarios.report.picture import (
    SERIES,
    Picture,
    Spec,
    colour_of,
    fill_page,
    layer,
    number_axis,
    row_axis,
    time_axis,
    tooltip,
)
from scenarios.report.result_tables import checks_table, offenders_table, settings_tables
from scenarios.report.run_analysis import (
    STAGES,
    ResultFigures,
    TimeBins,
    TraceFigures,
    analyse_results,
    analyse_trace,
    arrival_numbers,
    born_at_rate,
    first_messages,
)
from scenarios.report.run_summary import NEAR_SATURATION, describe_verdict, summary
from scenarios.report.topology_drawing import draw_load
from scenarios.run import FinishedRun
from scenarios.run_directory import RUN_RECORD, TRACE, read_json, why_no_run
from scenarios.scenario_files import ConfigError, validate

PERCENTS = (50, 95, 99)
"""Percentiles of latency over time: the usual case, the bad one, the worst that still counts."""
MESSAGES_MAX = 1_500
"""Messages of the space-time diagram: the first of the run, as many as can be distinguished."""

_ROWS_MAX = 40
"""More actors than this are shown an operator a row."""
_PES_MAX = 1_000
"""Of more PEs than this, those of an operator that were equally busy share a dot."""
_STAGE_COLOURS = dict(zip(STAGES, ("purple", "blue", "orange", "green"), strict=True))
_PERCENTILE_COLOURS = {"p50": "blue", "p95": "orange", "p99": "red"}
_MESSAGE_COLOURS = {"with tuples": "blue", "without tuples": "orange", "is served": "green"}
_SPANS_MAX = 200
"""Of a fault that comes back more often, the pictures show one span."""
_LOG_FROM_RATIO = 1_000
"""Values further apart than this cannot be read off one linear axis."""
_PERCENTILES = {f"p{percent}_s": f"latency p{percent}" for percent in PERCENTS}
"""Column to the title of its axis."""
_AXIS = 46
"""Pixels left of panels over time, so that they begin at one place."""

_DATA = re.compile(r'<script type="application/json" id="pictures">(.*?)</script>', re.DOTALL)
_DRAWN = ("time", "stages", "load")
"""Pictures of a run that several runs share."""
_FIGURES: tuple[tuple[str, str, Callable[[float | None], str]], ...] = (
    ("pairs", "verdict.produced", format_count),
    ("tuples", "tuples", format_count),
    ("tuples/s", "throughput_tps", format_count),
    *((f"latency {p}, ms", f"latency_ms.{p}", format_ms) for p in ("p50", "p95", "p99", "max")),
    ("messages", "network.messages", format_count),
    ("network", "network.bytes", format_bytes),
    ("peak memory, real", "memory_bytes", format_bytes),
)
"""Of the page of several runs: title, name in a run's record, and how it is written."""

Columns = Mapping[str, Sequence[object]]
"""A picture's data."""


def write_report(finished: FinishedRun, path: Path, replay: str) -> None:
    """Write the page of a run to *path*; *replay* is the command that repeats the run.

    Raise :exc:`OutputError` when the file cannot be written.
    """
    pictures, captions = run_pictures(finished)
    finished.clock.lap("report")
    run, plan = summary(finished), finished.plan
    remarks = [*plan.notes, *plan.warnings, *plan.assumptions]
    remarks += filter(None, [finished.price_note])
    fill_page(
        path,
        "report.html",
        run=run,
        word=VERDICT_WORDS[finished.verdict.passed],
        verdict=describe_verdict(finished.verdict),
        checks=checks_table(finished.verdict),
        offenders=offenders_table(finished) if finished.verdict.offenders else None,
        remarks=remarks,
        pictures=pictures,
        captions=captions,
        near_saturation=NEAR_SATURATION,
        messages_max=MESSAGES_MAX,
        streams=_streams_table(run["streams"]),
        settings=settings_tables(finished),
        wall=finished.clock,
        replay=replay,
    )
    finished.clock.lap("report")


def _streams_table(streams: Sequence[Mapping[str, Any]]) -> TextTable:
    rows = [
        (one["name"], one["path"], format_count(one["rows"]), format_count(one["rejected"]))
        for one in streams
    ]
    columns = ("stream", "read from", "tuples read", "rows rejected")
    return TextTable(columns=columns, rows=rows, text_columns=2)


def run_pictures(finished: FinishedRun) -> tuple[dict[str, Picture], dict[str, Any]]:
    """Read the run's trace and results; return its pictures, and what their captions mention.

    Among these is the ``topology``, as SVG.
    """
    graph = finished.plan.graph()
    bins = TimeBins.over(finished.outcome.virtual_ns, finished.outcome.messages)
    trace = analyse_trace(finished.directory / TRACE, list(graph), graph.sources, bins)
    rate_tps, born = finished.plan.config.feeding.rate_tps, trace.entered
    if rate_tps is not None:  # else tuples come into being as they are sent
        born = born_at_rate(bins, rate_tps, int(trace.entered[-1]))
    arrivals = arrival_numbers(finished.plan.files, finished.plan.feeding.disorder)
    results = analyse_results(finished.directory, bins, born, arrivals)
    # Of a tuple without a pair these report nothing: it would seem to be inside for ever.
    pairs_alone = finished.plan.query.interval is not None or finished.plan.topology.multiway
    if pairs_alone:
        born = np.concatenate([[0], np.cumsum(results.born)])
    role_of, operators = graph.roles, graph.operators
    by_operator = len(role_of) > _ROWS_MAX
    row_of = role_of if by_operator else {pe: pe for pes in operators.values() for pe in pes}
    faults = _fault_spans(finished)
    busy = trace.busy_ns / max(1, finished.outcome.virtual_ns)
    loads = dict(zip(trace.actors, busy.tolist(), strict=True))
    busiest = max(loads, key=loads.__getitem__)
    carried = trace.channel_bytes
    fullest = max(carried, key=carried.__getitem__, default=None)
    pictures = {
        "stages": stages_picture(_stages(trace, role_of)),
        "time": _shaded(time_picture(_over_time(bins, born, results)), faults),
        "messages": _shaded(_messages_picture(finished, row_of), faults),
        "queues": _shaded(_queues_picture(trace, row_of), faults),
        "load": load_picture(_loads(loads, operators)),
    }
    return pictures, {
        "topology": Markup(draw_load(graph, loads, carried)),
        "busiest": busiest,
        "busiest_share": loads[busiest],
        "fullest": fullest and f"{fullest[0]} to {fullest[1]}",
        "fullest_bytes": carried[fullest] if fullest else 0,
        "deepest": float(trace.queue_depth.max(initial=0.0)),
        "by_operator": by_operator,
        "bin_ns": bins.width_ns,
        "pairs_alone": pairs_alone,
        "faults": list(dict.fromkeys(span["fault"] for span in faults)),
    }


def _fault_spans(finished: FinishedRun) -> list[dict[str, Any]]:
    """Return when the run's faults were there, as rows of data."""
    end_ns = finished.outcome.virtual_ns
    found: dict[tuple[str, int, int], None] = {}
    for fault, spans in finished.plan.faults.rows:
        listed = list(islice(spans.until(end_ns), _SPANS_MAX + 1))
        if len(listed) > _SPANS_MAX:
            listed = [(listed[0][0], end_ns)]
        found |= dict.fromkeys((fault.kind, start, min(end, end_ns)) for start, end in listed)
    return [
        {"fault": kind, "fault_from_s": start / 1e9, "fault_to_s": end / 1e9}
        for kind, start, end in found
    ]


def _shaded(picture: Picture, faults: Sequence[Mapping[str, Any]]) -> Picture:
    """Return a picture over time with the spans of *faults* shaded, below its marks."""
    assert picture.span_s is not None
    shown = [span for span in faults if span["fault_from_s"] < picture.span_s[1]]
    if not shown:
        return picture
    panels = []
    for panel in picture.panels:
        x: Spec = panel["layer"][0]["encoding"]["x"]
        shade = layer(
            "rect",
            look={"color": "var(--muted)", "opacity": 0.25, "clip": True},
            x=x | {"field": "fault_from_s"},
            x2="fault_to_s",
            tooltip=tooltip(fault="fault", fault_from_s="from, s", fault_to_s="to, s"),
        )
        panels.append(panel | {"layer": [shade | {"data": {"values": shown}}, *panel["layer"]]})
    return replace(picture, panels=panels)


def _stages(trace: TraceFigures, role_of: Mapping[str, str]) -> Columns:
    """Return how long the mean message to each operator spends in each of `STAGES`."""
    places: dict[str, list[int]] = {}
    for place, role in enumerate(role_of.values()):
        places.setdefault(role, []).append(place)
    counts = {role: int(trace.messages[of].sum()) for role, of in places.items()}
    rows = [
        (role, count, stage, float(f"{trace.stage_ns[places[role], i].sum() / count / 1e6:.6g}"))
        for role, count in counts.items()
        if count
        for i, stage in enumerate(STAGES)
    ]
    return _columns(("operator", "messages", "stage", "mean_ms"), rows)


def _columns(names: Sequence[str], rows: Sequence[Sequence[object]]) -> Columns:
    return dict(zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True))


def stages_picture(data: Columns) -> Picture:
    """Return stacked bars of where the mean message spends its time, an operator a bar."""
    x = number_axis("mean_ms", "time of a message, mean (ms)")
    hover = tooltip(operator="operator", messages="messages", stage="stage", mean_ms="mean, ms")
    colour = colour_of("stage", _STAGE_COLOURS)
    stacked = layer("bar", x=x | {"stack": "zero"}, color=colour, order="place", tooltip=hover)
    summed = [{"op": "sum", "field": "mean_ms", "as": "total_ms"}]
    total = layer(
        "text",
        {"aggregate": summed, "groupby": ["operator"]},
        look={"align": "left", "dx": 4},
        x=x | {"field": "total_ms"},
        text={"field": "total_ms", "format": ",.3~r"},
    )
    rows = list(dict.fromkeys(map(str, data["operator"])))
    panel = {
        "transform": [{"calculate": f"indexof({list(STAGES)}, datum.stage)", "as": "place"}],
        "height": 40 + 22 * len(rows),
        "encoding": {"y": row_axis("operator", rows)},
        "layer": [stacked, total],
    }
    return Picture(
        title="Stacked bars of where messages spend their time",
        data=data,
        panels=[panel],
        legend=_STAGE_COLOURS,
    )


def _over_time(bins: TimeBins, born: np.ndarray, results: ResultFigures) -> Columns:
    """Return what happened in each bin; *born* are the tuples there were by each edge of *bins*."""
    edges_s, seconds = bins.edges_ns / 1e9, bins.width_ns / 1e9
    latency = {
        name: [float(f"{value / 1e3:.6g}") for value in line]
        for name, line in zip(_PERCENTILES, results.latency_ms(PERCENTS), strict=True)
    }
    return {
        "from_s": edges_s[:-1].tolist(),
        "to_s": edges_s[1:].tolist(),
        **latency,
        "answered_tps": (results.answered / seconds).round().tolist(),
        "inside": (born[1:] - np.cumsum(results.answered)).tolist(),
        "matches_ps": (results.matches / seconds).round().tolist(),
    }


def time_picture(data: Columns, runs: Mapping[str, str] | None = None) -> Picture:
    """Return panels over the time of a run: latency, tuples answered, tuples waiting, matches.

    Of several *runs*, each with its colour, every percentile has a panel with a line for each run.
    """
    span_s = (0.0, max(_numbers(data, "to_s"), default=1.0))
    fields = _PERCENTILES if runs else {}
    fields = fields | {"answered_tps": "tuples/s", "inside": "tuples inside"}
    fields |= {"matches_ps": "matches/s"}
    colours = dict(zip(fields, ("green", "teal", "purple"), strict=False))
    panels = []
    if not runs:
        fold: Spec = {"fold": list(_PERCENTILES), "as": ["field", "latency_s"]}
        name: Spec = {"calculate": "split(datum.field, '_')[0]", "as": "percentile"}
        colour = colour_of("percentile", _PERCENTILE_COLOURS)
        panels.append(_time_panel("latency_s", "latency", colour, data, span_s, [fold, name]))
    for field, title in fields.items():
        colour = colour_of("run", runs) if runs else {"value": f"var(--{colours[field]})"}
        panels.append(_time_panel(field, title, colour, data, span_s, last=field == "matches_ps"))
    return Picture(
        title="Latency and throughput over the time of the run",
        data=data,
        panels=panels,
        legend=runs or _PERCENTILE_COLOURS,
        span_s=span_s,
    )


def _numbers(data: Columns, *names: str) -> list[float]:
    """Return the finite values of columns."""
    values = np.array([data[name] for name in names], np.float64).ravel()
    listed: list[float] = values[np.isfinite(values)].tolist()
    return listed


def _time_panel(
    field: str,
    title: str,
    colour: Spec,
    data: Columns,
    span_s: tuple[float, float],
    transform: Sequence[Spec] = (),
    *,
    last: bool = False,
) -> Spec:
    """Return lines of a field over time; the *last* panel of a picture has the axis's title."""
    values = _numbers(data, *([field] if field in data else _PERCENTILES))
    positive = [value for value in values if value > 0]
    latency = title.startswith("latency")
    wide = latency and positive and max(positive) > _LOG_FROM_RATIO * min(positive)
    x = time_axis("middle_s", span_s, "time of the run" if last else "")
    y = number_axis(
        field,
        title,
        most_s=max(values, default=1.0) if latency else None,
        **({"type": "log"} if wide else {"zero": True}),
    )
    y["axis"] |= {"minExtent": _AXIS, "maxExtent": _AXIS}
    from_x = x | {"field": "from_s"}
    look: Spec = {"interpolate": "step", "clip": True}
    line = layer("line", *transform, look=look, x=x, y=y, color=colour)
    look = {"strokeWidth": 1.6, "clip": True}
    # A line is not drawn to a bin whose neighbours have no value.
    bins = layer("rule", *transform, look=look, x=from_x, x2="to_s", y=y, color=colour)
    hover = tooltip(**{name: name.replace("_", ", ") for name in data})
    look = {"clip": True, "opacity": 0}
    if "run" in data:
        shown = layer("point", look=look | {"filled": True, "size": 90}, x=x, y=y, tooltip=hover)
    else:
        shown = layer("rect", look=look, x=from_x, x2="to_s", tooltip=hover)
    return {
        "height": 120,
        "transform": [{"calculate": "(datum.from_s + datum.to_s) / 2", "as": "middle_s"}],
        "layer": [line, bins, shown],
    }


def _queues_picture(trace: TraceFigures, row_of: Mapping[str, str]) -> Picture:
    """Return a heat map of the mean depth of queues; of actors in one row, the deepest."""
    rows = list(dict.fromkeys(row_of.values()))
    depth = np.zeros((len(rows), trace.bins.count))
    places = [rows.index(row_of[actor]) for actor in trace.actors]
    np.maximum.at(depth, places, trace.queue_depth)
    at, bins = np.nonzero(depth)
    span_s = (0.0, float(trace.bins.edges_ns[-1]) / 1e9)
    edges_s = trace.bins.edges_ns / 1e9
    top = float(depth.max(initial=0.0)) or 1.0
    opacity = {
        "field": "messages",
        "type": "quantitative",
        "scale": {"domain": [0, top], "range": [0.08, 1]},
        "legend": None,
    }
    cells = layer(
        "rect",
        look={"color": "var(--red)", "clip": True},
        x=time_axis("from_s", span_s, "time of the run"),
        x2="to_s",
        y=row_axis("inbox", rows),
        opacity=opacity,
        tooltip=tooltip(
            inbox="inbox", messages="messages waiting, mean", from_s="from, s", to_s="to, s"
        ),
    )
    return Picture(
        title="Heat map of queue depths over the time of the run",
        data={
            "inbox": [rows[place] for place in at],
            "from_s": edges_s[bins].tolist(),
            "to_s": edges_s[bins + 1].tolist(),
            "messages": [float(f"{value:.4g}") for value in depth[at, bins]],
        },
        panels=[{"height": 40 + 17 * len(rows), "layer": [cells]}],
        legend={f"{top:.3g} messages wait, the most; paler: fewer": "red"},
        span_s=span_s,
    )


def _messages_picture(finished: FinishedRun, row_of: Mapping[str, str]) -> Picture:
    """Return the space-time diagram: a row an actor, a line a message from sender to receiver."""
    rows = list(dict.fromkeys(row_of.values()))
    found = first_messages(finished.directory / TRACE, MESSAGES_MAX)
    ends = {"from": found.pop("sender"), "to": found.pop("receiver")}
    data = {end: [row_of[actor] for actor in actors] for end, actors in ends.items()} | found
    span_s = (0.0, max(data["done_s"], default=0.0) or 1.0)
    hover = tooltip(
        **{"from": "from", "to": "to"},
        port="port",
        tuples="tuples",
        bytes="bytes",
        sent_s="sent, s",
        arrived_s="arrived, s",
        started_s="service from, s",
        done_s="to, s",
    )
    x = time_axis("sent_s", span_s, "time of the run")
    colour = colour_of("kind", _MESSAGE_COLOURS)
    sent = layer(
        "rule",
        {"calculate": "datum.tuples ? 'with tuples' : 'without tuples'", "as": "kind"},
        look={"clip": True, "strokeWidth": 1.2, "opacity": 0.7},
        x=x,
        x2="arrived_s",
        y=row_axis("from", rows),
        y2="to",
        color=colour,
        tooltip=hover,
    )
    served = layer(
        "rule",
        {"calculate": "'is served'", "as": "kind"},
        look={"clip": True, "strokeWidth": 6},
        x=x | {"field": "started_s"},
        x2="done_s",
        y=row_axis("to", rows),
        color=colour,
        tooltip=hover,
    )
    return Picture(
        title="Space-time diagram of messages between actors",
        data=data,
        panels=[{"height": 50 + 22 * len(rows), "layer": [served, sent]}],
        legend=_MESSAGE_COLOURS,
        span_s=span_s,
    )


def _loads(loads: Mapping[str, float], operators: Mapping[str, Sequence[str]]) -> Columns:
    """Return the share of the run for which each PE was busy, those of one operator together."""
    digits = 6 if len(loads) <= _PES_MAX else 3
    dots: dict[tuple[str, float], list[str]] = {}
    for role, actors in operators.items():
        for actor in actors:
            dots.setdefault((role, round(loads[actor], digits)), []).append(actor)
    rows = [
        (pe if len(pes) == 1 else f"{pe} and {len(pes) - 1:,} others", role, share, len(pes))
        for (role, share), pes in dots.items()
        for pe in pes[:1]
    ]
    return _columns(("pe", "operator", "busy", "pes"), rows)


def load_picture(data: Columns, runs: Mapping[str, str] | None = None) -> Picture:
    """Return a dot for each PE at the share of the run for which it was busy, an operator a row."""
    operators = list(dict.fromkeys(map(str, data["operator"])))
    colour = colour_of("run", runs) if runs else {"value": "var(--blue)"}
    top = max(_numbers(data, "busy"), default=0.0) or 1.0
    share = number_axis("busy", "busy (share of the run)", domain=[0, 1.5 * top], nice=False)
    written = "datum.value > 1 ? '' : datum.label"  # right of it is room for text
    share["axis"] = {"format": ".3~p", "labelExpr": written, "tickCount": 6, "grid": True}
    row = row_axis("operator", operators)
    weighted: list[Spec] = [
        {"calculate": "datum.busy * datum.pes", "as": "sum"},
        {
            "aggregate": [
                {"op": "sum", "field": "sum", "as": "sum"},
                {"op": "sum", "field": "pes", "as": "pes"},
                {"op": "max", "field": "busy", "as": "most"},
            ],
            "groupby": ["operator"],
        },
        {"filter": "datum.pes > 1 && datum.sum > 0"},
        {"calculate": "datum.sum / datum.pes", "as": "mean"},
        {
            "calculate": "'max/mean ' + format(datum.most * datum.pes / datum.sum, '.2f')",
            "as": "skew",
        },
    ]
    hover = tooltip(pe="PE", operator="operator", busy="busy")
    look: Spec = {"opacity": 0.7, "size": 70}
    dots = layer("circle", look=look, x=share, color=colour, tooltip=hover)
    look = {"thickness": 2, "size": 18, "color": "var(--ink)"}
    hover = tooltip(mean="mean", skew="skew")
    means = layer("tick", *weighted, look=look, x=share | {"field": "mean"}, tooltip=hover)
    look = {"align": "left", "dx": 10}
    skews = layer("text", *weighted, look=look, x=share | {"field": "most"}, text="skew")
    return Picture(
        title="How busy each processing element was",
        data=data,
        panels=[
            {
                "height": 40 + 28 * len(operators),
                "encoding": {"y": row},
                "layer": [dots, means, skews],
            }
        ],
        legend=runs or {"a PE": "blue", "mean of its operator": "ink"},
        signs="●" if runs else "●|",
    )


class _Latency(BaseModel):
    p50: float | None
    p95: float | None
    p99: float | None
    max: float | None


class _Network(BaseModel):
    messages: int
    bytes: int


class _Verdict(BaseModel):
    passed: bool | None
    produced: int | None


class _Summary(BaseModel):
    """What a page of several runs shows of each one's ``run.json``."""

    scenario: str
    topology: str
    backend: str
    clock: str
    seed: int
    digest: str | None
    tuples: int
    throughput_tps: float | None
    latency_ms: _Latency
    network: _Network
    memory_bytes: int | None
    verdict: _Verdict


@dataclass(frozen=True, kw_only=True)
class RunRecord:
    """A run as its folder has it: the summary of ``run.json``, and the data of its pictures."""

    where: str
    summary: Mapping[str, Any]
    data: Mapping[str, Columns]

    @classmethod
    def of(cls, finished: FinishedRun) -> RunRecord:
        """Return the record of a run that is at hand."""
        pictures, _ = run_pictures(finished)
        data = _data({name: picture.as_json() for name, picture in pictures.items()})
        return cls(where=str(finished.directory), summary=summary(finished), data=data)

    @classmethod
    def read(cls, directory: Path) -> RunRecord:
        """Return the record in a run's folder.

        Raise :exc:`ConfigError` where there is none, or one that is damaged.
        """
        try:
            record = read_json(directory / RUN_RECORD)
            page = (directory / "report.html").read_text(encoding="utf-8")
        except (OSError, ValueError):
            raise ConfigError(why_no_run(directory, "run.json and report.html")) from None
        found = _DATA.search(page)
        if found is None:
            raise ConfigError(f"{directory}/report.html is of an earlier version: run it again")
        validate(_Summary, record, where=f"{directory / RUN_RECORD} is damaged, run it again")
        try:
            data = _data(json.loads(found[1]))
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{directory}/report.html is damaged: its data cannot be read ({error}); run it "
                "again"
            ) from None
        return cls(where=str(directory), summary=record, data=data)


def _data(pictures: Mapping[str, Any]) -> dict[str, Columns]:
    return {name: pictures[name]["data"] for name in _DRAWN}


def write_runs_page(runs: Sequence[RunRecord], path: Path, replay: str) -> Path:
    """Write the page of *runs*; *replay* is the command that repeats it. Return *path*.

    Raise :exc:`ConfigError` where there are fewer than two runs or too many to tell apart,
    :exc:`OutputError` where the file cannot be written.
    """
    if not 2 <= len(runs) <= len(SERIES):
        raise ConfigError(f"{len(runs)} run(s): a page can have 2 to {len(SERIES)} side by side")
    letters = "ABCDEFGH"[: len(runs)]
    names = [f"{a}: {run.summary['topology']}" for a, run in zip(letters, runs, strict=True)]
    colours = dict(zip(names, SERIES, strict=False))
    data = {name: _merged(name, runs, names, letters) for name in _DRAWN}
    return fill_page(
        path,
        "runs.html",
        runs=dict(zip(names, runs, strict=True)),
        numbers=_figures_table(runs, names),
        pictures={
            "time": time_picture(data["time"], colours),
            "stages": stages_picture(data["stages"]),
            "load": load_picture(data["load"], colours),
        },
        replay=replay,
    )


def _merged(
    name: str, runs: Sequence[RunRecord], names: Sequence[str], letters: Sequence[str]
) -> Columns:
    """Return the data of the runs' pictures of this name as one, with a column for the run."""
    merged: dict[str, list[object]] = {column: [] for column in ("run", *runs[0].data[name])}
    for run, label, letter in zip(runs, names, letters, strict=True):
        for column, values in run.data[name].items():
            rows = [f"{value}, {letter}" for value in values] if column == "operator" else values
            merged[column] += rows
        merged["run"] += [label] * len(next(iter(run.data[name].values())))
    if name == "time":
        return merged
    operators = [str(operator)[:-1] for operator in merged["operator"]]
    first = {operator: place for place, operator in reversed(list(enumerate(operators)))}
    order = sorted(range(len(operators)), key=lambda i: first[operators[i]])
    return {column: [values[i] for i in order] for column, values in merged.items()}


def _figures_table(runs: Sequence[RunRecord], names: Sequence[str]) -> TextTable:
    """Return the main figures, a row each and a column per run."""
    verdicts = (VERDICT_WORDS[run.summary["verdict"]["passed"]] for run in runs)
    figures = [
        (title, *(write(look_up(run.summary, name)) for run in runs))
        for title, name, write in _FIGURES
    ]
    rows = [("verdict", *verdicts), *figures]
    return TextTable(columns=("", *names), rows=rows, text_columns=1)
