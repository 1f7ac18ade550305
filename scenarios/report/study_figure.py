"""A study drawn: a panel each, a line per variant, or bars where x has categories.

Lines that coincide are dashed in turn and their markers put inside each other, so that none is
hidden behind another. What was measured on this machine is dotted, with hollow markers, and what is
derived is dashed and dotted; bars are hatched. The key has a line about each kind that is drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from textwrap import wrap
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import NullFormatter

from scenarios.report.colours import LIGHT, SERIES, WIDTH
from scenarios.report.style import use_short_numbers
from scenarios.study.findings import Findings
from scenarios.study.judging import Estimates
from scenarios.study.kinds import KIND_WORDS, Kind
from scenarios.study.study import Chart, Study

_PANEL_HEIGHT, _MOST_COLUMNS = 3.1, 3
_MARKERS = "osD^vP*X"
_LINE, _MARKER, _RING, _DASH = 1.6, 5.0, 3.0, 3.0
"""Width of a line, sizes of a marker and of what shows of one around it, points; line widths."""
_CHARACTERS = 150
"""Of names below a panel, were it as wide as the page: more are written aslant."""
_LABEL_CHARACTERS = 32
"""Of a line beside a panel; a longer one would reach into what is above it."""
_BARS = 0.8
"""Width of a category's bars together, where categories are 1 apart."""
_LOG_FROM_RATIO = 30
"""Values further apart than this cannot be distinguished on one linear axis."""
_APART = 0.012
"""Share of a panel's height from which two lines can be distinguished: the width of a line."""
_LINES: dict[Kind, Any] = {
    "simulated": "solid",
    "measured": (0, (1.0, 1.4)),
    "derived": (0, (5.0, 1.5, 1.0, 1.5)),
}
_HATCHES: dict[Kind, str] = {"simulated": "", "measured": "////", "derived": "...."}


class _Look(NamedTuple):
    """How a variant is drawn: the same in all panels, but for where its values come from."""

    colour: str
    marker: str
    kind: Kind = "simulated"

    @property
    def face(self) -> str:
        """The colour inside its markers."""
        return LIGHT["paper"] if self.kind == "measured" else self.colour


