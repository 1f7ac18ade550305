"""Draws a topology: a box a PE, a wire a channel; of a run, with the load of the run on it.

What there is to draw is worked out once, in inches; a painter puts it on a run's page (`SvgPainter`
here) or into a file (`scenarios.report.topology_file`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from typing import Protocol

import numpy as np

from scenarios.report.colours import LIGHT, SERIES
from scenarios.report.svg import INCH, Drawing, number
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
from topologies.actor_graph import ActorGraph

_HEAT = ("#dbe7f5", "#a9cbe8", "#f3d9a4", "#ee9a5e", "#bf3039")
"""Idle is cold, busy is hot; light enough at both ends for dark text or white."""
_BOXES_MAX = 24
"""A run's drawing is one of several figures on a page, so it must not be as tall as a file's."""

_PAD = 0.15
_TITLE = 0.42
_TITLE_CHARACTER = 0.115
_LEGEND_ROW = 0.24
_LEGEND_COLUMN = 1.6
PLAIN_WIDTH = 1.1
"""Points: of a wire that carries no run's load."""
_WIDEST = 9.0
_FULLEST = 30.0
"""Points: all wires at one side of a box together, so that a fan does not hide what it feeds."""
_HEAD = 0.09
_TURN = 0.4
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.5, 1.5))

Spot = tuple[float, float]
"""x and y, inches, y upwards."""


class Painter(Protocol):
    """Puts shapes on something; later ones lie above. Inches, y upwards; widths are points."""

    def box(
        self, corner: Spot, size: Spot, *, fill: str, edge: str, width: float, radius: float
    ) -> None:
        """Draw a box with round corners, from its lower left one."""

    def text(
        self, at: Spot, text: str, *, size: float, colour: str, centred: bool, bold: bool
    ) -> None:
        """Write *text* at half its height, from its left end or *centred*."""

    def curve(
        self, spots: Sequence[Spot], *, colour: str, width: float, dashes: Sequence[float]
    ) -> None:
        """Draw a smooth line: from the first spot by cubic curves, each of three more spots."""

    def triangle(self, spots: Sequence[Spot], *, colour: str) -> None:
        """Fill a triangle."""


@dataclass(frozen=True, kw_only=True)
class Looks:
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


