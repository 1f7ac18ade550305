"""SPO-Join's immutable component: permutation PEs, PO-Join PEs, and how these see the window.

A permutation PE relates the orders of a stream's fields (Algorithm 2); a PO-Join PE has a list of
sealed epochs, probed by every tuple (sections 3.4, 4.2 and 4.3).

How does a PO-Join PE learn what has left the window (section 4.2)? The router, which alone sees all
arrivals in order, adds to every tuple the positions it sees. A PE that goes by them (`Carried`) is
exact, and needs no further message. The paper has three other ways, which need no such bounds and
find some expired tuples: a PE expires by the epochs assigned to it (`OwnSlide`), counts the tuples
merged (`MergedCounts`), or reads the first PE's count from a cache (`Cached` and `Cache`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from actors.protocol import FEEDBACK, Actor, Context, Message, Payload
from actors.results import Found, send_answers
from actors.source import Probes
from actors.spo_join.mutable import Offsets, SortedField
from actors.spo_join.router import MergeFlag, Routed, UpTo
from joins.batch import Schema
from joins.indexes.immutable.order_arrays import permutation
from joins.indexes.immutable.segment import ImmutableSegment, probe_all
from joins.indexes.index import ranges_of
from joins.indexes.range_search import Brackets
from joins.indexes.structures import SEGMENTS
from joins.matches import ProbeResult
from joins.queries.query import JoinQuery, JoinSides
from joins.queries.windows import Window
from joins.state import Stateful, storable
from joins.work import Step, Work, structure_name


@dataclass(frozen=True, slots=True)
class Permutations(UpTo):
    """One stream's permutation arrays of an epoch (permutation PE to PO-Join PE).

    Attributes
    ----------
    epoch, stream
        What they belong to.
    first
        Position of the epoch's first tuple in its stream.
    last
        Arrival number of the epoch's last tuple.
    lead_ids
        int64, the tuples in the order of the first predicate's field.
    arrays
        Per further predicate, for each place in its field's order the place in the lead's.
    """

    epoch: int
    stream: int
    first: int
    last: int
    lead_ids: np.ndarray
    arrays: tuple[np.ndarray, ...]

    bytes_of = ("first", "last", "lead_ids", "arrays")
    rows_of = ("lead_ids",)


@dataclass(frozen=True, slots=True)
class MergedCount(UpTo):
    """How many tuples of one stream were merged into another PO-Join PE's segments (Figure 6 A).

    *last* is the arrival number of the epoch's last tuple.
    """

    stream: int
    tuples: int
    last: int


class PermutationPE(Actor):
    """Gathers one stream's sorted fields of an epoch and relates their orders.

    Ports: ``po_join`` (by epoch, round robin); with *announces* also ``window``, on which it sends
    all other PO-Join PEs the number of tuples that it sent to that one (Figure 6 A).
    """

    state = ("_gathered",)

    def __init__(self, *, predicates: int, announces: bool = False) -> None:
        self._predicates = predicates
        self._announces = announces
        self._gathered: dict[tuple[int, int], dict[int, np.ndarray]] = {}

    def receive(self, message: Message, context: Context) -> None:
        """Add one sorted field; the last one of an epoch and stream completes it."""
        latest: SortedField = message.payload
        key = (latest.epoch, latest.stream)
        fields = self._gathered.setdefault(key, {})
        fields[latest.predicate] = latest.ids
        if len(fields) < self._predicates:
            return
        del self._gathered[key]
        lead = fields[0]
        arrays = []
        for predicate in range(1, self._predicates):
            array, work = permutation(lead, fields[predicate], first=latest.first)
            context.charge(work, Step("order_arrays.permutation", len(lead), len(lead)))
            arrays.append(array)
        pes = len(context.peers("po_join"))
        home = latest.epoch % pes
        permutations = Permutations(
            latest.epoch, latest.stream, latest.first, latest.last, lead, tuple(arrays)
        )
        context.send("po_join", permutations, to=home)
        if self._announces:
            for pe in range(pes):
                if pe != home:
                    context.send(
                        "window", MergedCount(latest.stream, len(lead), latest.last), to=pe
                    )


@dataclass(frozen=True, slots=True)
class WindowCount(UpTo):
    """How many tuples of each stream the first PO-Join PE has evaluated (Figure 6 B).

    *last* is the arrival number of the latest.
    """

    counts: tuple[int, ...]
    last: int

    bytes_of = ("counts",)


@dataclass(frozen=True, slots=True)
class SyncRequest(Payload):
    """PO-Join PE number *pe* asks the cache for the count."""

    pe: int


class WindowState(Stateful, ABC):
    """How far the window has moved, as one PO-Join PE sees it.

    A PE asks it for the bounds of its probes and for what has expired, and reports what happens; a
    subclass overrides the events that it learns from.
    """

    def bounds(self, part: Probes) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return the positions that the tuples of *part* see: by default whole segments."""
        return None, None

    def reaches(self, part: Probes, stop: int) -> bool:
        """Return whether a tuple of *part* may see what is before position *stop*."""
        return len(part) > 0

    def before_evaluation(self, context: Context) -> None:
        """Prepare for tuples that are about to be evaluated."""

    def after_evaluation(self, routed: Routed, context: Context) -> None:
        """Update the window by tuples that were evaluated (Algorithm 4, line 12)."""

    def on_permutations(self, arrays: Permutations) -> None:
        """Update the window by a permutation array that was assigned to this PE."""

    def on_count(self, count: MergedCount | WindowCount) -> None:
        """Update the window by another operator's count."""

    @abstractmethod
    def is_expired(self, stream: int, epoch: int, stop: int) -> bool:
        """Return whether an epoch's segment of *stream* has left the window.

        *stop* is the position after the segment's last.
        """


