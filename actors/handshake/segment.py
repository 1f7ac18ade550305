"""A core's share of a window, and what comes of meeting the tuples of the other stream in it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.probes import Probes
from joins.batch import Batch, Schema
from joins.indexes.index import Index, ranges_for
from joins.indexes.windows.window_indexes import WINDOW_INDEXES
from joins.matches import Matches, ProbeResult
from joins.queries.conditions import Condition
from joins.state import State, plain, revive
from joins.turned_round import turn_round
from joins.work import Work

END = int(np.iinfo(np.int64).max)
"""A position behind all others."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """What some tuples of one stream found in those that they see; each found one at least.

    Attributes
    ----------
    seeing
        The tuples.
    count, fingerprint, match_id
        As in `joins.found.Found`, a row per tuple.
    """

    seeing: Probes
    count: np.ndarray
    fingerprint: np.ndarray
    match_id: np.ndarray | None

    def matches(self, stream: int) -> Matches:
        """Return them as matches of stream *stream*."""
        return Matches(
            stream=stream,
            probe_id=self.seeing.batch.id,
            count=self.count,
            fingerprint=self.fingerprint,
            match_id=self.match_id,
        )


class Segment:
    """Tuples of one stream at a core, in the order of their positions, and an index over them.

    Parameters
    ----------
    schema
        Of the stream.
    conditions
        The predicates as the other stream's tuples see them.
    index
        Structure of the index (`WINDOW_INDEXES`).
    """

    def __init__(self, schema: Schema, conditions: tuple[Condition, ...], index: str) -> None:
        nothing = np.empty(0, np.int64)
        self.tuples = Probes(Batch.empty(schema), nothing, nothing, nothing)
        self._conditions = conditions
        self._index: Index = WINDOW_INDEXES[index](conditions)

    def __len__(self) -> int:
        return len(self.tuples)

    def store(self, part: Probes) -> Work:
        """Take in *part*, whose positions follow those that are here."""
        columns = [
            part.batch.fields[condition.stored_field].astype(condition.dtype, copy=False)
            for condition in self._conditions
        ]
        self.tuples = Probes.concat([self.tuples, part])
        return self._index.insert(columns, part.batch.id) + Work(bytes_copied=part.nbytes)

    def drop(self, before: int) -> Work:
        """Let go of positions less than *before*."""
        self.tuples = self.tuples.slice(self._place(before), len(self))
        return self._index.expire(before)

    def between(self, first: int, stop: int) -> Probes:
        """Return the tuples at positions *first* to *stop* (exclusive)."""
        return self.tuples.slice(self._place(first), self._place(stop))

    def meet(
        self, arriving: Probes, *, before: int = END, pairs: bool
    ) -> tuple[Sighting, Sighting, Work]:
        """Return what *arriving* tuples see here, what here sees them, and what it cost.

        Of two tuples only the newer one can see the other, so that no pair is found both ways.
        Windows only move on: the tuples here that see a given one lie side by side.

        Parameters
        ----------
        before
            Tuples here at positions from this on take no part.
        pairs
            Whether to list what was found.
        """
        here = self.tuples.slice(0, self._place(before))
        ids = here.batch.id
        begin, end = (int(ids[0]), int(ids[-1]) + 1) if len(here) else (0, 0)
        rows, found = self._probe(
            arriving, np.maximum(arriving.start, begin), np.minimum(arriving.stop, end), pairs
        )
        some = found.count > 0
        seeing = Sighting(
            arriving.take(rows[some]), found.count[some], found.fingerprint[some], found.match_id
        )
        ends = np.append(ids, end)
        rows, seen = self._probe(
            arriving,
            ends[np.searchsorted(here.stop, arriving.batch.id, "right")],
            ends[np.searchsorted(here.start, arriving.batch.id, "right")],
            True,
        )
        searches = Work(comparisons=2 * len(arriving) * len(here).bit_length())
        seen_by = self._turned_round(arriving.batch.id[rows], seen, pairs)
        return seeing, seen_by, found.work + seen.work + searches

    def _place(self, position: int) -> int:
        return int(np.searchsorted(self.tuples.batch.id, position))

    def _probe(
        self, arriving: Probes, start: np.ndarray, stop: np.ndarray, pairs: bool
    ) -> tuple[np.ndarray, ProbeResult]:
        """Probe with those of *arriving* that have something to look at; return which, and what."""
        rows = np.flatnonzero(start < stop)
        columns = [arriving.batch.fields[c.probe_field][rows] for c in self._conditions]
        ranges = ranges_for(self._conditions, columns, start[rows], stop[rows])
        return rows, self._index.probe(ranges, enumerate=pairs)

    def _turned_round(self, arrived: np.ndarray, found: ProbeResult, pairs: bool) -> Sighting:
        """Return what tuples *arrived* have *found* here as what tuples here see of them."""
        ids, count, fingerprint, match_id = turn_round(arrived, found, enumerate=pairs)
        rows = np.searchsorted(self.tuples.batch.id, ids)
        return Sighting(self.tuples.take(rows), count, fingerprint, match_id)

    def snapshot(self) -> State:
        """Return the tuples and the index as plain data."""
        return {"tuples": plain(self.tuples), "index": plain(self._index)}

    def restore(self, state: State) -> None:
        """Take over a snapshot of a segment of the same configuration."""
        self.tuples = revive(state["tuples"])
        self._index = revive(state["index"])
