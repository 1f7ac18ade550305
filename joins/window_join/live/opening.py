"""A batch as the threads of a live join find it: what is known before any of it is joined."""

from __future__ import annotations

import numpy as np

from joins.machine.compiling import kernel
from joins.window_join.live.state import HEAD, OUTPUT, QUEUE, SIDES, TOTAL, Live
from joins.window_join.rows import Rows


def open_live(words: np.ndarray, rows: Rows, held: int) -> Live:
    """Return shared arrays for *rows*, with room for *held* tuples of each side before them.

    Nothing of the queue is taken yet; `lay_out` fills in the rest.
    """
    n, sides = len(rows.side), len(words) - SIDES
    words[QUEUE, HEAD] = words[OUTPUT, HEAD] = words[OUTPUT, TOTAL] = 0
    return Live(
        words=words,
        status=np.zeros((1, n), np.int64),
        keys=np.empty((sides, held + n), np.int64),
        indexed=np.zeros((sides, held + n), np.int64),
        base=np.zeros(sides, np.int64),
        arrived=np.empty((sides, n + 1), np.int64),
        seen=np.empty((sides, n + 1), np.int64),
        place=np.zeros((2, n), np.int64),
        first=np.zeros(n, np.int64),
    )


def first_position(rows: Rows, side: int) -> int | None:
    """Return the position of a side's first tuple among *rows*; None where it has none."""
    mine = np.flatnonzero(rows.side == side)[:1]
    return int(rows.position[mine[0]]) if len(mine) else None


@kernel
def lay_out(rows: Rows, live: Live, held: np.ndarray, horizon: np.ndarray) -> None:
    """Fill in keys, what has arrived before each row, and what it and all later ones see.

    Parameters
    ----------
    live
        `Live.base` must be there.
    held
        Per side how many tuples stand before the batch's in `Live.keys`.
    horizon
        Per side the position below which all are expired.
    """
    sides, n = len(live.base), len(rows.side)
    for side in range(sides):
        base, seen = live.base[side], horizon[side]
        arrived = base + held[side]
        live.arrived[side, 0] = arrived
        for row in range(n):
            if rows.side[row] == side:
                live.keys[side, arrived - base] = rows.key[row]
                arrived += 1
            if sides == 1 or rows.side[row] != side:
                seen = max(seen, rows.start[row])
            live.arrived[side, row + 1] = arrived
        live.seen[side, n] = seen
        for row in range(n - 1, -1, -1):
            if sides == 1 or rows.side[row] != side:
                seen = rows.start[row]
            live.seen[side, row] = seen
