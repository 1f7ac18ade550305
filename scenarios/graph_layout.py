"""Where the boxes and wires of a topology go on paper: operators in columns, left to right.

An operator (a role) stands one column right of the last one that feeds it, and its PEs stand below
each other. What skips columns runs through a lane kept free in each of them; what runs back, in a
cycle, goes round below. Where many PEs talk to many, their wires meet on the way, so that n + m of
them are drawn and not n times m. Lengths are inches, y grows upwards.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import networkx as nx

from topologies.topology import ActorGraph

BOXES_MAX = 60
"""More boxes than this cannot be read; the PEs of the largest operators then share one."""
DIRECT_WIRES_MAX = 30
"""Wires of one port drawn one by one; more meet on the way."""

BOX_HEIGHT = 0.36
ROW = 0.46
HEADER = 0.26
MARGIN = 0.12
_FOOT = 0.08
_CHARACTER = 0.078
_SPACE = 0.3
_LANE = 0.22
_GAP = 1.0
_GAP_PER_ROW = 0.02
_SWEEPS = 4

Channel = tuple[str, str, str]
"""Sender, receiver and port."""
Point = tuple[float, float, int]
"""x, y, and the direction in which a wire passes: 1 to the right, -1 to the left."""


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


@dataclass(frozen=True, kw_only=True)
class Group:
    """The frame around an operator's PEs."""

    role: str
    count: int
    left: float
    right: float
    bottom: float
    top: float


@dataclass(frozen=True, kw_only=True)
class Wire:
    """A line through *points*, which stands for one or more channels of one port."""

    port: str
    channels: tuple[Channel, ...]
    points: tuple[Point, ...]
    arrives: bool
    """Whether it ends at a box, with an arrowhead."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Everything there is to draw, and the corners of it all."""

    boxes: tuple[Box, ...]
    groups: tuple[Group, ...]
    wires: tuple[Wire, ...]
    ports: tuple[str, ...]
    left: float
    right: float
    bottom: float
    top: float
    collapsed: tuple[str, ...]
    """Operators whose PEs share one box."""


@dataclass(kw_only=True)
class _Item:
    """What takes room in a column: an operator, or a lane for wires that pass through."""

    key: tuple
    height: float
    y: float = 0.0
    order: float = 0.0


@dataclass(kw_only=True)
class _Bundle:
    """All channels of one port between two operators."""

    sender: str
    receiver: str
    port: str
    channels: list[Channel] = field(default_factory=list)


def lay_out(graph: ActorGraph, *, boxes_max: int = BOXES_MAX) -> Layout:
    """Return where everything goes; deterministic, for any graph with at least one actor."""
    pes: dict[str, list[str]] = {}
    for name, role in graph.nodes(data="role"):
        pes.setdefault(role, []).append(name)
    collapsed = _to_collapse(pes, boxes_max)
    depth = operator_depths(graph)
    bundles = _bundles(graph)
    items = _columns(pes, collapsed, depth, bundles)
    boxes, groups = _place_boxes(pes, collapsed, depth, items)
    wires = _route(bundles, depth, items, boxes)
    ys = [y for wire in wires for _, y, _ in wire.points]
    return Layout(
        boxes=tuple(dict.fromkeys(boxes.values())),
        groups=tuple(groups),
        wires=tuple(wires),
        ports=tuple(dict.fromkeys(bundle.port for bundle in bundles)),
        left=min(group.left for group in groups),
        right=max(group.right for group in groups),
        bottom=min([group.bottom for group in groups] + ys),
        top=max([group.top for group in groups] + ys),
        collapsed=tuple(collapsed),
    )