class Carried(WindowState):
    """Every tuple carries its window: exact, and no message more.

    A probe cannot find what has expired, however late a PE drops it; and since windows only move
    forward, the bounds that pass by show when to.

    Parameters
    ----------
    stored
        Per probing stream the stream it probes.
    """

    state = ("_horizon",)

    def __init__(self, *, stored: Sequence[int]) -> None:
        self._stored = tuple(stored)
        self._horizon = [0] * len(stored)

    def bounds(self, part: Probes) -> tuple[np.ndarray | None, np.ndarray | None]:
        """Return what the tuples carry."""
        return part.start, part.stop

    def reaches(self, part: Probes, stop: int) -> bool:
        """Return whether the window of the first tuple begins before *stop*."""
        return len(part) > 0 and bool(part.start[0] < stop)

    def after_evaluation(self, routed: Routed, context: Context) -> None:
        """Store the last bounds that passed by."""
        for stream, part in enumerate(routed.parts):
            if len(part):
                self._horizon[self._stored[stream]] = int(part.start[-1])

    def is_expired(self, stream: int, epoch: int, stop: int) -> bool:
        """Return whether no later probe can see any of it."""
        return stop <= self._horizon[stream]


class OwnSlide(WindowState):
    """The first way: a new permutation array means that the PE's oldest epoch has expired.

    Epochs are assigned in turns, so a PE learns that the window has moved only when its own turn
    comes: up to as many merges late as there are PEs. In the paper the new array replaces the
    existing slide, which supposes a PE for every slide of the window; here a PE has as many as can
    fall to it, so that a smaller number of PEs loses nothing.

    Parameters
    ----------
    pes
        Number of PO-Join PEs.
    epochs
        Epochs of the window that fall to one PE at most, the newest included.
    """

    state = ("_newest",)

    def __init__(self, *, pes: int, epochs: int) -> None:
        self._reach = pes * epochs
        self._newest = -1

    def on_permutations(self, arrays: Permutations) -> None:
        """Move on to the epoch of a new array."""
        self._newest = max(self._newest, arrays.epoch)

    def is_expired(self, stream: int, epoch: int, stop: int) -> bool:
        """Return whether enough newer epochs were assigned to this PE."""
        return epoch <= self._newest - self._reach


