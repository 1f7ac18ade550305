"""The nested-loop window join (NLWJ): every tuple is compared with all it sees."""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.indexes.pim_tree.status import DONE, NO_NODES, NO_OUTPUT
from joins.machine.compiling import kernel
from joins.matches import MatchBuffer, add_match, begin_row, commit_row
from joins.window_join.driver import WindowJoin
from joins.window_join.rows import Rows
from joins.window_join.window_keys import WindowKeys
from joins.work import COMPARISONS, INSERTS, MATCHES, NO_WORK, Work


class NestedLoopJoin(WindowJoin):
    """Keeps the windows as columns and scans them.

    Parameters
    ----------
    self_join
        Whether the one stream is joined with itself.
    """

    def __init__(self, *, self_join: bool = False) -> None:
        self._window = WindowKeys(1 if self_join else 2)

    def _run(
        self, rows: Rows, begin: int, output: MatchBuffer, enumerate: bool, counters: np.ndarray
    ) -> tuple[int, int]:
        window = self._window
        return _join_rows(window.keys, window.ends, rows, begin, output, enumerate, counters)

    def _mend(self, side: int, why: int) -> Work:
        self._window.grow()
        return NO_WORK

    def snapshot(self) -> dict[str, Any]:
        """Return the windows."""
        return self._window.snapshot()

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self._window.restore(state)

    @property
    def nbytes(self) -> int:
        """Bytes that the windows occupy."""
        return self._window.nbytes


@kernel
def _scan(
    keys: np.ndarray,
    side: int,
    begin: int,
    end: int,
    offset: int,
    low: int,
    high: int,
    row: int,
    output: MatchBuffer,
) -> None:
    """Report the places *begin* to *end* - 1 of a ring whose key is in range.

    A place plus *offset* is a position. A pass without branches counts the matches of a stretch;
    only if there are any, they are listed.
    """
    step = 64
    s = np.uint64(side)
    for at in range(begin, end, step):
        last = min(at + step, end)
        found = 0
        for place in range(np.uint64(at), np.uint64(last)):
            found += (keys[s, place] >= low) & (keys[s, place] <= high)
        if found:
            for place in range(at, last):
                if low <= keys[side, place] <= high:
                    add_match(output, row, offset + place)


@kernel
def _join_rows(
    keys: np.ndarray,
    ends: np.ndarray,
    rows: Rows,
    begin: int,
    output: MatchBuffer,
    enumerating: bool,
    counters: np.ndarray,
) -> tuple[int, int]:
    length = keys.shape[1]
    for row in range(begin, len(rows.side)):
        own = rows.side[row]
        probed = own if len(ends) == 1 else 1 - own
        start, stop = rows.start[row], rows.stop[row]
        ends[probed, 0] = max(ends[probed, 0], start)
        if ends[own, 1] - ends[own, 0] == length:
            return row, NO_NODES
        begin_row(output, counters)
        low, high = rows.low[row], rows.high[row]
        if start < stop:
            first = start & (length - 1)
            until = min(length, first + stop - start)
            _scan(keys, probed, first, until, start - first, low, high, row, output)
            rest = stop - start - (until - first)
            _scan(keys, probed, 0, rest, stop - rest, low, high, row, output)
        if not commit_row(output, row, counters):
            return row, NO_OUTPUT
        counters[COMPARISONS] += max(0, stop - start)
        counters[MATCHES] += output.matches[row]
        counters[INSERTS] += 1
        position = rows.position[row]
        if ends[own, 1] == 0 and ends[own, 0] == 0:
            ends[own, 0] = position
        keys[own, position & (length - 1)] = rows.key[row]
        ends[own, 1] = position + 1
    return len(rows.side), DONE
