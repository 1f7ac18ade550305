"""Finding pages and entries (Bw-Tree, section III).

A reader takes the address of a page once and then sees a chain that nobody changes. Where a page
has been split and its parent does not know of it yet, the link to the right leads on.

Words of the mapping table and deltas lie in lines of memory that other threads have written: each
that is read is counted as an atomic operation.
"""

from __future__ import annotations

import numpy as np

from joins.indexes.bw_tree.pages import (
    BASE,
    CHILD,
    ENTRIES,
    GREATEST,
    HIGH_KEY,
    HIGH_POSITION,
    INSERTED,
    KEY,
    KIND,
    LEAST,
    LENGTH,
    LEVEL,
    NEXT,
    NONE,
    POSITION,
    RIGHT,
    ROOT,
    SIZE,
    Pages,
)
from joins.machine.atomics import load
from joins.machine.compiling import kernel
from joins.matches import MatchBuffer, add_match
from joins.work import ATOMICS, COMPARISONS


@kernel
def base_of(pages: Pages, address: int) -> int:
    """Return the base node of a chain."""
    return -1 - address if address < 0 else pages.deltas[address, BASE]


@kernel
def chain_length(pages: Pages, address: int) -> int:
    """Return how many deltas a chain has."""
    return 0 if address < 0 else pages.deltas[address, LENGTH]


@kernel
def room_of(pages: Pages) -> int:
    """Return the entries that a node has room for."""
    return (pages.nodes.shape[1] - ENTRIES) // 3


@kernel
def is_before(key: int, position: int, other_key: int, other_position: int) -> bool:
    """Tell whether entry (key, position) comes before the other."""
    return key < other_key or (key == other_key and position < other_position)


@kernel
def count_before(pages: Pages, node: int, key: int, position: int) -> int:
    """Return how many entries of a base node come before (key, position)."""
    row, nodes = np.uint64(node), pages.nodes
    size, at = nodes[node, SIZE], 0
    for i in range(np.uint64(ENTRIES), np.uint64(ENTRIES + size)):
        at += nodes[row, i] < key
    positions = ENTRIES + room_of(pages)
    while at < size and nodes[node, ENTRIES + at] == key and nodes[node, positions + at] < position:
        at += 1
    return at


@kernel
def _child(pages: Pages, address: int, key: int, position: int, counters: np.ndarray) -> int:
    """Return the child whose entries (key, position) belongs to: the last not after it."""
    node, room = base_of(pages, address), room_of(pages)
    at = count_before(pages, node, key, position)
    nodes, deltas = pages.nodes, pages.deltas
    if at == nodes[node, SIZE] or is_before(
        key, position, nodes[node, ENTRIES + at], nodes[node, ENTRIES + room + at]
    ):
        at -= 1
    best_key, best_position = nodes[node, ENTRIES + at], nodes[node, ENTRIES + room + at]
    child = nodes[node, ENTRIES + 2 * room + at]
    counters[COMPARISONS] += nodes[node, SIZE] + chain_length(pages, address)
    counters[ATOMICS] += chain_length(pages, address)
    while address >= 0:
        delta_key, delta_position = deltas[address, KEY], deltas[address, POSITION]
        after = is_before(key, position, delta_key, delta_position)
        if not after and is_before(best_key, best_position, delta_key, delta_position):
            best_key, best_position = delta_key, delta_position
            child = deltas[address, CHILD]
        address = deltas[address, NEXT]
    return child


@kernel
def find_page(
    pages: Pages, level: int, key: int, position: int, counters: np.ndarray
) -> tuple[int, int]:
    """Return the page of a level that (key, position) belongs to, and its address."""
    page, nodes = ROOT, pages.nodes
    while True:
        address = load(pages.mapping, page, 0)
        node = base_of(pages, address)
        counters[ATOMICS] += 1 + (address >= 0)
        counters[COMPARISONS] += 1
        if not is_before(key, position, nodes[node, HIGH_KEY], nodes[node, HIGH_POSITION]):
            page = nodes[node, RIGHT]
        elif nodes[node, LEVEL] == level:
            return page, address
        else:
            page = _child(pages, address, key, position, counters)


@kernel
def _is_overruled(
    pages: Pages, newest: int, until: int, key: int, position: int, counters: np.ndarray
) -> bool:
    """Tell whether a delta from *newest* on, before address *until*, is about an entry."""
    address, deltas = newest, pages.deltas
    while address >= 0 and address != until:
        counters[COMPARISONS] += 1
        if deltas[address, KEY] == key and deltas[address, POSITION] == position:
            return True
        address = deltas[address, NEXT]
    return False


@kernel
def probe_range(
    pages: Pages,
    low: int,
    high: int,
    start: int,
    stop: int,
    row: int,
    output: MatchBuffer,
    counters: np.ndarray,
) -> None:
    """Report the entries with keys from *low* to *high* and positions *start* to *stop* - 1."""
    nodes, deltas, room = pages.nodes, pages.deltas, room_of(pages)
    page, newest = find_page(pages, 0, low, LEAST, counters)
    while True:
        node, address = base_of(pages, newest), newest
        counters[COMPARISONS] += chain_length(pages, newest)
        counters[ATOMICS] += chain_length(pages, newest)
        while address >= 0:
            key, position = deltas[address, KEY], deltas[address, POSITION]
            if (
                deltas[address, KIND] == INSERTED
                and low <= key <= high
                and start <= position < stop
                and not _is_overruled(pages, newest, address, key, position, counters)
            ):
                add_match(output, row, position)
            address = deltas[address, NEXT]
        at, size = count_before(pages, node, low, LEAST), nodes[node, SIZE]
        counters[COMPARISONS] += size
        while at < size and nodes[node, ENTRIES + at] <= high:
            key, position = nodes[node, ENTRIES + at], nodes[node, ENTRIES + room + at]
            if start <= position < stop and not _is_overruled(
                pages, newest, NONE, key, position, counters
            ):
                add_match(output, row, position)
            at += 1
        counters[COMPARISONS] += 1
        if is_before(high, GREATEST, nodes[node, HIGH_KEY], nodes[node, HIGH_POSITION]):
            return
        page = nodes[node, RIGHT]
        if page == NONE:
            return
        newest = load(pages.mapping, page, 0)
        counters[ATOMICS] += 1
