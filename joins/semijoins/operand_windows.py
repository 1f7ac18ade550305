"""Which tuples of a window are seen from where, and when they leave it for good."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np

from joins.batch import Batch
from joins.queries.windows import Window
from joins.semijoins.combinations import Combinations
from joins.semijoins.operand import Operand
from joins.sliding_column import SlidingColumn, values_at
from joins.state import Stateful, storable


def seen(
    window: Window, ids: np.ndarray, ts: np.ndarray, at: np.ndarray, *, ties_seen: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of a stream that tuples of other streams may see (Constraint 3).

    They are the first position, and the one after the last. A tuple sees those that precede it in
    the order of arrival, which is that of event times, and of the streams in the query where these
    are equal.

    Parameters
    ----------
    window
        Of the stream.
    ids, ts
        int64, positions and event times of its tuples, ascending. For a window of time those stored
        will do; for a count window the positions must be consecutive, from the least that may be
        seen or less.
    at
        int64, event times of the tuples that look.
    ties_seen
        Whether the stream's tuples precede those of equal event time.
    """
    if not len(ids):
        nothing = np.zeros(len(at), np.int64)
        return nothing, nothing
    stop = np.searchsorted(ts, at, "right" if ties_seen else "left")
    if window.kind == "count":
        return window.seen(ts, 0, at, ids[0] + stop)
    start, stop = window.seen(ts, 0, at, stop)
    behind = int(ids[-1]) + 1
    return values_at(ids, start, behind), values_at(ids, stop, behind)


@storable
@dataclass(frozen=True, kw_only=True)
class OperandWindow:
    """W_2 where S_2 is an operand of a tree: each of its tuples is in the window of its stream.

    A combination with a newer tuple is made of what that tuple sees, which is less than what its
    older ones saw of each other: windows move on. So an output stream has every combination whose
    newest tuple sees the others, and what has expired since is left out where it is joined further.
    Of the tuples that a *precise* window leaves out for being of the probing tuple's own time,
    a newer tuple sees both: they are left out by the last join only.

    Windows of time only: an output stream lacks the tuples that matched nothing, so that those that
    precede a tuple cannot be counted in it. A linear plan ships the times of one counted stream to
    the one site that looks into its copy; a tree would have to ship those of every counted stream
    to the sites of all joins above it, and have these wait for them.
    """

    probe: Operand
    stored: Operand
    """S_1 and S_2."""
    windows: tuple[Window, ...]
    """Of all streams, in the order of the query."""
    last: bool
    """Whether the join is the one at the root."""

    kind = "time"

    def bound(self, at: np.ndarray) -> np.ndarray:
        """Return the least event time of the newest tuple of what is seen from *at*, int64 ns."""
        bounds = [self.windows[stream].bound(at) for stream in self.stored.streams]
        least: np.ndarray = np.minimum.reduce(bounds)
        return least

    def seen(self, stored: Batch, rows: Combinations) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of *stored* tuples that arrived before each of *rows* in its window.

        They are the first position, and the one after the last.
        """
        stop = np.searchsorted(stored.key, rows.seq)
        start = np.minimum(np.searchsorted(stored.ts, self.bound(rows.newest.ts)), stop)
        behind = int(stored.id[-1]) + 1 if len(stored) else 0
        return values_at(stored.id, start, behind), values_at(stored.id, stop, behind)

    def admits(self, rows: Combinations) -> np.ndarray:
        """Return which combinations are made of what their newest tuple sees, bool."""
        at = rows.newest.ts
        allowed = np.ones(len(rows), np.bool_)
        stored = rows.parts[1]
        for stream in self.stored.streams:
            allowed &= self.stored.ts(stored, stream) >= self.windows[stream].bound(at)
        if self.last:
            newest = self.probe.newest_stream(rows.newest)
            for operand, part in zip((self.probe, self.stored), rows.parts, strict=True):
                for stream in operand.streams:
                    if self.windows[stream].semantics == "precise":
                        allowed &= (operand.ts(part, stream) < at) | (newest == stream)
        return allowed


class Timeline(Stateful):
    """Positions and event times of a stream's latest tuples, consecutive."""

    state = ("_ids", "_ts")

    def __init__(self) -> None:
        self._ids, self._ts = SlidingColumn(np.int64), SlidingColumn(np.int64)

    @property
    def ids(self) -> np.ndarray:
        """The positions, int64."""
        return self._ids.values

    @property
    def ts(self) -> np.ndarray:
        """The event times, int64."""
        return self._ts.values

    def extend(self, ids: np.ndarray, ts: np.ndarray) -> None:
        """Append."""
        self._ids.append(ids)
        self._ts.append(ts)

    def expire(self, before: int) -> None:
        """Remove positions less than *before*."""
        row = int(np.searchsorted(self.ids, before))
        self._ids.drop(row)
        self._ts.drop(row)


class Horizon(Stateful):
    """Which positions of a stream no tuple that arrives after an execution interval can see.

    What the intervals up to some time have made unseen may be removed when no tuple of theirs is
    still on its way (Constraint 2: delayed removal).

    Parameters
    ----------
    window
        Of the stream.
    """

    state = ("line", "_ticks", "_unseen")

    def __init__(self, window: Window | OperandWindow) -> None:
        self._window = window
        self.line = Timeline()
        self._ticks: list[int] = []
        self._unseen: list[int] = []

    def insert(self, tick: int, batch: Batch) -> None:
        """Add the tuples that came in the interval ending at *tick*."""
        if not len(batch):
            return
        line, window = self.line, self._window
        line.extend(batch.id, batch.ts)
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
        due = bisect_right(self._ticks, tick)
        if not due:
            return 0
        edge = self._unseen[due - 1]
        del self._ticks[:due], self._unseen[:due]
        self.line.expire(edge)
        return edge