def operator_depths(graph: ActorGraph) -> dict[str, int]:
    """Return each operator's column: the most operators passed on a way to it, from 0 on.

    A cycle is cut where it comes back to an operator that was met on the way.
    """
    roles = nx.DiGraph()
    roles.add_nodes_from(dict.fromkeys(role for _, role in graph.nodes(data="role")))
    role_of = dict(graph.nodes(data="role"))
    roles.add_edges_from((role_of[a], role_of[b]) for a, b in graph.edges() if a != b)
    roles.remove_edges_from([(role, role) for role in roles])
    entries = [role for role, degree in roles.in_degree() if not degree]
    open_: set[str] = set()
    met: set[str] = set()
    for start in [*entries, *roles]:
        for a, b, kind in list(nx.dfs_labeled_edges(roles, start)) if start not in met else ():
            if kind == "forward":
                open_.add(b)
                met.add(b)
            elif kind == "reverse":
                open_.discard(b)
            elif b in open_:
                roles.remove_edge(a, b)
    generations = enumerate(nx.topological_generations(roles))
    return {role: column for column, generation in generations for role in generation}


def _to_collapse(pes: dict[str, list[str]], boxes_max: int) -> list[str]:
    collapsed: list[str] = []
    for role in sorted(pes, key=lambda role: -len(pes[role])):
        shown = sum(1 if r in collapsed else len(names) for r, names in pes.items())
        if shown <= boxes_max or len(pes[role]) == 1:
            break
        collapsed.append(role)
    return collapsed


def _bundles(graph: ActorGraph) -> list[_Bundle]:
    role_of = dict(graph.nodes(data="role"))
    bundles: dict[Channel, _Bundle] = {}
    for sender, receiver, port in graph.edges(data="port"):
        key = (role_of[sender], role_of[receiver], port)
        bundle = bundles.setdefault(key, _Bundle(sender=key[0], receiver=key[1], port=port))
        bundle.channels.append((sender, receiver, port))
    return list(bundles.values())


def _columns(
    pes: dict[str, list[str]],
    collapsed: list[str],
    depth: dict[str, int],
    bundles: list[_Bundle],
) -> list[dict[tuple, _Item]]:
    """Return per column its operators and lanes by key, from top to bottom, with their y."""
    columns: list[dict[tuple, _Item]] = [{} for _ in range(max(depth.values()) + 1)]
    for role, names in pes.items():
        rows = 1 if role in collapsed else len(names)
        columns[depth[role]][role,] = _Item(key=(role,), height=rows * ROW + HEADER + _FOOT)
    links: list[tuple[tuple, tuple]] = []
    for bundle in bundles:
        path: list[tuple] = [(bundle.sender,)]
        for column in range(depth[bundle.sender] + 1, depth[bundle.receiver]):
            key = _lane(bundle)
            columns[column][key] = _Item(key=key, height=_LANE)
            path.append(key)
        if depth[bundle.receiver] > depth[bundle.sender]:
            links += zip(path, [*path[1:], (bundle.receiver,)], strict=True)
    _stack(columns)
    for sweep in range(2 * _SWEEPS):
        forward = sweep % 2 == 0
        at = list(range(1, len(columns))) if forward else list(range(len(columns) - 2, -1, -1))
        for column in at:
            beside = columns[column - 1 if forward else column + 1]
            _sort(columns, column, beside, links if forward else [(b, a) for a, b in links])
    return columns


def _lane(bundle: _Bundle) -> tuple:
    return (bundle.sender, bundle.receiver, bundle.port)


def _sort(
    columns: list[dict[tuple, _Item]],
    column: int,
    beside: dict[tuple, _Item],
    links: list[tuple[tuple, tuple]],
) -> None:
    """Order a column by the mean height of what its items are linked to in the one *beside*."""
    items = columns[column]
    for item in items.values():
        ends = [beside[a].y for a, b in links if b == item.key and a in beside]
        item.order = sum(ends) / len(ends) if ends else item.y
    # Lanes go outside operators of equal order: a wire that passes should not cut a fan in two.
    columns[column] = dict(sorted(items.items(), key=lambda pair: (-pair[1].order, -len(pair[0]))))
    _stack(columns)


