"""A study drawn: a panel each, a line per variant, or bars where x has categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from scenarios.drawing.numbers import short
from scenarios.drawing.style import LIGHT, SERIES
from scenarios.study.claims import Values
from scenarios.study.coinciding import Turns, coinciding
from scenarios.study.config import Chart, Study
from scenarios.study.findings import Findings

_WIDTH, _PANEL_HEIGHT, _MOST_COLUMNS = 11.0, 3.1, 3
_MARKERS = "osD^vP*X"
_LINE, _MARKER, _RING, _DASH = 1.6, 5.0, 3.0, 3.0
"""Width of a line, sizes of a marker and of what shows of one around it, points; line widths."""
_BARS = 0.8
"""Width of a category's bars together, where categories are 1 apart."""
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
    values = np.array(list(curves.values()), np.float64)  # None becomes NaN
    known = values[np.isfinite(values)]
    far = len(known) and known.min() > 0 and known.max() > _LOG_FROM_RATIO * known.min()
    if far and not chart.axis.categories:  # a bar's length is its value
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
        heights = np.log(values / known.min()) / np.log(known.max() / known.min())
    else:
        top = known.max(initial=0.0) or 1.0
        axes.set_ylim(0, 1.08 * top)
        axes.yaxis.set_major_locator(MaxNLocator(5))
        heights = values / top
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    if chart.axis.categories:
        _draw_bars(axes, at, dict(zip(curves, values, strict=True)), looks)
    else:
        _draw_lines(axes, at, values, coinciding(heights), [looks[variant] for variant in curves])
        for variant in curves:
            colour, marker = looks[variant]
            axes.plot([], [], color=colour, marker=marker, markersize=_MARKER, label=variant)
    if numeric and chart.axis.log:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(at, names, rotation=0 if max(map(len, names)) < 8 else 20)
    axes.set(xlabel=chart.axis.label, ylabel=chart.label)
    axes.set_title(chart.panel.name)
    axes.grid(axis="y")


def _draw_bars(
    axes: Axes,
    at: Sequence[float],
    bars: Mapping[str, np.ndarray],
    looks: Mapping[str, tuple[str, str]],
) -> None:
    """Draw a bar for each variant in each category, side by side; a dash where a value is not."""
    width = _BARS / len(bars)
    for place, (variant, values) in enumerate(bars.items()):
        x = np.array(at) + width * (place - (len(bars) - 1) / 2)
        axes.bar(x, np.nan_to_num(values), width, color=looks[variant][0], label=variant)
        for missing in x[np.isnan(values)]:
            axes.text(missing, 0, "–", ha="center", va="bottom", size=8)


def _draw_lines(
    axes: Axes,
    at: Sequence[float],
    lines: np.ndarray,
    turns: tuple[Turns, Turns],
    looks: Sequence[tuple[str, str]],
) -> None:
    """Draw lines, of which those that coincide are dashed in turn and marked inside each other."""
    points, stretches = turns
    for line, (colour, marker) in enumerate(looks):
        y = lines[line]
        for i, together in enumerate(stretches.together[line]):
            if together:
                dash, place = (_DASH, (together - 1) * _DASH), stretches.place[line, i]
                axes.plot(
                    at[i : i + 2],
                    y[i : i + 2],
                    color=colour,
                    linewidth=_LINE,
                    linestyle="solid" if together == 1 else (-place * _DASH, dash),
                    dash_capstyle="butt",
                )
        size = _MARKER + _RING * (points.together[line] - 1 - points.place[line])
        axes.scatter(at, y, size**2, color=colour, marker=marker, linewidths=0, zorder=2.5)


def _places(chart: Chart) -> tuple[list[float], bool]:
    """Return where the points stand along x, and whether their distances mean something."""
    values = [chart.axis.values[place] for place in chart.axis.places]
    known = not chart.axis.names and not chart.axis.categories
    if known and all(isinstance(value, (int, float)) for value in values):
        return [float(value) for value in values], True
    return [float(place) for place in range(len(values))], False