class Counted(WindowState):
    """Takes a count for the number of tuples that have arrived, per stream.

    Parameters
    ----------
    windows
        One per stream, over that stream, by count.
    """

    state = ("_counts",)

    def __init__(self, *, windows: Sequence[Window]) -> None:
        self._windows = tuple(windows)
        self._counts = [0] * len(windows)

    def is_expired(self, stream: int, epoch: int, stop: int) -> bool:
        """Return whether a tuple that so many precede would see none of it."""
        return bool(stop <= self._windows[stream].bound(np.array([self._counts[stream]]))[0])


class MergedCounts(Counted):
    """The second way: tuples merged so far, of its own arrays and of other PEs' as announced.

    The count is behind the stream by what has not been merged, and by the time that a merge takes;
    a slide that expires meanwhile is still probed until then.
    """

    def on_permutations(self, arrays: Permutations) -> None:
        """Add the tuples of an array of this PE."""
        self._counts[arrays.stream] += arrays.rows

    def on_count(self, count: MergedCount | WindowCount) -> None:
        """Add the tuples of an array of another PE."""
        assert isinstance(count, MergedCount)
        self._counts[count.stream] += count.tuples


class Cached(Counted):
    """The third way: the first PE counts tuples, and the others read its count from a cache.

    Every PE sees every tuple, so the first PE's count of what it has evaluated is the stream's. It
    publishes the count when it has evaluated tuples and *interval_ns* have passed; the others ask
    for it when tuples come and *interval_ns* have passed, and go on with the old count until the
    answer is there. A count that is old finds expired slides; one that comes from a PE far ahead in
    the stream expires what a slower PE's tuples should still see.

    The paper adds the evaluated tuples to the partitioner's count of merged ones. Merged tuples
    were evaluated before, so the sum counts them twice unless the first is reset at every merge;
    then it is the count used here.

    Port: ``cache``.

    Parameters
    ----------
    windows
        One per stream, over that stream, by count.
    pe
        This PE's index; 0 is the first.
    interval_ns
        Least virtual time between two of its messages to the cache.
    """

    state = ("_last_ns",)

    def __init__(self, *, windows: Sequence[Window], pe: int, interval_ns: int) -> None:
        super().__init__(windows=windows)
        self._pe = pe
        self._interval_ns = interval_ns
        self._last_ns: int | None = None

    def before_evaluation(self, context: Context) -> None:
        """Ask the cache for the count, if it is time to."""
        if self._pe and self._is_time(context):
            context.send("cache", SyncRequest(self._pe))

    def after_evaluation(self, routed: Routed, context: Context) -> None:
        """Count tuples, and publish the count if it is time to."""
        if self._pe:
            return
        for stream, part in enumerate(routed.parts):
            self._counts[stream] += len(part)
        if self._is_time(context):
            context.send("cache", WindowCount(tuple(self._counts), routed.span[1]))

    def on_count(self, count: MergedCount | WindowCount) -> None:
        """Replace the count by the first PE's."""
        assert isinstance(count, WindowCount)
        self._counts = list(count.counts)

    def _is_time(self, context: Context) -> bool:
        if self._last_ns is not None and context.now - self._last_ns < self._interval_ns:
            return False
        self._last_ns = context.now
        return True


class Cache(Actor):
    """The distributed cache: stores the last published count, and sends it to a PE that asks.

    Port: `FEEDBACK` to the PO-Join PEs: an answer that needed room at a PE which waits for room at
    the cache would end the run.
    """

    state = ("_count",)

    def __init__(self) -> None:
        self._count: WindowCount | None = None

    def receive(self, message: Message, context: Context) -> None:
        """Store a count, or answer with the one stored."""
        payload = message.payload
        if isinstance(payload, WindowCount):
            self._count = payload
        elif self._count is not None:
            context.send(FEEDBACK, self._count, to=payload.pe)


@storable
@dataclass(slots=True)
class Sealed:
    """One epoch's immutable structure: a segment per stream and the offsets between them."""

    epoch: int
    segments: tuple[ImmutableSegment, ...]
    offsets: tuple[np.ndarray, ...] | None

    @property
    def brackets(self) -> Brackets | None:
        """Stream 0's sorted keys and where they fall among stream 1's; None in a self join."""
        return None if self.offsets is None else Brackets(self.segments[0].keys, self.offsets)

    def stop(self, stream: int) -> int:
        """Return the position after the epoch's last of *stream*."""
        return self.segments[stream].first + len(self.segments[stream])


