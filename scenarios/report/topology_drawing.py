"""Draws a topology as SVG: a box a PE, a wire a channel; of a run, with the load of the run on it.

An operator (a role) goes one column right of the last one that feeds it, its PEs below each other.
A partition of the results is a part of its PE and has no box. A wire that skips columns runs
through a lane left free in each of them; one that runs back, in a cycle, goes round below. Where
many PEs send to many, their wires meet on the way, so that n + m of them are drawn and not n times
m. Lengths are points, y grows downwards. Colours are names of `scenarios.report.picture`, which
follow a page's theme, or ``#`` codes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import TypeVar

import networkx as nx
import numpy as np

from scenarios.formatting import format_bytes
from scenarios.report.picture import LIGHT, SERIES, format_points, render, write_svg
from topologies.actor_graph import ActorGraph

BOXES_MAX = 60
"""More boxes than this cannot be read; the PEs of the largest operators then share one."""
_BOXES_MAX_ON_PAGES = 24
"""A page has other figures too, so that one must not be as tall as a file's."""
DIRECT_WIRES_MAX = 30
"""Wires of one port drawn one by one; more meet on the way."""
BOX_HEIGHT = 26.0
_HEADER = 19.0
_ROW = 33.0
_MARGIN = 9.0
_SPACE = 22.0
_FOOT = 6.0
_CHARACTER = 5.6
_LANE = 16.0
_GAP = 72.0
_GAP_PER_ROW = 1.5
_TURN = 29.0
_SWEEPS = 4

_PAD = 11.0
_TITLE = 30.0
_TITLE_CHARACTER = 8.3
_KEY_ROW = 17.0
_KEY_COLUMN = 115.0
_PLAIN_WIDTH = 1.1
"""Of a wire that carries no run's load."""
_WIDEST = 9.0
_FULLEST = 30.0
"""All wires at one side of a box together, so that a fan does not hide what it feeds."""
_HEAD = 6.5
_DASHES: tuple[tuple[float, ...], ...] = ((), (5, 2), (1.5, 1.5))
_HEAT = ("#dbe7f5", "#a9cbe8", "#f3d9a4", "#ee9a5e", "#bf3039")
"""Idle is cold, busy is hot; light enough at both ends for dark text or white."""

Channel = tuple[str, str, str]
"""Sender, receiver and port."""
Point = tuple[float, float, int]
"""x, y, and the direction in which a wire passes: 1 to the right, -1 to the left."""
_Bundle = tuple[str, str, str]
"""All channels of one port between two operators: sending role, receiving role, port."""
_Key = tuple[str, ...]
"""What takes room in a column: an operator as (role,), or a bundle's lane."""
_Common = TypeVar("_Common")


@dataclass(frozen=True, kw_only=True)
class Box:
    """One PE, or all PEs of an operator; x and y are its centre."""

    label: str
    role: str
    actors: tuple[str, ...]
    x: float
    y: float
    width: float

    @property
    def left(self) -> float:
        """Where wires come in."""
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        """Where wires go out."""
        return self.x + self.width / 2


@dataclass(frozen=True)
class Group:
    """The frame around an operator's PEs."""

    role: str
    count: int
    left: float
    right: float
    top: float
    bottom: float


@dataclass(frozen=True, kw_only=True)
class Wire:
    """A line through *points*, for one or more channels of one port.

    *arrives* is True of one that ends at a box, with an arrowhead.
    """

    port: str
    channels: tuple[Channel, ...]
    points: tuple[Point, ...]
    arrives: bool


@dataclass(frozen=True, kw_only=True)
class TopologyLayout:
    """Everything there is to draw.

    *collapsed* are the operators whose PEs share one box, *partitioned* those at whose PEs results
    stay.
    """

    boxes: tuple[Box, ...]
    groups: tuple[Group, ...]
    wires: tuple[Wire, ...]
    collapsed: tuple[str, ...]
    partitioned: tuple[str, ...]


@dataclass
class _Slot:
    """Room in a column; *y* is its middle."""

    height: float
    y: float = 0.0

    @property
    def top(self) -> float:
        return self.y - self.height / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height / 2


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
    layout = lay_out(graph, boxes_max=_BOXES_MAX_ON_PAGES)
    carried = {wire: sum(nbytes.get(c, 0) for c in wire.channels) for wire in layout.wires}
    scale = _points_per_byte(carried)
    loads = {
        box: float(np.mean([utilisation.get(actor, 0.0) for actor in box.actors]))
        for box in layout.boxes
    }
    return _draw(
        layout,
        "Graph of the topology with its traffic and load",
        fills={box: _heat(min(1.0, load)) for box, load in loads.items()},
        notes={box: f"{load:.0%} busy" for box, load in loads.items()},
        widths={wire: max(0.5, scale * n) if n else 0.0 for wire, n in carried.items()},
        carried={wire: format_bytes(n) for wire, n in carried.items()},
        why_shared="its colour is their mean",
    )