def _stack(columns: list[dict[tuple, _Item]]) -> None:
    for items in columns:
        height = sum(item.height for item in items.values()) + _SPACE * (len(items) - 1)
        top = height / 2
        for item in items.values():
            item.y = top - item.height / 2
            top -= item.height + _SPACE


def _place_boxes(
    pes: dict[str, list[str]],
    collapsed: list[str],
    depth: dict[str, int],
    columns: list[dict[tuple, _Item]],
) -> tuple[dict[str, Box], list[Group]]:
    boxes: dict[str, Box] = {}
    groups = []
    left = 0.0
    for column in range(len(columns)):
        roles = [role for role in pes if depth[role] == column]
        labels = {role: _labels(role, pes[role], role in collapsed) for role in roles}
        headers = [f"{role} x {len(pes[role])}" for role in roles]
        longest = max(len(text) for texts in [headers, *labels.values()] for text in texts)
        width = max(0.8, longest * _CHARACTER + 0.16)
        x = left + MARGIN + width / 2
        for role in roles:
            item = columns[column][role,]
            top = item.y + item.height / 2
            shared = [pes[role]] if role in collapsed else [[name] for name in pes[role]]
            for row, (label, names) in enumerate(zip(labels[role], shared, strict=True)):
                y = top - HEADER - (row + 0.5) * ROW
                box = Box(label=label, role=role, actors=tuple(names), x=x, y=y, width=width)
                boxes |= dict.fromkeys(names, box)
            groups.append(
                Group(
                    role=role,
                    count=len(pes[role]),
                    left=left,
                    right=left + width + 2 * MARGIN,
                    bottom=top - item.height,
                    top=top,
                )
            )
        tallest = max(
            item.height for items in columns[column : column + 2] for item in items.values()
        )
        left += width + 2 * MARGIN + _GAP + _GAP_PER_ROW * tallest / ROW
    return boxes, groups


def _labels(role: str, names: list[str], collapsed: bool) -> list[str]:
    return [f"{len(names)} PEs"] if collapsed else names


def _route(
    bundles: list[_Bundle],
    depth: dict[str, int],
    columns: list[dict[tuple, _Item]],
    boxes: dict[str, Box],
) -> list[Wire]:
    middles = _middles(bundles, depth, columns, boxes)
    leave = _attachments(bundles, boxes, middles, outgoing=True)
    enter = _attachments(bundles, boxes, middles, outgoing=False)
    wires: list[Wire] = []
    for bundle in bundles:
        lane = _lane(bundle)
        if bundle.sender == bundle.receiver:
            wires += _beside(bundle, boxes)
        else:
            wires += _wires(bundle, boxes, middles[lane], leave[lane], enter[lane])
    return wires


def _middles(
    bundles: list[_Bundle],
    depth: dict[str, int],
    columns: list[dict[tuple, _Item]],
    boxes: dict[str, Box],
) -> dict[tuple, list[Point]]:
    """Return the points that all wires of a bundle pass; none where they go straight."""
    edges = {column: _edges(boxes, depth, column) for column in range(len(columns))}
    floor = min(item.y - item.height / 2 for items in columns for item in items.values())
    middles: dict[tuple, list[Point]] = {}
    meeting: dict[int, list[tuple[float, tuple]]] = {}
    for bundle in bundles:
        lane = _lane(bundle)
        first, last = depth[bundle.sender], depth[bundle.receiver]
        pairs = {(boxes[a], boxes[b]) for a, b, _ in bundle.channels}
        middles[lane] = []
        if last < first:
            floor -= _SPACE
            start, end = edges[first][1] + _SPACE, edges[last][0] - _SPACE
            middles[lane] = [(start, floor, -1), (end, floor, -1)]
        elif last > first + 1:
            for column in range(first + 1, last):
                y = columns[column][lane].y
                middles[lane] += [(edges[column][0], y, 1), (edges[column][1], y, 1)]
        elif last > first and len(pairs) > DIRECT_WIRES_MAX:
            sent, received = _mean_y(boxes, bundle, 0), _mean_y(boxes, bundle, 1)
            meeting.setdefault(first, []).append(((sent + received) / 2, lane))
    for column, places in meeting.items():
        (_, left), (right, _) = edges[column], edges[column + 1]
        x = left + 0.55 * (right - left)
        # Where two would meet at one point they could not be told apart.
        y = float("inf")
        for wanted, lane in sorted(places, reverse=True):
            y = min(wanted, y - _SPACE)
            middles[lane] = [(x, y, 1)]
    return middles


