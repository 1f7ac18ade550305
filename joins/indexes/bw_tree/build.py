"""Reading a whole Bw-Tree in order, and building one from sorted entries."""

from __future__ import annotations

import numpy as np

from joins.indexes.bw_tree.pages import (
    ENTRIES,
    GREATEST,
    HIGH_KEY,
    HIGH_POSITION,
    LEAST,
    LEVEL,
    NODES,
    NONE,
    PAGES,
    RIGHT,
    ROOT,
    SIZE,
    SPARE_NODE,
    Pages,
)
from joins.indexes.bw_tree.search import find_page, room_of
from joins.indexes.bw_tree.update import merge_chain, take_spare
from joins.machine.atomics import load
from joins.machine.compiling import kernel
from joins.work import MOVES


@kernel
def collect(pages: Pages, keys: np.ndarray, positions: np.ndarray, counters: np.ndarray) -> int:
    """Write all entries in order and return how many there are; no thread may be in the tree."""
    nodes, room = pages.nodes, room_of(pages)
    node = take_spare(pages, 0, SPARE_NODE, NODES, counters)
    page, address = find_page(pages, 0, LEAST, LEAST, counters)
    n = 0
    while True:
        merge_chain(pages, 0, address, node, counters)
        for i in range(nodes[node, SIZE]):
            keys[n], positions[n] = nodes[node, ENTRIES + i], nodes[node, ENTRIES + room + i]
            n += 1
        page = nodes[node, RIGHT]
        if page == NONE:
            return n
        address = load(pages.mapping, page, 0)


@kernel
def build(pages: Pages, keys: np.ndarray, positions: np.ndarray, counters: np.ndarray) -> None:
    """Fill empty *pages* with sorted entries, nodes three quarters full, level by level."""
    nodes, room = pages.nodes, room_of(pages)
    fill = pages.limits[0] - pages.limits[0] // 4
    pages.used[PAGES, 0] = 1
    level, begin, count = 0, 0, len(keys)
    while True:
        # Below the root every level is cut evenly, so that none of its nodes is nearly empty.
        parts = 1 if count <= pages.limits[0] else -(-count // fill)
        first = pages.used[NODES, 0]
        for part in range(parts):
            node = first + part
            page = ROOT if parts == 1 else pages.used[PAGES, 0]
            pages.used[PAGES, 0] += parts > 1
            pages.mapping[page, 0] = -1 - node
            low, high = count * part // parts, count * (part + 1) // parts
            nodes[node, LEVEL], nodes[node, SIZE] = level, high - low
            for i in range(high - low):
                _copy_entry(pages, level, begin + low + i, node, i, keys, positions)
            nodes[node, RIGHT] = NONE if part == parts - 1 else page + 1
            nodes[node, HIGH_KEY] = nodes[node, HIGH_POSITION] = GREATEST
            if part:
                nodes[node - 1, HIGH_KEY] = nodes[node, ENTRIES]
                nodes[node - 1, HIGH_POSITION] = nodes[node, ENTRIES + room]
        if level and parts:
            nodes[first, ENTRIES] = nodes[first, ENTRIES + room] = LEAST
        counters[MOVES] += count
        pages.used[NODES, 0] += parts
        if parts == 1:
            return
        level, begin, count = level + 1, first, parts


@kernel
def _copy_entry(
    pages: Pages,
    level: int,
    source: int,
    node: int,
    at: int,
    keys: np.ndarray,
    positions: np.ndarray,
) -> None:
    """Write entry *source* of all, or on an inner level the separator of node *source*."""
    nodes, room = pages.nodes, room_of(pages)
    if level == 0:
        nodes[node, ENTRIES + at] = keys[source]
        nodes[node, ENTRIES + room + at] = positions[source]
        return
    nodes[node, ENTRIES + at] = nodes[source, ENTRIES]
    nodes[node, ENTRIES + room + at] = nodes[source, ENTRIES + room]
    # Nodes and pages of a level are given away in the same order, the root's page before all.
    nodes[node, ENTRIES + 2 * room + at] = source + 1
