"""A study as a picture: a panel each, a line per variant, or bars where x has categories.

Lines that coincide are dashed in turn, and earlier markers are larger, so that none is hidden
behind another. What was measured on this machine has panels of its own, dotted, with hollow
markers; what is derived is dashed and dotted, and bars of both are paler. The paper's own values
are small crosses, where they are not so far from ours that these could not be read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, pairwise
from textwrap import wrap
from typing import Any

import numpy as np

from scenarios.report.picture import SERIES, Picture, Spec, colour_of, layer, number_axis, tooltip
from scenarios.study.findings import Findings
from scenarios.study.study import KIND_WORDS, Chart, Curve, Study
from scenarios.survey import Kind

_MARKERS = (
    "circle", "square", "triangle-up", "diamond", "triangle-down", "cross", "triangle-right",
    "triangle-left",
)  # fmt: skip
_SIGNS, _HOLLOW_SIGNS = "●■▲◆▼✚▶◀", "○□△◇▽✛▷◁"
"""Letters that look like the markers."""
_DASH = 4.0
"""Pixels of a line's turn, where lines coincide."""
_LABEL_CHARACTERS, _LABEL_CHARACTERS_BELOW = 26, 48
"""Of a line beside a panel, and below it; a longer one would reach into what is above it, or be cut
off at its side."""
_LOG_FROM_RATIO = 30
"""Values further apart than this cannot be distinguished on one linear axis."""
_PAPER_MOST, _PAPER_MOST_LOG = 3, 10
"""The paper's values are drawn up to so many times ours, and as far below: further away they would
leave ours too little of a linear axis, or of a logarithmic one."""
_APART = 0.012
"""Share of a panel's height from which two lines can be distinguished: the width of a line."""
_LINES: dict[Kind, list[float]] = {
    "simulated": [],
    "measured": [2, 3],
    "derived": [7, 3, 2, 3],
}
_PALER: dict[Kind, float] = {"measured": 0.45, "derived": 0.7}


def study_picture(findings: Findings) -> Picture:
    """Return a picture of all panels of a study."""
    study = findings.study
    variants = list(study.section.variants)
    split = _split(study.charts)
    times = Counter(name for name, _ in split)
    parts = [
        (name if name and times[name] == 1 else f"{name}, panel {number}".strip(", "), name, chart)
        for number, (name, chart) in enumerate(split, 1)
    ]
    rows = {label: _rows(findings, chart, label) for label, _, chart in parts}
    all_rows = list(chain(*rows.values()))
    return Picture(
        title=f"{study.base.title}: {len(parts)} panels",
        data={name: [row[name] for row in all_rows] for name in all_rows[0]},
        panels=[
            _panel(chart, rows[label], variants) | {"title": name, "height": 190}
            for label, name, chart in parts
        ],
        columns=2 if len(parts) == 4 else 3,
        legend=_colours(variants),
        signs="■" if all(chart.axis.categories for chart in study.charts) else _signs(study),
    )


def _signs(study: Study) -> str:
    """Return what each variant is marked with in the key: hollow where all its marks are."""
    filled = {curve.variant for curve in study.curves if curve.kind != "measured"}
    return "".join(
        (_SIGNS if name in filled else _HOLLOW_SIGNS)[place % len(_SIGNS)]
        for place, name in enumerate(study.section.variants)
    )


def _split(charts: Sequence[Chart]) -> list[tuple[str, Chart]]:
    """Return all charts by name, those without their measured curves first, then these alone.

    The seconds are not the same ones, and on one axis the larger values flatten the others.
    """
    simulated, measured = [], []
    for chart in charts:
        apart = [one for one in chart.curves if one.kind == "measured"]
        others = [one for one in chart.curves if one.kind != "measured"]
        both, name = apart and others, chart.panel.name
        simulated.append((name, _only(chart, others) if both else chart))
        if both:
            measured.append((f"{name}, measured" if name else "measured", _only(chart, apart)))
    return simulated + measured


def _only(chart: Chart, curves: Sequence[Curve]) -> Chart:
    shown = chart.panel.model_copy(update={"variants": tuple(one.variant for one in curves)})
    return replace(chart, panel=shown, curves=tuple(curves))


def kinds_key(study: Study, picture: Picture) -> str:
    """Return a sentence on marks that are not a simulated value; nothing where there are none."""
    looks: dict[Kind, dict[str, None]] = {}
    for chart in study.charts:
        for curve in chart.curves:
            line = "dotted with hollow markers" if curve.kind == "measured" else "dashed"
            looks.setdefault(curve.kind, {})["paler" if chart.axis.categories else line] = None
    looks.pop("simulated", None)
    notes = [f"{' or '.join(look).capitalize()}: {KIND_WORDS[of]}." for of, look in looks.items()]
    marks = [one["mark"] for panel in picture.panels for one in panel["layer"]]
    if any(mark.get("text") == "×" for mark in marks):
        notes.append(
            f"×: the paper's value, where it is within {_PAPER_MOST} times ours, on a logarithmic "
            f"axis within {_PAPER_MOST_LOG}."
        )
    return " ".join(notes)


