"""The chain of one stream's subwindows as the manager sees it (sections III-A, III-G2, V-A4).

The chain cuts the stream into subwindows, assigns them to workers in turns, expires them, and
chooses their structures by what was measured of the stream (`Choice`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from actors.panjoin.messages import Create, Expire, Insert
from joins.batch import Batch
from joins.codes import LEAST
from joins.indexes.panjoin.lookup import StructureName
from joins.sliding_column import SlidingColumn
from joins.state import Stateful, storable

LARGE_BATCH = 65_536
LARGE_SELECTIVITY = 1_024
"""Tuples a batch, and matches of a probe in a subwindow, from which on BI-Sort is chosen: where it
overtakes the others in Figure 13."""

PARTS = 16
SHARE_MOST = 0.25
"""Values drift when of `PARTS` ranges that had equal shares one subwindow ago a single one now has
this much: a RaP-Table would put a quarter of the tuples into a sixteenth of its partitions."""


@dataclass(frozen=True, kw_only=True)
class ChainRule:
    """How a stream is cut into subwindows, and where they go."""

    capacity: int
    """Most tuples of a subwindow."""
    stretch_ns: int | None
    """Most event time of a subwindow, in nanoseconds; None sets no bound."""
    structure: StructureName | None
    """Of every subwindow; None chooses for each by what was measured."""
    workers: int
    """They get subwindows in turns."""
    first_worker: int
    """The one to begin with."""


@storable
@dataclass(slots=True)
class _Link:
    """A subwindow: its number, its worker, and what is in it.

    *stretch* is the stretch of event time that it covers, 0 without a bound. *closed* is whether it
    is full or its time is over, and a command with `Insert.fills` is out.
    """

    number: int
    worker: int
    first: int
    stretch: int
    tuples: int = 0
    newest_id: int = -1
    newest_ns: int = LEAST
    closed: bool = False

    @property
    def stop(self) -> int:
        return self.first + self.tuples


class Chain(Stateful):
    """Subwindows in the order of time: the last one grows, the first ones expire."""

    state = ("_links", "_created", "_stored", "_splitters", "choice")

    def __init__(self, stream: int, rule: ChainRule) -> None:
        self._stream = stream
        self._rule = rule
        self._links: list[_Link] = []
        self._created = self._stored = 0
        self._splitters: np.ndarray | None = None
        self.choice = Choice()

    @property
    def workers(self) -> set[int]:
        """The workers that have a subwindow with tuples in it."""
        return {link.worker for link in self._links if link.tuples}

    def use_splitters(self, splitters: np.ndarray) -> None:
        """Use splitters that a worker has sampled for subwindows to come."""
        self._splitters = splitters

    def store(self, batch: Batch, codes: np.ndarray) -> list[tuple[int, Insert]]:
        """Cut a batch at the ends of subwindows; return per subwindow its worker and an insertion.

        The *batch* has the next tuples of the stream, in ascending order of the indexed field, and
        *codes* are that field's.

        A tuple that is older than the newest of a closed subwindow is for that one's buffer. In
        streams that arrive in order there are none. An insertion of no tuples closes a subwindow
        whose time ended between two batches.
        """
        if self._rule.structure is None:
            self.choice.measure_batch(codes)
        commands: list[tuple[int, Insert]] = []
        left = batch
        while len(left):
            closed = [link for link in self._links if link.closed]
            home = np.searchsorted([link.newest_id for link in closed], left.id)
            for place in np.unique(home[home < len(closed)]).tolist():
                link, late = closed[place], _rows_of(left, home == place)
                commands.append((link.worker, Insert(self._stream, link.number, late, late=True)))
            left = _rows_of(left, home == len(closed))
            if len(left):
                commands += self._close_before(left)
                link, create, new, left = self._fill(left)
                link.closed = link.tuples == self._rule.capacity or len(left) > 0
                insert = Insert(self._stream, link.number, new, create, fills=link.closed)
                commands.append((link.worker, insert))
        return commands

    def _close_before(self, batch: Batch) -> list[tuple[int, Insert]]:
        """Close the open subwindow if every tuple of *batch* is past its stretch of event time.

        Return its worker and the command; nothing where no subwindow is closed.
        """
        link = self._links[-1] if self._links else None
        if link is None or link.closed or link.stretch >= self._stretches(batch.ts).min():
            return []
        link.closed = True
        return [(link.worker, Insert(self._stream, link.number, batch.slice(0, 0), fills=True))]

    def _fill(self, batch: Batch) -> tuple[_Link, Create | None, Batch, Batch]:
        """Put the earliest tuples of a batch, newer than all closed subwindows, into an open one.

        Return that, its creation if it is new, these tuples, and the rest.
        """
        create = None
        stretches = self._stretches(batch.ts)
        link = self._links[-1] if self._links else None
        if link is None or link.closed:
            link, create = self._create(int(stretches.min()))
        fitting = stretches <= link.stretch
        room = self._rule.capacity - link.tuples
        if np.count_nonzero(fitting) > room:  # Positions are in the order of event times.
            fitting = batch.id < np.partition(batch.id, room)[room]
        new = _rows_of(batch, fitting)
        link.tuples += len(new)
        self._stored += len(new)
        link.newest_id = max(link.newest_id, int(new.id.max()))
        link.newest_ns = max(link.newest_ns, int(new.ts.max()))
        return link, create, new, _rows_of(batch, ~fitting)

    def expire(self, before: int) -> list[tuple[int, Expire]]:
        """Drop subwindows all of whose tuples are at positions less than *before*.

        Return for each of them its worker and the command. The newest one stays: it is not full.
        """
        return self._drop(sum(link.stop <= before for link in self._links[:-1]))

    def expire_older(self, than_ns: int) -> list[tuple[int, Expire]]:
        """Drop subwindows all of whose tuples are older than an event time, as `expire`."""
        return self._drop(sum(link.newest_ns < than_ns for link in self._links[:-1]))

    def _drop(self, links: int) -> list[tuple[int, Expire]]:
        dropped, self._links = self._links[:links], self._links[links:]
        return [(link.worker, Expire(self._stream, link.number)) for link in dropped]

    def _create(self, stretch: int) -> tuple[_Link, Create]:
        number = self._created
        self._created += 1
        worker = (self._rule.first_worker + number) % self._rule.workers
        structure = self._rule.structure or self.choice.choose()
        link = _Link(number, worker, self._stored, stretch)
        self._links.append(link)
        splitters = self._splitters if structure == "rap_table" else None
        return link, Create(link.first, structure, splitters)

    def _stretches(self, ts: np.ndarray) -> np.ndarray:
        """Return the stretch of event time that each tuple is in: one for all without a bound."""
        length = self._rule.stretch_ns
        return np.zeros_like(ts) if length is None else ts // length


def _rows_of(batch: Batch, rows: np.ndarray) -> Batch:
    """Return the *rows* of a batch, a mask, in their order: mostly all of them, and no copy."""
    return batch if rows.all() else batch.take(rows)


class Choice(Stateful):
    """Measures one stream, and chooses by what was measured since the choice before.

    "If N_Bat is large or S is large, choose BI-Sort; otherwise, if values do not vary too often and
    do not gradually increase, RaP-Table; and if not, WiB+-Tree" is how the paper puts it (section
    V-A4). Before any value has been measured, values are assumed to vary.
    """

    state = ("_batches", "_tuples", "_probed", "_matches", "_quantiles", "_in_part", "_sample")

    def __init__(self) -> None:
        self._start(quantiles=np.empty(0, np.int64))

    def _start(self, quantiles: np.ndarray) -> None:
        """Start measuring anew; *quantiles* are those of the values measured before."""
        self._batches = self._tuples = self._probed = self._matches = 0
        self._quantiles = quantiles
        self._in_part = np.zeros(PARTS, np.int64)
        self._sample = SlidingColumn(np.int64)

    def measure_batch(self, codes: np.ndarray) -> None:
        """Measure a batch to be stored, as ascending codes."""
        if not len(codes):
            return
        self._batches += 1
        self._tuples += len(codes)
        if len(self._quantiles):
            cuts = np.searchsorted(codes, self._quantiles, "right")
            self._in_part += np.diff(np.concatenate([[0], cuts, [len(codes)]]))
        self._sample.append(codes[:: max(1, len(codes) // PARTS)])

    def measure_probes(self, probed: int, matches: int) -> None:
        """Measure probes: *probed* is probes times subwindows."""
        self._probed += probed
        self._matches += matches

    def choose(self) -> StructureName:
        """Return the structure for the subwindow that begins now, and start measuring anew."""
        chosen: StructureName = "wib_tree"
        stored = int(self._in_part.sum())
        is_large = self._tuples >= LARGE_BATCH * max(1, self._batches)
        if is_large or self._matches >= LARGE_SELECTIVITY * max(1, self._probed):
            chosen = "bi_sort"
        elif stored and self._in_part.max() <= SHARE_MOST * stored:
            chosen = "rap_table"
        ranks = np.arange(1, PARTS) * len(self._sample) // PARTS
        sampled = np.sort(self._sample.values)
        self._start(sampled[ranks] if len(sampled) else self._quantiles)
        return chosen
