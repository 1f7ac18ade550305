"""The window over one operand of a tree's two-way join, as tuples of the other one see it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from joins.batch import Batch
from joins.queries.windows import Window
from joins.semijoins.joined import Joined
from joins.semijoins.operand import Operand


@dataclass(frozen=True, kw_only=True)
class OperandWindow:
    """W_2 where S_2 is an operand of a tree: each of its tuples is in the window of its stream.

    A combination with a newer tuple is made of what that tuple sees, which is less than what its
    older ones saw of each other: windows move on. So an output stream holds every combination whose
    newest tuple sees the others, and what has expired since is left out where it is joined further.
    Of the tuples that a *precise* window leaves out for being of the probing tuple's own time,
    a newer tuple sees both: they are left out by the last join only.

    Windows of time only: an output stream lacks the tuples that matched nothing, so that those that
    precede a tuple cannot be counted in it. A linear plan ships the times of one counted stream to
    the one site that looks into its copy; a tree would have to ship those of every counted stream
    to the sites of all joins above it, and let these wait for them.

    Attributes
    ----------
    probe, stored
        S_1 and S_2.
    windows
        Of all streams, in the order of the query.
    last
        Whether the join is the one at the root.
    """

    probe: Operand
    stored: Operand
    windows: tuple[Window, ...]
    last: bool

    kind = "time"

    def bound(self, at: np.ndarray) -> np.ndarray:
        """Return the least event time of the newest tuple of what is seen from *at*, int64 ns."""
        bounds = [self.windows[stream].bound(at) for stream in self.stored.streams]
        return np.minimum.reduce(bounds)

    def seen(self, held: Batch, rows: Joined) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of *held* that arrived before each of *rows* and may be seen.

        They are given as the first, and the one after the last.
        """
        stop = np.searchsorted(held.key, rows.seq)
        start = np.minimum(np.searchsorted(held.ts, self.bound(rows.newest.ts)), stop)
        edges = np.append(held.id, held.id[-1] + 1 if len(held) else 0)
        return edges[start], edges[stop]

    def admits(self, rows: Joined) -> np.ndarray:
        """Return which of some joined tuples are made of what their newest tuple sees, bool."""
        at = rows.newest.ts
        allowed = np.ones(len(rows), np.bool_)
        stored = rows.parts[1]
        for stream in self.stored.streams:
            allowed &= self.stored.ts(stored, stream) >= self.windows[stream].bound(at)
        if self.last:
            for operand, part in zip((self.probe, self.stored), rows.parts, strict=True):
                for stream in operand.streams:
                    if self.windows[stream].semantics == "precise":
                        older = operand.ts(part, stream) < at
                        allowed &= older | (newest_stream(self.probe, rows) == stream)
        return allowed


def newest_stream(operand: Operand, rows: Joined) -> np.ndarray:
    """Return the stream of the newest tuple of each combination, int64; it is one of *operand*'s.

    Of tuples of one event time that of the later stream in the query is the newer.
    """
    newest = np.full(len(rows), operand.streams[0])
    for stream in operand.streams[1:]:
        newest[operand.ts(rows.newest, stream) == rows.newest.ts] = stream
    return newest
