"""Changing a Bw-Tree by compare-and-swap (Bw-Tree, sections III and IV).

A change is a delta record put in front of its page's chain. A chain that has its full length is
consolidated first, by whoever comes: into a base node, or two if it holds too much. A split is thus
seen as soon as the left half is in the table, whose link leads to the right one; its separator is
posted to the parent afterwards, and by the thread that split alone, because no search needs it.

The paper's split is a delta record of its own, and consolidation comes later; here both are one
compare-and-swap, and chains of splits and entries need not be told apart.
"""

from __future__ import annotations

import numpy as np

from joins.atomics import compare_and_swap, fetch_add, store
from joins.indexes.bw_tree.pages import (
    BASE,
    CHILD,
    DELTAS,
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
    NODES,
    NONE,
    OWED,
    OWED_MAX,
    OWED_WORDS,
    PAGES,
    POSITION,
    RIGHT,
    ROOT,
    SCRATCH,
    SIZE,
    SPARE_DELTA,
    SPARE_LEFT,
    SPARE_NODE,
    SPARE_PAGE,
    SPARE_RIGHT,
    SPARE_TOP,
    Pages,
)
from joins.indexes.bw_tree.search import (
    base_of,
    chain_length,
    count_before,
    find_page,
    room_of,
)
from joins.machine import kernel, move_entries
from joins.work import ATOMICS, INSERTS, MOVES


@kernel
def change(
    pages: Pages, thread: int, kind: int, key: int, position: int, counters: np.ndarray
) -> None:
    """Insert or delete an entry, and post the separators of what was split on the way."""
    own = pages.own
    publish(pages, thread, 0, kind, key, position, NONE, counters)
    counters[INSERTS] += kind == INSERTED
    while own[thread, OWED] > 0:
        own[thread, OWED] -= 1
        at = SCRATCH + OWED_WORDS * own[thread, OWED]
        level, key, position = own[thread, at], own[thread, at + 1], own[thread, at + 2]
        publish(pages, thread, level, INSERTED, key, position, own[thread, at + 3], counters)


@kernel
def publish(
    pages: Pages,
    thread: int,
    level: int,
    kind: int,
    key: int,
    position: int,
    child: int,
    counters: np.ndarray,
) -> None:
    """Put a delta in front of its page's chain, anew until nobody else is faster."""
    while True:
        page, address = find_page(pages, level, key, position, counters)
        if chain_length(pages, address) >= pages.limits[1]:
            consolidate(pages, thread, page, address, counters)
            continue
        delta = take_spare(pages, thread, SPARE_DELTA, DELTAS, counters)
        row = pages.deltas[delta]
        row[KIND], row[KEY], row[POSITION], row[CHILD] = kind, key, position, child
        row[NEXT], row[LENGTH] = address, chain_length(pages, address) + 1
        row[BASE] = base_of(pages, address)
        counters[ATOMICS] += 1
        if compare_and_swap(pages.mapping, page, 0, address, delta):
            pages.own[thread, SPARE_DELTA] = NONE
            return


@kernel
def take_spare(pages: Pages, thread: int, place: int, what: int, counters: np.ndarray) -> int:
    """Return a record or page that the thread has for itself, a new one if it has none."""
    if pages.own[thread, place] == NONE:
        pages.own[thread, place] = fetch_add(pages.used, what, 0, 1)
        counters[ATOMICS] += 1
    return pages.own[thread, place]


@kernel
def merge_chain(pages: Pages, thread: int, address: int, target: int, counters: np.ndarray) -> None:
    """Write what a page holds into node *target*: its base with its deltas, oldest first."""
    nodes, deltas, own, room = pages.nodes, pages.deltas, pages.own, room_of(pages)
    source, length = base_of(pages, address), chain_length(pages, address)
    size = nodes[source, SIZE]
    for i in range(ENTRIES):
        nodes[target, i] = nodes[source, i]
    for column in range(ENTRIES, ENTRIES + 3 * room, room):
        move_entries(nodes, source, column, target, column, size)
    path = SCRATCH + OWED_MAX * OWED_WORDS
    for i in range(length):
        own[thread, path + i] = address
        address = deltas[address, NEXT]
    counters[MOVES] += size + length
    for i in range(length - 1, -1, -1):
        delta = own[thread, path + i]
        _apply(pages, delta, target)


