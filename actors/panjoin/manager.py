"""The manager: collects, preprocesses and sends (steps 1 to 3), and handles feedback (step 5).

Prefilters come before it (section III-A), if there are any. It has four parts: the `Assembler`
gathers arrivals into batches; a chain per stream (`actors.panjoin.chain`) cuts batches into
subwindows; the `Mirror` turns the workers' records back into tuples; `Manager` sends commands.
`OutOfOrderManager` does it for streams that arrive out of order (section III-G2).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from actors.panjoin.chain import Chain, ChainRule
from actors.panjoin.messages import Commands, Expire, Feedback, Insert, ResultsTo, WorkerResult
from actors.panjoin.worker import IndexedQuery, WorkerSubwindows
from actors.protocol import FEEDBACK, TIMER, Actor, Context, Message
from actors.results import Found, send_answers
from actors.source import Fed, Probes, as_probes
from actors.stream_source import drop_late
from joins.arrivals import Arrivals
from joins.batch import Batch, Schema
from joins.epochs import EpochCutter, MergeThreshold
from joins.event_time import NO_WATERMARK, EventTimeBounds
from joins.indexes.panjoin.subwindow import SubwindowShape, read_records
from joins.matches import Matches
from joins.queries.query import JoinQuery
from joins.queries.windows import WindowBounds
from joins.radix_sort import sort_codes
from joins.state import Stateful, storable
from joins.work import Work


def project_join_fields(fed: Fed, fields: Sequence[Sequence[str]]) -> Fed:
    """Return arrivals with the join fields alone, per stream; their declared width is dropped."""
    parts = tuple(
        part.project(names) for part, names in zip(fed.arrivals.parts, fields, strict=True)
    )
    return Fed(Arrivals(parts, fed.arrivals.seq), fed.born_ns)


class Spreader(Actor):
    """Deals messages out to prefilters in turns; port ``prefilter``."""

    state = ("_next",)

    def __init__(self) -> None:
        self._next = 0

    def receive(self, message: Message, context: Context) -> None:
        """Pass one message on."""
        context.send("prefilter", message.payload, to=self._next)
        self._next = (self._next + 1) % len(context.peers("prefilter"))


class Prefilter(Actor):
    """Retrieves the join fields of arrivals, so that the manager need not; port ``manager``."""

    state = ()

    def __init__(self, *, query: JoinQuery) -> None:
        self._fields = [query.fields(stream) for stream in range(len(query.streams))]

    def receive(self, message: Message, context: Context) -> None:
        """Filter one message."""
        filtered = project_join_fields(message.payload, self._fields)
        context.charge(Work(bytes_copied=filtered.nbytes))
        context.send("manager", filtered)


@storable
@dataclass(frozen=True, slots=True)
class CollectedBatch:
    """A batch: per stream its tuples with their windows, and where those of later ones begin."""

    parts: tuple[Probes, ...]
    """One per stream, in order of arrival."""
    horizon: tuple[int, ...]
    """Per stream the horizon of the bounds after these tuples."""
    span: tuple[int, int]
    """First and last arrival number."""


class Assembler(Stateful):
    """Gathers arrivals, in their order, into batches (step 1).

    A batch is full when it has *batch_count* tuples of one stream. All buffers are then emptied: a
    tuple of the other stream that came earlier must be stored when the later one probes.
    """

    state = ("_bounds", "_cutter", "_next_arrival", "_early", "_gathered", "_spans")

    def __init__(
        self, bounds: WindowBounds | EventTimeBounds, streams: int, batch_count: int
    ) -> None:
        self._bounds = bounds
        self._streams = streams
        self._threshold = MergeThreshold(kind="count", length=batch_count)
        self._next_arrival = 0
        self._early: dict[int, Fed] = {}
        self._gathered: list[tuple[Probes, ...]] = []
        self._spans: list[tuple[int, int]] = []
        self._cutter = EpochCutter(self._threshold, self._streams)

    @property
    def is_empty(self) -> bool:
        """Whether no tuple is waiting."""
        return not self._gathered

    def add(self, fed: Fed) -> list[CollectedBatch]:
        """Add arrivals and return the batches that are full.

        Prefilters work side by side, so that one may overtake another: what comes early waits.
        """
        self._early[fed.span[0]] = fed
        full = []
        while self._next_arrival in self._early:
            fed = self._early.pop(self._next_arrival)
            self._next_arrival = fed.span[1] + 1
            full += self._gather(fed)
        return full

    def empty(self) -> CollectedBatch:
        """Return what has gathered (at least one tuple) as a batch before it is full."""
        self._cutter = EpochCutter(self._threshold, self._streams)
        return self._pack()

    def _pack(self) -> CollectedBatch:
        parts = [Probes.concat(pieces) for pieces in zip(*self._gathered, strict=True)]
        span = self._spans[0][0], self._spans[-1][1]
        self._gathered, self._spans = [], []
        return CollectedBatch(tuple(parts), self._bounds.horizon, span)

    def _gather(self, fed: Fed) -> list[CollectedBatch]:
        full = []
        for cut in self._cutter.cut(fed.arrivals):
            piece = fed.slice(cut.starts, cut.stops)
            # Window by window as batches go: the horizon is then that of the batch.
            self._gathered.append(as_probes(piece, self._bounds))
            self._spans.append(piece.span)
            if cut.ends_epoch:
                full.append(self._pack())
        return full


class Mirror(Stateful):
    """Copies of the workers' BI-Sort subwindows, which turn records back into tuples.

    The mirror of a worker executes the commands about a batch when the worker's answer comes,
    neither sooner nor later: the places that the records name are then the same in both.
    """

    state = ("_workers", "_sent")

    def __init__(
        self,
        query: IndexedQuery,
        shapes: tuple[SubwindowShape, ...],
        workers: int,
        *,
        pairs: bool,
    ) -> None:
        self._query = query
        self._pairs = pairs
        self._workers = [WorkerSubwindows(query, shapes, ("bi_sort",)) for _ in range(workers)]
        self._sent: dict[tuple[int, int], Commands] = {}

    def expect_answer(self, worker: int, commands: Commands) -> None:
        """Remember the commands to a worker until it answers."""
        self._sent[worker, commands.number] = commands

    def translate(self, feedback: Feedback, context: Context) -> None:
        """Catch up with a worker, and send its answer on as tuples."""
        commands = self._sent.pop((feedback.worker, feedback.number))
        subwindows = self._workers[feedback.worker]
        for work, step in subwindows.insert(commands):
            context.charge(work, step)
        found = []
        for stream, (part, result) in enumerate(zip(commands.probe, feedback.results, strict=True)):
            if len(part):
                matches = self._read(stream, part, result, subwindows, context)
                found.append(Found(matches, part.born_ns, commands.span))
        send_answers(found, context)
        subwindows.expire(commands)

    def _read(
        self,
        stream: int,
        part: Probes,
        result: WorkerResult,
        subwindows: WorkerSubwindows,
        context: Context,
    ) -> Matches:
        stored = subwindows.of_stream(self._query.stored_stream[stream])
        records = [(stored[number], records) for number, records in result.records.items()]
        ranges = self._query.ranges(stream, part)
        found = read_records(records, ranges, enumerate=self._pairs)
        context.charge(found.work)
        matches = found.of(stream, part.batch.id)
        return matches if result.matches is None else Matches.sum([matches, result.matches])


@dataclass(kw_only=True, eq=False)
class Manager(Actor):
    """Assigns subwindows to workers, and sends the workers commands about each batch.

    Every tuple leaves with the positions it may see, so the answer is exact to the tuple though
    subwindows expire as a whole. A batch goes out as soon as it is packed: the next one is
    collected and packed while the workers process it.

    Ports: ``worker`` (by index), and ``sink`` when results come back here.
    """

    query: JoinQuery
    schemas: tuple[Schema, ...]
    shapes: tuple[SubwindowShape, ...]
    rules: tuple[ChainRule, ...]
    """Per stream what its subwindows have in common, and how it is cut into them."""
    batch_count: int
    collecting_ns: int
    """A batch goes out when one stream has so many tuples waiting, or its first tuple has waited so
    long."""
    results: ResultsTo
    """Where workers send results."""
    pairs: bool

    state: ClassVar[tuple[str, ...]] = ("_assembler", "_chains", "_mirror", "_number")

    def __post_init__(self) -> None:
        self._query = IndexedQuery(self.query, self.schemas)
        self._fields = [self.query.fields(stream) for stream in range(len(self.query.streams))]
        self._assembler = Assembler(self._bounds(), len(self.query.streams), self.batch_count)
        self._chains = [Chain(stream, rule) for stream, rule in enumerate(self.rules)]
        self._workers = self.rules[0].workers
        self._mirror = (
            Mirror(self._query, self.shapes, self._workers, pairs=self.pairs)
            if self.results == "manager"
            else None
        )
        self._number = 0

    def _bounds(self) -> WindowBounds | EventTimeBounds:
        """Return what every tuple sees: the query's windows, in the order of arrival."""
        return WindowBounds(self.query.windows)

    def receive(self, message: Message, context: Context) -> None:
        """Handle arrivals, the end of a batch's time, or a worker's feedback."""
        if message.port == FEEDBACK:
            self._use_feedback(message.payload, context)
        elif message.port.startswith(TIMER):
            # A batch that was full before its time has left this timer behind.
            if message.port == TIMER + self._timer and not self._assembler.is_empty:
                self._process(self._assembler.empty(), context)
        else:
            fed = project_join_fields(message.payload, self._fields)
            was_empty = self._assembler.is_empty
            number = self._number
            for collected in self._assembler.add(fed):
                self._process(collected, context)
            if not self._assembler.is_empty and (was_empty or self._number > number):
                context.set_timer(context.now + self.collecting_ns, self._timer)

    @property
    def _timer(self) -> str:
        return f"batch{self._number}"

    def _process(self, collected: CollectedBatch, context: Context) -> None:
        """Turn a batch into commands, and send each worker its own."""
        insert: list[list[Insert]] = [[] for _ in range(self._workers)]
        expire: list[list[Expire]] = [[] for _ in range(self._workers)]
        probes = list(collected.parts)
        for stream, part in enumerate(collected.parts):
            if not len(part):
                continue
            batch, codes, probes[stream] = self._sort(stream, part, context)
            for worker, inserted in self._chains[stream].store(batch, codes):
                insert[worker].append(inserted)
        probed = [self._chains[stored].workers for stored in self._query.stored_stream]
        for stream, horizon in enumerate(collected.horizon):
            for worker, expired in self._expire(stream, horizon):
                expire[worker].append(expired)
        for worker in range(self._workers):
            commands = Commands(
                self._number,
                tuple(insert[worker]),
                tuple(
                    part if worker in workers else part.slice(0, 0)
                    for part, workers in zip(probes, probed, strict=True)
                ),
                tuple(expire[worker]),
                collected.span,
            )
            if commands.rows or commands.insert or commands.expire:
                context.send("worker", commands, to=worker)
                if self._mirror is not None:
                    self._mirror.expect_answer(worker, commands)
        self._number += 1

    def _expire(self, stream: int, horizon: int) -> list[tuple[int, Expire]]:
        return self._chains[stream].expire(horizon)

    def _use_feedback(self, feedback: Feedback, context: Context) -> None:
        """Use a worker's status, and pass its results on if they come here."""
        for stream, status in enumerate(feedback.status):
            stored = self._chains[self._query.stored_stream[stream]]
            stored.choice.measure_probes(status.probed, status.matches)
            if status.splitters is not None:
                self._chains[stream].use_splitters(status.splitters)
        if self._mirror is not None:
            self._mirror.translate(feedback, context)

    def _sort(
        self, stream: int, part: Probes, context: Context
    ) -> tuple[Batch, np.ndarray, Probes]:
        """Return a stream's tuples in the order of their indexed field, its codes, and probes.

        Probes are in the order of the field that they probe with. Mostly it is the indexed one;
        the tuples are then sorted once, which is charged for either use.
        """
        codes, order, work = sort_codes(self._query.indexed_codes(stream, part.batch))
        context.charge(work)
        if self._query.probes_as_stored(stream):
            context.charge(work)
            probes = part.take(order)
            return probes.batch, codes, probes
        stored = part.batch.take(order)
        _, order, work = sort_codes(self._query.probing_codes(stream, part.batch))
        context.charge(work)
        return stored, codes, part.take(order)


@dataclass(kw_only=True, eq=False)
class OutOfOrderManager(Manager):
    """Sends late tuples to the sink, and the others with the event times that they pair with.

    No tuple waits until it is in order: it probes and is stored as it arrives, unless a watermark
    has passed it. It then is late: dropped, and reported. A subwindow expires when the newest event
    time in it has left the windows of all tuples that are not late.
    """

    lag_ns: int | None
    """How far watermarks stay behind the latest event time; None: there are none."""

    state = ("_watermark",)

    def __post_init__(self) -> None:
        self._event_times = EventTimeBounds(self.query, self.lag_ns)
        super().__post_init__()
        self._watermark = NO_WATERMARK

    def _bounds(self) -> EventTimeBounds:
        return self._event_times

    def _process(self, collected: CollectedBatch, context: Context) -> None:
        parts = tuple(
            drop_late(stream, part, self._watermark, collected.span, context)
            for stream, part in enumerate(collected.parts)
        )
        super()._process(replace(collected, parts=parts), context)
        self._watermark = collected.horizon[0]

    def _expire(self, stream: int, horizon: int) -> list[tuple[int, Expire]]:
        return self._chains[stream].expire_older(self._event_times.oldest_seen(stream, horizon))