@dataclass(frozen=True, kw_only=True)
class Page:
    """The corners of a drawing, inches, and what is written below it."""

    left: float
    right: float
    bottom: float
    top: float
    columns: int
    notes: tuple[str, ...]

    @classmethod
    def of(cls, layout: Layout, title: str, looks: Looks) -> Page:
        """Return the page that *layout* needs with *title*, a key and its notes."""
        notes = [
            f"the PEs of {role} share one box: {looks.why_shared}" for role in layout.collapsed
        ]
        if layout.partitioned:
            notes.append(f"results stay at the PEs of {', '.join(layout.partitioned)}")
        left = layout.left - _PAD - _TURN
        right = max(layout.right + _PAD + _TURN, left + 2 * _PAD + _TITLE_CHARACTER * len(title))
        columns = max(1, int((right - left) / _LEGEND_COLUMN))
        rows = -(-len(layout.ports) // columns) + len(notes)
        return cls(
            left=left,
            right=right,
            bottom=layout.bottom - _PAD - 0.1 - rows * _LEGEND_ROW,
            top=layout.top + _PAD + (_TITLE if title else 0),
            columns=columns,
            notes=tuple(notes),
        )


class SvgPainter:
    """Paints on a page of HTML; a `Painter`."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self.drawing = Drawing((page.right - page.left) * INCH, (page.top - page.bottom) * INCH)

    def _place(self, spot: Spot) -> Spot:
        return (spot[0] - self._page.left) * INCH, (self._page.top - spot[1]) * INCH

    def _written(self, spot: Spot) -> str:
        return " ".join(map(number, self._place(spot)))

    def box(
        self, corner: Spot, size: Spot, *, fill: str, edge: str, width: float, radius: float
    ) -> None:
        """Draw a box."""
        x, y = self._place((corner[0], corner[1] + size[1]))
        self.drawing.rectangle(
            x,
            y,
            size[0] * INCH,
            size[1] * INCH,
            fill=fill,
            stroke=edge,
            line=width,
            radius=radius * INCH,
        )

    def text(
        self, at: Spot, text: str, *, size: float, colour: str, centred: bool, bold: bool
    ) -> None:
        """Write a text."""
        anchor = "middle" if centred else "start"
        self.drawing.text(
            *self._place(at), text, size=size, colour=colour, anchor=anchor, bold=bold
        )

    def curve(
        self, spots: Sequence[Spot], *, colour: str, width: float, dashes: Sequence[float]
    ) -> None:
        """Draw a line."""
        first, *others = map(self._written, spots)
        outline = f"M{first}C{' '.join(others)}"
        self.drawing.path(outline, stroke=colour, width=width, dashes=dashes, opacity=0.85)

    def triangle(self, spots: Sequence[Spot], *, colour: str) -> None:
        """Fill a triangle."""
        self.drawing.path(f"M{'L'.join(map(self._written, spots))}Z", fill=colour)


def plain_looks(graph: ActorGraph) -> Looks:
    """Return the looks of a topology without a run: actors on shared machines name theirs."""
    sites = graph.without_partitions().placement
    shared = len(set(sites.values())) < len(sites)
    return Looks(
        fill=lambda box: "paper",
        note=lambda box: f"on {sites[box.actors[0]]}" if shared and len(box.actors) == 1 else "",
        width=lambda wire: PLAIN_WIDTH,
        why_shared="too many to draw one by one",
    )


def draw_plain(graph: ActorGraph) -> Drawing:
    """Return a drawing of a topology for a page, in the colours of the page's theme."""
    layout, looks = lay_out(graph, boxes_max=_BOXES_MAX), plain_looks(graph)
    page = Page.of(layout, "", looks)
    painter = SvgPainter(page)
    paint_topology(painter, layout, page, "", looks)
    return painter.drawing


def draw_load(
    graph: ActorGraph, utilisation: Mapping[str, float], nbytes: Mapping[Channel, int]
) -> Drawing:
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
    looks = Looks(
        fill=lambda box: _heat(min(1.0, loads[box])),
        note=lambda box: f"{loads[box]:.0%} busy",
        width=lambda wire: max(0.5, scale * carried[wire]) if carried[wire] else 0.0,
        why_shared="its colour is their mean",
    )
    page = Page.of(layout, "", looks)
    painter = SvgPainter(page)
    paint_topology(painter, layout, page, "", looks)
    return painter.drawing


def _heat(share: float) -> str:
    """Return the colour of a load, between the two of `_HEAT` that are nearest."""
    at = share * (len(_HEAT) - 1)
    place = min(int(at), len(_HEAT) - 2)
    cold, hot = (_rgb(_HEAT[place + i]) for i in (0, 1))
    mixed = (round(a + (b - a) * (at - place)) for a, b in zip(cold, hot, strict=True))
    return "#" + "".join(f"{one:02x}" for one in mixed)


def _rgb(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def _points_per_byte(carried: Mapping[Wire, int]) -> float:
    """Return the scale at which no wire, and no side of a box, gets too thick."""
    sides: dict[Point, int] = {}
    for wire, nbytes in carried.items():
        for end in (wire.points[0], wire.points[-1]):
            sides[end] = sides.get(end, 0) + nbytes
    most = max(carried.values(), default=0)
    return min(_WIDEST / most, _FULLEST / max(sides.values())) if most else 0.0


def paint_topology(painter: Painter, layout: Layout, page: Page, title: str, looks: Looks) -> None:
    """Paint all of *layout* on *page*: frames, wires, boxes, a key of the ports, and notes."""
    if title:
        at = (page.left + _PAD, page.top - _TITLE / 2 - 0.02)
        painter.text(at, title, size=12, colour="ink", centred=False, bold=True)
    # The dashes change when the colours are used up.
    lines = {
        port: (SERIES[i % len(SERIES)], _DASHES[i // len(SERIES) % len(_DASHES)])
        for i, port in enumerate(layout.ports)
    }
    for group in layout.groups:
        size = (group.right - group.left, group.top - group.bottom)
        corner = (group.left, group.bottom)
        painter.box(corner, size, fill="panel", edge="line", width=0.6, radius=0.08)
        heading = group.role if group.count == 1 else f"{group.role} × {group.count}"
        at = ((group.left + group.right) / 2, group.top - HEADER / 2 - 0.02)
        painter.text(at, heading, size=8.5, colour="ink", centred=True, bold=True)
    # What carried nothing lies below what did.
    for wire in sorted(layout.wires, key=lambda wire: looks.width(wire) > 0):
        _paint_wire(painter, wire, *lines[wire.port], looks.width(wire))
    for box in layout.boxes:
        _paint_box(painter, box, looks.fill(box), looks.note(box))
    for place, (port, (colour, dashes)) in enumerate(lines.items()):
        x = page.left + _PAD + place % page.columns * _LEGEND_COLUMN
        y = layout.bottom - _PAD - (place // page.columns + 0.5) * _LEGEND_ROW
        sample = [(x + part * 0.1, y) for part in range(4)]
        painter.curve(sample, colour=colour, width=2, dashes=dashes)
        painter.text((x + 0.38, y), port, size=8, colour="ink", centred=False, bold=False)
    for row, text in enumerate(page.notes):
        y = page.bottom + _PAD / 2 + (len(page.notes) - row - 0.5) * _LEGEND_ROW
        at = (page.left + _PAD, y)
        painter.text(at, text, size=8, colour="muted", centred=False, bold=False)


def _paint_box(painter: Painter, box: Box, fill: str, note: str) -> None:
    corner = (box.left, box.y - BOX_HEIGHT / 2)
    painter.box(corner, (box.width, BOX_HEIGHT), fill=fill, edge="muted", width=0.8, radius=0.06)
    # On a colour of its own a box has one text colour in both themes; on paper the theme decides.
    ink = "ink" if fill in LIGHT else _readable_on(fill)
    at = (box.x, box.y + (0.075 if note else 0))
    painter.text(at, box.label, size=8.5, colour=ink, centred=True, bold=False)
    if note:
        painter.text((box.x, box.y - 0.085), note, size=7, colour=ink, centred=True, bold=False)


def _readable_on(fill: str) -> str:
    red, green, blue = (part / 255 for part in _rgb(fill))
    return "#ffffff" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.5 else "#15181d"


def _paint_wire(
    painter: Painter, wire: Wire, colour: str, dashes: Sequence[float], width: float
) -> None:
    unused = width == 0
    head = _HEAD * max(1.0, sqrt(width / 1.5)) if wire.arrives and not unused else 0.0
    x, y, way = wire.points[-1]
    painter.curve(
        _curve([*wire.points[:-1], (x - way * head * 0.8, y, way)]),
        colour="line" if unused else colour,
        width=0.6 if unused else width,
        dashes=dashes,
    )
    if head:
        tip = [(x, y), (x - way * head, y + head / 2), (x - way * head, y - head / 2)]
        painter.triangle(tip, colour=colour)


def _curve(points: list[Point]) -> list[Spot]:
    """Return a smooth line that passes every point horizontally, in its direction."""
    spots = [points[0][:2]]
    for (x0, y0, way0), (x1, y1, way1) in pairwise(points):
        reach = abs(x1 - x0) / 2 if way0 == way1 else _TURN
        spots += [(x0 + way0 * reach, y0), (x1 - way1 * reach, y1), (x1, y1)]
    return spots