def _mean_y(boxes: dict[str, Box], bundle: _Bundle, end: int) -> float:
    ys = {boxes[channel[end]].y for channel in bundle.channels}
    return sum(ys) / len(ys)


def _edges(boxes: dict[str, Box], depth: dict[str, int], column: int) -> tuple[float, float]:
    at = [box for box in boxes.values() if depth[box.role] == column]
    return min(box.left for box in at) - MARGIN, max(box.right for box in at) + MARGIN


def _attachments(
    bundles: list[_Bundle],
    boxes: dict[str, Box],
    middles: dict[tuple, list[Point]],
    *,
    outgoing: bool,
) -> dict[tuple, float]:
    """Return how far from a box's middle each bundle's wires attach: apart, and crossing little."""
    sides: dict[str, list[tuple[float, tuple]]] = {}
    for bundle in bundles:
        lane = _lane(bundle)
        role = bundle.sender if outgoing else bundle.receiver
        if middle := middles[lane]:
            towards = middle[0 if outgoing else -1][1]
        else:
            towards = _mean_y(boxes, bundle, 1 if outgoing else 0)
        sides.setdefault(role, []).append((-towards, lane))
    offsets = {}
    for ends in sides.values():
        step = 0.6 * BOX_HEIGHT / len(ends)
        for place, (_, lane) in enumerate(sorted(ends)):
            offsets[lane] = ((len(ends) - 1) / 2 - place) * step
    return offsets


def _beside(bundle: _Bundle, boxes: dict[str, Box]) -> Iterable[Wire]:
    """Yield wires among the PEs of one operator: out on the right and in again there."""
    for channel in bundle.channels:
        a, b = boxes[channel[0]], boxes[channel[1]]
        step = 0.2 * BOX_HEIGHT if a.y <= b.y else -0.2 * BOX_HEIGHT
        points: tuple[Point, ...] = ((a.right, a.y + step, 1), (b.right, b.y - step, -1))
        yield Wire(port=bundle.port, channels=(channel,), points=points, arrives=True)


def _wires(
    bundle: _Bundle, boxes: dict[str, Box], middle: list[Point], out: float, in_: float
) -> Iterable[Wire]:
    """Yield a bundle's wires: straight from box to box, or by way of the points in the *middle*."""

    def wire(channels: list[Channel], *points: Point, arrives: bool) -> Wire:
        return Wire(port=bundle.port, channels=tuple(channels), points=points, arrives=arrives)

    by_pair: dict[tuple[Box, Box], list[Channel]] = {}
    for channel in bundle.channels:
        by_pair.setdefault((boxes[channel[0]], boxes[channel[1]]), []).append(channel)
    if not middle or len(by_pair) == 1:
        for (a, b), channels in by_pair.items():
            start, end = (a.right, a.y + out, 1), (b.left, b.y + in_, 1)
            yield wire(channels, start, *middle, end, arrives=True)
        return
    for a in dict.fromkeys(a for a, _ in by_pair):
        channels = [channel for channel in bundle.channels if boxes[channel[0]] is a]
        yield wire(channels, (a.right, a.y + out, 1), middle[0], arrives=False)
    if len(middle) > 1:
        yield wire(bundle.channels, *middle, arrives=False)
    for b in dict.fromkeys(b for _, b in by_pair):
        channels = [channel for channel in bundle.channels if boxes[channel[1]] is b]
        yield wire(channels, middle[-1], (b.left, b.y + in_, 1), arrives=True)
