"""How long the window joins of `ibwj` take on this machine, and PIM-Tree's workload for them."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from joins.hashing import mix
from joins.window_join.registry import IndexName
from joins.window_join.rows import Rows, make_rows
from joins.window_join.window_join import WindowJoin
from joins.work import NO_WORK, Work

BATCH_ROWS = 8_192
KEY_BITS = 30
MATCH_RATE = 2
"""Matches of a tuple in all experiments but one."""
_TUPLES = 400_000
_PERIODS = {"pim_tree": 1.0, "im_tree": 1.0, "b_chain": 2.0, "ib_chain": 2.0, "bw_tree": 0.25}
"""Tuples, in windows, after which both sides have merged, archived or rebuilt once."""
_SCANNED = 1e9
"""Most pairs that a nested loop compares while it is timed."""


@dataclass(frozen=True, kw_only=True)
class Timed:
    """A join over full windows: *tuples*, their *work*, and processor time in *seconds*."""

    tuples: int
    work: Work
    seconds: float

    @property
    def tuple_ns(self) -> float:
        """Processor time of a tuple, ns."""
        return self.seconds * 1e9 / self.tuples


def time_join(join: WindowJoin, rows: Rows, filling: int) -> Timed:
    """Join *rows* and time all but the first *filling*, which fill the windows.

    Those see nothing: a nested loop would take days over them if they did.
    """
    rows = rows._replace(stop=np.where(np.arange(len(rows.side)) < filling, 0, rows.stop))
    work, seconds = NO_WORK, 0.0
    for part, timed in ((rows.part(0, filling), False), (rows.part(filling, None), True)):
        for begin in range(0, len(part.side), BATCH_ROWS):
            batch = part.part(begin, begin + BATCH_ROWS)
            started = time.thread_time()
            result = join.join(batch)
            if timed:
                seconds += time.thread_time() - started
                work += result.work
    return Timed(tuples=len(rows.side) - filling, work=work, seconds=seconds)


def tuples_to_time(index: IndexName, window: float) -> int:
    """Return how many tuples to time: enough for every periodic cost to recur."""
    tuples = max(_TUPLES, int(_PERIODS.get(index, 0) * window))
    return min(tuples, max(1, int(_SCANNED / window))) if index == "nested_loop" else tuples


def uniform_keys(tuples: int, first: int = 0) -> np.ndarray:
    """Return keys of PIM-Tree's workload, from the *first* tuple on: uniform, 30 bits."""
    return (mix(np.arange(first, first + tuples)) >> np.uint64(64 - KEY_BITS)).astype(np.int64)


def band_of(window: int) -> int:
    """Return how far apart two such keys may be for a tuple to have two matches in a *window*."""
    return MATCH_RATE * (1 << KEY_BITS) // (2 * window)


def band_join(
    keys: np.ndarray,
    band: float,
    window: int | tuple[int, int],
    first: int = 0,
    *,
    share_percent: int = 50,
    self_join: bool = False,
) -> Rows:
    """Return tuples of two streams with windows of *window* tuples, or of so many each.

    *keys* are both streams', from their *first* tuple on; those at most *band* apart match. Of a
    hundred tuples *share_percent* are of the first stream, by default every other. In a *self_join*
    all are, and its window counts.
    """
    row = np.arange(first, first + len(keys))
    windows = np.broadcast_to(window, 2)
    if self_join:
        side, position, stop = np.zeros_like(row), row, row
    else:
        others = row * (100 - share_percent) // 100  # tuples of the second stream before each
        side = (row + 1) * (100 - share_percent) // 100 - others
        position = np.where(side == 1, others, row - others)
        stop = row - position
    seen = windows[0] if self_join else windows[1 - side]
    return make_rows(
        side=side,
        position=position,
        key=keys,
        low=keys - band,
        high=keys + band,
        start=np.maximum(0, stop - seen),
        stop=stop,
    )
