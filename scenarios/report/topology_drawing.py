"""Draws a topology: plain into a file, or with the load of a run on it for the run's page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Curve

from actors.whole_files import write_bytes
from scenarios.report.style import LIGHT, PNG_DPI, SERIES, style
from scenarios.report.topology_layout import (
    BOX_HEIGHT,
    HEADER,
    Box,
    Channel,
    Layout,
    Point,
    Wire,
    lay_out,
)
from scenarios.scenario_files import ConfigError
from topologies.actor_graph import ActorGraph

SUFFIXES = (".svg", ".png", ".pdf")
_UNDATED: dict[str, dict[str, Any]] = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
"""Without its date, the same drawing is the same file."""
_HEAT = LinearSegmentedColormap.from_list(
    "heat", ["#dbe7f5", "#a9cbe8", "#f3d9a4", "#ee9a5e", "#bf3039"]
)
"""Idle is cold, busy is hot; light enough at both ends for dark text or white."""
_BOXES_MAX = 24
"""A run's drawing is one of several figures on a page, so it must not be as tall as a file's."""

_PAD = 0.15
_TITLE = 0.42
_TITLE_CHARACTER = 0.115
_LEGEND_ROW = 0.24
_LEGEND_COLUMN = 1.6
_PLAIN_WIDTH = 1.1
_WIDEST = 9.0
_FULLEST = 30.0
"""Points: all wires at one side of a box together, so that a fan does not hide what it feeds."""
_HEAD = 0.09
_TURN = 0.4
_DASHES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (1.5, 1.5)))


@dataclass(frozen=True, kw_only=True)
class _Looks:
    """How boxes and wires look in one drawing.

    Attributes
    ----------
    fill, note
        Colour of a box, and what is written below it.
    width
        Of a wire, points; 0 for one that carried nothing.
    why_shared
        Why the PEs of an operator share one box.
    """

    fill: Callable[[Box], str]
    note: Callable[[Box], str]
    width: Callable[[Wire], float]
    why_shared: str


def draw_topology(graph: ActorGraph, title: str, path: Path) -> None:
    """Draw *graph* into *path*: operators left to right, a box a PE, a colour a port.

    Raises
    ------
    ConfigError
        The suffix of *path* is not one of `SUFFIXES`.
    OutputError
        The file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ConfigError(
            f"cannot draw into {path}: the file's name must end in {', '.join(SUFFIXES)}"
        )
    sites = graph.without_partitions().placement
    shared = len(set(sites.values())) < len(sites)
    looks = _Looks(
        fill=lambda box: LIGHT["paper"],
        note=lambda box: f"on {sites[box.actors[0]]}" if shared and len(box.actors) == 1 else "",
        width=lambda wire: _PLAIN_WIDTH,
        why_shared="too many to draw one by one",
    )
    with style():
        figure = _figure(lay_out(graph), title, looks)
        drawing = BytesIO()
        figure.savefig(
            drawing,
            format=suffix[1:],
            dpi=PNG_DPI,
            facecolor="white",
            metadata=_UNDATED.get(suffix, {}),
        )
    write_bytes(path, drawing.getvalue())


def load_figure(
    graph: ActorGraph, utilisation: Mapping[str, float], nbytes: Mapping[Channel, int]
) -> Figure:
    """Return a drawing of a run: wires as wide as the bytes on them, boxes as hot as their load.

    Parameters
    ----------
    graph
        The system.
    utilisation
        Actor to the share of the run, 0 to 1, for which it was busy.
    nbytes
        Channel to bytes; a channel that is missing carried none.
    """
    layout = lay_out(graph, boxes_max=_BOXES_MAX)
    carried = {wire: sum(nbytes.get(c, 0) for c in wire.channels) for wire in layout.wires}
    scale = _points_per_byte(carried)
    loads = {
        box: float(np.mean([utilisation.get(actor, 0.0) for actor in box.actors]))
        for box in layout.boxes
    }
    looks = _Looks(
        fill=lambda box: to_hex(_HEAT(min(1.0, loads[box]))),
        note=lambda box: f"{loads[box]:.0%} busy",
        width=lambda wire: max(0.5, scale * carried[wire]) if carried[wire] else 0.0,
        why_shared="its colour is their mean",
    )
    return _figure(layout, "", looks)


def _points_per_byte(carried: Mapping[Wire, int]) -> float:
    """Return the scale at which no wire, and no side of a box, gets too thick."""
    sides: dict[Point, int] = {}
    for wire, nbytes in carried.items():
        for end in (wire.points[0], wire.points[-1]):
            sides[end] = sides.get(end, 0) + nbytes
    most = max(carried.values(), default=0)
    return min(_WIDEST / most, _FULLEST / max(sides.values())) if most else 0.0


