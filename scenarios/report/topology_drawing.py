"""Draws a topology as SVG: a box a PE, a wire a channel; of a run, with the load of the run on it.

Lengths of a layout are inches, y upwards; those of the drawing are points, y downwards. Colours are
names of `scenarios.report.picture`, which follow a page's theme, or ``#`` codes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from math import sqrt
from pathlib import Path

import numpy as np

from scenarios.formatting import format_bytes
from scenarios.report.picture import LIGHT, SERIES, write_svg
from scenarios.report.topology_layout import (
    BOX_HEIGHT,
    HEADER,
    Box,
    Channel,
    Point,
    TopologyLayout,
    Wire,
    lay_out,
)
from topologies.actor_graph import ActorGraph

_HEAT = ("#dbe7f5", "#a9cbe8", "#f3d9a4", "#ee9a5e", "#bf3039")
"""Idle is cold, busy is hot; light enough at both ends for dark text or white."""
_BOXES_MAX = 24
"""A run's drawing is one of several figures on a page, so it must not be as tall as a file's."""

_INCH = 72.0
_PAD = 0.15
_TITLE = 0.42
_TITLE_CHARACTER = 0.115
_LEGEND_ROW = 0.24
_LEGEND_COLUMN = 1.6
_PLAIN_WIDTH = 1.1
"""Points: of a wire that carries no run's load."""
_WIDEST = 9.0
_FULLEST = 30.0
"""Points: all wires at one side of a box together, so that a fan does not hide what it feeds."""
_HEAD = 0.09
_TURN = 0.4
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.5, 1.5))
_FONTS = "system-ui, 'Segoe UI', Helvetica, Arial, 'Liberation Sans', sans-serif"

Spot = tuple[float, float]
"""x and y of a layout."""


@dataclass(frozen=True, kw_only=True)
class _Looks:
    """How boxes and wires look in one drawing.

    Attributes
    ----------
    fill, note
        Colour of a box, and what is written below it.
    width, carried
        Of a wire, points, 0 for one that carried nothing; and what it carried, in words.
    why_shared
        Why the PEs of an operator share one box.
    """

    fill: Callable[[Box], str]
    note: Callable[[Box], str]
    width: Callable[[Wire], float]
    carried: Callable[[Wire], str] = lambda wire: ""
    why_shared: str


def draw_load(
    graph: ActorGraph, utilisation: Mapping[str, float], nbytes: Mapping[Channel, int]
) -> str:
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
        fill=lambda box: _heat(min(1.0, loads[box])),
        note=lambda box: f"{loads[box]:.0%} busy",
        width=lambda wire: max(0.5, scale * carried[wire]) if carried[wire] else 0.0,
        carried=lambda wire: format_bytes(carried[wire]),
        why_shared="its colour is their mean",
    )
    return _Drawing(layout, "", looks).markup("Graph of the topology with its traffic and load")


def draw_topology(graph: ActorGraph, title: str, path: Path) -> None:
    """Draw *graph* into *path*: operators left to right, a box a PE, a colour a port.

    Raises
    ------
    ConfigError
        The suffix of *path* is none that figures have.
    OutputError
        The file cannot be written.
    """
    write_svg(_Drawing(lay_out(graph), title, _plain_looks(graph)).markup(title), path)


def draw_plain(graph: ActorGraph, description: str) -> str:
    """Return a drawing of a topology for a page, in the colours of the page's theme."""
    layout = lay_out(graph, boxes_max=_BOXES_MAX)
    return _Drawing(layout, "", _plain_looks(graph)).markup(description)


def _plain_looks(graph: ActorGraph) -> _Looks:
    """Return the looks of a topology without a run: actors on shared machines name theirs."""
    sites = graph.without_partitions().placement
    shared = len(set(sites.values())) < len(sites)
    return _Looks(
        fill=lambda box: "paper",
        note=lambda box: f"on {sites[box.actors[0]]}" if shared and len(box.actors) == 1 else "",
        width=lambda wire: _PLAIN_WIDTH,
        why_shared="too many to draw one by one",
    )


