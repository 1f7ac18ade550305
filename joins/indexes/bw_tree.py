"""The Bw-Tree (Levandoski, Lomet and Sengupta, ICDE 2013): PIM-Tree's parallel baseline.

Any number of threads insert, delete and search at once, without a lock (sections III and IV).

**Memory.** A page is named by its place in the mapping table. The table has the address of its
newest delta record, or of its base node when it has no deltas: delta i has address i, node j has
-1 - j. A record never changes once it can be reached, and its row is not used again while any
thread is in the tree; so an address that is still in the table means what it meant before.

**Searching.** A reader loads the address of a page once and then sees a chain that nobody changes.
Where a page has been split and its parent has no separator for that yet, the link to the right
leads on. Words of the mapping table and deltas are in lines of memory that other threads have
written: each that is read is counted as an atomic operation.

**Changing.** A change is a delta record put in front of its page's chain. A chain that has its full
length is consolidated first, by any thread that comes: into a base node, or two if there are too
many entries for one. A split is thus visible as soon as the left half is in the table, whose link
leads to the right one; its separator is posted to the parent afterwards, and by the thread that
split alone, because no search needs it. A thread's step is made ready where no other sees it
(`prepare`) and becomes visible to all at once (`swap`); a thread that loses a race discards nothing
that could be reached, and begins anew.

The paper's split is a delta record of its own, and consolidation comes later; here both are one
compare-and-swap, and chains of splits and entries need no distinction.

**Reclaiming.** What threads replace stays in memory until none of them is in the tree: the paper's
epochs end when a thread leaves, here one ends with `BwTree.reserve`. Then a tree whose memory has
been used up is built anew from its entries, which also removes the pages that deletions have
emptied, as the paper's merges do.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.codes import GREATEST, LEAST
from joins.indexes.index import NONE, Sought, check_least
from joins.machine.compiling import inlined, kernel
from joins.machine.instructions import compare_and_swap, fetch_add, load, move_entries, store
from joins.machine.memory import LINE, aligned, record
from joins.matches import MatchBuffer, add_match
from joins.state import Stateful, storable
from joins.work import ATOMICS, COMPARISONS, INSERTS, MOVES, NO_WORK, Work, new_counters

ROOT = 0
"""The page that is always the root."""

LEVEL, SIZE, RIGHT, HIGH_KEY, HIGH_POSITION, ENTRIES = range(6)
"""A base node: 0 for a leaf, its entries, the page to its right, and the entry before which its own
end. From `ENTRIES` on come keys, then positions, then children, each with the node's room."""

INSERTED, DELETED = 0, 1
"""Kinds of deltas. A child's separator in an inner page is inserted as a leaf's entry is."""

NODES, DELTAS, PAGES = range(3)
"""Rows of `Pages.used`, a cache line each: how many of them are in use."""

_PENDING_MAX = 32
PUT, CONSOLIDATE, SPLIT, GROW = range(4)
"""Steps: a delta before the chain; a base node in the chain's place, or two; or two below the root.
"""

WIDTH = 32
"""Entries of a node: as of the other trees of this machine."""
CHAIN = 8
"""Deltas of a page before it is consolidated."""

_LEVELS_MAX = 64
_FIRST_CHANGES = 64
CHANGES_PER_ENTRY = 4
"""Entries of a tree over changes that there is room for: building it anew moves so many entries per
change."""

DELTA = record("kind", "key", "position", "child", "next", "length", "base", words=LINE)
"""A delta: what it does to entry (key, position), the record below it, how many deltas the chain
has with it, and the chain's base node."""
CHANGE = record("level", "kind", "key", "position", "child", words=LINE)
"""A change that a thread still has to publish; the child is that of a separator."""
OWN = record("step", "page", "seen", "new", "pending")
"""A thread's next compare-and-swap, of a page, from the address it saw to a new one; and how many
changes it still has to publish."""
SPARE = record("delta", "node", "right", "top", "page", "left")
"""Records and pages that a thread owns and has not published: a delta; base nodes, the right one of
two and one above them; the page of the right one, and of the left one. `NONE` where it has none."""


