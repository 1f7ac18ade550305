"""When tuples leave a window for good."""

from __future__ import annotations

from typing import Any

import numpy as np

from joins.queries.windows import Window
from joins.semijoins.operand_window import OperandWindow


class Timeline:
    """Positions and event times of a stream's latest tuples, consecutive."""

    def __init__(self) -> None:
        self.ids = np.empty(0, np.int64)
        self.ts = np.empty(0, np.int64)

    def extend(self, ids: np.ndarray, ts: np.ndarray) -> None:
        """Append."""
        self.ids = np.concatenate([self.ids, ids])
        self.ts = np.concatenate([self.ts, ts])

    def forget(self, before: int) -> None:
        """Let go of positions less than *before*."""
        row = int(np.searchsorted(self.ids, before))
        self.ids, self.ts = self.ids[row:], self.ts[row:]

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {"ids": self.ids, "ts": self.ts}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.ids, self.ts = state["ids"], state["ts"]


class Horizon:
    """Which positions of a stream no tuple that arrives after an execution interval can see.

    What the intervals up to some time have made unseen may be removed when no tuple of theirs is
    still on its way (Constraint 2: delayed removal).

    Parameters
    ----------
    window
        Of the stream.
    """

    def __init__(self, window: Window | OperandWindow) -> None:
        self._window = window
        self.line = Timeline()
        self._ticks: list[int] = []
        self._unseen: list[int] = []

    def insert(self, tick: int, ids: np.ndarray, ts: np.ndarray) -> None:
        """Take the tuples that came in the interval ending at *tick*."""
        if not len(ids):
            return
        line, window = self.line, self._window
        line.extend(ids, ts)
        end = int(line.ids[-1]) + 1
        counted = window.kind == "count"
        at = np.array([end]) if counted else line.ts[-1:]
        keys = line.ids if counted else line.ts
        row = int(np.searchsorted(keys, window.bound(at))[0])
        self._ticks.append(tick)
        self._unseen.append(int(line.ids[row]) if row < len(keys) else end)

    def passed(self, tick: int) -> int:
        """Return the least position that may be needed when intervals up to *tick* are done.

        Positions below it are forgotten; 0 when nothing new is unseen.
        """
        due = int(np.searchsorted(np.array(self._ticks, np.int64), tick, "right"))
        if not due:
            return 0
        edge = self._unseen[due - 1]
        del self._ticks[:due], self._unseen[:due]
        self.line.forget(edge)
        return edge

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain data."""
        return {
            "line": self.line.snapshot(),
            "ticks": list(self._ticks),
            "unseen": list(self._unseen),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.line.restore(state["line"])
        self._ticks, self._unseen = list(state["ticks"]), list(state["unseen"])
