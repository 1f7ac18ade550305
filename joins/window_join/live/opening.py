"""A batch as the threads of a live join find it: what is known before any of it is joined."""

from __future__ import annotations

import numpy as np

from joins.machine.compiling import inlined, kernel
from joins.machine.lanes import LANES
from joins.machine.memory import own_lines
from joins.window_join.live.state import HEAD, OUTPUT, QUEUE, SIDES, TOTAL, Live
from joins.window_join.rows import Rows


def open_live(words: np.ndarray, rows: Rows, held: int) -> Live:
    """Return shared arrays for *rows*, with room for *held* tuples of each side before them.

    Nothing of the queue is taken yet; `lay_out` fills in the rest. Vectors may look at `LANES` more
    tuples behind the last one.
    """
    n, sides = len(rows.side), len(words) - SIDES
    words[QUEUE, HEAD] = words[OUTPUT, HEAD] = words[OUTPUT, TOTAL] = 0
    return Live(
        words=words,
        status=np.zeros((1, n), np.int64),
        keys=np.empty((sides, held + n + LANES), np.int64),
        indexed=np.empty((sides, held + n + LANES), np.int64),
        base=own_lines(sides),
        arrived=np.empty((sides, n + 1), np.int64),
        seen=np.empty((sides, n + 1), np.int64),
        place=np.empty((2, n), np.int64),
        first=np.empty(n, np.int64),
    )


@kernel
def first_position(rows: Rows, side: int) -> int:
    """Return the position of a side's first tuple among *rows*; -1 where it has none."""
    for row in range(len(rows.side)):
        if rows.side[row] == side:
            return rows.position[row]
    return -1


@kernel
def lay_out(rows: Rows, live: Live, side: int, held: int, horizon: int) -> int:
    """Fill in a side's keys, what has arrived before each row, and what it and all later ones see.

    Nothing of it is indexed yet. Return how many tuples were in its window at the most.

    Parameters
    ----------
    live
        `Live.base` must be there.
    held
        How many tuples of the side stand before the batch's in `Live.keys`.
    horizon
        The position below which all are expired.
    """
    sides, n = len(live.base), len(rows.side)
    base, seen = live.base[side], horizon
    arrived = base + held
    for row in range(n):
        live.arrived[side, row] = arrived
        # Written in any case, and overwritten by the side's next: streams take no regular turns,
        # so that a branch would be guessed wrong.
        live.keys[side, arrived - base] = rows.key[row]
        live.indexed[side, arrived - base] = 0
        arrived += rows.side[row] == side
    live.arrived[side, n] = arrived
    for row in range(n - 1, -1, -1):
        if _probes(sides, rows.side[row], side):
            seen = max(seen, rows.start[row])
            break
    live.seen[side, n] = seen
    longest = arrived - seen
    for row in range(n - 1, -1, -1):
        seen = rows.start[row] if _probes(sides, rows.side[row], side) else seen
        live.seen[side, row] = seen
        longest = max(longest, live.arrived[side, row] - seen)
    return longest


@inlined
def _probes(sides: int, own: int, side: int) -> bool:
    """Tell whether a tuple of side *own* is joined with those of *side*."""
    return sides == 1 or own != side
