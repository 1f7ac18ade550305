"""The Bw-Tree (Levandoski, Lomet and Sengupta, ICDE 2013): PIM-Tree's parallel baseline.

Any number of threads insert, delete and search at once, without a lock (see
`joins.indexes.bw_tree.pages`). What they replace stays in memory until none of them is in the
tree: the paper's epochs end when a thread leaves, here one ends with `reserve`. Then a tree whose
memory has been used up is built anew from its entries, which also removes the pages that deletions
have emptied, as the paper's merges do.
"""

from __future__ import annotations

import numpy as np

from joins.indexes.bw_tree.pages import (
    DELETED,
    DELTAS,
    INSERTED,
    Pages,
    build,
    change,
    collect,
    make_pages,
    probe_range,
)
from joins.indexes.columns import column, window_columns
from joins.machine.compiling import kernel
from joins.matches import MatchBuffer, ProbeResult, begin_row, commit_row, find_matches
from joins.state import Stateful
from joins.work import NO_WORK, Work, new_counters

WIDTH = 32
"""Entries of a node: as of the other trees of this machine."""
CHAIN = 8
"""Deltas of a page before it is consolidated."""

_LEVELS_MAX = 64
_FIRST_CHANGES = 64
CHANGES_PER_ENTRY = 4
"""Entries of a tree over changes that there is room for: building it anew moves so many entries per
change."""


class BwTree(Stateful):
    """Entries of an int64 key and a position, each pair at most once.

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

    def __init__(
        self,
        *,
        width: int = WIDTH,
        chain: int = CHAIN,
        threads: int = 1,
    ) -> None:
        for name, value, least in (("chain", chain, 3), ("threads", threads, 1)):
            if value < least:
                raise ValueError(f"{name} is {value}, must be at least {least}")
        if width < max(4, chain):
            # Half of a full node and a full chain must not be too much for one node again.
            raise ValueError(f"width is {width}, must be at least 4 and at least chain, {chain}")
        self._options = {"width": width, "chain": chain, "threads": threads}
        self._built = 0
        self.pages: Pages
        nothing = np.empty(0, np.int64)
        self._build(nothing, nothing, _FIRST_CHANGES, new_counters())

    def _build(
        self, keys: np.ndarray, positions: np.ndarray, changes: int, counters: np.ndarray
    ) -> None:
        """Build the tree from sorted entries, with room for so many changes of leaves."""
        width, chain, threads = (self._options[name] for name in ("width", "chain", "threads"))
        # Each chain that is consolidated has had *chain* deltas, and becomes two nodes at the most.
        # So there is a separator to post for each of *chain* deltas, the separators' included.
        deltas = changes + changes // (chain - 1) + 1
        halves = deltas // chain + 1
        built = 2 * (-(-len(keys) // (width // 2))) + _LEVELS_MAX
        self.pages = make_pages(
            pages=built + halves + 2 * threads,
            nodes=built + 2 * halves + 3 * threads,
            deltas=deltas + threads,
            **self._options,
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

    def insert(self, keys: np.ndarray, positions: np.ndarray, *, thread: int = 0) -> Work:
        """Insert entries; there must be room for them (`reserve`)."""
        return self._change(INSERTED, keys, positions, thread)

    def delete(self, keys: np.ndarray, positions: np.ndarray, *, thread: int = 0) -> Work:
        """Delete entries, those that are not there excepted; there must be room for that."""
        return self._change(DELETED, keys, positions, thread)

    def _change(self, kind: int, keys: np.ndarray, positions: np.ndarray, thread: int) -> Work:
        keys = column(keys, np.int64, "keys")
        positions = column(positions, np.int64, "positions", len(keys))
        counters = new_counters()
        _change_all(self.pages, thread, kind, keys, positions, counters)
        return Work.from_counters(counters)

    def probe(
        self,
        lo: np.ndarray,
        hi: np.ndarray,
        *,
        start: np.ndarray | None = None,
        stop: np.ndarray | None = None,
    ) -> ProbeResult:
        """Find for every probe the entries with a key of its range and a position of its window.

        Both ends of a range belong to it; windows go from *start* to *stop* - 1, None sees all.
        """
        low = column(lo, np.int64, "lo")
        high = column(hi, np.int64, "hi", len(low))
        start, stop = window_columns(start, stop, len(low))

        def step(row: int, buffer: MatchBuffer, counters: np.ndarray) -> int:
            return _probe_all(self.pages, low, high, start, stop, row, buffer, counters)

        return find_matches(step, len(low), enumerate=True)


@kernel
def _change_all(
    pages: Pages,
    thread: int,
    kind: int,
    keys: np.ndarray,
    positions: np.ndarray,
    counters: np.ndarray,
) -> None:
    for i in range(len(keys)):
        change(pages, thread, kind, keys[i], positions[i], counters)


@kernel
def _probe_all(
    pages: Pages,
    low: np.ndarray,
    high: np.ndarray,
    start: np.ndarray,
    stop: np.ndarray,
    begin: int,
    output: MatchBuffer,
    counters: np.ndarray,
) -> int:
    for row in range(begin, len(low)):
        begin_row(output, counters)
        if low[row] <= high[row]:
            probe_range(pages, low[row], high[row], start[row], stop[row], row, output, counters)
        if not commit_row(output, row, counters):
            return row
    return len(low)
