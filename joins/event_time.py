"""Windows of event time over two streams that arrive in any order: which tuples pair.

A pair's two tuples are the same whatever the order of arrival, and so is which of them probes: the
newer one in event time, as if the streams had arrived in order. (Of equal times that of the query's
second stream is newer.) But either of them may arrive last and meet the other, so each tuple looks
both ways: back to what it sees, and forward to what sees it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from joins.arrivals import Arrivals
from joins.batch import Batch
from joins.codes import LEAST
from joins.matches import Matches
from joins.queries.query import JoinQuery
from joins.state import Stateful

NO_WATERMARK = LEAST
"""Before anything has arrived, or where there are no watermarks: nothing is late."""


def latest_time(arrivals: Arrivals, before: int) -> int:
    """Return the latest event time of *arrivals* and of what came *before*."""
    times = [int(part.ts.max()) for part in arrivals.parts if len(part)]
    return max([before, *times])


def watermark_at(latest: int, lag_ns: int | None) -> int:
    """Return the watermark *lag_ns* behind the *latest* event time; None: there are none."""
    return NO_WATERMARK if lag_ns is None else max(NO_WATERMARK, latest - lag_ns)


class EventTimeBounds(Stateful):
    """Turns windows into ranges of event time, and the latest event time into a watermark.

    It replaces `joins.queries.windows.WindowBounds` where streams arrive out of order; its ranges
    are of event times, not of positions.

    Parameters
    ----------
    query
        A join of two streams over windows of time.
    lag_ns
        How far watermarks stay behind the latest event time; None: there are none.
    """

    state = ("_latest",)

    def __init__(self, query: JoinQuery, lag_ns: int | None) -> None:
        self._windows = query.windows
        self._lag_ns = lag_ns
        self._latest = NO_WATERMARK

    def advance(self, arrivals: Arrivals) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return the event times that *arrivals* pair with: the first and the last; int64."""
        self._latest = latest_time(arrivals, self._latest)
        return [
            (
                self._windows[1 - stream].bound(part.ts),
                self._windows[stream].seen_until(part.ts),
            )
            for stream, part in enumerate(arrivals.parts)
        ]

    @property
    def horizon(self) -> tuple[int, ...]:
        """Per stream the watermark: no tuple that is yet to come is older, unless it is late."""
        return (watermark_at(self._latest, self._lag_ns),) * len(self._windows)

    def oldest_seen(self, stream: int, watermark: int) -> int:
        """Return the least event time in *stream* that one of *watermark* or later pairs with."""
        if watermark == NO_WATERMARK:
            return watermark
        return int(self._windows[stream].bound(np.array(watermark)))


class Candidates(NamedTuple):
    """Pairs that satisfy all predicates, a row each; their event times are not compared yet."""

    row: np.ndarray
    """int64, row of the probe."""
    id: np.ndarray
    ts: np.ndarray
    """int64, the stored tuple."""
    fresh: np.ndarray
    """bool, whether it came in the same batch as the probe, so that each is the other's
    candidate."""

    @classmethod
    def concat(cls, parts: Sequence[Candidates]) -> Candidates:
        """Join *parts* end to end."""
        no = np.empty(0, np.int64)
        nothing = cls(no, no, no, np.empty(0, np.bool_))
        return cls(*(np.concatenate(columns) for columns in zip(nothing, *parts, strict=True)))


class Paired(NamedTuple):
    """The pairs of some probes, by the newer tuple of each pair."""

    seen: Matches
    """A row per probe: what it sees."""
    seeing: Matches
    """A row per stored tuple that sees one of the probes."""
    row: np.ndarray
    """int64, for each row of *seeing* the first probe that it sees."""


def select_pairs(
    stream: int,
    probes: Batch,
    bounds: tuple[np.ndarray, np.ndarray],
    candidates: Candidates,
    *,
    precise: bool,
    enumerate: bool,
) -> Paired:
    """Return the pairs that tuples of *stream* are in, by the newer tuple of each pair.

    Parameters
    ----------
    probes, bounds
        The tuples, and what `EventTimeBounds.advance` returned for them.
    candidates
        Theirs.
    precise
        Whether the query's window is: tuples of one event time are then no pair.
    enumerate
        Whether to list match ids.
    """
    stored = 1 - stream
    row, ids, ts, fresh = candidates
    own_ts = probes.ts[row]
    within = (ts >= bounds[0][row]) & (ts <= bounds[1][row])
    tied = ts == own_ts
    if precise:
        within &= ~tied
    newer = (ts > own_ts) | (tied & (stored > stream))
    # Of two in one batch the newer one sees the other; that is enough.
    seen, seeing = within & ~newer, within & newer & ~fresh
    probe_id, place = np.unique(ids[seeing], return_inverse=True)
    first = np.full(len(probe_id), len(probes))
    np.minimum.at(first, place, row[seeing])
    return Paired(
        Matches.of_pairs(stream, probes.id, row[seen], ids[seen], enumerate=enumerate),
        Matches.of_pairs(stored, probe_id, place, probes.id[row[seeing]], enumerate=enumerate),
        first,
    )