@storable
class Pages(NamedTuple):
    """The arrays of one tree; all but the threads' own are changed atomically alone."""

    mapping: np.ndarray
    """Shape (pages, 1): addresses."""
    nodes: np.ndarray
    """A base node per row, see `LEVEL`."""
    deltas: np.ndarray
    """`DELTA`."""
    used: np.ndarray
    """See `NODES`."""
    own: np.ndarray
    changes: np.ndarray
    """For each thread `OWN`, and the `CHANGE` it has to publish, the next one last."""
    spare: np.ndarray
    """`SPARE`, one for each thread."""
    path: np.ndarray
    """A row per thread: room for the deltas of a chain."""
    width: int
    chain: int
    """Entries beyond which a node is split, and deltas at which a chain is consolidated."""


@inlined
def _base_of(pages: Pages, address: int) -> int:
    """Return the base node of a chain."""
    return -1 - address if address < 0 else pages.deltas[address].base


@inlined
def chain_length(pages: Pages, address: int) -> int:
    """Return how many deltas a chain has."""
    return 0 if address < 0 else pages.deltas[address].length


@inlined
def _room_of(pages: Pages) -> int:
    """Return the entries that a node has room for."""
    return int((pages.nodes.shape[1] - ENTRIES) // 3)


@inlined
def _is_before(key: int, position: int, other_key: int, other_position: int) -> bool:
    """Return whether entry (key, position) comes before the other."""
    return key < other_key or (key == other_key and position < other_position)


@kernel
def _count_before(pages: Pages, node: int, key: int, position: int) -> int:
    """Return how many entries of a base node come before (key, position)."""
    nodes = pages.nodes
    size, at = nodes[node, SIZE], 0
    for i in range(ENTRIES, ENTRIES + size):
        at += nodes[node, i] < key
    positions = ENTRIES + _room_of(pages)
    while at < size and nodes[node, ENTRIES + at] == key and nodes[node, positions + at] < position:
        at += 1
    return at


@kernel
def _child(pages: Pages, address: int, key: int, position: int, counters: np.ndarray) -> int:
    """Return the child whose entries (key, position) belongs to: the last not after it."""
    node, room = _base_of(pages, address), _room_of(pages)
    at = _count_before(pages, node, key, position)
    nodes, deltas = pages.nodes, pages.deltas
    if at == nodes[node, SIZE] or _is_before(
        key, position, nodes[node, ENTRIES + at], nodes[node, ENTRIES + room + at]
    ):
        at -= 1
    best_key, best_position = nodes[node, ENTRIES + at], nodes[node, ENTRIES + room + at]
    child = nodes[node, ENTRIES + 2 * room + at]
    counters[COMPARISONS] += nodes[node, SIZE] + chain_length(pages, address)
    counters[ATOMICS] += chain_length(pages, address)
    while address >= 0:
        delta_key, delta_position = deltas[address].key, deltas[address].position
        after = _is_before(key, position, delta_key, delta_position)
        if not after and _is_before(best_key, best_position, delta_key, delta_position):
            best_key, best_position = delta_key, delta_position
            child = deltas[address].child
        address = deltas[address].next
    return int(child)


@kernel
def _find_page(
    pages: Pages, level: int, key: int, position: int, counters: np.ndarray
) -> tuple[int, int]:
    """Return the page of a level that (key, position) belongs to, and its address."""
    page, nodes = ROOT, pages.nodes
    while True:
        address = load(pages.mapping, page, 0)
        node = _base_of(pages, address)
        counters[ATOMICS] += 1 + (address >= 0)
        counters[COMPARISONS] += 1
        if not _is_before(key, position, nodes[node, HIGH_KEY], nodes[node, HIGH_POSITION]):
            page = nodes[node, RIGHT]
        elif nodes[node, LEVEL] == level:
            return page, address
        else:
            page = _child(pages, address, key, position, counters)


@inlined
def _is_overruled(
    pages: Pages, newest: int, until: int, key: int, position: int, counters: np.ndarray
) -> bool:
    """Return whether a delta from *newest* on, before address *until*, is about an entry."""
    address, deltas = newest, pages.deltas
    while address >= 0 and address != until:
        counters[COMPARISONS] += 1
        if deltas[address].key == key and deltas[address].position == position:
            return True
        address = deltas[address].next
    return False


@kernel
def probe_range(pages: Pages, sought: Sought, output: MatchBuffer, counters: np.ndarray) -> None:
    """Report the entries that are sought."""
    nodes, deltas, room = pages.nodes, pages.deltas, _room_of(pages)
    low, high = sought.low, sought.high
    page, newest = _find_page(pages, 0, low, LEAST, counters)
    while True:
        node, address = _base_of(pages, newest), newest
        counters[COMPARISONS] += chain_length(pages, newest)
        counters[ATOMICS] += chain_length(pages, newest)
        while address >= 0:
            key, position = deltas[address].key, deltas[address].position
            if (
                deltas[address].kind == INSERTED
                and low <= key <= high
                and sought.start <= position < sought.stop
                and not _is_overruled(pages, newest, address, key, position, counters)
            ):
                add_match(output, sought.row, position)
            address = deltas[address].next
        at, size = _count_before(pages, node, low, LEAST), nodes[node, SIZE]
        counters[COMPARISONS] += size
        while at < size and nodes[node, ENTRIES + at] <= high:
            key, position = nodes[node, ENTRIES + at], nodes[node, ENTRIES + room + at]
            if sought.start <= position < sought.stop and not _is_overruled(
                pages, newest, NONE, key, position, counters
            ):
                add_match(output, sought.row, position)
            at += 1
        counters[COMPARISONS] += 1
        if _is_before(high, GREATEST, nodes[node, HIGH_KEY], nodes[node, HIGH_POSITION]):
            return
        page = nodes[node, RIGHT]
        if page == NONE:
            return
        newest = load(pages.mapping, page, 0)
        counters[ATOMICS] += 1


@kernel
def change(
    pages: Pages, thread: int, kind: int, key: int, position: int, counters: np.ndarray
) -> None:
    """Insert or delete an entry, and post the separators of what was split on the way."""
    begin_change(pages, thread, kind, key, position, counters)
    while is_changing(pages, thread):
        prepare(pages, thread, counters)
        swap(pages, thread, counters)


@inlined
def begin_change(
    pages: Pages, thread: int, kind: int, key: int, position: int, counters: np.ndarray
) -> None:
    """Queue an insertion or a deletion for a thread: `prepare` and `swap` publish it."""
    _queue_change(pages, thread, 0, kind, key, position, NONE)
    counters[INSERTS] += kind == INSERTED


@inlined
def is_changing(pages: Pages, thread: int) -> bool:
    """Return whether a thread has something left to publish."""
    return bool(pages.own[thread].pending > 0)


@inlined
def _queue_change(
    pages: Pages, thread: int, level: int, kind: int, key: int, position: int, child: int
) -> None:
    queued = pages.changes[thread, pages.own[thread].pending]
    queued.level, queued.kind = level, kind
    queued.key, queued.position, queued.child = key, position, child
    pages.own[thread].pending += 1


@inlined
def prepare(pages: Pages, thread: int, counters: np.ndarray) -> None:
    """Make what a thread's next compare-and-swap publishes, where no other thread sees it yet."""
    own = pages.own[thread]
    queued = pages.changes[thread, own.pending - 1]
    page, address = _find_page(pages, queued.level, queued.key, queued.position, counters)
    own.page, own.seen = page, address
    if chain_length(pages, address) >= pages.chain:
        _consolidate(pages, thread, counters)
        return
    spare = pages.spare[thread]
    spare.delta = _spare_or_new(pages, spare.delta, DELTAS, counters)
    delta = pages.deltas[spare.delta]
    delta.kind, delta.key = queued.kind, queued.key
    delta.position, delta.child = queued.position, queued.child
    delta.next, delta.length = address, chain_length(pages, address) + 1
    delta.base = _base_of(pages, address)
    own.step, own.new = PUT, spare.delta


@inlined
def swap(pages: Pages, thread: int, counters: np.ndarray) -> None:
    """Publish what `prepare` made, unless the page has changed since."""
    own, spare = pages.own[thread], pages.spare[thread]
    counters[ATOMICS] += 1
    if not compare_and_swap(pages.mapping, own.page, 0, own.seen, own.new):
        return
    if own.step == PUT:
        spare.delta = NONE
        own.pending -= 1
        return
    node, spare.node = spare.node, NONE
    if own.step == CONSOLIDATE:
        return
    spare.right = spare.page = NONE
    if own.step == GROW:
        spare.left = spare.top = NONE
        return
    nodes = pages.nodes
    level, key, position = nodes[node, LEVEL], nodes[node, HIGH_KEY], nodes[node, HIGH_POSITION]
    _queue_change(pages, thread, level + 1, INSERTED, key, position, nodes[node, RIGHT])


@kernel
def _spare_or_new(pages: Pages, spare: int, what: int, counters: np.ndarray) -> int:
    """Return the record or page that a thread has to *spare*, or a new one if that is `NONE`."""
    if spare != NONE:
        return spare
    counters[ATOMICS] += 1
    return int(fetch_add(pages.used, what, 0, 1))


@kernel
def _merge_chain(
    pages: Pages, thread: int, address: int, target: int, counters: np.ndarray
) -> None:
    """Write what a page holds into node *target*: its base with its deltas, oldest first."""
    nodes, deltas, path, room = pages.nodes, pages.deltas, pages.path, _room_of(pages)
    source, length = _base_of(pages, address), chain_length(pages, address)
    size = nodes[source, SIZE]
    for i in range(ENTRIES):
        nodes[target, i] = nodes[source, i]
    for column in range(ENTRIES, ENTRIES + 3 * room, room):
        move_entries(nodes, source, column, target, column, size)
    for i in range(length):
        path[thread, i] = address
        address = deltas[address].next
    counters[MOVES] += size + length
    counters[ATOMICS] += length
    for i in range(length - 1, -1, -1):
        _apply(pages, path[thread, i], target, counters)


@kernel
def _apply(pages: Pages, delta: int, node: int, counters: np.ndarray) -> None:
    nodes, deltas, room = pages.nodes, pages.deltas, _room_of(pages)
    key, position = deltas[delta].key, deltas[delta].position
    at, size = _count_before(pages, node, key, position), nodes[node, SIZE]
    is_present = (
        at < size
        and nodes[node, ENTRIES + at] == key
        and nodes[node, ENTRIES + room + at] == position
    )
    if is_present == (deltas[delta].kind == INSERTED):
        return
    step = -1 if is_present else 1
    begin = at + 1 if is_present else at
    for column in range(ENTRIES, ENTRIES + 3 * room, room):
        move_entries(nodes, node, column + begin, node, column + begin + step, size - begin)
    nodes[node, SIZE] = size + step
    counters[MOVES] += size - begin
    if not is_present:
        nodes[node, ENTRIES + at] = key
        nodes[node, ENTRIES + room + at] = position
        nodes[node, ENTRIES + 2 * room + at] = deltas[delta].child


@kernel
def _consolidate(pages: Pages, thread: int, counters: np.ndarray) -> None:
    """Prepare a base node, or two, for the place of a chain."""
    own, spare = pages.own[thread], pages.spare[thread]
    node = spare.node = _spare_or_new(pages, spare.node, NODES, counters)
    _merge_chain(pages, thread, own.seen, node, counters)
    own.step, own.new = CONSOLIDATE, -1 - node
    if pages.nodes[node, SIZE] > pages.width:
        _split(pages, thread, node, counters)


@kernel
def _split(pages: Pages, thread: int, node: int, counters: np.ndarray) -> None:
    """Prepare two nodes; the root stays where it is, above two new pages."""
    nodes, own, room = pages.nodes, pages.own[thread], _room_of(pages)
    spare = pages.spare[thread]
    right = spare.right = _spare_or_new(pages, spare.right, NODES, counters)
    right_page = spare.page = _spare_or_new(pages, spare.page, PAGES, counters)
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
    own.step = SPLIT
    if own.page != ROOT:
        return
    left_page = spare.left = _spare_or_new(pages, spare.left, PAGES, counters)
    top = spare.top = _spare_or_new(pages, spare.top, NODES, counters)
    store(pages.mapping, left_page, 0, -1 - node)
    nodes[top, LEVEL], nodes[top, SIZE], nodes[top, RIGHT] = nodes[node, LEVEL] + 1, 2, NONE
    nodes[top, HIGH_KEY] = nodes[top, HIGH_POSITION] = GREATEST
    nodes[top, ENTRIES], nodes[top, ENTRIES + 1] = LEAST, key
    nodes[top, ENTRIES + room], nodes[top, ENTRIES + room + 1] = LEAST, position
    nodes[top, ENTRIES + 2 * room] = left_page
    nodes[top, ENTRIES + 2 * room + 1] = right_page
    own.step, own.new = GROW, -1 - top


@kernel
def collect(pages: Pages, keys: np.ndarray, positions: np.ndarray, counters: np.ndarray) -> int:
    """Write all entries in order and return how many there are; no thread may be in the tree."""
    nodes, room = pages.nodes, _room_of(pages)
    spare = pages.spare[0]
    node = spare.node = _spare_or_new(pages, spare.node, NODES, counters)
    page, address = _find_page(pages, 0, LEAST, LEAST, counters)
    n = 0
    while True:
        _merge_chain(pages, 0, address, node, counters)
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
    nodes, room = pages.nodes, _room_of(pages)
    fill = pages.width - pages.width // 4
    pages.used[PAGES, 0] = 1
    level, begin, count = 0, 0, len(keys)
    while True:
        # Below the root every level is cut evenly, so that none of its nodes is nearly empty.
        parts = 1 if count <= pages.width else -(-count // fill)
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
        if level:
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
    nodes, room = pages.nodes, _room_of(pages)
    if level == 0:
        nodes[node, ENTRIES + at] = keys[source]
        nodes[node, ENTRIES + room + at] = positions[source]
        return
    nodes[node, ENTRIES + at] = nodes[source, ENTRIES]
    nodes[node, ENTRIES + room + at] = nodes[source, ENTRIES + room]
    # Nodes and pages of a level are allocated in the same order, the root's page before all.
    nodes[node, ENTRIES + 2 * room + at] = source + 1


class BwTree(Stateful):
    """Entries of an int64 key and a position, each pair at most once.

    It is no `joins.indexes.index.Index`: threads that share it change and probe it at once, an
    entry a call, in the kernels above (`joins.window_join.shared_bw_tree`).

    Parameters
    ----------
    width
        Entries beyond which a node is split, at least 4, and no fewer than *chain*.
    chain
        Deltas at which a page is consolidated, at least 3.
    threads
        How many may change the tree at once.
    """

    state = ("pages", "_built", "_changes_left")

    def __init__(self, *, width: int = WIDTH, chain: int = CHAIN, threads: int = 1) -> None:
        check_least(3, chain=chain)
        check_least(1, threads=threads)
        if width < max(4, chain):
            # Half of a full node and a full chain must not be too much for one node again.
            raise ValueError(f"width is {width}, must be at least 4 and at least chain, {chain}")
        self._made_of = width, chain, threads
        self._built = 0
        self.pages: Pages
        nothing = np.empty(0, np.int64)
        self._build(nothing, nothing, _FIRST_CHANGES, new_counters())

    def _build(
        self, keys: np.ndarray, positions: np.ndarray, changes: int, counters: np.ndarray
    ) -> None:
        """Build the tree from sorted entries, with room for so many changes of leaves."""
        width, chain, threads = self._made_of
        # Each chain that is consolidated has had *chain* deltas, and becomes two nodes at the most.
        # So there is a separator to post for each of *chain* deltas, the separators' included.
        deltas = changes + changes // (chain - 1) + 1
        halves = deltas // chain + 1
        built = 2 * (-(-len(keys) // (width // 2))) + _LEVELS_MAX
        nodes = built + 2 * halves + 3 * threads
        room = width + chain  # All that a node may have before it is split.
        spare = aligned((threads,), SPARE)
        for name in SPARE.names or ():
            spare[name] = NONE
        self.pages = Pages(
            mapping=np.zeros((built + halves + 2 * threads, 1), np.int64),
            nodes=np.zeros((nodes, ENTRIES + 3 * room), np.int64),
            deltas=np.zeros(deltas + threads, DELTA),
            used=aligned((3, LINE)),
            own=aligned((threads,), OWN),
            changes=aligned((threads, _PENDING_MAX), CHANGE),
            spare=spare,
            path=aligned((threads, -(-chain // LINE) * LINE)),
            width=width,
            chain=chain,
        )
        self._built = len(keys)
        self._changes_left = changes
        build(self.pages, keys, positions, counters)

    def reserve(self, changes: int) -> Work:
        """Make room for so many inserts and deletes from now on; no thread may be in the tree."""
        if changes <= self._changes_left:
            self._changes_left -= changes
            return NO_WORK
        counters = new_counters()
        most = self._built + int(self.pages.used[DELTAS, 0])
        keys, positions = np.empty(most, np.int64), np.empty(most, np.int64)
        n = collect(self.pages, keys, positions, counters)
        room = max(changes, n // CHANGES_PER_ENTRY, _FIRST_CHANGES)
        self._build(keys[:n].copy(), positions[:n].copy(), room, counters)
        self._changes_left -= changes
        return Work.from_counters(counters)
