"""Changing a Bw-Tree by compare-and-swap (Bw-Tree, sections III and IV).

A change is a delta record put in front of its page's chain. A chain that has its full length is
consolidated first, by whoever comes: into a base node, or two if it holds too much. A split is thus
seen as soon as the left half is in the table, whose link leads to the right one; its separator is
posted to the parent afterwards, and by the thread that split alone, because no search needs it.

A step of a thread is made ready where nobody sees it (`prepare`) and becomes visible to all at once
(`swap`); whoever loses a race throws nothing away that could be reached, and begins anew.

The paper's split is a delta record of its own, and consolidation comes later; here both are one
compare-and-swap, and chains of splits and entries need not be told apart.
"""

from __future__ import annotations

import numpy as np

from joins.indexes.bw_tree.pages import (
    BASE,
    CHILD,
    CONSOLIDATE,
    DELTAS,
    ENTRIES,
    GREATEST,
    GROW,
    HIGH_KEY,
    HIGH_POSITION,
    INSERTED,
    KEY,
    KIND,
    LEAST,
    LENGTH,
    LEVEL,
    NEW,
    NEXT,
    NODES,
    NONE,
    PAGE,
    PAGES,
    PENDING,
    PENDING_MAX,
    PENDING_WORDS,
    POSITION,
    PUT,
    RANDOM,
    RIGHT,
    ROOT,
    SCRATCH,
    SEEN,
    SIZE,
    SPARE_DELTA,
    SPARE_LEFT,
    SPARE_NODE,
    SPARE_PAGE,
    SPARE_RIGHT,
    SPARE_TOP,
    SPLIT,
    STEP,
    Pages,
)
from joins.indexes.bw_tree.search import (
    base_of,
    chain_length,
    count_before,
    find_page,
    room_of,
)
from joins.machine.atomics import compare_and_swap, fetch_add, offer_now_and_then, store
from joins.machine.compiling import kernel
from joins.machine.instructions import move_entries
from joins.work import ATOMICS, INSERTS, MOVES


@kernel
def change(
    pages: Pages, thread: int, kind: int, key: int, position: int, counters: np.ndarray
) -> None:
    """Insert or delete an entry, and post the separators of what was split on the way."""
    begin_change(pages, thread, kind, key, position, counters)
    while is_changing(pages, thread):
        prepare(pages, thread, counters)
        swap(pages, thread, counters)


@kernel
def begin_change(
    pages: Pages, thread: int, kind: int, key: int, position: int, counters: np.ndarray
) -> None:
    """Let a thread have an entry to insert or delete: by `prepare` and `swap` until it is done."""
    _owe(pages, thread, 0, kind, key, position, NONE)
    counters[INSERTS] += kind == INSERTED


@kernel
def is_changing(pages: Pages, thread: int) -> bool:
    """Tell whether a thread has something left to publish."""
    return pages.own[thread, PENDING] > 0


@kernel
def _owe(
    pages: Pages, thread: int, level: int, kind: int, key: int, position: int, child: int
) -> None:
    own = pages.own
    at = SCRATCH + PENDING_WORDS * own[thread, PENDING]
    own[thread, at], own[thread, at + 1], own[thread, at + 2] = level, kind, key
    own[thread, at + 3], own[thread, at + 4] = position, child
    own[thread, PENDING] += 1


@kernel
def prepare(pages: Pages, thread: int, counters: np.ndarray) -> None:
    """Make what a thread's next compare-and-swap publishes, where nobody else can see it yet."""
    own, deltas = pages.own, pages.deltas
    at = SCRATCH + PENDING_WORDS * (own[thread, PENDING] - 1)
    level, kind, key = own[thread, at], own[thread, at + 1], own[thread, at + 2]
    position, child = own[thread, at + 3], own[thread, at + 4]
    page, address = find_page(pages, level, key, position, counters)
    own[thread, PAGE], own[thread, SEEN] = page, address
    if chain_length(pages, address) >= pages.limits[1]:
        _consolidate(pages, thread, counters)
        return
    delta = take_spare(pages, thread, SPARE_DELTA, DELTAS, counters)
    row = deltas[delta]
    row[KIND], row[KEY], row[POSITION], row[CHILD] = kind, key, position, child
    row[NEXT], row[LENGTH] = address, chain_length(pages, address) + 1
    row[BASE] = base_of(pages, address)
    own[thread, STEP], own[thread, NEW] = PUT, delta


@kernel
def swap(pages: Pages, thread: int, counters: np.ndarray) -> None:
    """Publish what `prepare` made, unless the page has changed since."""
    own = pages.own
    let_others_run(pages, thread)
    counters[ATOMICS] += 1
    if not compare_and_swap(
        pages.mapping, own[thread, PAGE], 0, own[thread, SEEN], own[thread, NEW]
    ):
        return
    step, node = own[thread, STEP], own[thread, SPARE_NODE]
    if step == PUT:
        own[thread, SPARE_DELTA] = NONE
        own[thread, PENDING] -= 1
        return
    own[thread, SPARE_NODE] = NONE
    if step == CONSOLIDATE:
        return
    own[thread, SPARE_RIGHT] = own[thread, SPARE_PAGE] = NONE
    if step == GROW:
        own[thread, SPARE_LEFT] = own[thread, SPARE_TOP] = NONE
        return
    nodes = pages.nodes
    level, key, position = nodes[node, LEVEL], nodes[node, HIGH_KEY], nodes[node, HIGH_POSITION]
    _owe(pages, thread, level + 1, INSERTED, key, position, nodes[node, RIGHT])


@kernel
def let_others_run(pages: Pages, thread: int) -> None:
    """Pause now and then, where a test wants to see every interleaving."""
    offer_now_and_then(pages.limits[2], pages.own[thread], RANDOM)


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
    path = SCRATCH + PENDING_MAX * PENDING_WORDS
    for i in range(length):
        own[thread, path + i] = address
        address = deltas[address, NEXT]
    counters[MOVES] += size + length
    counters[ATOMICS] += length
    for i in range(length - 1, -1, -1):
        delta = own[thread, path + i]
        _apply(pages, delta, target, counters)


@kernel
def _apply(pages: Pages, delta: int, node: int, counters: np.ndarray) -> None:
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
    counters[MOVES] += size - begin
    if not held:
        nodes[node, ENTRIES + at] = key
        nodes[node, ENTRIES + room + at] = position
        nodes[node, ENTRIES + 2 * room + at] = deltas[delta, CHILD]


@kernel
def _consolidate(pages: Pages, thread: int, counters: np.ndarray) -> None:
    """Prepare a base node, or two, for the place of a chain."""
    own = pages.own
    node = take_spare(pages, thread, SPARE_NODE, NODES, counters)
    merge_chain(pages, thread, own[thread, SEEN], node, counters)
    own[thread, STEP], own[thread, NEW] = CONSOLIDATE, -1 - node
    if pages.nodes[node, SIZE] > pages.limits[0]:
        _split(pages, thread, node, counters)


@kernel
def _split(pages: Pages, thread: int, node: int, counters: np.ndarray) -> None:
    """Prepare two nodes; the root stays where it is, above two new pages."""
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
    own[thread, STEP] = SPLIT
    if own[thread, PAGE] != ROOT:
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
    own[thread, STEP], own[thread, NEW] = GROW, -1 - top
