"""The index-based window join (PIM-Tree, section 2.2), tuple by tuple, one thread.

Every tuple probes the other side's window and is inserted into its own side's. What an index does
for that are three steps, written beside the index; the loop is the same for all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from joins.machine.compiling import kernel
from joins.machine.dispatch import DONE, NO_OUTPUT, dispatched
from joins.matches import MatchBuffer, MatchList, ProbeResult, begin_row, commit_row
from joins.state import Stateful
from joins.window_join.rows import SPAN, KernelRows
from joins.work import NO_WORK, Work, new_counters

LOOKUP_ROWS = 16
"""Rows that are looked up in the trees together, before the first of them is joined: enough to keep
memory busy, few enough that the lines are still in the cache when their turn comes."""


@dispatched
def prepare_row(index: Any, rows: KernelRows, row: int, counters: np.ndarray) -> int:
    """Expire what the row no longer sees, and look ahead; return why it cannot be joined yet."""
    raise NotImplementedError


@dispatched
def probe_row(
    index: Any, rows: KernelRows, row: int, output: MatchBuffer, counters: np.ndarray
) -> None:
    """Report the matches of a row in the window that it sees."""
    raise NotImplementedError


@dispatched
def insert_row(index: Any, rows: KernelRows, row: int, counters: np.ndarray) -> None:
    """Insert a row into its own side's window."""
    raise NotImplementedError


@kernel
def _join_rows(
    index: Any, rows: KernelRows, begin: int, output: MatchBuffer, counters: np.ndarray
) -> tuple[int, int]:
    """Join the rows from *begin* on; return the row it stopped at, and why."""
    for row in range(begin, len(rows.side)):
        why = prepare_row(index, rows, row, counters)
        if why != DONE:
            return row, why
        begin_row(output, counters)
        probe_row(index, rows, row, output, counters)
        if not commit_row(output, row, counters):
            return row, NO_OUTPUT
        insert_row(index, rows, row, counters)
    return len(rows.side), DONE


class WindowJoin(Stateful, ABC):
    """Joins tuples with the windows that they see, batch by batch."""

    @abstractmethod
    def join(self, rows: KernelRows, *, enumerate: bool = False) -> ProbeResult:
        """Join the next arrivals; return a row of results for each of them, in the same order."""

    def expire(self, side: int, before: int) -> Work:
        """Expire a side's positions below *before*, which no later row sees; return the work.

        Rows of the other side show by their *start* what they no longer see. This is for a side
        that has none, and without it a join is as exact, but stores that side whole.
        """
        return NO_WORK


class RowsJoin(WindowJoin, ABC):
    """Joins tuple by tuple, in the order in which they arrive.

    For steps that look ahead, ``_block`` has the rows that were looked up, one `SPAN`.
    """

    state: ClassVar[tuple[str, ...]] = ()

    def __init__(self) -> None:
        self._block = np.zeros(1, SPAN)

    def join(self, rows: KernelRows, *, enumerate: bool = False) -> ProbeResult:
        """Join the next arrivals; return a row of results for each of them, in the same order."""
        self._block[:] = 0, 0
        matches = MatchList(len(rows.side), enumerate=enumerate)
        counters = new_counters()
        work, row = NO_WORK, 0
        while True:
            row, why = _join_rows(self._record(), rows, row, matches.buffer, counters)
            if why == DONE:
                break
            if why == NO_OUTPUT:
                matches.add_chunk()
            else:
                work += self._mend(int(rows.side[row]), why)
        result = matches.result(counters)
        return replace(result, work=work + result.work)

    @abstractmethod
    def _record(self) -> tuple[Any, ...]:
        """Return the record that the steps are resolved by."""

    @abstractmethod
    def _mend(self, side: int, why: int) -> Work:
        """Do what the kernel stopped for."""