def _colours(variants: Sequence[str]) -> dict[str, str]:
    return {name: SERIES[place % len(SERIES)] for place, name in enumerate(variants)}


def _is_numeric(chart: Chart) -> bool:
    values = [chart.axis.values[place] for place in chart.axis.places]
    named = chart.axis.names or chart.axis.categories
    return not named and all(isinstance(value, (int, float)) for value in values)


def _rows(findings: Findings, chart: Chart, label: str) -> list[dict[str, Any]]:
    """Return the data of the chart called *label*, a row per variant and x."""
    axis = chart.axis
    paper = {
        one.of[0]: dict(zip(axis.places, theirs, strict=True))
        for one, theirs, _ in findings.paper(chart)
        if len(one.of) == 1
    }
    rows = []
    for variant, estimates in findings.curves(chart).items():
        for place, one in zip(axis.places, estimates, strict=True):
            low, high = (None, None) if one is None else one.interval
            rows.append(
                {
                    "panel": label,
                    "x": axis.name(place),
                    "at": float(axis.values[place] if _is_numeric(chart) else place),
                    "variant": variant,
                    "kind": chart.curve(variant).kind,
                    "value": None if one is None else one.mean,
                    "low": low,
                    "high": high,
                    "paper": paper.get(variant, {}).get(place),
                }
            )
    return rows


def _panel(chart: Chart, data: Sequence[Mapping[str, Any]], variants: Sequence[str]) -> Spec:
    shown = list(dict.fromkeys(row["variant"] for row in data))
    values = np.array(
        [[row["value"] for row in data if row["variant"] == name] for name in shown], np.float64
    )
    values[~np.isfinite(values)] = np.nan
    known = values[np.isfinite(values)]
    most, least = known.max(initial=0.0), known.min(initial=np.inf)
    log = len(known) > 0 and least > 0 and most > _LOG_FROM_RATIO * least
    log &= not chart.axis.categories  # a bar's length is its value
    heights = values / (most or 1.0)
    if log:
        heights = np.log(values / least) / np.log(most / least)
    label = [line for unit in chart.label.split("; ") for line in wrap(unit, _LABEL_CHARACTERS)]
    scale: Spec = {"type": "log", "nice": False, "padding": 8} if log else {"zero": True}
    y = number_axis("value", label, **scale)
    hover = tooltip(
        variant="variant",
        x=chart.axis.label,
        value="value",
        low="interval from",
        high="to",
        paper="paper",
        kind="",
    )
    encoding: Spec = {
        "x": _x_axis(chart, data),
        "color": colour_of("variant", _colours(variants)),
        "tooltip": hover,
    }
    if chart.axis.categories:
        encoding["xOffset"] = {"field": "variant", "sort": shown}
        marks = _bars(y)
    else:
        run = [[bool(numbers) for numbers in chart.curve(name).points] for name in shown]
        marks = _lines(y, encoding["x"], run, heights, data, variants)
    ink: Spec = {"color": {"value": "var(--ink)"}} if chart.axis.categories else {}
    reaching = [row for row in data if row["low"] is not None and row["high"] > row["low"]]
    if reaching:
        steps = [{"filter": "datum.high > datum.low"}]
        if least >= 0:  # what is never negative has an axis that ends at 0
            floor = least / 2 if log else 0
            steps.append({"calculate": f"max(datum.low, {floor})", "as": "low"})
        low = y | {"field": "low"}
        marks.append(layer("rule", *steps, look={"strokeWidth": 1.2}, y=low, y2="high", **ink))
    times = _PAPER_MOST_LOG if log else _PAPER_MOST
    far = (least / times, most * times)
    if any(row["paper"] is not None and far[0] <= row["paper"] <= far[1] for row in data):
        near = f"isValid(datum.paper) && datum.paper >= {far[0]} && datum.paper <= {far[1]}"
        look = {"text": "×", "fontSize": 15, "fontWeight": "bold"}
        marks.append(layer("text", {"filter": near}, look=look, y=y | {"field": "paper"}, **ink))
    return {
        "transform": [{"filter": f"datum.panel == {data[0]['panel']!r}"}],
        "encoding": encoding,
        "layer": marks,
    }


