"""A study drawn: a panel each, a line per variant."""

from __future__ import annotations

from collections.abc import Mapping
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from scenarios.drawing.numbers import short
from scenarios.drawing.style import LIGHT, SERIES
from scenarios.study.claims import Values
from scenarios.study.config import Chart, Study
from scenarios.study.findings import Findings

_WIDTH, _PANEL_HEIGHT, _MOST_COLUMNS = 11.0, 3.1, 3
_MARKERS = "osD^vP*X"
_LOG_FROM_RATIO = 30
"""Values further apart than this cannot be told apart on one linear axis."""


def study_figure(findings: Findings) -> Figure:
    """Return a figure of all panels of a study."""
    study = findings.study
    rows = ceil(len(study.charts) / _MOST_COLUMNS)
    columns = ceil(len(study.charts) / rows)  # four are two and two
    height = rows * _PANEL_HEIGHT + 0.35
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    looks = _looks(study)
    for axes, chart in zip(grid, study.charts, strict=False):
        _draw(axes, chart, findings.curves(chart), looks)
    for unused in grid[len(study.charts) :]:
        unused.set_visible(False)
    handles = {
        label: handle
        for axes in grid
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside upper left",
        ncols=4,
        handlelength=1.8,
    )
    return figure


def _looks(study: Study) -> dict[str, tuple[str, str]]:
    """Return variant to colour and marker, the same in all panels."""
    return {
        name: (LIGHT[SERIES[place % len(SERIES)]], _MARKERS[place % len(_MARKERS)])
        for place, name in enumerate(study.section.variants)
    }


def _draw(
    axes: Axes,
    chart: Chart,
    curves: Mapping[str, Values],
    looks: Mapping[str, tuple[str, str]],
) -> None:
    names = [chart.axis.name(place) for place in chart.axis.places]
    at, numeric = _places(chart)
    for variant, values in curves.items():
        colour, marker = looks[variant]
        y = np.array([np.nan if value is None else value for value in values], np.float64)
        axes.plot(at, y, color=colour, marker=marker, markersize=4.5, linewidth=1.6, label=variant)
    known = np.array([v for values in curves.values() for v in values if v is not None])
    positive = known[known > 0]
    if len(positive) == len(known) > 0 and known.max() > _LOG_FROM_RATIO * known.min():
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
    else:
        top = known.max(initial=0.0)
        axes.set_ylim(0, 1.08 * top if top > 0 else 1)
        axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    if numeric and chart.axis.log:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(at, names, rotation=0 if max(map(len, names)) < 8 else 20)
    axes.set(xlabel=chart.axis.label, ylabel=chart.label)
    axes.set_title(chart.panel.name)
    axes.grid(axis="y")


def _places(chart: Chart) -> tuple[list[float], bool]:
    """Return where the points stand along x, and whether their distances mean something."""
    values = [chart.axis.values[place] for place in chart.axis.places]
    if not chart.axis.names and all(isinstance(value, (int, float)) for value in values):
        return [float(value) for value in values], True
    return [float(place) for place in range(len(values))], False