@storable
@dataclass(slots=True)
class Assembly:
    """A record of the assembling table: an epoch's arrays as they come in (section 4.3)."""

    offsets: dict[int, Offsets] = field(default_factory=dict)
    permutations: dict[int, Permutations] = field(default_factory=dict)

    def add(self, arrays: Offsets | Permutations) -> None:
        """Add one array."""
        if isinstance(arrays, Offsets):
            self.offsets[arrays.predicate] = arrays
        else:
            self.permutations[arrays.stream] = arrays

    def is_complete(self, *, predicates: int, streams: int) -> bool:
        """Return whether every array is here."""
        return len(self.offsets) == predicates and len(self.permutations) == streams

    def seal(self, epoch: int, structure: type[ImmutableSegment]) -> Sealed:
        """Build *structure* for every stream."""
        by_predicate = [arrays for _, arrays in sorted(self.offsets.items())]
        segments = tuple(
            structure(
                [arrays.keys[stream] for arrays in by_predicate],
                permutations.lead_ids,
                permutations.arrays,
                first=permutations.first,
            )
            for stream, permutations in sorted(self.permutations.items())
        )
        offsets = [arrays.offsets for arrays in by_predicate]
        known = tuple(array for array in offsets if array is not None)
        return Sealed(epoch, segments, known if len(known) == len(offsets) else None)


