"""The windows of a join whose index several threads share, from one batch to the next."""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.indexes.pim_tree.layout import HORIZON, LIMIT, NEXT_POSITION
from joins.indexes.pim_tree.pim_tree import PimTree
from joins.machine.memory import aligned
from joins.threads import side_by_side
from joins.window_join.live.merge import advance_edge
from joins.window_join.live.opening import first_position, lay_out, open_live
from joins.window_join.live.state import EDGE, SIDES, WORDS, Live
from joins.window_join.rows import Rows


class SharedWindows:
    """What is shared beside the index: locks, queue, and the part of the windows not indexed yet.

    Parameters
    ----------
    index
        A `PimTree` (or `ImTree`) with two sides; with one for a self join.
    """

    def __init__(self, index: PimTree) -> None:
        self.index = index
        sides = len(index.forest.sides)
        self._words = aligned((SIDES + sides, WORDS))
        self._tails = [np.zeros((2, 0), np.int64) for _ in range(sides)]

    def open(self, rows: Rows, late: int, threads: int = 1) -> Live:
        """Return the shared arrays for the next arrivals, and make room for them in the index.

        *late* is how many of them may be joined and not yet be indexed, per side. Several *threads*
        lay the sides out side by side.
        """
        held = [tail.shape[1] for tail in self._tails]
        live = open_live(self._words, rows, max(held))

        def lay_out_side(side: int) -> int:
            first = first_position(rows, side)
            if first >= 0 and not held[side]:
                live.words[SIDES + side, EDGE] = first
            live.base[side] = live.words[SIDES + side, EDGE]
            live.keys[side, : held[side]], live.indexed[side, : held[side]] = self._tails[side]
            horizon = max(0, self.index.forest.sides[side, HORIZON])
            return lay_out(rows, live, side, held[side], horizon)

        windows = side_by_side(lay_out_side, range(len(held)), threads)
        for side, window in enumerate(windows):
            self._make_room(side, window, max(held) + late)
        return live

    def _make_room(self, side: int, window: int, late: int) -> None:
        """Make room for all that may come to a side's trees, of a *window* so long at the most."""
        index = self.index
        limit = max(index.merge_limit(window), index.forest.sides[side, LIMIT])
        inserted = max(int(limit), index.active_entries(side)) + 2 * late
        index.make_room(_with_spare(window + late), _with_spare(inserted))

    def close(self, live: Live) -> None:
        """Keep what the next batch needs of this one, of which every row has been joined."""
        state = self.index.forest.sides
        state[:, NEXT_POSITION] = live.arrived[:, -1]
        state[:, HORIZON] = live.seen[:, -1]
        for side in range(len(self._tails)):
            advance_edge(live, side)
            begin, end = live.words[SIDES + side, EDGE], live.arrived[side, -1]
            rest = slice(begin - live.base[side], end - live.base[side])
            self._tails[side] = np.stack([live.keys[side, rest], live.indexed[side, rest]])

    @property
    def nbytes(self) -> int:
        """Bytes that the indexes occupy, which are the windows too, and what is not in them."""
        return self.index.nbytes + sum(tail.nbytes for tail in self._tails)

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "index": self.index.snapshot(),
            "words": self._words.copy(),
            "tails": [tail.copy() for tail in self._tails],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.index = type(self.index).restore(state["index"])
        self._words[...] = state["words"]
        self._tails = [np.array(tail, np.int64) for tail in state["tails"]]


def _with_spare(entries: int) -> int:
    """Return up to a quarter more, so that windows that fill up seldom ask for more room."""
    step = 1 << max(0, entries.bit_length() - 3)
    return -(-entries // step) * step
