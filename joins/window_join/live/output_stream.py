"""The output stream: results in arrival order, whoever found them (PIM-Tree, section 4.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from joins.indexes.output import Output
from joins.machine.atomics import load, try_lock, unlock
from joins.machine.compiling import kernel
from joins.window_join.live.state import COMPLETED, HEAD, LOCK, OUTPUT, TOTAL, Live
from joins.window_join.rows import Rows


@kernel
def propagate(rows: Rows, live: Live, output: Output) -> None:
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


def propagate_all(
    rows: Rows, live: Live, outputs: Sequence[Output], *, listed: bool
) -> np.ndarray | None:
    """Propagate a batch's last rows; return its matches in arrival order where they were *listed*.

    *outputs* are what each thread found, and share the counts per row.
    """
    propagate(rows, live, outputs[0])
    if not listed:
        return None
    match_id = np.empty(live.words[OUTPUT, TOTAL], np.int64)
    for thread, output in enumerate(outputs):
        _gather(live, thread, output.matches, output.match_id, match_id)
    return match_id


@kernel
def _gather(live: Live, thread: int, count: np.ndarray, ids: np.ndarray, out: np.ndarray) -> None:
    """Copy the matches that a thread found to their places in the output stream."""
    for row in range(len(count)):
        if live.place[0, row] == thread:
            for i in range(count[row]):
                out[live.first[row] + i] = ids[live.place[1, row] + i]