@kernel
def _apply(pages: Pages, delta: int, node: int) -> None:
    nodes, deltas, room = pages.nodes, pages.deltas, room_of(pages)
    key, position = deltas[delta, KEY], deltas[delta, POSITION]
    at, size = count_before(pages, node, key, position), nodes[node, SIZE]
    held = (
        at < size
        and nodes[node, ENTRIES + at] == key
        and nodes[node, ENTRIES + room + at] == position
    )
    if held == (deltas[delta, KIND] == INSERTED):
        return
    step = -1 if held else 1
    begin = at + 1 if held else at
    for column in range(ENTRIES, ENTRIES + 3 * room, room):
        move_entries(nodes, node, column + begin, node, column + begin + step, size - begin)
    nodes[node, SIZE] = size + step
    if not held:
        nodes[node, ENTRIES + at] = key
        nodes[node, ENTRIES + room + at] = position
        nodes[node, ENTRIES + 2 * room + at] = deltas[delta, CHILD]


@kernel
def consolidate(pages: Pages, thread: int, page: int, address: int, counters: np.ndarray) -> None:
    """Put a base node, or two, in the place of a chain, unless the page has changed since."""
    node = take_spare(pages, thread, SPARE_NODE, NODES, counters)
    merge_chain(pages, thread, address, node, counters)
    if pages.nodes[node, SIZE] > pages.limits[0]:
        _split(pages, thread, page, address, node, counters)
        return
    counters[ATOMICS] += 1
    if compare_and_swap(pages.mapping, page, 0, address, -1 - node):
        pages.own[thread, SPARE_NODE] = NONE


@kernel
def _split(
    pages: Pages, thread: int, page: int, address: int, node: int, counters: np.ndarray
) -> None:
    """Do so with two nodes; the root stays where it is, above two new pages."""
    nodes, own, room = pages.nodes, pages.own, room_of(pages)
    right = take_spare(pages, thread, SPARE_RIGHT, NODES, counters)
    right_page = take_spare(pages, thread, SPARE_PAGE, PAGES, counters)
    size = nodes[node, SIZE]
    keep = size // 2
    for i in range(ENTRIES):
        nodes[right, i] = nodes[node, i]
    for column in range(ENTRIES, ENTRIES + 3 * room, room):
        move_entries(nodes, node, column + keep, right, column, size - keep)
    nodes[right, SIZE], nodes[node, SIZE] = size - keep, keep
    key, position = nodes[right, ENTRIES], nodes[right, ENTRIES + room]
    nodes[node, RIGHT] = right_page
    nodes[node, HIGH_KEY], nodes[node, HIGH_POSITION] = key, position
    store(pages.mapping, right_page, 0, -1 - right)
    counters[MOVES] += size - keep
    counters[ATOMICS] += 1
    if page != ROOT:
        if compare_and_swap(pages.mapping, page, 0, address, -1 - node):
            at = SCRATCH + OWED_WORDS * own[thread, OWED]
            own[thread, at], own[thread, at + 1] = nodes[node, LEVEL] + 1, key
            own[thread, at + 2], own[thread, at + 3] = position, right_page
            own[thread, OWED] += 1
            _forget_spares(pages, thread)
        return
    left_page = take_spare(pages, thread, SPARE_LEFT, PAGES, counters)
    top = take_spare(pages, thread, SPARE_TOP, NODES, counters)
    store(pages.mapping, left_page, 0, -1 - node)
    nodes[top, LEVEL], nodes[top, SIZE], nodes[top, RIGHT] = nodes[node, LEVEL] + 1, 2, NONE
    nodes[top, HIGH_KEY] = nodes[top, HIGH_POSITION] = GREATEST
    nodes[top, ENTRIES], nodes[top, ENTRIES + 1] = LEAST, key
    nodes[top, ENTRIES + room], nodes[top, ENTRIES + room + 1] = LEAST, position
    nodes[top, ENTRIES + 2 * room] = left_page
    nodes[top, ENTRIES + 2 * room + 1] = right_page
    if compare_and_swap(pages.mapping, ROOT, 0, address, -1 - top):
        own[thread, SPARE_LEFT] = own[thread, SPARE_TOP] = NONE
        _forget_spares(pages, thread)


@kernel
def _forget_spares(pages: Pages, thread: int) -> None:
    pages.own[thread, SPARE_NODE] = NONE
    pages.own[thread, SPARE_RIGHT] = pages.own[thread, SPARE_PAGE] = NONE
