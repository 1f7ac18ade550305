"""What every window join driver offers, and how its kernels are given room for their results."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from joins.indexes.pim_tree.status import DONE, NO_OUTPUT
from joins.matches import MatchBuffer, MatchList, ProbeResult
from joins.window_join.rows import Rows
from joins.work import COUNTERS, NO_WORK, Work


class WindowJoin(ABC):
    """Joins tuples in the order in which they arrive, each with the window that it sees."""

    def join(self, rows: Rows, *, enumerate: bool = False) -> ProbeResult:
        """Join the next arrivals; return a row of results for each of them, in the same order."""
        n = len(rows.side)
        matches = MatchList(n, enumerate=enumerate)
        counters = np.zeros(len(COUNTERS), np.int64)
        work, done = NO_WORK, 0
        while True:
            done, why = self._run(rows, done, matches.buffer, enumerate, counters)
            if why == DONE:
                break
            if why == NO_OUTPUT:
                matches.add_chunk()
            else:
                work += self._mend(int(rows.side[done]), why)
        return matches.result(work + Work.from_counters(counters))

    @abstractmethod
    def _run(
        self, rows: Rows, begin: int, output: MatchBuffer, enumerate: bool, counters: np.ndarray
    ) -> tuple[int, int]:
        """Join from row *begin* on; return the row it stopped at, and why."""

    @abstractmethod
    def _mend(self, side: int, why: int) -> Work:
        """Do what the kernel stopped for."""

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data."""

    @abstractmethod
    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot of a driver that was made alike."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes that the windows and their indexes occupy."""
