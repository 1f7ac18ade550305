"""Tuples of one stream that a site holds: its window W_2, or a part of another site's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from joins.batch import Batch, Schema
from joins.queries.windows import Window
from joins.semijoins.attributes import AttributeIndex, JoinAttributes
from joins.semijoins.horizon import Timeline
from joins.semijoins.joined import Joined
from joins.semijoins.operand_window import OperandWindow
from joins.work import NO_WORK, Work


class HeldTuples:
    """Full tuples in the order of their positions, hashed by their join attributes.

    Parameters
    ----------
    stream, schema
        Position of the stream in the query (or number of an operand of a tree), and its fields.
    attributes
        What is compared.
    """

    def __init__(self, *, stream: int, schema: Schema, attributes: JoinAttributes) -> None:
        self._stream = stream
        self._attributes = attributes
        self._index = AttributeIndex(attributes)
        self.tuples = Batch.empty(schema)

    def __len__(self) -> int:
        return len(self.tuples)

    def insert(self, batch: Batch) -> Work:
        """Insert tuples; some may be older than those held (a semijoin fetches as it matches)."""
        if not len(batch):
            return NO_WORK
        held = self.tuples
        self.tuples = Batch.concat([held, batch]) if len(held) else batch
        if not len(held) or batch.id[0] > held.id[-1]:
            return self._index.insert(self._attributes.of_stored(batch), batch.id)
        return self.keep(np.argsort(self.tuples.id, kind="stable"))

    def keep(self, rows: np.ndarray) -> Work:
        """Keep the given rows (int64 places, ascending by position, or a mask)."""
        self.tuples = self.tuples.take(rows)
        return self._index.replace(self._attributes.of_stored(self.tuples), self.tuples.id)

    def expire(self, before: int) -> tuple[Batch, Work]:
        """Let go of positions less than *before*, and return them."""
        gone = int(np.searchsorted(self.tuples.id, before))
        expired = self.tuples.slice(0, gone)
        if not gone:
            return expired, NO_WORK
        self.tuples = self.tuples.slice(gone, len(self.tuples))
        return expired, self._index.expire(before)

    def expire_first(self, count: int) -> Work:
        """Let go of the *count* oldest: W'_2 as the FIFO queue of section 3.2.2."""
        if not count:
            return NO_WORK
        return self.expire(int(self.tuples.id[count - 1]) + 1)[1]

    def match(self, partial: Sequence[np.ndarray]) -> tuple[np.ndarray, Work]:
        """Return the rows held that match any of some partial tuples, int64, ascending."""
        found = self._index.probe(partial)
        assert found.match_id is not None  # enumerated
        return np.searchsorted(self.tuples.id, np.unique(found.match_id)), found.work

    def matched(self, partial: Sequence[np.ndarray]) -> tuple[np.ndarray, Work]:
        """Return for each of some partial tuples whether any tuple held matches it."""
        found = self._index.probe(partial)
        return found.count > 0, found.work

    def join(
        self, rows: Joined, window: Window | OperandWindow, line: Timeline
    ) -> tuple[Joined, Work]:
        """Join combinations with what their newest tuple may see: a T_2-limit join.

        *line* is complete; only in count windows is it needed.
        """
        held = self.tuples
        if isinstance(window, OperandWindow):
            start, stop = window.seen(held, rows)
        else:
            ids, ts = (line.ids, line.ts) if window.kind == "count" else (held.id, held.ts)
            start, stop = seen(window, self._stream < rows.head, ids, ts, rows.newest.ts)
        found = self._index.probe(self._attributes.of_joined(rows), start, stop)
        assert found.match_id is not None  # enumerated
        places = np.searchsorted(held.id, found.match_id)
        row = np.repeat(np.arange(len(rows)), found.count)
        joined = rows.take(row).extended(self._stream, held.take(places))
        if isinstance(window, OperandWindow):
            joined = joined.take(window.admits(joined))
        return joined, found.work

    def snapshot(self) -> dict[str, Any]:
        """Return the tuples and their index."""
        return {"tuples": self.tuples, "attribute_index": self._index.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take over a snapshot."""
        self.tuples = state["tuples"]
        self._index.restore(state["attribute_index"])


def seen(
    window: Window, ties_seen: bool, ids: np.ndarray, ts: np.ndarray, at: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positions of a stream that tuples of other streams may see (Constraint 3).

    A tuple sees those that precede it in the order of arrival, which is that of event times, and of
    the streams in the query where these are equal.

    Parameters
    ----------
    window
        Of the stream.
    ties_seen
        Whether its tuples precede those of equal event time.
    ids, ts
        int64, positions and event times of its tuples, ascending. For a window of time those held
        will do; for a count window the positions must be consecutive, from the least that may be
        seen or less.
    at
        int64, event times of the tuples that look.
    """
    if not len(ids):
        nothing = np.zeros(len(at), np.int64)
        return nothing, nothing
    stop = np.searchsorted(ts, at, "right" if ties_seen else "left")
    if window.kind == "count":
        preceding = ids[0] + stop
        return np.maximum(window.bound(preceding), 0), preceding
    if window.semantics == "precise":
        stop = np.minimum(stop, np.searchsorted(ts, at, "left"))
    start = np.minimum(np.searchsorted(ts, window.bound(at), "left"), stop)
    edges = np.append(ids, ids[-1] + 1)
    return edges[start], edges[stop]