def study_figure(findings: Findings) -> Figure:
    """Return a figure of all panels of a study."""
    study = findings.study
    rows = ceil(len(study.charts) / _MOST_COLUMNS)
    columns = ceil(len(study.charts) / rows)  # four are two and two
    figure = Figure(figsize=(WIDTH, rows * _PANEL_HEIGHT + 0.35), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel()
    looks = {
        name: _Look(LIGHT[SERIES[place % len(SERIES)]], _MARKERS[place % len(_MARKERS)])
        for place, name in enumerate(study.section.variants)
    }
    for axes, chart in zip(grid, study.charts, strict=False):
        curves = {variant: _as_line(values) for variant, values in findings.curves(chart).items()}
        kinds = {curve.variant: curve.kind for curve in chart.curves}
        _draw_panel(
            axes, chart, curves, {name: looks[name]._replace(kind=kinds[name]) for name in curves}
        )
    for unused in grid[len(study.charts) :]:
        unused.set_visible(False)
    handles = {
        label: handle
        for axes in grid
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    handles |= _kinds_key(study)
    key = (list(handles.values()), list(handles))
    figure.legend(*key, loc="outside upper left", ncols=4, handlelength=1.8)
    return figure


def _kinds_key(study: Study) -> dict[str, Artist]:
    """Return a line of the key for each kind of values, where not all are simulated."""
    drawn = {curve.kind: chart.axis.categories for chart in study.charts for curve in chart.curves}
    if set(drawn) <= {"simulated"}:
        return {}
    ink = LIGHT["muted"]
    return {
        KIND_WORDS[kind]: Patch(facecolor="none", edgecolor=ink, hatch=_HATCHES[kind])
        if drawn[kind]
        else Line2D([], [], color=ink, linewidth=_LINE, linestyle=_LINES[kind])
        for kind in KIND_WORDS
        if kind in drawn
    }


class Line(NamedTuple):
    """A variant's values along x, and how far their intervals reach below and above; NaN: none."""

    values: np.ndarray
    reach: np.ndarray


def _as_line(values: Estimates) -> Line:
    means = np.array([np.nan if one is None else one.mean for one in values])
    ends = np.array([(np.nan, np.nan) if one is None else one.interval for one in values]).T
    with np.errstate(invalid="ignore"):  # infinity from infinity
        reach = np.abs(ends - means)
    return Line(means, np.where(np.isfinite(reach), reach, 0))


def _draw_panel(
    axes: Axes, chart: Chart, curves: Mapping[str, Line], looks: Mapping[str, _Look]
) -> None:
    axis = chart.axis
    names = [axis.name(place) for place in axis.places]
    at: list[float] = list(range(len(names)))
    values_at = [axis.values[place] for place in axis.places]
    numeric = not (axis.names or axis.categories)
    numeric &= all(isinstance(value, (int, float)) for value in values_at)
    if numeric:
        at = [float(value) for value in values_at]
    values = np.array([line.values for line in curves.values()])
    reached = np.concatenate([values, *([line.values + line.reach[1]] for line in curves.values())])
    known, highest = values[np.isfinite(values)], reached[np.isfinite(reached)].max(initial=0.0)
    far = len(known) and known.min() > 0 and known.max() > _LOG_FROM_RATIO * known.min()
    if far and not axis.categories:  # a bar's length is its value
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter(NullFormatter())
        use_short_numbers(axes.yaxis)
        heights = np.log(values / known.min()) / np.log(known.max() / known.min())
    else:
        top = highest or 1.0
        axes.set_ylim(0, 1.08 * top)
        use_short_numbers(axes.yaxis, ticks=5)
        heights = values / top
    if axis.categories:
        _draw_bars(axes, at, curves, looks)
    else:
        _draw_lines(axes, at, curves, heights, looks)
    if numeric and axis.log:
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    room = _CHARACTERS * axes.get_position().width
    crowded = len(names) * (max(map(len, names)) + 2) > room
    axes.set_xticks(at, names, rotation=20 if crowded else 0)
    axes.set(xlabel=axis.label, ylabel=_wrapped(chart.label), title=chart.panel.name)
    axes.grid(axis="y")


def _wrapped(label: str) -> str:
    """Return a label in lines that are no longer than a panel is high, a unit on a line."""
    return "\n".join(line for unit in label.split("; ") for line in wrap(unit, _LABEL_CHARACTERS))


def _draw_bars(
    axes: Axes, at: Sequence[float], curves: Mapping[str, Line], looks: Mapping[str, _Look]
) -> None:
    """Draw a bar per variant in each category, side by side; a dash for a missing value."""
    width = _BARS / len(curves)
    for place, (variant, (values, reach)) in enumerate(curves.items()):
        x = np.array(at) + width * (place - (len(curves) - 1) / 2)
        look = looks[variant]
        axes.bar(
            x,
            np.nan_to_num(values),
            width,
            color=look.colour,
            label=variant,
            hatch=_HATCHES[look.kind],
            edgecolor=LIGHT["paper"] if look.kind != "simulated" else look.colour,
            linewidth=0,
        )
        _draw_intervals(axes, x, values, reach, LIGHT["ink"])
        for missing in x[np.isnan(values)]:
            axes.text(missing, 0, "–", ha="center", va="bottom", size=8)


def _draw_lines(
    axes: Axes,
    at: Sequence[float],
    curves: Mapping[str, Line],
    heights: np.ndarray,
    looks: Mapping[str, _Look],
) -> None:
    """Draw the curves as lines; *heights*, lines by points, are shares of the panel's height."""
    points, stretches = find_coinciding(heights)
    for line, (variant, (y, reach)) in enumerate(curves.items()):
        look = looks[variant]
        _draw_intervals(axes, at, y, reach, look.colour)
        for i, together in enumerate(stretches.together[line]):
            if together:
                dash, place = (_DASH, (together - 1) * _DASH), stretches.place[line, i]
                axes.plot(
                    at[i : i + 2],
                    y[i : i + 2],
                    color=look.colour,
                    linewidth=_LINE,
                    linestyle=_LINES[look.kind] if together == 1 else (-place * _DASH, dash),
                    dash_capstyle="butt",
                )
        size = _MARKER + _RING * (points.together[line] - 1 - points.place[line])
        hollow = look.kind == "measured"
        axes.scatter(
            at,
            y,
            size**2,
            facecolors=look.face,
            edgecolors=look.colour,
            marker=look.marker,
            linewidths=1 if hollow else 0,
            zorder=2.5,
        )
    for variant in curves:
        look = looks[variant]
        axes.plot(
            [],
            [],
            color=look.colour,
            linestyle=_LINES[look.kind],
            marker=look.marker,
            markersize=_MARKER,
            markerfacecolor=look.face,
            label=variant,
        )


def _draw_intervals(
    axes: Axes, at: Sequence[float] | np.ndarray, y: np.ndarray, reach: np.ndarray, colour: str
) -> None:
    """Draw the intervals of values, where they have any, as bars with caps."""
    if reach.any():
        axes.errorbar(at, y, reach, fmt="none", ecolor=colour, elinewidth=0.9, capsize=2.5)


class Turns(NamedTuple):
    """How many lines coincide, and which of them a line is; int64, a row per line.

    Attributes
    ----------
    together
        Lines that coincide with it there, itself among them; 0 where it has no point.
    place
        Which of these it is, from 0.
    """

    together: np.ndarray
    place: np.ndarray


def find_coinciding(heights: np.ndarray) -> tuple[Turns, Turns]:
    """Return the turns that lines take at their points, and on the stretches between two of them.

    *heights*, lines by points, are shares of the panel's height; NaN where a line has no point.
    Lines coincide on a stretch if they do at both of its ends.
    """
    group = np.stack([_groups(column) for column in heights.T], axis=1)
    same = group[:, np.newaxis] == group  # NaN is like nothing, not even itself
    return _turns(same), _turns(same[..., :-1] & same[..., 1:])


def _groups(heights: np.ndarray) -> np.ndarray:
    """Return the lowest height among those a line cannot be distinguished from, line by line."""
    groups = np.full(len(heights), np.nan)
    lowest = -np.inf
    for line in np.argsort(heights):
        if not heights[line] <= lowest + _APART:
            lowest = heights[line]
        groups[line] = lowest
    return groups


def _turns(same: np.ndarray) -> Turns:
    earlier = np.tri(len(same), k=-1, dtype=bool)[..., np.newaxis]
    return Turns(together=same.sum(axis=1), place=(same & earlier).sum(axis=1))
