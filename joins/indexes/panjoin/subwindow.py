"""Subwindows: runs of a stream's tuples, each filled, probed, and discarded as a whole (III-A).

One field is indexed, the first predicate's; the others are stored beside the structure, by place,
and filter what the structure finds. Several subwindows are probed together, by several threads if
there are (section III-G3). A subwindow of a stream that arrives out of order also has event times,
and a buffer for what comes late (section III-G2).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar, get_args

import numpy as np

from joins.codes import GREATEST, LEAST
from joins.event_time import Candidates
from joins.indexes.index import Ranges, check_columns, make_ranges
from joins.indexes.panjoin.bi_sort import BiSort, Records
from joins.indexes.panjoin.lookup import BLOCK, Lookup, Stored, Structure, StructureName
from joins.indexes.panjoin.rap_table import RapTable
from joins.indexes.panjoin.wib_tree import WibTree
from joins.indexes.windows.nested_loop import NestedLoop
from joins.machine.compiling import kernel
from joins.machine.memory import own_lines
from joins.matches import MatchBuffer, MatchList, ProbeResult
from joins.sliding_column import SlidingColumn
from joins.state import Stateful, storable
from joins.threads import side_by_side, threads_for
from joins.work import NO_WORK, Work, new_counters

STRUCTURES: tuple[StructureName, ...] = get_args(StructureName)
"""Names of the structures."""

CAPACITY_MOST = 2**31 - 1
"""Tuples of a subwindow: a place in it is an int32."""

_BLOCKS_LEAST = 8
"""Blocks of a thread's share: for fewer, calling a kernel takes too long beside what it does."""

_IN_ORDER, _UNSORTED, _GAPS = range(3)


@storable
@dataclass(frozen=True, kw_only=True)
class SubwindowShape:
    """What the subwindows of one stream have in common."""

    predicates: int
    """How many columns a tuple has; the first one is indexed."""
    capacity: int
    """N_Sub, the most tuples."""
    partitions: int
    """P, at most the capacity."""
    sigma: float
    """σ, above 1."""
    buffer: int | None = None
    """Room of a BI-Sort's insertion buffer; None takes a share of the capacity."""
    dtype: str = "int64"
    """What the indexed field is compared in: a RaP-Table interpolates its values."""

    def __post_init__(self) -> None:
        if not 1 <= self.capacity <= CAPACITY_MOST:
            raise ValueError(f"capacity is {self.capacity}, must be 1 to {CAPACITY_MOST}")
        if not 1 <= self.partitions <= self.capacity:
            raise ValueError(
                f"partitions is {self.partitions}, must be 1 to {self.capacity}, the capacity"
            )
        if not self.sigma > 1:
            raise ValueError(f"sigma is {self.sigma}, must be above 1")


class Subwindow(Stateful):
    """Tuples *first*, *first* + 1, ... of a stream.

    Parameters
    ----------
    shape
        What it has in common with its neighbours.
    kind
        One of `STRUCTURES`.
    first
        Stream position of its first tuple.
    splitters
        For a RaP-Table: what `sampled` of its predecessor returned.
    """

    state: ClassVar[tuple[str, ...]] = ("shape", "kind", "_stored", "structure")

    def __init__(
        self,
        shape: SubwindowShape,
        kind: StructureName,
        *,
        first: int,
        splitters: np.ndarray | None = None,
    ) -> None:
        self.shape = shape
        self.kind = kind
        self._stored = Stored(first, 0, np.zeros((shape.predicates - 1, shape.capacity), np.int64))
        self.structure: Structure
        if kind == "bi_sort":
            self.structure = BiSort(shape.capacity, shape.partitions, shape.buffer)
        elif kind == "wib_tree":
            self.structure = WibTree(shape.capacity, shape.partitions, shape.sigma)
        else:
            self.structure = RapTable(
                shape.capacity, shape.partitions, shape.sigma, shape.dtype, splitters
            )

    def __len__(self) -> int:
        return self._stored.size

    @property
    def first(self) -> int:
        """Stream position of its first tuple."""
        return self._stored.first

    @property
    def stop(self) -> int:
        """Stream position after its last tuple."""
        return self._stored.first + self._stored.size

    @property
    def bi_sort(self) -> BiSort:
        """The structure of a subwindow that is known to be a BI-Sort."""
        assert isinstance(self.structure, BiSort)
        return self.structure

    @property
    def sampled(self) -> np.ndarray | None:
        """Splitters for the next subwindow's RaP-Table; None when this one does not sample."""
        return self.structure.sampled if isinstance(self.structure, RapTable) else None

    def insert(self, columns: Sequence[np.ndarray], positions: np.ndarray) -> Work:
        """Insert a batch: the next positions, in ascending order of the first column.

        Parameters
        ----------
        columns
            Per predicate the tuples' codes, int64.
        positions
            int64, the tuples' positions in their stream.

        Raises
        ------
        ValueError
            When the batch does not fit, leaves out a position, or is not sorted.
        TypeError
            When a column is not int64.
        """
        codes, positions = check_columns(self.shape.predicates, columns, positions)
        size, new = self._stored.size, len(positions)
        if size + new > self.shape.capacity:
            raise ValueError(
                f"{new} tuples do not fit: the subwindow has {size} of {self.shape.capacity}"
            )
        places = np.empty(new, np.int32)
        order = _place_batch(codes[0], positions, self.first, size, np.zeros(new, np.bool_), places)
        if order == _UNSORTED:
            raise ValueError("the batch is not in ascending order of the indexed field")
        if order == _GAPS:
            raise ValueError(
                f"the batch does not have every position from {self.stop} to {self.stop + new - 1}"
            )
        for row, others in zip(self._stored.columns, codes[1:], strict=True):
            row[places] = others
        self._stored = self._stored._replace(size=size + new)
        return self.structure.insert(codes[0], places)

    def seal(self) -> Work:
        """Prepare for probes alone: no insertion follows. Only a BI-Sort has anything to do."""
        return self.structure.seal() if isinstance(self.structure, BiSort) else NO_WORK