def _x_axis(chart: Chart, data: Sequence[Mapping[str, Any]]) -> Spec:
    label = wrap(chart.axis.label, _LABEL_CHARACTERS_BELOW)
    if _is_numeric(chart):
        at = list(dict.fromkeys(row["at"] for row in data))
        scale = {"type": "log"} if chart.axis.log else {"zero": False}
        axis = number_axis("at", label, **scale, nice=False, padding=12)
        axis["axis"]["values"] = at
        short = axis["axis"]["labelExpr"].removeprefix("datum.label == '' ? '' : ")
        # Where a point is, is exact: 60k, and 1,024.
        are_short = all(float(f"{value:.3g}") == value for value in at)
        axis["axis"]["labelExpr"] = short if are_short else "format(datum.value, ',')"
        return axis
    names = list(dict.fromkeys(row["x"] for row in data))
    longest = max(map(len, names))
    return {
        "field": "x",
        "type": "nominal" if chart.axis.categories else "ordinal",
        "title": label,
        "scale": {"domain": names} | ({} if chart.axis.categories else {"type": "point"}),
        "axis": {"labelAngle": -25 if len(names) * (longest + 2) > 44 else 0}
        | ({"labelOverlap": False} if chart.axis.categories else {}),
    }


def _bars(y: Spec) -> list[Spec]:
    """Return a bar per variant in each category, side by side; a dash for a missing value."""
    paler: Spec = {
        "condition": [
            {"test": f"datum.kind == '{kind}'", "value": share} for kind, share in _PALER.items()
        ],
        "value": 1.0,
    }
    missing = layer(
        "text",
        {"filter": "!isValid(datum.value)"},
        look={"text": "–", "baseline": "bottom"},
        y={"datum": 0},
        color={"value": "var(--ink)"},
    )
    return [layer("bar", y=y, fillOpacity=paler), missing]


def _lines(
    y: Spec,
    x: Spec,
    run: Sequence[Sequence[bool]],
    heights: np.ndarray,
    data: Sequence[Mapping[str, Any]],
    variants: Sequence[str],
) -> list[Spec]:
    """Return lines with markers; *run* and *heights* are lines by points.

    A line goes on over a point that is not run; one that has failed leaves a gap.
    """
    coinciding, places = find_coinciding(heights)
    points = heights.shape[1]
    drawn = []
    for line, is_run in enumerate(run):
        own = data[line * points : (line + 1) * points]
        for i, j in pairwise(np.flatnonzero(is_run).tolist()):
            start, end = own[i], own[j]
            together, place = coinciding[line, i], places[line, i]
            if j > i + 1:  # over points that are not run, it may cross other lines
                together, place = int(not np.isnan(heights[line, [i, j]]).any()), 0
            if together:
                alone = _LINES[start["kind"]]
                dash = alone if together == 1 else [_DASH, (together - 1) * _DASH]
                field = x["field"]
                drawn.append(
                    {"variant": start["variant"], "x": start[field], "to_x": end[field]}
                    | {"y": start["value"], "to_y": end["value"]}
                    | {"dash": [float(one) for one in dash], "offset": float(-place * _DASH)}
                )
    turns = {"strokeDash": {"expr": "datum.dash"}, "strokeDashOffset": {"expr": "datum.offset"}}
    lines = layer(
        "rule",
        look={"strokeWidth": 2} | turns,
        x=x | {"field": "x"},
        x2="to_x",
        y=y | {"field": "y"},
        y2="to_y",
        tooltip="variant",
    )
    count, domain = len(variants), list(variants)
    shapes = {"domain": domain, "range": [_MARKERS[i % len(_MARKERS)] for i in range(count)]}
    sizes = {"domain": domain, "range": [45 + 18 * (count - i) for i in range(count)]}
    shape: Spec = {"field": "variant", "scale": shapes, "legend": None}
    size: Spec = {"field": "variant", "type": "ordinal", "legend": None}
    size["scale"] = sizes | {"type": "ordinal"}
    measured = {"test": "datum.kind == 'measured'", "value": "var(--paper)"}
    fill = colour_of("variant", _colours(variants)) | {"condition": measured}
    markers = layer("point", look={"opacity": 1}, y=y, shape=shape, size=size, fill=fill)
    return [*([lines | {"data": {"values": drawn}}] if drawn else []), markers]


def find_coinciding(heights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the turns that lines take on the stretches between two points, a row per line.

    First how many lines coincide with one, itself among them, and 0 where one of its points is
    missing; then which of these it is, from 0. *heights*, lines by points, are shares of the
    panel's height; NaN where a line has no point. Lines coincide on a stretch if they do at both of
    its ends.
    """
    group = np.stack([_groups(column) for column in heights.T], axis=1)
    same = group[:, np.newaxis] == group  # NaN is like nothing, not even itself
    same = same[..., :-1] & same[..., 1:]
    earlier = np.tri(len(same), k=-1, dtype=bool)[..., np.newaxis]
    return same.sum(axis=1), (same & earlier).sum(axis=1)


def _groups(heights: np.ndarray) -> np.ndarray:
    """Return the lowest height among those a line cannot be distinguished from, line by line."""
    groups = np.full(len(heights), np.nan)
    lowest = -np.inf
    for line in np.argsort(heights):
        if not heights[line] <= lowest + _APART:
            lowest = heights[line]
        groups[line] = lowest
    return groups
