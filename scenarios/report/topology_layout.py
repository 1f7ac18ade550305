"""Where the boxes and wires of a topology go on paper: operators in columns, left to right.

An operator (a role) goes one column right of the last one that feeds it, its PEs below each other.
A partition of the results is a part of its PE and has no box. A wire that skips columns runs
through a lane left free in each of them; one that runs back, in a cycle, goes round below. Where
many PEs send to many, their wires meet on the way, so that n + m of them are drawn and not n times
m. Lengths are inches, y grows upwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import networkx as nx

from topologies.actor_graph import ActorGraph

BOXES_MAX = 60
"""More boxes than this cannot be read; the PEs of the largest operators then share one."""
DIRECT_WIRES_MAX = 30
"""Wires of one port drawn one by one; more meet on the way."""
BOX_HEIGHT = 0.36
HEADER = 0.26
_ROW = 0.46
_MARGIN = 0.12
_SPACE = 0.3
_FOOT = 0.08
_CHARACTER = 0.078
_LANE = 0.22
_GAP = 1.0
_GAP_PER_ROW = 0.02
_SWEEPS = 4

Channel = tuple[str, str, str]
"""Sender, receiver and port."""
Point = tuple[float, float, int]
"""x, y, and the direction in which a wire passes: 1 to the right, -1 to the left."""
_Bundle = tuple[str, str, str]
"""All channels of one port between two operators: sending role, receiving role, port."""
_Key = tuple[str, ...]
"""What takes room in a column: an operator as (role,), or a bundle's lane."""


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
    """A line through *points*, for one or more channels of one port.

    *arrives* is True of one that ends at a box, with an arrowhead.
    """

    port: str
    channels: tuple[Channel, ...]
    points: tuple[Point, ...]
    arrives: bool


@dataclass(frozen=True, kw_only=True)
class TopologyLayout:
    """Everything there is to draw, and its corners.

    *collapsed* are the operators whose PEs share one box, *partitioned* those at whose PEs results
    stay.
    """

    boxes: tuple[Box, ...]
    groups: tuple[Group, ...]
    wires: tuple[Wire, ...]
    ports: tuple[str, ...]
    left: float
    right: float
    bottom: float
    top: float
    collapsed: tuple[str, ...]
    partitioned: tuple[str, ...]


@dataclass
class _Slot:
    """Room in a column; *y* is its middle."""

    height: float
    y: float = 0.0

    @property
    def top(self) -> float:
        return self.y + self.height / 2

    @property
    def bottom(self) -> float:
        return self.y - self.height / 2