def draw_topology(graph: ActorGraph, title: str, path: Path) -> None:
    """Draw *graph* into *path*: operators left to right, a box a PE, a colour a port.

    Raises
    ------
    ConfigError
        The suffix of *path* is none that figures have.
    OutputError
        The file cannot be written.
    """
    write_svg(draw_plain(graph, title, title=title, boxes_max=BOXES_MAX), path)


def draw_plain(
    graph: ActorGraph, description: str, *, title: str = "", boxes_max: int = _BOXES_MAX_ON_PAGES
) -> str:
    """Return a drawing of a topology without a run, in the colours of a page's theme.

    Actors on shared machines name theirs.
    """
    layout = lay_out(graph, boxes_max=boxes_max)
    sites = graph.without_partitions().placement
    shared = len(set(sites.values())) < len(sites)
    alone = [box for box in layout.boxes if shared and len(box.actors) == 1]
    return _draw(
        layout,
        description,
        title=title,
        fills=dict.fromkeys(layout.boxes, "paper"),
        notes={box: f"on {sites[box.actors[0]]}" for box in alone},
        widths=dict.fromkeys(layout.wires, _PLAIN_WIDTH),
        carried={},
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


def _draw(
    layout: TopologyLayout,
    description: str,
    *,
    title: str = "",
    fills: Mapping[Box, str],
    notes: Mapping[Box, str],
    widths: Mapping[Wire, float],
    carried: Mapping[Wire, str],
    why_shared: str,
) -> str:
    """Return the ``<svg>`` element; *description* is for those who do not see it.

    *fills* are colours of boxes, and *notes* what is written below their names. *widths* are of
    wires, 0 where one carried nothing, and *carried* what they did carry, in words. *why_shared*
    says why the PEs of an operator share one box.
    """
    remarks = [f"the PEs of {role} share one box: {why_shared}" for role in layout.collapsed]
    if layout.partitioned:
        remarks.append(f"results stay at the PEs of {', '.join(layout.partitioned)}")
    ys = [y for wire in layout.wires for _, y, _ in wire.points]
    left = min(group.left for group in layout.groups) - _PAD - _TURN
    right = max(group.right for group in layout.groups) + _PAD + _TURN
    right = max(right, left + 2 * _PAD + _TITLE_CHARACTER * len(title))
    top = min([group.top for group in layout.groups] + ys) - _PAD - (_TITLE if title else 0)
    key = max([group.bottom for group in layout.groups] + ys) + _PAD
    # The dashes change when the colours are used up.
    lines = {
        port: (SERIES[i % len(SERIES)], _DASHES[i // len(SERIES) % len(_DASHES)])
        for i, port in enumerate(dict.fromkeys(wire.port for wire in layout.wires))
    }
    columns = max(1, int((right - left) / _KEY_COLUMN))
    rows = -(-len(lines) // columns)
    return render(
        "topology.svg",
        left=left,
        top=top,
        width=right - left,
        height=key + (rows + len(remarks)) * _KEY_ROW + 7 - top,
        description=description,
        title=title,
        title_at=(left + _PAD, top + _TITLE / 2 + 1.5),
        groups=layout.groups,
        header=_HEADER,
        # What carried nothing lies below what did.
        wires=[
            _drawn_wire(wire, widths[wire], carried.get(wire, ""), *lines[wire.port])
            for wire in sorted(layout.wires, key=lambda wire: widths[wire] > 0)
        ],
        boxes=[(box, fills[box], notes.get(box, ""), _ink_on(fills[box])) for box in layout.boxes],
        box_height=BOX_HEIGHT,
        key=[
            (
                left + _PAD + place % columns * _KEY_COLUMN,
                key + (place // columns + 0.5) * _KEY_ROW,
                port,
                colour,
                _dashed(dashes, 2),
            )
            for place, (port, (colour, dashes)) in enumerate(lines.items())
        ],
        remarks=[
            (left + _PAD, key + (row + 0.5) * _KEY_ROW, remark)
            for row, remark in enumerate(remarks, rows)
        ],
    )


def _drawn_wire(
    wire: Wire, width: float, carried: str, colour: str, dashes: Iterable[float]
) -> dict[str, object]:
    """Return what the template draws of a wire: a smooth line, and its head where it has one."""
    head = _HEAD * max(1.0, sqrt(width / 1.5)) if wire.arrives and width else 0.0
    x, y, way = wire.points[-1]
    senders, receivers = ({channel[end] for channel in wire.channels} for end in (0, 1))
    ends = (next(iter(one)) if len(one) == 1 else f"{len(one)} PEs" for one in (senders, receivers))
    tip = [(x, y), (x - way * head, y - head / 2), (x - way * head, y + head / 2)]
    return {
        "title": f"{' to '.join(ends)}, {wire.port} {carried}".strip(),
        "path": _path([*wire.points[:-1], (x - way * head * 0.8, y, way)]),
        "colour": colour if width else "line",
        "width": width or 0.6,
        "dashes": _dashed(dashes, width or 0.6),
        "head": " ".join(f"{format_points(x)},{format_points(y)}" for x, y in tip) if head else "",
    }


def _path(points: list[Point]) -> str:
    """Return a smooth line that passes every point horizontally, in its direction."""
    (x, y, _) = points[0]
    path = f"M{format_points(x)} {format_points(y)}C"
    for (x0, y0, way0), (x1, y1, way1) in pairwise(points):
        out = abs(x1 - x0) / 2 if way0 == way1 else _TURN
        spots = (x0 + way0 * out, y0), (x1 - way1 * out, y1), (x1, y1)
        path += " ".join(f" {format_points(x)} {format_points(y)}" for x, y in spots)
    return path


def _dashed(dashes: Iterable[float], width: float) -> str:
    return ",".join(format_points(one * width) for one in dashes)


def _ink_on(fill: str) -> str:
    """Return the colour of text: the theme's on paper, on a colour of its own what is readable."""
    if fill in LIGHT:
        return "ink"
    red, green, blue = (part / 255 for part in _rgb(fill))
    return "#ffffff" if 0.3 * red + 0.59 * green + 0.11 * blue < 0.5 else "#15181d"


def lay_out(graph: ActorGraph, *, boxes_max: int = BOXES_MAX) -> TopologyLayout:
    """Return where everything goes; deterministic, for any graph with at least one actor."""
    role_of = graph.roles
    partitioned = dict.fromkeys(role_of[owner] for owner in graph.partitions.values())
    graph = graph.without_partitions()
    pes = graph.operators
    collapsed = _operators_to_collapse(pes, boxes_max)
    depth = operator_depths(graph)
    bundles: dict[_Bundle, list[Channel]] = _grouped(
        graph.edges(data="port"), lambda one: (role_of[one[0]], role_of[one[1]], one[2])
    )
    rows = {role: 1 if role in collapsed else len(names) for role, names in pes.items()}
    columns = _fill_columns(rows, depth, bundles)
    boxes, groups = _place_boxes(pes, collapsed, depth, columns)
    edges = {depth[group.role]: (group.left, group.right) for group in groups}
    return TopologyLayout(
        boxes=tuple(dict.fromkeys(boxes.values())),
        groups=tuple(groups),
        wires=tuple(_Wiring(bundles, depth, columns, edges, boxes).wires()),
        collapsed=tuple(collapsed),
        partitioned=tuple(partitioned),
    )


def operator_depths(graph: ActorGraph) -> dict[str, int]:
    """Return each operator's column: the most operators passed on a way to it, from 0 on.

    A cycle is cut where it comes back to an operator that was met on the way.
    """
    roles = nx.DiGraph()
    roles.add_nodes_from(graph.operators)
    role_of = graph.roles
    roles.add_edges_from((role_of[a], role_of[b]) for a, b in graph.edges())
    roles.remove_edges_from([(role, role) for role in roles])
    entries = [role for role, degree in roles.in_degree() if not degree]
    while not nx.is_directed_acyclic_graph(roles):
        *_, closing = nx.find_cycle(roles, [*entries, *roles])
        roles.remove_edge(*closing)
    generations = enumerate(nx.topological_generations(roles))
    return {role: column for column, generation in generations for role in generation}


def _operators_to_collapse(pes: Mapping[str, list[str]], boxes_max: int) -> list[str]:
    """Return the operators, largest first, that must share a box for *boxes_max* to be enough."""
    collapsed: list[str] = []
    for role in sorted(pes, key=lambda role: -len(pes[role])):
        shown = sum(1 if r in collapsed else len(names) for r, names in pes.items())
        if shown <= boxes_max or len(pes[role]) == 1:
            break
        collapsed.append(role)
    return collapsed


def _grouped(
    channels: Iterable[Channel], common: Callable[[Channel], _Common]
) -> dict[_Common, list[Channel]]:
    """Return channels by what they have in *common*."""
    groups: dict[_Common, list[Channel]] = {}
    for channel in channels:
        groups.setdefault(common(channel), []).append(channel)
    return groups


def _fill_columns(
    rows: Mapping[str, int], depth: Mapping[str, int], bundles: Iterable[_Bundle]
) -> list[dict[_Key, _Slot]]:
    """Return per column its operators, of so many *rows*, and its lanes, from top to bottom.

    Columns are sorted against their neighbours, back and forth, for wires to cross little.
    """
    columns: list[dict[_Key, _Slot]] = [{} for _ in range(max(depth.values()) + 1)]
    links = nx.MultiGraph()
    for role, count in rows.items():
        columns[depth[role]][role,] = _Slot(count * _ROW + _HEADER + _FOOT)
        links.add_node((role,))
    for bundle in bundles:
        sender, receiver, _ = bundle
        lanes = columns[depth[sender] + 1 : depth[receiver]]
        for slots in lanes:
            slots[bundle] = _Slot(_LANE)
        if depth[sender] < depth[receiver]:
            nx.add_path(links, [(sender,), *[bundle] * len(lanes), (receiver,)])
    for slots in columns:
        _stack(slots)
    order = range(len(columns))
    for beside, here in [*pairwise(order), *pairwise(reversed(order))] * _SWEEPS:
        columns[here] = _sorted(columns[here], columns[beside], links)
    return columns


def _sorted(
    slots: dict[_Key, _Slot], beside: dict[_Key, _Slot], links: nx.MultiGraph
) -> dict[_Key, _Slot]:
    """Return a column sorted by the mean height of what each slot is linked to *beside* it."""
    heights = {}
    for key, slot in slots.items():
        ends = [beside[other].y for _, other in links.edges(key) if other in beside]
        heights[key] = sum(ends) / len(ends) if ends else slot.y
    # Lanes go outside operators of equal height: a wire that passes should not cut a fan in two.
    order = sorted(slots, key=lambda key: (heights[key], -len(key)))
    return _stack({key: slots[key] for key in order})


def _stack(slots: dict[_Key, _Slot]) -> dict[_Key, _Slot]:
    top = -(sum(slot.height for slot in slots.values()) + _SPACE * (len(slots) - 1)) / 2
    for slot in slots.values():
        slot.y = top + slot.height / 2
        top += slot.height + _SPACE
    return slots


def _place_boxes(
    pes: Mapping[str, list[str]],
    collapsed: list[str],
    depth: Mapping[str, int],
    columns: list[dict[_Key, _Slot]],
) -> tuple[dict[str, Box], list[Group]]:
    """Return each actor's box, and the frames around operators."""
    boxes: dict[str, Box] = {}
    groups = []
    left = 0.0
    for column, slots in enumerate(columns):
        labels = {
            role: {f"{len(names)} PEs": names} if role in collapsed else {pe: [pe] for pe in names}
            for role, names in pes.items()
            if depth[role] == column
        }
        headers = [f"{role} x {len(pes[role])}" for role in labels]
        longest = max(len(text) for texts in [headers, *labels.values()] for text in texts)
        width = max(58.0, longest * _CHARACTER + 12)
        right = left + width + 2 * _MARGIN
        for role, shown in labels.items():
            slot = slots[role,]
            for row, (label, names) in enumerate(shown.items()):
                y = slot.top + _HEADER + (row + 0.5) * _ROW
                x = left + _MARGIN + width / 2
                box = Box(label=label, role=role, actors=tuple(names), x=x, y=y, width=width)
                boxes |= dict.fromkeys(names, box)
            groups.append(Group(role, len(pes[role]), left, right, slot.top, slot.bottom))
        tallest = max(
            slot.height for near in columns[column : column + 2] for slot in near.values()
        )
        left = right + _GAP + _GAP_PER_ROW * tallest / _ROW
    return boxes, groups


@dataclass(frozen=True)
class _Wiring:
    """How wires run: straight where few, else by lanes, a meeting point, or round below.

    *edges* are the left and right ends of columns.
    """

    bundles: Mapping[_Bundle, list[Channel]]
    depth: Mapping[str, int]
    columns: list[dict[_Key, _Slot]]
    edges: Mapping[int, tuple[float, float]]
    boxes: Mapping[str, Box]

    def wires(self) -> Iterator[Wire]:
        """Yield the wires of all bundles."""
        middles = self._points_between()
        leave, enter = self._attachments(middles, 0), self._attachments(middles, 1)
        for bundle, channels in self.bundles.items():
            if bundle[0] == bundle[1]:
                yield from self._beside(channels)
            else:
                yield from self._across(channels, leave[bundle], middles[bundle], enter[bundle])

    def _points_between(self) -> dict[_Bundle, list[Point]]:
        """Return the points that all wires of a bundle pass; none where they go straight."""
        floor = max(slot.bottom for slots in self.columns for slot in slots.values())
        middles: dict[_Bundle, list[Point]] = {}
        meeting: dict[int, list[tuple[float, _Bundle]]] = {}
        for bundle, channels in self.bundles.items():
            first, last = self.depth[bundle[0]], self.depth[bundle[1]]
            middles[bundle] = []
            if last < first:
                floor += _SPACE
                start, end = self.edges[first][1] + _SPACE, self.edges[last][0] - _SPACE
                middles[bundle] = [(start, floor, -1), (end, floor, -1)]
            elif last > first + 1:
                for column in range(first + 1, last):
                    y = self.columns[column][bundle].y
                    middles[bundle] += [(x, y, 1) for x in self.edges[column]]
            elif last > first and len(_grouped(channels, self._ends)) > DIRECT_WIRES_MAX:
                wanted = (self._mean_y(bundle, 0) + self._mean_y(bundle, 1)) / 2
                meeting.setdefault(first, []).append((wanted, bundle))
        for column, places in meeting.items():
            left, right = self.edges[column][1], self.edges[column + 1][0]
            # Two that met at one point could not be distinguished.
            y = float("-inf")
            for wanted, bundle in sorted(places):
                y = max(wanted, y + _SPACE)
                middles[bundle] = [(left + 0.55 * (right - left), y, 1)]
        return middles

    def _ends(self, channel: Channel) -> tuple[Box, Box]:
        return self.boxes[channel[0]], self.boxes[channel[1]]

    def _mean_y(self, bundle: _Bundle, end: int) -> float:
        ys = {self.boxes[channel[end]].y for channel in self.bundles[bundle]}
        return sum(ys) / len(ys)

    def _attachments(
        self, middles: Mapping[_Bundle, list[Point]], end: int
    ) -> dict[_Bundle, float]:
        """Return how far from the middle of a box each bundle's wires attach, for few crossings.

        *end* is 0 for the sending side and 1 for the receiving one.
        """
        sides: dict[str, list[tuple[float, _Bundle]]] = {}
        for bundle, middle in middles.items():
            towards = middle[-end][1] if middle else self._mean_y(bundle, 1 - end)
            sides.setdefault(bundle[end], []).append((towards, bundle))
        offsets = {}
        for ends in sides.values():
            step = 0.6 * BOX_HEIGHT / len(ends)
            for place, (_, bundle) in enumerate(sorted(ends)):
                offsets[bundle] = (place - (len(ends) - 1) / 2) * step
        return offsets

    def _beside(self, channels: list[Channel]) -> Iterator[Wire]:
        """Yield wires among the PEs of one operator: out on the right and in again there."""
        for (a, b), own in _grouped(channels, self._ends).items():
            step = -0.2 * BOX_HEIGHT if a.y >= b.y else 0.2 * BOX_HEIGHT
            yield _wire(own, (a.right, a.y + step, 1), (b.right, b.y - step, -1), arrives=True)

    def _across(
        self, channels: list[Channel], out: float, middle: list[Point], in_: float
    ) -> Iterator[Wire]:
        """Yield a bundle's wires: from box to box, or by way of the *middle*, if there are many.

        *out* and *in_* are their attachments.
        """
        by_ends = _grouped(channels, self._ends)
        if not middle or len(by_ends) == 1:
            for (a, b), own in by_ends.items():
                start, end = (a.right, a.y + out, 1), (b.left, b.y + in_, 1)
                yield _wire(own, start, *middle, end, arrives=True)
            return
        for a, own in _grouped(channels, lambda channel: self.boxes[channel[0]]).items():
            yield _wire(own, (a.right, a.y + out, 1), middle[0], arrives=False)
        if len(middle) > 1:
            yield _wire(channels, *middle, arrives=False)
        for b, own in _grouped(channels, lambda channel: self.boxes[channel[1]]).items():
            yield _wire(own, middle[-1], (b.left, b.y + in_, 1), arrives=True)


def _wire(channels: list[Channel], *points: Point, arrives: bool) -> Wire:
    return Wire(port=channels[0][2], channels=tuple(channels), points=points, arrives=arrives)
