"""A subwindow of a stream that arrives out of order (section III-G2).

What arrives while the subwindow is the newest one goes into its structure, in any order of event
times. What arrives later, though it is no newer than a tuple in it, goes into a small buffer beside
the structure, so that a structure that is full is left alone. Structure and buffer each know their
oldest and newest event time: a probe looks into neither of them if its window does not reach it.

"A small buffer" is all that the paper says of its form; it is scanned from end to end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from joins.event_time import Candidates
from joins.indexes.index import Ranges
from joins.indexes.panjoin.answering import Probes
from joins.indexes.panjoin.codes import encode_columns
from joins.indexes.panjoin.probing import probe_subwindows
from joins.indexes.panjoin.structure import StructureName
from joins.indexes.panjoin.subwindow import Subwindow, SubwindowShape
from joins.indexes.windows.nested_loop import NestedLoop
from joins.matches import ProbeResult
from joins.work import Work


class _Times:
    """Positions and event times of tuples in the order of their arrival.

    Attributes
    ----------
    settled
        How many came in batches before the present one.
    """

    def __init__(self) -> None:
        self.id, self.ts = np.empty((2, 0), np.int64)
        self.settled = 0

    def __len__(self) -> int:
        return len(self.id)

    @property
    def nbytes(self) -> int:
        return self.id.nbytes + self.ts.nbytes

    def append(self, ids: np.ndarray, ts: np.ndarray) -> None:
        self.id, self.ts = np.concatenate([self.id, ids]), np.concatenate([self.ts, ts])

    def reached(self, start: np.ndarray, stop: np.ndarray) -> np.ndarray:
        """Return the rows of probes whose ranges of event time reach one of the tuples."""
        if not len(self):
            return np.empty(0, np.int64)
        return np.flatnonzero((start <= self.ts.max()) & (stop > self.ts.min()))

    def candidates(self, row: np.ndarray, found: ProbeResult) -> Candidates:
        place = found.match_id
        assert place is not None
        fresh = place >= self.settled
        return Candidates(np.repeat(row, found.count), self.id[place], self.ts[place], fresh)

    def snapshot(self) -> dict[str, Any]:
        return {"id": self.id, "ts": self.ts, "settled": self.settled}

    def restore(self, state: dict[str, Any]) -> None:
        self.id, self.ts, self.settled = state["id"], state["ts"], state["settled"]


class OutOfOrderSubwindow(Subwindow):
    """Tuples of a stretch of event time; what it takes for positions are places as they arrive."""

    def __init__(
        self,
        shape: SubwindowShape,
        structure: StructureName,
        *,
        first: int = 0,
        splitters: np.ndarray | None = None,
    ) -> None:
        super().__init__(shape, structure, first=0, splitters=splitters)
        self._buffer = NestedLoop(["int64"] * len(shape.dtypes))
        self._times, self._buffered = _Times(), _Times()

    @property
    def nbytes(self) -> int:
        """Bytes that its arrays occupy."""
        return super().nbytes + self._buffer.nbytes + self._times.nbytes + self._buffered.nbytes

    def settle(self) -> None:
        """Begin a new batch."""
        for times in (self._times, self._buffered):
            times.settled = len(times)

    def insert_timed(self, columns: Sequence[np.ndarray], ids: np.ndarray, ts: np.ndarray) -> Work:
        """Insert a batch into the structure, in ascending order of the first column.

        Parameters
        ----------
        columns
            Per predicate the tuples' values.
        ids, ts
            int64, their positions in the stream and event times.
        """
        order = np.argsort(ids)
        places = np.empty(len(ids), np.int64)
        places[order] = np.arange(len(self._times), len(self._times) + len(ids))
        self._times.append(ids[order], ts[order])
        return self.insert(columns, places)

    def insert_late(self, columns: Sequence[np.ndarray], ids: np.ndarray, ts: np.ndarray) -> Work:
        """Insert a batch into the buffer; the parameters are those of `insert_timed`."""
        places = np.arange(len(self._buffered), len(self._buffered) + len(ids))
        self._buffered.append(ids, ts)
        return self._buffer.insert(encode_columns(columns, self.shape.dtypes), places)

    def find(
        self, probes: Probes, start: np.ndarray, stop: np.ndarray, threads: int
    ) -> tuple[list[Candidates], Work]:
        """Return what satisfies the predicates where a probe's range of event time reaches.

        Parameters
        ----------
        probes
            Encoded; the positions that they see are not looked at.
        start, stop
            int64, the event times each can pair with, *stop* exclusive.
        """
        found, work = [], Work(comparisons=2 * len(start))
        row = self._times.reached(start, stop)
        if len(row):
            held = probe_subwindows([self], _rows(probes, row), enumerate=True, threads=threads)
            found.append(self._times.candidates(row, held))
            work += held.work
        row = self._buffered.reached(start, stop)
        if len(row):
            reaching = _rows(probes, row)
            ranges = Ranges(
                [reaching.low, *reaching.filter_low],
                [reaching.high, *reaching.filter_high],
                [reaching.negated, *reaching.filter_negated],
                reaching.start,
                reaching.stop,
            )
            held = self._buffer.probe(ranges, enumerate=True)
            found.append(self._buffered.candidates(row, held))
            work += held.work
        return found, work

    def snapshot(self) -> dict[str, Any]:
        """Return the state as plain arrays and numbers."""
        return super().snapshot() | {
            "buffer": self._buffer.snapshot(),
            "times": self._times.snapshot(),
            "buffered": self._buffered.snapshot(),
        }

    @classmethod
    def restore(cls, snapshot: dict[str, Any]) -> OutOfOrderSubwindow:
        """Return the subwindow that `snapshot` described."""
        held = super().restore(snapshot)
        assert isinstance(held, cls)
        held._buffer = NestedLoop.restore(snapshot["buffer"])
        held._times.restore(snapshot["times"])
        held._buffered.restore(snapshot["buffered"])
        return held


def _rows(probes: Probes, row: np.ndarray) -> Probes:
    """Return some of *probes*, which see every position."""
    return Probes(
        probes.low[row],
        probes.high[row],
        probes.negated,
        np.full(len(row), np.iinfo(np.int64).min),
        np.full(len(row), np.iinfo(np.int64).max),
        probes.filter_low[:, row],
        probes.filter_high[:, row],
        probes.filter_negated,
    )