def _heat(share: float) -> str:
    """Return the colour of a load, between the two of `_HEAT` that are nearest."""
    loads = np.linspace(0, 1, len(_HEAT))
    channels = zip(*map(_rgb, _HEAT), strict=True)
    return "#" + "".join(f"{round(np.interp(share, loads, one)):02x}" for one in channels)


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


class _Drawing:
    """All of a layout as SVG: frames, wires, boxes, a key of the ports, and notes."""

    def __init__(self, layout: TopologyLayout, title: str, looks: _Looks) -> None:
        self._layout, self._looks = layout, looks
        self._elements: list[str] = []
        notes = [
            f"the PEs of {role} share one box: {looks.why_shared}" for role in layout.collapsed
        ]
        if layout.partitioned:
            notes.append(f"results stay at the PEs of {', '.join(layout.partitioned)}")
        left = layout.left - _PAD - _TURN
        right = max(layout.right + _PAD + _TURN, left + 2 * _PAD + _TITLE_CHARACTER * len(title))
        columns = max(1, int((right - left) / _LEGEND_COLUMN))
        rows = -(-len(layout.ports) // columns)
        key = layout.bottom - _PAD
        bottom = key - (rows + len(notes)) * _LEGEND_ROW - 0.1
        self._left, self._top = left, layout.top + _PAD + (_TITLE if title else 0)
        self._size = (right - left) * _INCH, (self._top - bottom) * _INCH

        if title:
            at = (left + _PAD, self._top - _TITLE / 2 - 0.02)
            self._text(at, title, size=12, centred=False, bold=True)
        # The dashes change when the colours are used up.
        lines = {
            port: (SERIES[i % len(SERIES)], _DASHES[i // len(SERIES) % len(_DASHES)])
            for i, port in enumerate(layout.ports)
        }
        self._groups()
        # What carried nothing lies below what did.
        for wire in sorted(layout.wires, key=lambda wire: looks.width(wire) > 0):
            self._wire(wire, *lines[wire.port])
        for box in layout.boxes:
            self._box(box, looks.fill(box), looks.note(box))
        for place, (port, (colour, dashes)) in enumerate(lines.items()):
            x = left + _PAD + place % columns * _LEGEND_COLUMN
            y = key - (place // columns + 0.5) * _LEGEND_ROW
            self._curve([(x + part * 0.1, y) for part in range(4)], colour, 2, dashes)
            self._text((x + 0.38, y), port, size=8, centred=False)
        for row, text in enumerate(notes):
            y = key - (rows + row + 0.5) * _LEGEND_ROW
            self._text((left + _PAD, y), text, size=8, colour="muted", centred=False)

    def markup(self, description: str) -> str:
        """Return the ``<svg>`` element; *description* is for those who do not see it."""
        width, height = map(_number, self._size)
        return "\n".join(
            [
                f'<svg class="topology" role="img" aria-label="{escape(description)}" '
                f'width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
                'xmlns="http://www.w3.org/2000/svg">',
                *self._elements,
                "</svg>",
            ]
        )

    def _groups(self) -> None:
        for group in self._layout.groups:
            corner = (group.left, group.top)
            size = (group.right - group.left, group.top - group.bottom)
            self._rectangle(corner, size, fill="panel", edge="line", width=0.6, radius=0.08)
            heading = group.role if group.count == 1 else f"{group.role} × {group.count}"
            at = ((group.left + group.right) / 2, group.top - HEADER / 2 - 0.02)
            self._text(at, heading, bold=True)

    def _box(self, box: Box, fill: str, note: str) -> None:
        corner, size = (box.left, box.y + BOX_HEIGHT / 2), (box.width, BOX_HEIGHT)
        title = ", ".join(part for part in (box.label, note) if part)
        self._rectangle(corner, size, fill=fill, edge="muted", width=0.8, radius=0.06, title=title)
        # On a colour of its own a box has one text colour in both themes; on paper the theme does.
        ink = "ink" if fill in LIGHT else _readable_on(fill)
        self._text((box.x, box.y + (0.075 if note else 0)), box.label, colour=ink)
        if note:
            self._text((box.x, box.y - 0.085), note, size=7, colour=ink)

    def _wire(self, wire: Wire, colour: str, dashes: Sequence[float]) -> None:
        width = self._looks.width(wire)
        unused = width == 0
        head = _HEAD * max(1.0, sqrt(width / 1.5)) if wire.arrives and not unused else 0.0
        x, y, way = wire.points[-1]
        senders, receivers = ({channel[end] for channel in wire.channels} for end in (0, 1))
        ends = (
            next(iter(one)) if len(one) == 1 else f"{len(one)} PEs" for one in (senders, receivers)
        )
        title = f"{' to '.join(ends)}, {wire.port} {self._looks.carried(wire)}"
        self._curve(
            _curve([*wire.points[:-1], (x - way * head * 0.8, y, way)]),
            "line" if unused else colour,
            0.6 if unused else width,
            dashes,
            title,
        )
        if head:
            tip = [(x, y), (x - way * head, y + head / 2), (x - way * head, y - head / 2)]
            outline = "L".join(map(self._at, tip))
            self._elements.append(f'<path d="M{outline}Z" fill="{_paint(colour)}"/>')

    def _at(self, spot: Spot) -> str:
        return f"{_number((spot[0] - self._left) * _INCH)} {_number((self._top - spot[1]) * _INCH)}"

    def _rectangle(
        self,
        corner: Spot,
        size: Spot,
        *,
        fill: str,
        edge: str,
        width: float,
        radius: float,
        title: str = "",
    ) -> None:
        """Draw a box with round corners, from its upper left one."""
        x, y = self._at(corner).split()
        wide, high, round_ = (_number(length * _INCH) for length in (*size, radius))
        self._elements.append(
            f'<rect x="{x}" y="{y}" width="{wide}" height="{high}" rx="{round_}" '
            f'fill="{_paint(fill)}" stroke="{_paint(edge)}" stroke-width="{_number(width)}">'
            f"<title>{escape(title)}</title></rect>"
        )

    def _text(
        self,
        at: Spot,
        text: str,
        *,
        size: float = 8.5,
        colour: str = "ink",
        centred: bool = True,
        bold: bool = False,
    ) -> None:
        """Write *text* at half its height, from its left end or *centred*."""
        x, y = self._at(at).split()
        anchor = ' text-anchor="middle"' if centred else ""
        weight = ' font-weight="bold"' if bold else ""
        self._elements.append(
            f'<text x="{x}" y="{y}" dy="0.35em" font-family="{_FONTS}" '
            f'font-size="{_number(size)}" fill="{_paint(colour)}"{anchor}{weight}>'
            f"{escape(text)}</text>"
        )

    def _curve(
        self,
        spots: Sequence[Spot],
        colour: str,
        width: float,
        dashes: Sequence[float],
        title: str = "",
    ) -> None:
        """Draw a smooth line: from the first spot by cubic curves, each of three more spots."""
        first, *others = map(self._at, spots)
        dashed = ",".join(_number(one * width) for one in dashes)
        dashed = f' stroke-dasharray="{dashed}"' if dashed else ""
        self._elements.append(
            f'<path d="M{first}C{" ".join(others)}" fill="none" opacity="0.85" '
            f'stroke="{_paint(colour)}" stroke-width="{_number(width)}"{dashed}>'
            f"<title>{escape(title.strip())}</title></path>"
        )


def _number(value: float) -> str:
    """Return a length, to a hundredth of a point."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _paint(colour: str) -> str:
    return colour if colour.startswith("#") else f"var(--{colour})"


def _readable_on(fill: str) -> str:
    red, green, blue = (part / 255 for part in _rgb(fill))
    return "#ffffff" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.5 else "#15181d"


def _curve(points: list[Point]) -> list[Spot]:
    """Return a smooth line that passes every point horizontally, in its direction."""
    spots = [points[0][:2]]
    for (x0, y0, way0), (x1, y1, way1) in pairwise(points):
        out = abs(x1 - x0) / 2 if way0 == way1 else _TURN
        spots += [(x0 + way0 * out, y0), (x1 - way1 * out, y1), (x1, y1)]
    return spots
