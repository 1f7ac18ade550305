"""The output stream: results in arrival order, whoever found them (PIM-Tree, section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joins.machine.atomics import load, try_lock, unlock
from joins.machine.compiling import kernel
from joins.matches import MatchBuffer, MatchList
from joins.window_join.live.state import COMPLETED, HEAD, LOCK, OUTPUT, TOTAL, Live
from joins.window_join.rows import Rows


@kernel
def propagate(rows: Rows, live: Live, output: MatchBuffer) -> None:
    """Give completed rows at the queue's head their place in the output stream, in their order.

    Nothing is done when another thread is at it.
    """
    if not try_lock(live.words, OUTPUT, LOCK):
        return
    row, total = live.words[OUTPUT, HEAD], live.words[OUTPUT, TOTAL]
    while row < len(rows.side) and load(live.status, 0, row) == COMPLETED:
        live.first[row] = total
        total += output.matches[row]
        row += 1
    live.words[OUTPUT, HEAD], live.words[OUTPUT, TOTAL] = row, total
    unlock(live.words, OUTPUT, LOCK)


def propagate_all(rows: Rows, live: Live, threads: Sequence[MatchList]) -> np.ndarray | None:
    """Propagate a batch's last rows; return its matches in arrival order where they were listed.

    *threads* are the matches of each thread, and share the counts per row.
    """
    propagate(rows, live, threads[0].buffer)
    match_id = np.empty(live.words[OUTPUT, TOTAL], np.int64)
    for thread, matches in enumerate(threads):
        listed = matches.match_id
        if listed is None:
            return None
        _gather(live, thread, matches.buffer.matches, listed, match_id)
    return match_id


@kernel
def _gather(live: Live, thread: int, count: np.ndarray, ids: np.ndarray, out: np.ndarray) -> None:
    """Copy the matches that a thread found to their places in the output stream."""
    for row in range(len(count)):
        if live.place[0, row] == thread:
            for i in range(count[row]):
                out[live.first[row] + i] = ids[live.place[1, row] + i]