def _figure(layout: Layout, title: str, looks: _Looks) -> Figure:
    notes = [f"the PEs of {role} share one box: {looks.why_shared}" for role in layout.collapsed]
    if layout.partitioned:
        notes.append(f"results stay at the PEs of {', '.join(layout.partitioned)}")
    left = layout.left - _PAD - _TURN
    right = max(layout.right + _PAD + _TURN, left + 2 * _PAD + _TITLE_CHARACTER * len(title))
    columns = max(1, int((right - left) / _LEGEND_COLUMN))
    rows = -(-len(layout.ports) // columns)
    bottom = layout.bottom - _PAD - 0.1 - (rows + len(notes)) * _LEGEND_ROW
    top = layout.top + _PAD + (_TITLE if title else 0)

    figure = Figure(figsize=(right - left, top - bottom))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(left, right), ylim=(bottom, top))
    axes.set_axis_off()
    if title:
        axes.text(left + _PAD, top - _TITLE / 2 - 0.02, title, size=12, weight="bold", va="center")
    # The dashes change when the colours are used up.
    lines = {
        port: {
            "color": LIGHT[SERIES[i % len(SERIES)]],
            "linestyle": _DASHES[i // len(SERIES) % len(_DASHES)],
        }
        for i, port in enumerate(layout.ports)
    }
    _paint_groups(axes, layout)
    for wire in layout.wires:
        _paint_wire(axes, wire, lines[wire.port], looks.width(wire))
    for box in layout.boxes:
        _paint_box(axes, box, looks.fill(box), looks.note(box))
    for place, (port, line) in enumerate(lines.items()):
        x = left + _PAD + place % columns * _LEGEND_COLUMN
        y = layout.bottom - _PAD - (place // columns + 0.5) * _LEGEND_ROW
        axes.add_line(Line2D((x, x + 0.3), (y, y), linewidth=2, **line))
        axes.text(x + 0.38, y, port, size=8, va="center")
    for row, text in enumerate(notes):
        y = bottom + _PAD / 2 + (len(notes) - row - 0.5) * _LEGEND_ROW
        axes.text(left + _PAD, y, text, size=8, color=LIGHT["muted"], va="center")
    return figure


def _paint_groups(axes: Axes, layout: Layout) -> None:
    for group in layout.groups:
        axes.add_patch(
            FancyBboxPatch(
                (group.left, group.bottom),
                group.right - group.left,
                group.top - group.bottom,
                boxstyle="round,pad=0,rounding_size=0.08",
                facecolor=LIGHT["panel"],
                edgecolor=LIGHT["line"],
                linewidth=0.6,
            )
        )
        title = group.role if group.count == 1 else f"{group.role} × {group.count}"
        x, y = (group.left + group.right) / 2, group.top - HEADER / 2 - 0.02
        axes.text(x, y, title, size=8.5, weight="bold", ha="center", va="center")


def _paint_box(axes: Axes, box: Box, fill: str, note: str) -> None:
    axes.add_patch(
        FancyBboxPatch(
            (box.left, box.y - BOX_HEIGHT / 2),
            box.width,
            BOX_HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.06",
            facecolor=fill,
            edgecolor=LIGHT["muted"],
            linewidth=0.8,
            zorder=3,
        )
    )
    # On a colour of its own a box has one text colour in both themes; on paper the theme decides.
    ink = LIGHT["ink"] if fill == LIGHT["paper"] else _readable_on(fill)
    place: dict[str, Any] = {"ha": "center", "va": "center", "color": ink, "zorder": 4}
    axes.text(box.x, box.y + (0.075 if note else 0), box.label, size=8.5, **place)
    if note:
        axes.text(box.x, box.y - 0.085, note, size=7, **place)


def _readable_on(fill: str) -> str:
    red, green, blue = (int(fill[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return "#ffffff" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.5 else "#15181d"


def _paint_wire(axes: Axes, wire: Wire, line: Mapping[str, Any], width: float) -> None:
    unused = width == 0
    head = _HEAD * max(1.0, sqrt(width / 1.5)) if wire.arrives and not unused else 0.0
    x, y, way = wire.points[-1]
    axes.add_patch(
        PathPatch(
            _curve([*wire.points[:-1], (x - way * head * 0.8, y, way)]),
            fill=False,
            edgecolor=LIGHT["line"] if unused else line["color"],
            linewidth=0.6 if unused else width,
            linestyle=line["linestyle"],
            alpha=0.85,
            capstyle="butt",
            zorder=1 if unused else 2,
        )
    )
    if head:
        tip = [(x, y), (x - way * head, y + head / 2), (x - way * head, y - head / 2), (x, y)]
        axes.add_patch(PathPatch(Curve(tip), facecolor=line["color"], linewidth=0, zorder=2.5))


def _curve(points: list[Point]) -> Curve:
    """Return a smooth path that passes every point horizontally, in its direction."""
    vertices = [points[0][:2]]
    codes: list[int] = [int(Curve.MOVETO)]
    for (x0, y0, way0), (x1, y1, way1) in pairwise(points):
        reach = abs(x1 - x0) / 2 if way0 == way1 else _TURN
        vertices += [(x0 + way0 * reach, y0), (x1 - way1 * reach, y1), (x1, y1)]
        codes += [int(Curve.CURVE4)] * 3
    return Curve(vertices, codes)
