"""The nested-loop window join (NLWJ): every tuple is compared with all it sees."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from joins.machine.compiling import kernel
from joins.machine.dispatch import DONE, NO_ROOM, implements
from joins.machine.instructions import trailing_zeros
from joins.matches import MatchBuffer, add_match
from joins.window_join.rows import KernelRows, Rings, WindowKeys, append_key, is_full, probed_side
from joins.window_join.window_join import RowsJoin, insert_row, prepare_row, probe_row
from joins.work import COMPARISONS, INSERTS, NO_WORK, Work

_STRETCH = 64
"""Places that are compared in one pass: a word has a bit for each."""


class NestedLoopJoin(RowsJoin):
    """Stores the windows as columns and scans them.

    Parameters
    ----------
    self_join
        Whether the one stream is joined with itself.
    """

    state = ("_window",)

    def __init__(self, *, self_join: bool = False) -> None:
        super().__init__()
        self._window = WindowKeys(1 if self_join else 2)

    def expire(self, side: int, before: int) -> Work:
        """Expire a side's positions below *before*, which no later row sees."""
        first = self._window.rings.spans["first"]
        first[side] = max(first[side], before)
        return NO_WORK

    def _record(self) -> PlainWindows:
        return PlainWindows(self._window.rings)

    def _mend(self, side: int, why: int) -> Work:
        self._window.grow()
        return NO_WORK


class PlainWindows(NamedTuple):
    """The keys of the sides' windows, without any index."""

    rings: Rings


@implements(prepare_row, PlainWindows)
def _prepare_row(index: PlainWindows, rows: KernelRows, row: int, counters: np.ndarray) -> int:
    spans = index.rings.spans
    probed = probed_side(len(spans), rows.side[row])
    spans[probed].first = max(spans[probed].first, rows.start[row])
    return NO_ROOM if is_full(index.rings, rows.side[row]) else DONE


@implements(probe_row, PlainWindows)
def _probe_row(
    index: PlainWindows, rows: KernelRows, row: int, output: MatchBuffer, counters: np.ndarray
) -> None:
    keys = index.rings.keys
    probed = probed_side(len(keys), rows.side[row])
    start, stop = rows.start[row], rows.stop[row]
    if start >= stop:
        return
    length = keys.shape[1]
    first = start & (length - 1)
    until = min(length, first + stop - start)
    _scan(keys, probed, first, until, start - first, rows, row, output)
    rest = stop - start - (until - first)
    _scan(keys, probed, 0, rest, stop - rest, rows, row, output)
    counters[COMPARISONS] += stop - start


@implements(insert_row, PlainWindows)
def _insert_row(index: PlainWindows, rows: KernelRows, row: int, counters: np.ndarray) -> None:
    append_key(index.rings, rows.side[row], rows.key[row], rows.position[row])
    counters[INSERTS] += 1


@kernel
def _scan(
    keys: np.ndarray,
    side: int,
    begin: int,
    end: int,
    offset: int,
    rows: KernelRows,
    row: int,
    output: MatchBuffer,
) -> None:
    """Report the places *begin* to *end* - 1 of a side's ring whose key is in the row's range.

    A place plus *offset* is a position. A pass without branches sets a bit for each match of a
    stretch, and the bits are read.
    """
    low, high = rows.low[row], rows.high[row]
    for at in range(begin, end, _STRETCH):
        matching = np.uint64(0)
        for i in range(min(_STRETCH, end - at)):
            key = keys[side, at + i]
            matching |= np.uint64((key >= low) & (key <= high)) << np.uint64(i)
        while matching != 0:
            add_match(output, row, offset + at + trailing_zeros(matching))
            matching &= matching - np.uint64(1)
