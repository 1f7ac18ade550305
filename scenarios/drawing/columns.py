"""Which column an operator stands in, and where in it: the fewer crossings, the better."""

from __future__ import annotations

import networkx as nx

from scenarios.drawing.parts import (
    HEADER,
    MARGIN,
    ROW,
    SPACE,
    Box,
    Bundle,
    Group,
    Item,
    Key,
)
from topologies.actor_graph import ActorGraph

_FOOT = 0.08
_CHARACTER = 0.078
_LANE = 0.22
_GAP = 1.0
_GAP_PER_ROW = 0.02
_SWEEPS = 4


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


def to_collapse(pes: dict[str, list[str]], boxes_max: int) -> list[str]:
    """Return the operators, largest first, that must share a box for *boxes_max* to do."""
    collapsed: list[str] = []
    for role in sorted(pes, key=lambda role: -len(pes[role])):
        shown = sum(1 if r in collapsed else len(names) for r, names in pes.items())
        if shown <= boxes_max or len(pes[role]) == 1:
            break
        collapsed.append(role)
    return collapsed


def make_columns(
    pes: dict[str, list[str]],
    collapsed: list[str],
    depth: dict[str, int],
    bundles: list[Bundle],
) -> list[dict[Key, Item]]:
    """Return per column its operators and lanes by key, from top to bottom, with their y."""
    columns: list[dict[Key, Item]] = [{} for _ in range(max(depth.values()) + 1)]
    for role, names in pes.items():
        rows = 1 if role in collapsed else len(names)
        columns[depth[role]][role,] = Item(key=(role,), height=rows * ROW + HEADER + _FOOT)
    links: list[tuple[Key, Key]] = []
    for bundle in bundles:
        path: list[Key] = [(bundle.sender,)]
        for column in range(depth[bundle.sender] + 1, depth[bundle.receiver]):
            columns[column][bundle.lane] = Item(key=bundle.lane, height=_LANE)
            path.append(bundle.lane)
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


def _sort(
    columns: list[dict[Key, Item]],
    column: int,
    beside: dict[Key, Item],
    links: list[tuple[Key, Key]],
) -> None:
    """Order a column by the mean height of what its items are linked to in the one *beside*."""
    items = columns[column]
    for item in items.values():
        ends = [beside[a].y for a, b in links if b == item.key and a in beside]
        item.order = sum(ends) / len(ends) if ends else item.y
    # Lanes go outside operators of equal order: a wire that passes should not cut a fan in two.
    columns[column] = dict(sorted(items.items(), key=lambda pair: (-pair[1].order, -len(pair[0]))))
    _stack(columns)


def _stack(columns: list[dict[Key, Item]]) -> None:
    for items in columns:
        height = sum(item.height for item in items.values()) + SPACE * (len(items) - 1)
        top = height / 2
        for item in items.values():
            item.y = top - item.height / 2
            top -= item.height + SPACE


def place_boxes(
    pes: dict[str, list[str]],
    collapsed: list[str],
    depth: dict[str, int],
    columns: list[dict[Key, Item]],
) -> tuple[dict[str, Box], list[Group]]:
    """Return each actor's box, and the frames around operators."""
    boxes: dict[str, Box] = {}
    groups = []
    left = 0.0
    for column in range(len(columns)):
        roles = [role for role in pes if depth[role] == column]
        labels = {
            role: [f"{len(pes[role])} PEs"] if role in collapsed else pes[role] for role in roles
        }
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
