"""Where the boxes and wires of a topology go on paper: operators in columns, left to right.

An operator (a role) stands one column right of the last one that feeds it, and its PEs stand below
each other. What skips columns runs through a lane kept free in each of them; what runs back, in a
cycle, goes round below. Where many PEs talk to many, their wires meet on the way, so that n + m of
them are drawn and not n times m. Lengths are inches, y grows upwards.
"""

from __future__ import annotations

from scenarios.drawing.columns import make_columns, operator_depths, place_boxes, to_collapse
from scenarios.drawing.parts import Layout
from scenarios.drawing.wires import bundles_of, route
from topologies.actor_graph import ActorGraph

BOXES_MAX = 60
"""More boxes than this cannot be read; the PEs of the largest operators then share one."""


def lay_out(graph: ActorGraph, *, boxes_max: int = BOXES_MAX) -> Layout:
    """Return where everything goes; deterministic, for any graph with at least one actor."""
    pes: dict[str, list[str]] = {}
    for name, role in graph.nodes(data="role"):
        pes.setdefault(role, []).append(name)
    collapsed = to_collapse(pes, boxes_max)
    depth = operator_depths(graph)
    bundles = bundles_of(graph)
    items = make_columns(pes, collapsed, depth, bundles)
    boxes, groups = place_boxes(pes, collapsed, depth, items)
    wires = route(bundles, depth, items, boxes)
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
