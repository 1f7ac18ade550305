"""How wires run: straight where they are few, else by lanes, a meeting point, or round below."""

from __future__ import annotations

from collections.abc import Iterable

from scenarios.drawing.parts import (
    BOX_HEIGHT,
    MARGIN,
    SPACE,
    Box,
    Bundle,
    Channel,
    Item,
    Key,
    Point,
    Wire,
)
from topologies.actor_graph import ActorGraph

DIRECT_WIRES_MAX = 30
"""Wires of one port drawn one by one; more meet on the way."""


def bundles_of(graph: ActorGraph) -> list[Bundle]:
    """Return the channels of *graph*, by the operators at their ends and their port."""
    role_of = dict(graph.nodes(data="role"))
    bundles: dict[Channel, Bundle] = {}
    for sender, receiver, port in graph.edges(data="port"):
        key = (role_of[sender], role_of[receiver], port)
        bundle = bundles.setdefault(key, Bundle(sender=key[0], receiver=key[1], port=port))
        bundle.channels.append((sender, receiver, port))
    return list(bundles.values())


def route(
    bundles: list[Bundle],
    depth: dict[str, int],
    columns: list[dict[Key, Item]],
    boxes: dict[str, Box],
) -> list[Wire]:
    """Return the wires of all *bundles*."""
    middles = _middles(bundles, depth, columns, boxes)
    leave = _attachments(bundles, boxes, middles, outgoing=True)
    enter = _attachments(bundles, boxes, middles, outgoing=False)
    wires: list[Wire] = []
    for bundle in bundles:
        if bundle.sender == bundle.receiver:
            wires += _beside(bundle, boxes)
        else:
            lane = bundle.lane
            wires += _wires(bundle, boxes, middles[lane], leave[lane], enter[lane])
    return wires


def _middles(
    bundles: list[Bundle],
    depth: dict[str, int],
    columns: list[dict[Key, Item]],
    boxes: dict[str, Box],
) -> dict[Key, list[Point]]:
    """Return the points that all wires of a bundle pass; none where they go straight."""
    edges = {column: _edges(boxes, depth, column) for column in range(len(columns))}
    floor = min(item.y - item.height / 2 for items in columns for item in items.values())
    middles: dict[Key, list[Point]] = {}
    meeting: dict[int, list[tuple[float, Key]]] = {}
    for bundle in bundles:
        lane = bundle.lane
        first, last = depth[bundle.sender], depth[bundle.receiver]
        pairs = {(boxes[a], boxes[b]) for a, b, _ in bundle.channels}
        middles[lane] = []
        if last < first:
            floor -= SPACE
            start, end = edges[first][1] + SPACE, edges[last][0] - SPACE
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
            y = min(wanted, y - SPACE)
            middles[lane] = [(x, y, 1)]
    return middles


def _mean_y(boxes: dict[str, Box], bundle: Bundle, end: int) -> float:
    ys = {boxes[channel[end]].y for channel in bundle.channels}
    return sum(ys) / len(ys)


def _edges(boxes: dict[str, Box], depth: dict[str, int], column: int) -> tuple[float, float]:
    at = [box for box in boxes.values() if depth[box.role] == column]
    return min(box.left for box in at) - MARGIN, max(box.right for box in at) + MARGIN


def _attachments(
    bundles: list[Bundle],
    boxes: dict[str, Box],
    middles: dict[Key, list[Point]],
    *,
    outgoing: bool,
) -> dict[Key, float]:
    """Return how far from a box's middle each bundle's wires attach: apart, and crossing little."""
    sides: dict[str, list[tuple[float, Key]]] = {}
    for bundle in bundles:
        lane = bundle.lane
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


def _beside(bundle: Bundle, boxes: dict[str, Box]) -> Iterable[Wire]:
    """Yield wires among the PEs of one operator: out on the right and in again there."""
    for (a, b), channels in _by_boxes(bundle, boxes).items():
        step = 0.2 * BOX_HEIGHT if a.y <= b.y else -0.2 * BOX_HEIGHT
        points: tuple[Point, ...] = ((a.right, a.y + step, 1), (b.right, b.y - step, -1))
        yield Wire(port=bundle.port, channels=tuple(channels), points=points, arrives=True)


def _by_boxes(bundle: Bundle, boxes: dict[str, Box]) -> dict[tuple[Box, Box], list[Channel]]:
    """Return a bundle's channels by the boxes at their ends."""
    by_boxes: dict[tuple[Box, Box], list[Channel]] = {}
    for channel in bundle.channels:
        by_boxes.setdefault((boxes[channel[0]], boxes[channel[1]]), []).append(channel)
    return by_boxes


def _wires(
    bundle: Bundle, boxes: dict[str, Box], middle: list[Point], out: float, in_: float
) -> Iterable[Wire]:
    """Yield a bundle's wires: straight from box to box, or by way of the points in the *middle*."""

    def wire(channels: list[Channel], *points: Point, arrives: bool) -> Wire:
        return Wire(port=bundle.port, channels=tuple(channels), points=points, arrives=arrives)

    by_pair = _by_boxes(bundle, boxes)
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