def lay_out(graph: ActorGraph, *, boxes_max: int = BOXES_MAX) -> TopologyLayout:
    """Return where everything goes; deterministic, for any graph with at least one actor."""
    role_of = graph.roles
    partitioned = dict.fromkeys(role_of[owner] for owner in graph.partitions.values())
    graph = graph.without_partitions()
    pes = graph.operators
    collapsed = _operators_to_collapse(pes, boxes_max)
    depth = operator_depths(graph)
    bundles = _bundles(graph)
    rows = {role: 1 if role in collapsed else len(names) for role, names in pes.items()}
    columns = _fill_columns(rows, depth, bundles)
    boxes, groups = _place_boxes(pes, collapsed, depth, columns)
    wires = _Wiring(bundles, depth, columns, boxes).wires()
    ys = [y for wire in wires for _, y, _ in wire.points]
    return TopologyLayout(
        boxes=tuple(dict.fromkeys(boxes.values())),
        groups=tuple(groups),
        wires=tuple(wires),
        ports=tuple(dict.fromkeys(port for _, _, port in bundles)),
        left=min(group.left for group in groups),
        right=max(group.right for group in groups),
        bottom=min([group.bottom for group in groups] + ys),
        top=max([group.top for group in groups] + ys),
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
    roles.add_edges_from((role_of[a], role_of[b]) for a, b in graph.edges() if a != b)
    roles.remove_edges_from([(role, role) for role in roles])
    entries = [role for role, degree in roles.in_degree() if not degree]
    while not nx.is_directed_acyclic_graph(roles):
        *_, closing = nx.find_cycle(roles, [*entries, *roles])
        roles.remove_edge(*closing)
    generations = enumerate(nx.topological_generations(roles))
    return {role: column for column, generation in generations for role in generation}


def _operators_to_collapse(pes: dict[str, list[str]], boxes_max: int) -> list[str]:
    """Return the operators, largest first, that must share a box for *boxes_max* to be enough."""
    collapsed: list[str] = []
    for role in sorted(pes, key=lambda role: -len(pes[role])):
        shown = sum(1 if r in collapsed else len(names) for r, names in pes.items())
        if shown <= boxes_max or len(pes[role]) == 1:
            break
        collapsed.append(role)
    return collapsed


def _bundles(graph: ActorGraph) -> dict[_Bundle, list[Channel]]:
    role_of = graph.roles
    bundles: dict[_Bundle, list[Channel]] = {}
    for sender, receiver, port in graph.edges(data="port"):
        bundle = (role_of[sender], role_of[receiver], port)
        bundles.setdefault(bundle, []).append((sender, receiver, port))
    return bundles


def _fill_columns(
    rows: dict[str, int], depth: dict[str, int], bundles: dict[_Bundle, list[Channel]]
) -> list[dict[_Key, _Slot]]:
    """Return per column its operators, of so many *rows*, and its lanes, from top to bottom.

    Columns are sorted against their neighbours, back and forth, for wires to cross little.
    """
    columns: list[dict[_Key, _Slot]] = [{} for _ in range(max(depth.values()) + 1)]
    for role, count in rows.items():
        columns[depth[role]][role,] = _Slot(count * _ROW + HEADER + _FOOT)
    links: list[tuple[_Key, _Key]] = []
    for bundle in bundles:
        sender, receiver, _ = bundle
        path: list[_Key] = [(sender,)]
        for column in range(depth[sender] + 1, depth[receiver]):
            columns[column][bundle] = _Slot(_LANE)
            path.append(bundle)
        if depth[receiver] > depth[sender]:
            links += zip(path, [*path[1:], (receiver,)], strict=True)
    for slots in columns:
        _stack(slots)
    backward = [(b, a) for a, b in links]
    for _ in range(_SWEEPS):
        for column in range(1, len(columns)):
            columns[column] = _sorted(columns[column], columns[column - 1], links)
        for column in reversed(range(len(columns) - 1)):
            columns[column] = _sorted(columns[column], columns[column + 1], backward)
    return columns


def _sorted(
    slots: dict[_Key, _Slot], beside: dict[_Key, _Slot], links: list[tuple[_Key, _Key]]
) -> dict[_Key, _Slot]:
    """Return a column sorted by the mean height of what each slot is linked to *beside* it."""
    heights = {}
    for key, slot in slots.items():
        ends = [beside[a].y for a, b in links if b == key and a in beside]
        heights[key] = sum(ends) / len(ends) if ends else slot.y
    # Lanes go outside operators of equal height: a wire that passes should not cut a fan in two.
    order = sorted(slots, key=lambda key: (-heights[key], -len(key)))
    return _stack({key: slots[key] for key in order})


def _stack(slots: dict[_Key, _Slot]) -> dict[_Key, _Slot]:
    height = sum(slot.height for slot in slots.values()) + _SPACE * (len(slots) - 1)
    top = height / 2
    for slot in slots.values():
        slot.y = top - slot.height / 2
        top -= slot.height + _SPACE
    return slots


def _place_boxes(
    pes: dict[str, list[str]],
    collapsed: list[str],
    depth: dict[str, int],
    columns: list[dict[_Key, _Slot]],
) -> tuple[dict[str, Box], list[Group]]:
    """Return each actor's box, and the frames around operators."""
    boxes: dict[str, Box] = {}
    groups = []
    left = 0.0
    for column, slots in enumerate(columns):
        roles = [role for role in pes if depth[role] == column]
        labels = {
            role: [f"{len(pes[role])} PEs"] if role in collapsed else pes[role] for role in roles
        }
        headers = [f"{role} x {len(pes[role])}" for role in roles]
        longest = max(len(text) for texts in [headers, *labels.values()] for text in texts)
        width = max(0.8, longest * _CHARACTER + 0.16)
        right = left + width + 2 * _MARGIN
        for role in roles:
            slot, count = slots[role,], len(pes[role])
            shared = [pes[role]] if role in collapsed else [[name] for name in pes[role]]
            for row, (label, names) in enumerate(zip(labels[role], shared, strict=True)):
                y = slot.top - HEADER - (row + 0.5) * _ROW
                x = left + _MARGIN + width / 2
                box = Box(label=label, role=role, actors=tuple(names), x=x, y=y, width=width)
                boxes |= dict.fromkeys(names, box)
            groups.append(
                Group(
                    role=role,
                    count=count,
                    left=left,
                    right=right,
                    bottom=slot.top - slot.height,
                    top=slot.top,
                )
            )
        tallest = max(
            slot.height for near in columns[column : column + 2] for slot in near.values()
        )
        left = right + _GAP + _GAP_PER_ROW * tallest / _ROW
    return boxes, groups


class _Wiring:
    """How wires run: straight where few, else by lanes, a meeting point, or round below."""

    def __init__(
        self,
        bundles: dict[_Bundle, list[Channel]],
        depth: dict[str, int],
        columns: list[dict[_Key, _Slot]],
        boxes: dict[str, Box],
    ) -> None:
        self._bundles = bundles
        self._depth = depth
        self._columns = columns
        self._boxes = boxes
        self._edges = [self._column_edges(column) for column in range(len(columns))]
        self._middles = self._points_between()

    def wires(self) -> list[Wire]:
        """Return the wires of all bundles."""
        leave, enter = self._attachments(0), self._attachments(1)
        wires: list[Wire] = []
        for bundle in self._bundles:
            sender, receiver, _ = bundle
            if sender == receiver:
                wires += self._beside(bundle)
            else:
                wires += self._across(bundle, leave[bundle], enter[bundle])
        return wires

    def _column_edges(self, column: int) -> tuple[float, float]:
        boxes = [box for box in self._boxes.values() if self._depth[box.role] == column]
        return min(box.left for box in boxes) - _MARGIN, max(box.right for box in boxes) + _MARGIN

    def _points_between(self) -> dict[_Bundle, list[Point]]:
        """Return the points that all wires of a bundle pass; none where they go straight."""
        floor = min(slot.bottom for slots in self._columns for slot in slots.values())
        middles: dict[_Bundle, list[Point]] = {}
        meeting: dict[int, list[tuple[float, _Bundle]]] = {}
        for bundle, channels in self._bundles.items():
            first, last = self._depth[bundle[0]], self._depth[bundle[1]]
            pairs = {(self._boxes[a], self._boxes[b]) for a, b, _ in channels}
            middles[bundle] = []
            if last < first:
                floor -= _SPACE
                start, end = self._edges[first][1] + _SPACE, self._edges[last][0] - _SPACE
                middles[bundle] = [(start, floor, -1), (end, floor, -1)]
            elif last > first + 1:
                for column in range(first + 1, last):
                    left, right = self._edges[column]
                    y = self._columns[column][bundle].y
                    middles[bundle] += [(left, y, 1), (right, y, 1)]
            elif last > first and len(pairs) > DIRECT_WIRES_MAX:
                wanted = (self._mean_y(bundle, 0) + self._mean_y(bundle, 1)) / 2
                meeting.setdefault(first, []).append((wanted, bundle))
        for column, places in meeting.items():
            (_, left), (right, _) = self._edges[column], self._edges[column + 1]
            x = left + 0.55 * (right - left)
            # Two that met at one point could not be distinguished.
            y = float("inf")
            for wanted, bundle in sorted(places, reverse=True):
                y = min(wanted, y - _SPACE)
                middles[bundle] = [(x, y, 1)]
        return middles

    def _mean_y(self, bundle: _Bundle, end: int) -> float:
        ys = {self._boxes[channel[end]].y for channel in self._bundles[bundle]}
        return sum(ys) / len(ys)

    def _attachments(self, end: int) -> dict[_Bundle, float]:
        """Return how far from the middle of a box each bundle's wires attach, for few crossings.

        *end* is 0 for the sending side and 1 for the receiving one.
        """
        sides: dict[str, list[tuple[float, _Bundle]]] = {}
        for bundle, middle in self._middles.items():
            towards = middle[-end][1] if middle else self._mean_y(bundle, 1 - end)
            sides.setdefault(bundle[end], []).append((-towards, bundle))
        offsets = {}
        for ends in sides.values():
            step = 0.6 * BOX_HEIGHT / len(ends)
            for place, (_, bundle) in enumerate(sorted(ends)):
                offsets[bundle] = ((len(ends) - 1) / 2 - place) * step
        return offsets

    def _by_boxes(self, bundle: _Bundle) -> dict[tuple[Box, Box], list[Channel]]:
        """Return a bundle's channels by the boxes at their ends."""
        by_boxes: dict[tuple[Box, Box], list[Channel]] = {}
        for channel in self._bundles[bundle]:
            sender, receiver, _ = channel
            by_boxes.setdefault((self._boxes[sender], self._boxes[receiver]), []).append(channel)
        return by_boxes

    def _beside(self, bundle: _Bundle) -> Iterator[Wire]:
        """Yield wires among the PEs of one operator: out on the right and in again there."""
        for (a, b), channels in self._by_boxes(bundle).items():
            step = 0.2 * BOX_HEIGHT if a.y <= b.y else -0.2 * BOX_HEIGHT
            yield _wire(channels, (a.right, a.y + step, 1), (b.right, b.y - step, -1), arrives=True)

    def _across(self, bundle: _Bundle, out: float, in_: float) -> Iterator[Wire]:
        """Yield a bundle's wires: from box to box, or by way of the points that all of them pass.

        *out* and *in_* are their attachments.
        """
        by_boxes, middle = self._by_boxes(bundle), self._middles[bundle]
        if not middle or len(by_boxes) == 1:
            for (a, b), channels in by_boxes.items():
                start, end = (a.right, a.y + out, 1), (b.left, b.y + in_, 1)
                yield _wire(channels, start, *middle, end, arrives=True)
            return
        all_channels = self._bundles[bundle]
        for a in dict.fromkeys(a for a, _ in by_boxes):
            channels = [channel for channel in all_channels if self._boxes[channel[0]] is a]
            yield _wire(channels, (a.right, a.y + out, 1), middle[0], arrives=False)
        if len(middle) > 1:
            yield _wire(all_channels, *middle, arrives=False)
        for b in dict.fromkeys(b for _, b in by_boxes):
            channels = [channel for channel in all_channels if self._boxes[channel[1]] is b]
            yield _wire(channels, middle[-1], (b.left, b.y + in_, 1), arrives=True)


def _wire(channels: list[Channel], *points: Point, arrives: bool) -> Wire:
    return Wire(port=channels[0][2], channels=tuple(channels), points=points, arrives=arrives)