@kernel
def _place_batch(
    codes: np.ndarray,
    positions: np.ndarray,
    first: int,
    size: int,
    seen: np.ndarray,
    places: np.ndarray,
) -> int:
    """Fill in the places of a batch that is to follow *size* tuples; return what is wrong with it.

    *seen* has a flag for each tuple of the batch, none of them set.
    """
    for i in range(len(codes)):
        if i > 0 and codes[i] < codes[i - 1]:
            return _UNSORTED
        place = positions[i] - first
        new = place - size
        if new < 0 or new >= len(seen) or seen[new]:
            return _GAPS
        seen[new] = True
        places[i] = place
    return _IN_ORDER


def probe_subwindows(
    subwindows: Sequence[Subwindow], ranges: Ranges, *, enumerate: bool = False, threads: int = 1
) -> ProbeResult:
    """Return for every probe the matches in any of *subwindows*.

    Probes are answered fastest in ascending order of their first ranges, and correctly in any. A
    thread takes its share of the probes through all subwindows: threads wake up once, not once per
    subwindow.
    """
    probed = [subwindow for subwindow in subwindows if len(subwindow)]

    def add_matches(buffer: MatchBuffer, next_id: np.ndarray) -> np.ndarray:
        def answer(begin: int, end: int) -> np.ndarray:
            counters = new_counters()
            # Threads share the totals, each row of which is one thread's, but not the count of all.
            own = buffer if threads == 1 else buffer._replace(listed=own_lines(1))
            for subwindow in probed:
                lookup = Lookup(ranges, subwindow._stored, own, next_id, counters)
                subwindow.structure.answer(lookup, begin, end)
            return counters

        return in_threads(answer, len(ranges.start), threads)

    return _count_then_list(add_matches, len(ranges.start), enumerate=enumerate)


def read_records(
    found: Sequence[tuple[Subwindow, Records]], ranges: Ranges, *, enumerate: bool = False
) -> ProbeResult:
    """Return the tuples that the records of subwindows with the same tuples mean."""

    def add_matches(buffer: MatchBuffer, next_id: np.ndarray) -> np.ndarray:
        counters = new_counters()
        for subwindow, records in found:
            lookup = Lookup(ranges, subwindow._stored, buffer, next_id, counters)
            subwindow.bi_sort.read_records(records, lookup)
        return counters

    return _count_then_list(add_matches, len(ranges.start), enumerate=enumerate)


def _count_then_list(
    add_matches: Callable[[MatchBuffer, np.ndarray], np.ndarray], probes: int, *, enumerate: bool
) -> ProbeResult:
    """Return the matches of *probes* probes, counted in one pass and listed in another (`Lookup`).

    *add_matches* makes a pass: it takes `Lookup.buffer` and `Lookup.next_id`, and returns its work
    counters.
    """
    buffer = MatchList(probes, enumerate=False).buffer
    counters = add_matches(buffer, buffer.match_id)
    count, match_id = buffer.matches, None
    if enumerate:
        ends = np.cumsum(count)
        match_id = np.empty(ends[-1] if probes else 0, np.int64)
        add_matches(buffer._replace(match_id=match_id), ends - count)
    return ProbeResult(
        count=count,
        fingerprint=buffer.fingerprint,
        match_id=match_id,
        work=Work.from_counters(counters),
    )