class PoJoinPE(Actor):
    """Seals the epochs that fall to it into segments, and probes them with every tuple.

    From the flag of an epoch until its arrays have come, tuples are queued for it: they probe the
    segments that are there at once, and the new one when it is built.

    A segment is probed until it has expired, as the window state sees it, and dropped when that is
    true of its epoch in every stream.

    Ports: ``sink``, and what its window state asks for.

    Parameters
    ----------
    query, schemas
        The join.
    window
        Makes the PE's window state.
    immutable
        What epochs are sealed into: a name in `joins.indexes.structures.SEGMENTS`, or a class.
    threads
        Threads over the list of segments.
    pairs
        Whether to report match ids.
    """

    state = ("_sealed", "_assembling", "_queues", "_window")

    def __init__(
        self,
        *,
        query: JoinQuery,
        schemas: tuple[Schema, ...],
        window: Callable[[], WindowState],
        immutable: str | type[ImmutableSegment],
        threads: int,
        pairs: bool,
    ) -> None:
        self._sides = JoinSides(query, schemas)
        self._window = window()
        self._segment = immutable if isinstance(immutable, type) else SEGMENTS[immutable]
        self._structure = structure_name(immutable)
        self._threads = threads
        self._pairs = pairs
        self._sealed: list[Sealed] = []
        self._assembling: dict[int, Assembly] = {}
        self._queues: dict[int, list[Routed]] = {}

    def receive(self, message: Message, context: Context) -> None:
        """Probe tuples, start a queue at a flag, take an array of an epoch, or a count."""
        payload = message.payload
        if isinstance(payload, Routed):
            self._evaluate(payload, context)
        elif isinstance(payload, MergeFlag):
            self._queues[payload.epoch] = []
            self._seal_if_complete(payload.epoch, context)
        elif isinstance(payload, Offsets | Permutations):
            if isinstance(payload, Permutations):
                self._window.on_permutations(payload)
            self._assembling.setdefault(payload.epoch, Assembly()).add(payload)
            self._seal_if_complete(payload.epoch, context)
        elif isinstance(payload, MergedCount | WindowCount):
            self._window.on_count(payload)
        else:
            raise TypeError(f"a PO-Join PE cannot receive a {type(payload).__name__}")
        self._drop_expired()

    def _evaluate(self, routed: Routed, context: Context) -> None:
        self._window.before_evaluation(context)
        self._probe([routed], self._alive(), context)
        for queue in self._queues.values():
            queue.append(routed)
        self._window.after_evaluation(routed, context)

    def _seal_if_complete(self, epoch: int, context: Context) -> None:
        """Build the epoch's structure once all arrays and the flag are here; drain its queue."""
        assembly = self._assembling.get(epoch)
        if (
            assembly is None
            or epoch not in self._queues
            or not assembly.is_complete(
                predicates=len(self._sides.probing[0]), streams=len(self._sides.probing)
            )
        ):
            return
        del self._assembling[epoch]
        sealed = assembly.seal(epoch, self._segment)
        for segment in sealed.segments:
            step = Step(f"{self._structure}.seal", len(segment), len(segment))
            context.charge(segment.work, step)
        self._sealed.append(sealed)
        # Queued tuples saw the epoch whole, whatever has expired since. Where slides are short and
        # arrays take long to come, most came too late to see any of it.
        stops = [sealed.stop(stored) for stored in self._sides.stored_stream]
        queue = [
            routed
            for routed in self._queues.pop(epoch)
            if any(map(self._window.reaches, routed.parts, stops))
        ]
        if queue:
            self._probe(queue, [[sealed]] * len(self._sides.probing), context)

    def _probe(
        self, queue: Sequence[Routed], structures: list[list[Sealed]], context: Context
    ) -> None:
        """Probe each stored stream's *structures*; report the matches of each message in *queue*.

        All of them probe at once: where epochs are short, messages have few tuples each, and a call
        costs more than its matches.
        """
        answers: list[list[Found]] = [[] for _ in queue]
        for stream, stored in enumerate(self._sides.stored_stream):
            parts = [routed.parts[stream] for routed in queue]
            rows = [len(part) for part in parts]
            if not any(rows) or not structures[stored]:
                continue
            part = Probes.concat(parts)
            results = self._find(structures[stored], part, stream)
            size = sum(len(sealed.segments[stored]) for sealed in structures[stored])
            step = Step(f"{self._structure}.probe", len(part), size)
            for work in busiest([one.work for one in results], self._threads):
                context.charge(work, step)
            matches = ProbeResult.sum(results).of(stream, part.batch.id)
            for i, of_part in enumerate(matches.split(rows)):
                answers[i].append(Found(of_part, parts[i].born_ns, queue[i].span))
        for answer in answers:
            send_answers(answer, context)

    def _find(
        self, structures: Sequence[Sealed], part: Probes, stream: int
    ) -> Sequence[ProbeResult]:
        """Probe the segments that *stream* probes in *structures* (at least one) with *part*."""
        stored, conditions = self._sides.stored_stream[stream], self._sides.probing[stream]
        return probe_all(
            [sealed.segments[stored] for sealed in structures],
            ranges_of(conditions, part.batch, *self._window.bounds(part)),
            brackets=[sealed.brackets if stream == 0 else None for sealed in structures],
            threads=self._threads,
            enumerate=self._pairs,
        )

    def _alive(self) -> list[list[Sealed]]:
        """Return per stored stream the epochs that have not expired."""
        return [
            [
                sealed
                for sealed in self._sealed
                if not self._window.is_expired(stream, sealed.epoch, sealed.stop(stream))
            ]
            for stream in range(len(self._sides.probing))
        ]

    def _drop_expired(self) -> None:
        alive = {sealed.epoch for stream in self._alive() for sealed in stream}
        self._sealed = [sealed for sealed in self._sealed if sealed.epoch in alive]


def busiest(works: Sequence[Work], threads: int) -> list[Work]:
    """Return which *works* the busiest thread does when each takes the next one as it is free.

    In Algorithm 4 threads take the segments of the list one by one, under a lock. The result is the
    time until the last thread is done, on a machine with a core for each; which thread is free
    first follows from counted operations, all taken as equally long.
    """
    shares: list[list[Work]] = [[] for _ in range(min(threads, len(works)))]
    spent = [0] * len(shares)
    for work in works:
        free = spent.index(min(spent))
        shares[free].append(work)
        spent[free] += sum(work)
    return shares[spent.index(max(spent))]