def in_threads(answer: Callable[[int, int], np.ndarray], probes: int, threads: int) -> np.ndarray:
    """Answer *probes* probes in several threads at most; return the sum of the counters.

    Probes are sorted, so a run of consecutive ones goes to a run of consecutive partitions: that is
    how the work is divided. *answer* is called with begin and end of a run, in whole blocks.

    A share is a part of what is left: few calls for most of it, and at the end no thread waits long
    for another, though where ranges are wider a share takes longer.
    """
    blocks, threads = -(-probes // BLOCK), threads_for(probes, threads)
    if threads == 1:
        return answer(0, probes)
    cuts = [0]
    while cuts[-1] < blocks:
        cuts.append(
            min(blocks, cuts[-1] + max(_BLOCKS_LEAST, (blocks - cuts[-1]) // (2 * threads)))
        )
    shares = list(pairwise(min(cut * BLOCK, probes) for cut in cuts))
    counters: np.ndarray = np.sum(
        side_by_side(lambda share: answer(*share), shares, threads), axis=0
    )
    return counters


class OutOfOrderSubwindow(Subwindow):
    """Tuples of a stretch of event time; its positions count them in order of arrival.

    What arrives while the subwindow is the newest one goes into its structure, in any order of
    event times. What arrives later, though it is no newer than a tuple in it, goes into a small
    buffer beside the structure, so that a structure that is full is left alone. Structure and
    buffer each know their oldest and newest event time: a probe looks into neither of them if its
    window does not reach it. "A small buffer" is all that the paper says of its form; it is scanned
    from end to end.
    """

    state = ("_buffer", "_times", "_buffer_times")

    def __init__(
        self, shape: SubwindowShape, kind: StructureName, *, splitters: np.ndarray | None = None
    ) -> None:
        super().__init__(shape, kind, first=0, splitters=splitters)
        self._buffer = NestedLoop(shape.predicates)
        self._times, self._buffer_times = _Times(), _Times()

    def begin_batch(self) -> None:
        """Begin a new batch."""
        for times in (self._times, self._buffer_times):
            times.before_batch = len(times)

    def insert_timed(self, columns: Sequence[np.ndarray], ids: np.ndarray, ts: np.ndarray) -> Work:
        """Insert a batch into the structure, in ascending order of the first column.

        Parameters
        ----------
        columns
            Per predicate the tuples' codes, int64.
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
        places = np.arange(len(self._buffer_times), len(self._buffer_times) + len(ids))
        self._buffer_times.append(ids, ts)
        return self._buffer.insert(columns, places)

    def find_candidates(
        self, ranges: Ranges, first: np.ndarray, last: np.ndarray, threads: int
    ) -> tuple[list[Candidates], Work]:
        """Return what satisfies the predicates where a probe's range of event time reaches.

        Parameters
        ----------
        ranges
            The positions that they see are not looked at.
        first, last
            int64, the event times between which each can pair, both included.
        """
        candidates, work = [], Work(comparisons=2 * len(first))
        rows = self._times.reached(first, last)
        if len(rows):
            reaching = _rows_of(ranges, rows)
            found = probe_subwindows([self], reaching, enumerate=True, threads=threads)
            candidates.append(self._times.candidates(rows, found))
            work += found.work
        rows = self._buffer_times.reached(first, last)
        if len(rows):
            found = self._buffer.probe(_rows_of(ranges, rows), enumerate=True)
            candidates.append(self._buffer_times.candidates(rows, found))
            work += found.work
        return candidates, work


class _Times(Stateful):
    """Positions and event times of tuples in the order of their arrival."""

    state = ("_id", "_ts", "_earliest", "_latest", "before_batch")

    def __init__(self) -> None:
        self._id, self._ts = SlidingColumn(np.int64), SlidingColumn(np.int64)
        self._earliest, self._latest = GREATEST, LEAST
        self.before_batch = 0
        """How many came in batches before the present one."""

    def __len__(self) -> int:
        return len(self._id)

    def append(self, ids: np.ndarray, ts: np.ndarray) -> None:
        self._id.append(ids)
        self._ts.append(ts)
        self._earliest = int(ts.min(initial=self._earliest))
        self._latest = int(ts.max(initial=self._latest))

    def reached(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """Return the rows of probes whose ranges of event time reach one of the tuples."""
        if not len(self):
            return np.empty(0, np.int64)
        return np.flatnonzero((first <= self._latest) & (last >= self._earliest))

    def candidates(self, rows: np.ndarray, found: ProbeResult) -> Candidates:
        place = found.match_id
        assert place is not None
        fresh = place >= self.before_batch
        ids, times = self._id.values[place], self._ts.values[place]
        return Candidates(np.repeat(rows, found.count), ids, times, fresh)


def _rows_of(ranges: Ranges, rows: np.ndarray) -> Ranges:
    """Return some of the probes, which see every position."""
    return make_ranges(ranges.low[:, rows], ranges.high[:, rows], negated=ranges.negated)
